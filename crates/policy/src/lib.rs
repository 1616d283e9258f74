//! Paging policies: which pages to evict, and which to read ahead of a fault.
//!
//! A separate crate because two programs run the same code: the pager inside a live process, and
//! the simulator on a recorded trace (`pagewise-simulate`). Nothing here makes system calls, reads
//! a clock or allocates memory while it works. Without std, whose panics need thread-local storage.
#![cfg_attr(not(test), no_std)]
#![deny(unsafe_code)]

extern crate alloc;

pub mod alone;
pub mod catalogue;
pub mod clock;
pub mod csr;
pub mod fifo;
pub mod foreign;
pub mod page;
pub mod policy;
pub mod prefetch;
pub mod queue;
pub mod replay;
pub mod roles;
pub mod s3fifo;
pub mod stream;
pub mod streaming;
pub mod sweep;
pub mod trace;
pub mod two_queue;
mod width;

pub use catalogue::{Config, POLICIES, PolicyError, by_name};
pub use page::{Arrival, Fault, FaultKind, MAX_PAGES, Page, Plan, Role, Span, Use};
pub use policy::Policy;
