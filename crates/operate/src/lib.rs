//! Live operations of Pagewise: one validated request in, one result out. This crate connects the
//! kernel (`pagewise-linux`) with the analysis (`pagewise-answer`, `pagewise-compare`, `pagewise-simulate`), which do
//! not depend on each other.
//!
//! Deliberately absent: arguments, terminals, the layout of texts and pages. Callers pass a
//! listener for messages along the way.

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

pub mod analysis;
pub mod annotate;
pub mod bench;
pub mod busiest;
pub mod capture;
pub mod destination;
pub mod experiment;
pub mod explain;
pub mod gate;
pub mod huge;
pub mod memory;
pub mod observe;
pub mod overhead;
pub mod paged_run;
pub mod push;
pub mod recording;
pub mod tune;
pub mod watch;

/// Receives short messages on current progress.
pub type Listener<'a> = dyn Fn(&str) + 'a;
