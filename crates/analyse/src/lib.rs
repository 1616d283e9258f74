//! From events to findings, and from findings to advice. Pure: no I/O, no clock, no randomness
//! except a given seed.
#![forbid(unsafe_code)]

mod account;
mod assemble;
mod attribute;
pub mod balance_verdict;
pub mod budget_shares;
mod churn;
pub mod faults;
mod flame;
pub mod gain;
pub mod gate;
mod latency;
pub mod memory;
mod numa;
pub mod page_sizes;
pub mod paging;
pub mod plan;
pub mod probe;
pub mod profile;
pub mod proof;
pub mod recording;
mod rule_file;
pub mod run_diff;
mod runtimes;
mod template;
pub mod tune;

pub use assemble::{findings, measure};
pub use rule_file::RuleError;
