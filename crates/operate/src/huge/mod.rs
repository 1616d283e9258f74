//! Huge pages: what they would do for this machine and for a process, and driving them live.

pub mod balance;
pub mod probe;
pub mod trace;
