//! The lock for everything other than pages.

use super::shim::{AtomicU32, futex_wait, futex_wake};
use core::sync::atomic::Ordering;

const OPEN: u32 = 0;
const TAKEN: u32 = 1;
/// Taken, and another thread may be sleeping.
const AWAITED: u32 = 2;

/// Attempts before it sleeps. One is enough for loom, which tries every order.
const SPINS: u32 = if cfg!(loom) { 1 } else { 100 };

/// A lock for short critical sections: spins a little, then sleeps. The thread that takes it blocks
/// signals first ([`Blocked`](crate::sys::signals::Blocked)), so that no handler of the program
/// runs inside.
#[derive(Debug)]
pub struct Lock {
    /// [`OPEN`], [`TAKEN`] or [`AWAITED`].
    state: AtomicU32,
    /// The thread that holds it.
    #[cfg(all(debug_assertions, not(loom)))]
    holder: AtomicU32,
}

impl Lock {
    /// An open lock.
    #[cfg(not(loom))]
    #[must_use]
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(OPEN),
            #[cfg(all(debug_assertions, not(loom)))]
            holder: AtomicU32::new(0),
        }
    }

    /// An open lock.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self {
            state: AtomicU32::new(OPEN),
        }
    }

    /// Waits for the lock and takes it.
    pub fn acquire(&self) {
        for _ in 0..SPINS {
            if self.attempt() {
                return;
            }
            core::hint::spin_loop();
        }
        while self.state.swap(AWAITED, Ordering::Acquire) != OPEN {
            futex_wait(&self.state, AWAITED, None);
        }
        self.tell_holder();
    }

    fn tell_holder(&self) {
        #[cfg(all(debug_assertions, not(loom)))]
        self.holder
            .store(crate::sys::thread_id(), Ordering::Relaxed);
    }

    /// Whether `thread` holds it.
    #[cfg(all(debug_assertions, not(loom)))]
    #[must_use]
    pub fn is_held_by(&self, thread: u32) -> bool {
        self.holder.load(Ordering::Relaxed) == thread
    }

    /// Takes the lock if it is open.
    pub fn attempt(&self) -> bool {
        let taken = self
            .state
            .compare_exchange(OPEN, TAKEN, Ordering::Acquire, Ordering::Relaxed)
            .is_ok();
        if taken {
            self.tell_holder();
        }
        taken
    }

    /// Opens it.
    pub fn release(&self) {
        #[cfg(all(debug_assertions, not(loom)))]
        self.holder.store(0, Ordering::Relaxed);
        if self.state.swap(OPEN, Ordering::Release) == AWAITED {
            futex_wake(&self.state, 1);
        }
    }

    /// Takes the lock until the guard is dropped.
    pub fn hold(&self) -> LockGuard<'_> {
        self.acquire();
        LockGuard(self)
    }

    /// Opens it in the child of a fork, where its holder does not exist.
    pub fn reset(&self) {
        #[cfg(all(debug_assertions, not(loom)))]
        self.holder.store(0, Ordering::Relaxed);
        self.state.store(OPEN, Ordering::Release);
    }
}

impl Default for Lock {
    fn default() -> Self {
        Self::new()
    }
}

/// A taken [`Lock`].
#[derive(Debug)]
pub struct LockGuard<'a>(&'a Lock);

impl Drop for LockGuard<'_> {
    fn drop(&mut self) {
        self.0.release();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::thread;

    #[test]
    fn one_thread_has_it_at_a_time() {
        let lock = Lock::new();
        let count = core::sync::atomic::AtomicU64::new(0);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        let _held = lock.hold();
                        let before = count.load(Ordering::Relaxed);
                        thread::yield_now();
                        count.store(before + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(count.load(Ordering::Relaxed), 150);
        assert!(lock.attempt() && !lock.attempt());
        lock.reset();
        assert!(lock.attempt());
    }
}
