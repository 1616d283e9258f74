//! A lock for a few hundred nanoseconds of work, that needs no thread-local storage.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::sys;

const FREE: u32 = 0;
const TAKEN: u32 = 1;
const WAITED_FOR: u32 = 2;

/// The lock. Not for what a thread may be interrupted in: signals are blocked where it is used.
#[derive(Debug, Default)]
pub struct Lock(AtomicU32);

/// Holding it.
#[derive(Debug)]
pub struct Held<'a>(&'a Lock);

impl Lock {
    /// Takes the lock, sleeping where another thread has it.
    pub fn hold(&self) -> Held<'_> {
        self.take();
        Held(self)
    }

    /// Takes the lock until [`Lock::give`].
    pub fn take(&self) {
        if self
            .0
            .compare_exchange(FREE, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            while self.0.swap(WAITED_FOR, Ordering::Acquire) != FREE {
                sys::futex_wait(&self.0, WAITED_FOR, None);
            }
        }
    }

    /// Gives the lock back.
    pub fn give(&self) {
        if self.0.swap(FREE, Ordering::Release) == WAITED_FOR {
            sys::futex_wake(&self.0, 1);
        }
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.0.give();
    }
}
