//! `2q`: the two lists of Linux, for user space, where accessed bits cannot be read.
//!
//! ```text
//!            refault soon after eviction
//!      ┌──────────────────────────────┐
//! fault┴▶ inactive ──▶ evicted        ▼
//!            ▲    │ written        ┌ active ┐ written: once round
//!            │    └───────────────▶│        │
//!            └─────────────────────┴────────┘ inactive runs low
//! ```
//!
//! As in `mm/workingset.c` (Linux 6.18), a page that comes back after fewer evictions than the
//! length of the active list was evicted too early and starts active. As in `inactive_is_low`
//! (`mm/vmscan.c`), the inactive list keeps half of a small memory and less of a large one. While
//! the active list is still short, half of the budget bounds the distance (the "A1out" queue of
//! Johnson and Shasha's 2Q, VLDB 1994).
//!
//! Pages of the inactive list are not watched for uses: unmapping each costs a system call that
//! interrupts the other processors, and a page in use that is evicted comes back active anyway.
//! Watching gained nothing for a hot set during a scan (`bench/paging`).

use core::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Page, Span, Use};
use crate::policy::Policy;
use crate::queue::{Past, Queue, Stamp, Taken, Turn, Words};

/// Two queues with refault distances.
#[derive(Debug)]
pub struct TwoQueue {
    words: Words,
    inactive: Queue,
    active: Queue,
    evictions: AtomicU32,
    budget: u32,
    /// The target is one inactive page for this many active ones.
    ratio: u32,
}

impl TwoQueue {
    /// Lists over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        Self::over(Words::new(pages, 2), budget)
    }

    /// Lists over `words`; takes the queue numbers 0 and 1.
    pub(crate) fn over(words: Words, budget: u32) -> Self {
        TwoQueue {
            inactive: Queue::new(&words, 0),
            active: Queue::new(&words, 1),
            words,
            evictions: AtomicU32::new(0),
            budget,
            ratio: inactive_ratio(budget),
        }
    }

    /// The words that the lists run over.
    pub(crate) fn words(&self) -> &Words {
        &self.words
    }

    /// Pages in all lists.
    pub(crate) fn len(&self) -> u32 {
        self.inactive.len() + self.active.len()
    }

    fn now(&self) -> Stamp {
        Stamp::at(self.evictions.load(Ordering::Relaxed))
    }

    /// Queues a page that [`Words::arrive`] returned with this past, `distance` evictions ago.
    pub(crate) fn queue(&self, page: Page, past: Past, distance: Option<u32>, how: Arrival) {
        let early = distance.is_some_and(|count| count <= self.active.len().max(self.budget / 2));
        match past {
            Past::Evicted(_) if how == Arrival::Demand && early => {
                self.active.push(&self.words, page);
            }
            Past::Evicted(_) | Past::Unknown => self.inactive.push(&self.words, page),
            Past::Present | Past::Revived => {}
        }
    }

    /// Evicts a page that was taken from one of the lists. False if it was freed meanwhile.
    fn evict(&self, page: Page) -> bool {
        let before = self.evictions.fetch_add(1, Ordering::Relaxed);
        self.words
            .evict(page, Some(Stamp::at(before.wrapping_add(1))))
    }

    /// Pages evicted from the lists since a page with this past was.
    pub(crate) fn distance(&self, past: Past) -> Option<u32> {
        match past {
            Past::Evicted(stamp) => Some(self.now().since(stamp)),
            _ => None,
        }
    }

    fn inactive_is_low(&self) -> bool {
        self.inactive.len().saturating_mul(self.ratio) < self.active.len()
    }

    /// Moves one page from the active to the inactive list; used ones stay for another round.
    fn deactivate(&self, turn: &Turn<'_>) -> bool {
        for _ in 0..32 {
            let Some(taken) = self.words.take(&self.active, turn) else {
                return false;
            };
            if taken.uses == 0 {
                self.words.requeue(taken.page, 0, &self.inactive, turn);
                return true;
            }
            self.words.requeue(taken.page, 0, &self.active, turn);
        }
        true
    }

    fn take_inactive(&self, turn: &Turn<'_>) -> Option<Taken> {
        while self.inactive_is_low() && self.deactivate(turn) {}
        self.words
            .take(&self.inactive, turn)
            .or_else(|| self.words.take(&self.active, turn))
    }

    /// As [`Policy::victims`], for the holder of the turn.
    pub(crate) fn choose(&self, out: &mut [Page], turn: &Turn<'_>) -> usize {
        let mut found = 0;
        // At most one round: after it no page has a use left.
        let mut chances = self.len();
        while found < out.len() {
            let Some(taken) = self.take_inactive(turn) else {
                break;
            };
            if taken.uses > 0 && chances > 0 {
                chances -= 1;
                self.words.requeue(taken.page, 0, &self.active, turn);
                continue;
            }
            if self.evict(taken.page) {
                out[found] = taken.page;
                found += 1;
            }
        }
        found
    }
}

/// Target number of active pages per inactive page: `sqrt(10 × GiB)`, at least one
/// (`inactive_is_low`, Linux 6.18).
fn inactive_ratio(budget: u32) -> u32 {
    let gib = u64::from(budget) >> 18;
    u32::try_from((10 * gib).isqrt()).unwrap_or(u32::MAX).max(1)
}

impl Policy for TwoQueue {
    fn name(&self) -> &'static str {
        "2q"
    }

    fn mapped(&self, page: Page, how: Arrival) {
        let past = self.words.arrive(page, how == Arrival::Demand);
        self.queue(page, past, self.distance(past), how);
    }

    fn used(&self, page: Page, _how: Use) {
        self.words.touch(page);
    }

    fn removed(&self, pages: Span) {
        (pages.first..pages.end()).for_each(|page| self.words.forget(page));
    }

    fn victims(&self, out: &mut [Page]) -> usize {
        self.words.turn().map_or(0, |turn| self.choose(out, &turn))
    }

    fn kept(&self, page: Page) {
        // Its word now records an eviction that did not happen; the page is pinned or in use.
        if let Past::Unknown | Past::Evicted(_) = self.words.arrive(page, false) {
            self.active.push(&self.words, page);
        }
    }

    fn forked(&self) {
        self.words.forked();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ratio_is_that_of_linux() {
        // Table in inactive_is_low: 10 MB and 100 MB 1, 1 GB 3, 10 GB 10, 100 GB 31.
        let gib = 1 << 18;
        let ratios = [gib / 10, gib, 10 * gib, 100 * gib].map(inactive_ratio);
        assert_eq!(ratios, [1, 3, 10, 31]);
    }

    #[test]
    fn a_page_that_comes_back_soon_outlives_a_scan() {
        let policy = TwoQueue::new(1000, 40);
        let mut out = [0; 8];
        (0..40).for_each(|page| policy.mapped(page, Arrival::Demand));
        assert_eq!(policy.victims(&mut out), 8);
        assert_eq!(out, [0, 1, 2, 3, 4, 5, 6, 7]);
        (0..8).for_each(|page| policy.mapped(page, Arrival::Demand));
        for scan in (100..900).step_by(8) {
            (scan..scan + 8).for_each(|page| policy.mapped(page, Arrival::Demand));
            assert_eq!(policy.victims(&mut out), 8);
            assert!(out.iter().all(|&page| page >= 8), "{out:?} at {scan}");
        }
    }

    #[test]
    fn a_page_that_was_written_becomes_active() {
        let policy = TwoQueue::new(100, 80);
        (0..40).for_each(|page| policy.mapped(page, Arrival::Demand));
        policy.used(3, Use::Write);
        let mut out = [0; 8];
        assert_eq!(policy.victims(&mut out), 8);
        assert!(!out.contains(&3) && out.contains(&2));
        assert_eq!(policy.active.len(), 1);
    }

    #[test]
    fn uses_buy_one_round_each_time_however_many_they_were() {
        // Page 3 is used often, becomes active, and is then no longer used: when the active list is
        // scanned it falls back to the inactive list and is evicted in its turn.
        let policy = TwoQueue::new(100, 80);
        (0..8).for_each(|page| policy.mapped(page, Arrival::Demand));
        (0..5).for_each(|_| policy.used(3, Use::Write));
        let mut out = [0; 7];
        assert_eq!(policy.victims(&mut out), 7);
        assert!(!out.contains(&3), "{out:?}");
        let turn = policy.words().turn().unwrap();
        let kept = policy.words().take(&policy.active, &turn).unwrap();
        assert_eq!((kept.page, kept.uses), (3, 0), "its uses were spent");
        // Used again on the active list, it stays for one more round, which spends its uses.
        policy.words().requeue(3, 2, &policy.active, &turn);
        assert!(policy.deactivate(&turn));
        assert_eq!((policy.active.len(), policy.inactive.len()), (0, 1));
        let fallen = policy.words().take(&policy.inactive, &turn).unwrap();
        assert_eq!((fallen.page, fallen.uses), (3, 0));
    }
}
