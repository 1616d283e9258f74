//! Heat: how soon resident pages are used again, estimated from a few of them.
//!
//! User space has no accessed bits. So some resident pages, chosen at random, are moved out of the
//! program's reach ([`crate::observe::heat`]), where a touch costs a fault without I/O: pages that
//! come back within a second are hot, within [`LATER_NS`] warm, the others cold. All pages of a
//! sample are judged after the same time, touched or not; otherwise quickly reused pages would be
//! over-represented.

use super::distances::hash;
use crate::page::Page;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A page used within this time is hot; if it was written within it, it is in use for writing.
pub const SOON_NS: u64 = 1_000_000_000;
/// A page used within this time is warm.
pub const LATER_NS: u64 = 8_000_000_000;
/// Largest number of pages per second.
pub const MOST: u32 = 250;

/// Largest number of pages watched at a time.
const PLACES: usize = 4096;
/// Number of verdicts remembered, to distinguish regions.
const RECENT: usize = 2048;
/// A page that is watched, or a free place for one.
#[derive(Debug)]
pub struct Watch {
    /// The page plus one; 0 for none.
    pub(crate) page: AtomicU32,
    /// Bits below.
    pub(crate) flags: AtomicU32,
    pub(crate) since: AtomicU64,
    /// When it was first used and first written; 0 before that.
    pub(crate) used: AtomicU64,
    pub(crate) written: AtomicU64,
}

/// It was moved for observation, not by the policy.
pub const TAKEN: u32 = 1;
/// It was evicted.
pub const LEFT: u32 = 1 << 1;
/// It was judged after the shorter time.
pub const JUDGED: u32 = 1 << 2;

/// The outcome for the pages of a sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Watched for [`SOON_NS`].
    pub soon_of: u32,
    /// Of these, used meanwhile.
    pub soon: u32,
    /// Of these, written.
    pub written: u32,
    /// Watched for [`LATER_NS`].
    pub later_of: u32,
    /// Of these, used meanwhile.
    pub later: u32,
}

/// In a remembered verdict: the page plus one from bit 8 on, and these flags. Judged after the
/// longer time.
pub const AFTER_LATER: u64 = 1;
/// Used in time.
pub const USED: u64 = 2;
/// Written in time.
pub const WRITTEN: u64 = 4;

/// The sample.
#[derive(Debug)]
pub struct Heat {
    /// Pages to take per second; 0 for none.
    pub(crate) rate: AtomicU32,
    pub(crate) places: [Watch; PLACES],
    recent: [AtomicU64; RECENT],
    judged: AtomicU64,
    noise: AtomicU64,
}

impl Heat {
    /// No page is watched.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            rate: AtomicU32::new(0),
            places: [const {
                Watch {
                    page: AtomicU32::new(0),
                    flags: AtomicU32::new(0),
                    since: AtomicU64::new(0),
                    used: AtomicU64::new(0),
                    written: AtomicU64::new(0),
                }
            }; PLACES],
            recent: [const { AtomicU64::new(0) }; RECENT],
            judged: AtomicU64::new(0),
            noise: AtomicU64::new(0),
        }
    }

    /// Watches `rate` pages per second from now on.
    pub fn prepare(&self, rate: u32) {
        self.rate.store(rate.min(MOST), Ordering::Relaxed);
    }

    /// Whether any pages are watched.
    #[inline]
    #[must_use]
    pub fn is_on(&self) -> bool {
        self.rate.load(Ordering::Relaxed) != 0
    }

    /// Where `page` is watched, if it is.
    pub(crate) fn place(&self, page: Page) -> &Watch {
        &self.places[hash(page) as usize % PLACES]
    }

    fn find(&self, page: Page) -> Option<&Watch> {
        let place = self.place(page);
        let is_it = self.is_on() && place.page.load(Ordering::Relaxed) == page + 1;
        is_it.then_some(place)
    }

    /// `page` ends its probation. Returns whether it was put on probation only for observation,
    /// without the policy.
    pub fn returns(&self, page: Page) -> bool {
        let take = |place: &Watch| place.flags.fetch_and(!TAKEN, Ordering::Relaxed) & TAKEN != 0;
        self.find(page).is_some_and(take)
    }

    /// `page` is used, and perhaps written, at `now`.
    pub fn used(&self, page: Page, write: bool, now: impl Fn() -> u64) {
        let Some(place) = self.find(page) else {
            return;
        };
        let set = |moment: &AtomicU64| {
            let _ = moment.compare_exchange(0, now(), Ordering::Relaxed, Ordering::Relaxed);
        };
        set(&place.used);
        if write {
            set(&place.written);
        }
    }

    /// `page` was evicted: its next use has to wait, and counts as a use.
    pub fn left(&self, page: Page) {
        if let Some(place) = self.find(page) {
            place.flags.store(
                place.flags.load(Ordering::Relaxed) & !TAKEN | LEFT,
                Ordering::Relaxed,
            );
        }
    }

    /// Watches `page` from `now` on.
    pub(crate) fn watch(&self, page: Page, flags: u32, now: u64) {
        let place = self.place(page);
        place.flags.store(flags, Ordering::Relaxed);
        place.since.store(now, Ordering::Relaxed);
        place.used.store(0, Ordering::Relaxed);
        place.written.store(0, Ordering::Relaxed);
        place.page.store(page + 1, Ordering::Relaxed);
    }

    /// Remembers a verdict on `page`.
    pub(crate) fn remember(&self, page: Page, what: u64) {
        let at = self.judged.fetch_add(1, Ordering::Relaxed) as usize % RECENT;
        let entry = (u64::from(page) + 1) << 8 | what;
        self.recent[at].store(entry, Ordering::Relaxed);
    }

    /// The recent verdicts on the pages selected by `is_one`.
    #[must_use]
    pub fn verdicts(&self, is_one: impl Fn(Page) -> bool) -> Verdicts {
        let mut sums = Verdicts::default();
        if !self.is_on() {
            return sums;
        }
        for entry in &self.recent {
            let entry = entry.load(Ordering::Relaxed);
            let Some(page) = (entry >> 8).checked_sub(1) else {
                continue;
            };
            if is_one(page as Page) {
                sums.add(entry);
            }
        }
        sums
    }

    /// A pseudo-random number.
    pub(crate) fn random(&self) -> u64 {
        let next = self.noise.load(Ordering::Relaxed).wrapping_add(1);
        self.noise.store(next, Ordering::Relaxed);
        hash(next as Page) ^ hash((next >> 32) as Page).rotate_left(32)
    }

    /// In the child of a fork no page is watched: all pages are where they belong.
    pub fn forked(&self) {
        for place in &self.places {
            place.page.store(0, Ordering::Relaxed);
        }
        for entry in &self.recent {
            entry.store(0, Ordering::Relaxed);
        }
    }
}

impl Default for Heat {
    fn default() -> Self {
        Self::new()
    }
}

impl Verdicts {
    fn add(&mut self, judgement: u64) {
        let is = |bit: u64| u32::from(judgement & bit != 0);
        if judgement & AFTER_LATER != 0 {
            self.later_of += 1;
            self.later += is(USED);
            return;
        }
        self.soon_of += 1;
        self.soon += is(USED);
        self.written += is(WRITTEN);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_use_counts_and_others_pages_do_not() {
        let heat = Box::leak(Box::new(Heat::new()));
        heat.used(7, true, || 5);
        heat.prepare(40);
        heat.watch(7, TAKEN, 100);
        heat.used(7, false, || 110);
        heat.used(7, true, || 120);
        heat.used(7, true, || 130);
        heat.used(8, true, || 140);
        let place = heat.find(7).expect("it is watched");
        let moments = [&place.used, &place.written].map(|one| one.load(Ordering::Relaxed));
        assert_eq!(moments, [110, 120]);
        assert!(heat.returns(7) && !heat.returns(7) && !heat.returns(8));
        heat.forked();
        assert!(heat.find(7).is_none());
    }

    #[test]
    fn judgements_add_up_by_their_time() {
        let mut sums = Verdicts::default();
        for judgement in [USED, USED | WRITTEN, 0, AFTER_LATER | USED, AFTER_LATER] {
            sums.add(judgement);
        }
        let wanted = Verdicts {
            soon_of: 3,
            soon: 2,
            written: 1,
            later_of: 2,
            later: 1,
        };
        assert_eq!(sums, wanted);
    }
}
