//! The kernel's path through page faults, from traces of its functions: call trees, classes and layers,
//! what they cost and what differs between two traces ([`fault_paths`]), and the frequent patterns in
//! call sequences ([`mine`]). Pure: no I/O, no clock, no randomness except a given seed.
#![forbid(unsafe_code)]

pub mod fault_paths;
pub mod mine;
