//! What memory management costs on this machine, measured in processes of their own.

pub mod alloc;
pub mod cycle;
pub mod faults;
pub mod touch;
