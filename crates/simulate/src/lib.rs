//! Predicts behaviour under other page sizes, controllers and paging policies. Pure: no I/O, no
//! clock, no randomness except a given seed.
//!
//! | module | simulates |
//! |---|---|
//! | [`tlb`] | address translation, access by access, on a processor described as data |
//! | [`page_sizes`] | programs under fixed page sizes and under controllers, with [`tlb`] |
//! | [`paging`] | paging policies on a recorded trace of faults, with Belady's MIN |
//!
//! [`balance`] contains the controllers themselves: they run in the simulator's loop and, through
//! `pagewise huge balance`, on live processes. [`budget_shares`] divides the budget of a run among
//! its processes.
#![forbid(unsafe_code)]

pub mod balance;
pub mod budget_shares;
pub mod page_sizes;
pub mod paging;
mod parallel;
pub mod tlb;

pub use parallel::in_parallel;
