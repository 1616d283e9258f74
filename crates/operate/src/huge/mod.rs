//! Huge pages: what they would gain on this machine and for a process, and controlling them live.

pub mod balance;
pub mod probe;
pub mod trace;
