//! Records shared by the pager, inside a running program, and the `pagewise` command.
//!
//! Everything here is in shared memory or in a file: `repr(C)`, no pointers, sizes asserted. The
//! version of a record is increased with each change of it.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod histogram;
pub mod settings;
pub mod shared;
pub mod snapshot;
pub mod store;
pub mod trace;

/// Version of the shared memory. Both sides come from one build, so they must be equal.
pub const VERSION: u32 = 10;

/// Bytes in a page: fixed by the only architecture that the pager runs on, x86-64.
pub const PAGE_BYTES: u64 = 4096;
