//! From events to facts about page faults: lifetimes of memory, causes of faults, their costs, and
//! the account of a run's time. Pure: no I/O, no clock, no randomness except a given seed.
#![forbid(unsafe_code)]

pub mod account;
mod attribute;
mod causes;
mod churn;
mod flame;
mod latency;
#[cfg(test)]
#[path = "../../profile/src/made.rs"]
mod made;
mod measure;
mod numa;
pub mod paging;
pub mod runtimes;
mod touched;

pub use causes::*;
pub use measure::{measure, touched};
