//! Pages that a fork shares: the kernel copies one for whoever writes to it first and asks nobody. Each
//! copy takes a page of the run's budget, so its writer has room for one page less until shares are
//! measured again.
//!
//! How many there were is told by the kernel's count of minor faults. A fault that the pager serves is
//! not among them: it is a major one where it is retried after a userfaultfd's message
//! (`mm_account_fault`, mm/memory.c, Linux 5.10 to 6.18), and none where it fails with SIGBUS. Other minor
//! faults (memory that is not managed) count as well until the next measurement.

use super::Pager;
use crate::figures::places;
use crate::sys;
use core::sync::atomic::{AtomicU64, Ordering};

/// Nanoseconds between checks while the program writes to shared pages, and the longest time between
/// them while it does not.
const CHECK_NS: (u64, u64) = (1_000_000, 16_000_000);
/// Fewer copies than this at a check, and the next comes later.
const FEW: u64 = 64;

/// What this process may still copy.
#[derive(Debug)]
pub struct Copies {
    /// Pages that were shared at the last fork, less those that were copied since.
    left: AtomicU64,
    /// Minor faults at the last check.
    seen: AtomicU64,
    pause_ns: AtomicU64,
}

impl Copies {
    /// Nothing is shared.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            left: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            pause_ns: AtomicU64::new(CHECK_NS.0),
        }
    }

    /// After a fork, in either process: `pages` are shared, and `faults` were taken.
    pub(super) fn forked(&self, pages: u64, faults: u64) {
        self.left.store(pages, Ordering::Relaxed);
        self.seen.store(faults, Ordering::Relaxed);
        self.pause_ns.store(CHECK_NS.0, Ordering::Relaxed);
    }

    /// How many pages were copied since the last check, as there are `faults` now.
    fn take(&self, faults: u64) -> u64 {
        let before = self.seen.swap(faults, Ordering::Relaxed);
        let left = self.left.load(Ordering::Relaxed);
        let copied = faults.saturating_sub(before).min(left);
        self.left.store(left - copied, Ordering::Relaxed);
        let pause_ns = match copied < FEW {
            true => (self.pause_ns.load(Ordering::Relaxed) * 2).min(CHECK_NS.1),
            false => CHECK_NS.0,
        };
        self.pause_ns.store(pause_ns, Ordering::Relaxed);
        copied
    }
}

impl Default for Copies {
    fn default() -> Self {
        Self::new()
    }
}

impl Pager {
    /// Takes off the limit what was copied since the last check. Called by one thread at a time: the
    /// evictor, or before it runs the warden.
    pub fn follow_copies(&self) {
        if self.copies.left.load(Ordering::Relaxed) > 0 && places::has_others() {
            self.shared_left(self.copies.take(sys::minor_faults()));
        }
    }

    /// Nanoseconds until the next check for copies, if they might take more room than there is.
    #[must_use]
    pub fn copies_due_ns(&self) -> Option<u64> {
        let left = self.copies.left.load(Ordering::Relaxed);
        let is_near = self.budget.resident() + left > self.budget.limit();
        let wanted = left > 0 && is_near && places::has_others();
        wanted.then(|| self.copies.pause_ns.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_copied_than_is_shared() {
        let copies = Copies::new();
        assert_eq!(copies.take(70), 0);
        copies.forked(1000, 50);
        assert_eq!([copies.take(350), copies.take(350)], [300, 0]);
        assert_eq!([copies.take(2000), copies.take(2500)], [700, 0]);
    }

    #[test]
    fn checks_are_rare_while_nothing_is_copied() {
        let copies = Copies::new();
        copies.forked(1000, 0);
        let pauses = [10, 20, 30, 40, 50, 60, 300].map(|faults| {
            copies.take(faults);
            copies.pause_ns.load(Ordering::Relaxed) / CHECK_NS.0
        });
        assert_eq!(pauses, [2, 4, 8, 16, 16, 16, 1]);
    }
}
