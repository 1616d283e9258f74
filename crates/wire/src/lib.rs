//! Records shared by the pager, inside a running program, and the `pagewise` command.
//!
//! Everything here is in shared memory or in a file: `repr(C)`, no pointers, sizes asserted. The
//! version of a record is increased with each change of it.
#![no_std]
#![forbid(unsafe_code)]

pub mod histogram;
pub mod shared;
pub mod snapshot;
pub mod trace;

/// Version of the shared memory. Both sides come from one build, so they must be equal.
pub const VERSION: u32 = 10;
