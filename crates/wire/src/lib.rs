//! Records that the pager, inside a running program, and the command line share.
//!
//! Everything here lies in shared memory or in a file: `repr(C)`, no pointers, sizes asserted.
//! Fields are only added at the end of a record, and [`VERSION`] is raised with each change.
#![no_std]
#![forbid(unsafe_code)]

pub mod shared;
pub mod snapshot;
pub mod trace;

/// Version of everything in this crate. Both sides come out of one build, so they must be equal.
pub const VERSION: u32 = 3;
