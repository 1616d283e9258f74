//! From events to findings, and from findings to advice. Pure: no I/O, no clock, no randomness
//! but what is passed in.
#![forbid(unsafe_code)]

pub mod compare;
pub mod faults;
pub mod gain;
pub mod mine;
pub mod plan;
pub mod tune;
