//! From facts and rules to answers: the verdict, diagnoses and advice. Pure: no I/O, no clock, no
//! randomness.
#![forbid(unsafe_code)]

pub mod balance_verdict;
pub mod conservation;
mod findings;
pub mod gain;
pub mod memory;
pub mod page_sizes;
pub mod plan;
pub mod recording;
mod withheld;

pub use findings::findings;
