//! What Pagewise does live: one validated request in, one result out. It joins the kernel
//! (`pagewise-linux`) with the judgement (`pagewise-analyse`, `pagewise-simulate`), which do not
//! know each other.
//!
//! Deliberately absent: arguments, terminals, the layout of texts and pages. Who calls gives a
//! listener for what is to be said meanwhile.

#![forbid(unsafe_code)]

#[cfg(test)]
#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

pub mod analysis;
pub mod bench;
pub mod busiest;
pub mod capture;
pub mod destination;
pub mod experiment;
pub mod explain;
pub mod gate;
pub mod huge;
pub mod observe;
pub mod overhead;
pub mod paged_run;
pub mod recording;
pub mod tune;
pub mod watch;

/// Hears in a few words what happens now.
pub type Listener<'a> = dyn Fn(&str) + 'a;
