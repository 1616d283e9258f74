//! Pages that a fork shares: the kernel copies one for whoever writes to it first and asks nobody. Each
//! copy takes a page of the run's budget, so its writer has room for one page less until shares are
//! measured again.
//!
//! How many there were is told by the kernel's count of minor faults. A fault that the pager serves is
//! not among them: it is a major one where it is retried after a userfaultfd's message
//! (`mm_account_fault`, mm/memory.c, Linux 5.10 to 6.18), and none where it fails with SIGBUS. But other
//! minor faults are: of memory that is not managed, and of pages that nobody shares any more, as the
//! other process has ended or has become another program. So a sample of the pages tells how many can
//! have been copied at most.

use super::{Pager, scan};
use crate::figures::places;
use crate::page::Page;
use crate::sys;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Nanoseconds between checks while the program writes to shared pages, and the longest time between
/// them while it does not.
const CHECK_NS: (u64, u64) = (1_000_000, 16_000_000);
/// Fewer copies than this at a check, and the next comes later.
const FEW: u64 = 64;
/// Pages that are looked at.
const SAMPLE: usize = 64;
/// As many of them may be missed by chance.
const CHANCE: u64 = 8;

/// What this process has copied since the last fork, and may still copy.
#[derive(Debug)]
pub struct Copies {
    /// Pages that were shared at the last fork; 0 once none is shared any more.
    shared: AtomicU64,
    /// Of them, those that were copied since.
    copied: AtomicU64,
    /// Minor faults at the last check.
    seen: AtomicU64,
    pause_ns: AtomicU64,
    /// Some of the pages that were resident at the last fork.
    sample: [AtomicU32; SAMPLE],
    /// Resident pages that the sample was taken from, and of how many one was taken.
    sampled: AtomicU64,
    stride: AtomicU64,
}

impl Copies {
    /// Nothing is shared.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            shared: AtomicU64::new(0),
            copied: AtomicU64::new(0),
            seen: AtomicU64::new(0),
            pause_ns: AtomicU64::new(CHECK_NS.0),
            sample: [const { AtomicU32::new(Page::MAX) }; SAMPLE],
            sampled: AtomicU64::new(0),
            stride: AtomicU64::new(1),
        }
    }

    /// Before a fork: the sample will be taken from about `pages` resident pages.
    pub(super) fn begin_sample(&self, pages: u64) {
        let stride = pages / SAMPLE as u64 + 1;
        self.stride.store(stride, Ordering::Relaxed);
        self.sampled.store(0, Ordering::Relaxed);
        let all = &self.sample;
        all.iter()
            .for_each(|one| one.store(Page::MAX, Ordering::Relaxed));
    }

    /// Before a fork, by its only thread: one resident page after the other.
    pub(super) fn sample(&self, page: Page) {
        let number = self.sampled.load(Ordering::Relaxed);
        self.sampled.store(number + 1, Ordering::Relaxed);
        let stride = self.stride.load(Ordering::Relaxed);
        if number.is_multiple_of(stride)
            && let Some(place) = self.sample.get((number / stride) as usize)
        {
            place.store(page, Ordering::Relaxed);
        }
    }

    /// After a fork, in either process: `pages` are shared, and `faults` were taken.
    pub(super) fn forked(&self, pages: u64, faults: u64) {
        self.shared.store(pages, Ordering::Relaxed);
        self.copied.store(0, Ordering::Relaxed);
        self.seen.store(faults, Ordering::Relaxed);
        self.pause_ns.store(CHECK_NS.0, Ordering::Relaxed);
    }

    /// Of how many pages of the sample `is_shared` is true, and how many there are. One pass: a thread
    /// that forks meanwhile replaces the sample.
    fn look(&self, mut is_shared: impl FnMut(Page) -> bool) -> (u64, u64) {
        let all = self.sample.iter().map(|page| page.load(Ordering::Relaxed));
        all.filter(|page| *page != Page::MAX)
            .fold((0, 0), |(shared, of), page| {
                (shared + u64::from(is_shared(page)), of + 1)
            })
    }

    fn left(&self) -> u64 {
        let copied = self.copied.load(Ordering::Relaxed);
        self.shared.load(Ordering::Relaxed).saturating_sub(copied)
    }

    /// How many pages were copied since the last check, as there are `faults` now, and `still` tells
    /// of how many pages of the sample (the second) another process has the first.
    fn take(&self, faults: u64, still: impl FnOnce() -> (u64, u64)) -> u64 {
        let since = faults.saturating_sub(self.seen.swap(faults, Ordering::Relaxed));
        let pause_ns = match since < FEW {
            true => (self.pause_ns.load(Ordering::Relaxed) * 2).min(CHECK_NS.1),
            false => CHECK_NS.0,
        };
        self.pause_ns.store(pause_ns, Ordering::Relaxed);
        if since == 0 {
            return 0;
        }
        let (still, of) = still();
        if still == 0 {
            self.shared.store(0, Ordering::Relaxed);
            return 0;
        }
        let shared = self.shared.load(Ordering::Relaxed);
        let most = shared * (of - still + CHANCE).min(of) / of;
        let before = self.copied.load(Ordering::Relaxed);
        let copied = since.min(most.saturating_sub(before));
        self.copied.store(before + copied, Ordering::Relaxed);
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
        if self.copies.left() > 0 && places::has_others() {
            let copied = self
                .copies
                .take(sys::minor_faults(), || self.still_shared());
            self.shared_left(copied);
        }
    }

    /// Nanoseconds until the next check for copies, if they might take more room than there is.
    #[must_use]
    pub fn copies_due_ns(&self) -> Option<u64> {
        let left = self.copies.left();
        let is_near = self.budget.resident() + left > self.budget.limit();
        let wanted = left > 0 && is_near && places::has_others();
        wanted.then(|| self.copies.pause_ns.load(Ordering::Relaxed))
    }

    /// Of how many pages of the sample another process has some, and how many there are.
    fn still_shared(&self) -> (u64, u64) {
        self.copies.look(|page| {
            let mut look = [scan::Look::Absent];
            if self.table.word(page).is_resident() {
                scan::look(self.table.address_of(page), &mut look);
            }
            matches!(look, [scan::Look::Shared | scan::Look::Unknown])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_copied_than_is_shared() {
        let copies = Copies::new();
        assert_eq!(copies.left(), 0);
        copies.forked(1000, 50);
        let take = |faults, still| copies.take(faults, || (still, 10));
        assert_eq!([take(350, 7), take(350, 7)], [300, 0]);
        assert_eq!([take(2000, 1), take(2500, 1)], [700, 0]);
        assert_eq!(copies.left(), 0);
    }

    #[test]
    fn faults_of_other_memory_are_not_taken_for_copies() {
        let copies = Copies::new();
        copies.forked(64_000, 0);
        let all = SAMPLE as u64;
        assert_eq!(copies.take(50_000, || (all, all)), 8000);
        assert_eq!(copies.take(90_000, || (all, all)), 0);
        assert_eq!(copies.take(130_000, || (all - 2, all)), 2000);
    }

    #[test]
    fn what_nobody_else_has_is_not_copied() {
        let copies = Copies::new();
        copies.forked(1000, 0);
        assert_eq!(copies.take(900, || (0, 64)), 0);
        assert_eq!(copies.left(), 0);
    }

    #[test]
    fn the_sample_is_spread_over_all_pages() {
        let copies = Copies::new();
        let sampled = |pages: Page| {
            copies.begin_sample(u64::from(pages));
            (0..pages).for_each(|page| copies.sample(page));
            let all = copies
                .sample
                .iter()
                .map(|page| page.load(Ordering::Relaxed));
            all.filter(|page| *page != Page::MAX).collect::<Vec<_>>()
        };
        assert_eq!(sampled(3), [0, 1, 2]);
        let many = sampled(1_000_000);
        assert_eq!((many.len(), many[0]), (SAMPLE, 0));
        assert!(many[SAMPLE - 1] > 900_000 && many.is_sorted());
        assert_eq!(sampled(1), [0]);
    }

    /// The evictor looks while another thread forks.
    #[test]
    fn a_sample_replaced_meanwhile_is_counted_as_it_is_seen() {
        let copies = Copies::new();
        copies.forked(1000, 0);
        copies.begin_sample(1);
        copies.sample(7);
        let mut forks = 1;
        let copied = copies.take(900, || {
            copies.look(|_| {
                if forks > 0 {
                    forks -= 1;
                    copies.begin_sample(SAMPLE as u64 - 1);
                    (0..SAMPLE as Page).for_each(|page| copies.sample(page));
                }
                true
            })
        });
        assert_eq!(copied, 1000 * CHANCE / SAMPLE as u64);
    }

    #[test]
    fn checks_are_rare_while_nothing_is_copied() {
        let copies = Copies::new();
        copies.forked(1000, 0);
        let pauses = [10, 20, 30, 40, 50, 60, 300].map(|faults| {
            copies.take(faults, || (10, 64));
            copies.pause_ns.load(Ordering::Relaxed) / CHECK_NS.0
        });
        assert_eq!(pauses, [2, 4, 8, 16, 16, 16, 1]);
    }
}
