//! A page's word and the locks: everything with which threads of the pager wait for each other,
//! except special queues (budget, buffers, rings).
//!
//! ```text
//!   word   ── the state of a page, in four bytes
//!   page   ── the word as the page's lock           gate ── closed while a fork is under way
//!   lock   ── the lock of everything else           changes ── of mappings, or none for a moment
//!   ───────────────────────────────────────────────
//!   shim   ── atomics, and sleeping on one: the kernel's futex, or loom's threads
//! ```
//!
//! Nothing here depends on what is paged, so that loom can try every interleaving of two or three
//! threads (`models.rs`, run by `crates/pager/check-models`), and Miri runs its tests.

pub mod changes;
pub mod gate;
pub mod lock;
pub mod page;
mod shim;
pub mod word;

#[cfg(all(test, loom))]
mod many_pages;
#[cfg(all(test, loom))]
mod mapped_file;
#[cfg(all(test, loom))]
mod models;

pub use changes::Changes;
pub use gate::Gate;
pub use lock::{Lock, LockGuard};
pub use page::{Attempt, PageLock};
pub use shim::AtomicU32;
pub use word::{State, Word};
