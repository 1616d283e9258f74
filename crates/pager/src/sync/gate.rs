//! A gate that is closed while a fork is under way: no thread starts work on a page.

use super::shim::{AtomicU32, futex_wait, futex_wake};
use core::sync::atomic::Ordering;

/// The gate.
///
/// A thread that locks a page checks the gate afterwards, and unlocks the page if the gate is
/// closed; the thread that closes the gate checks the pages afterwards, and waits for those that
/// are busy. One of the two sees the other.
#[derive(Debug)]
pub struct Gate(AtomicU32);

const OPEN: u32 = 0;
const CLOSED: u32 = 1;

impl Gate {
    /// An open gate.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU32::new(OPEN))
    }

    /// An open gate.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU32::new(OPEN))
    }

    /// Closes it.
    pub fn close(&self) {
        self.0.store(CLOSED, Ordering::SeqCst);
    }

    /// Opens it, and lets waiting threads pass.
    pub fn open(&self) {
        self.0.store(OPEN, Ordering::SeqCst);
        futex_wake(&self.0, i32::MAX);
    }

    /// Whether it is closed.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.0.load(Ordering::SeqCst) != OPEN
    }

    /// Waits until it is open. The caller holds no lock.
    pub fn pass(&self) {
        while self.is_closed() {
            futex_wait(&self.0, CLOSED, None);
        }
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}
