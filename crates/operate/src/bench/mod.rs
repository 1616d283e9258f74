//! The cost of memory management on this machine, measured in separate processes.

pub mod alloc;
pub mod cycle;
pub mod faults;
pub mod touch;
