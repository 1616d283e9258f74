//! Refault distances: how many pages were evicted between a page's eviction and its return. With
//! room for that many more pages it would have stayed, under any policy that evicts roughly in
//! order of use.
//!
//! There is no room for a stamp in every page, so a sample of pages is followed: those for which
//! the hash of the page number ends in a certain number of zeros, one more whenever the table is
//! too small for the pages that were evicted (SHARDS, Waldspurger et al., FAST 2015). Each of them
//! stands for a corresponding number of pages.

use crate::page::Page;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const SETS: usize = 2048;
/// Pages in a set; a page is never put in another set, so that look-ups are fast.
const WAYS: usize = 8;

/// In an entry: the page plus one from bit 32 on, the moment of its eviction, or neither.
const RETURNED: u64 = 1 << 31;
const MOMENT: u64 = RETURNED - 1;

/// The pages that are followed.
#[derive(Debug)]
pub struct Distances {
    /// Pages evicted so far.
    evicted: AtomicU64,
    /// Number of zeros at the end of a followed page's hash.
    zeros: AtomicU32,
    sets: [[AtomicU64; WAYS]; SETS],
}

/// The return of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Return {
    /// Pages evicted since its eviction.
    pub distance: u64,
    /// Pages that it stands for.
    pub weight: u64,
}

impl Distances {
    /// No page yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            evicted: AtomicU64::new(0),
            zeros: AtomicU32::new(0),
            sets: [const { [const { AtomicU64::new(0) }; WAYS] }; SETS],
        }
    }

    /// A page was evicted; `page` if it can come back. One caller at a time.
    pub fn leave(&self, page: Option<Page>) {
        let moment = self.evicted.fetch_add(1, Ordering::Relaxed) + 1;
        let Some(page) = page else {
            return;
        };
        let hash = hash(page);
        while self.follows(hash) {
            if let Some(place) = find(self.set(hash), page).or_else(|| free(self.set(hash))) {
                let returned = place.load(Ordering::Relaxed) & RETURNED;
                let entry = (u64::from(page) + 1) << 32 | returned | moment & MOMENT;
                place.store(entry, Ordering::Relaxed);
                return;
            }
            self.thin();
        }
    }

    /// `page` came back. Returns how long it was evicted, if it is followed.
    pub fn come_back(&self, page: Page) -> Option<Return> {
        let hash = hash(page);
        if !self.follows(hash) {
            return None;
        }
        let place = find(self.set(hash), page)?;
        let entry = place.load(Ordering::Relaxed);
        let moment = entry & MOMENT;
        let next = entry & !MOMENT | RETURNED;
        let won = place.compare_exchange(entry, next, Ordering::Relaxed, Ordering::Relaxed);
        if moment == 0 || won.is_err() {
            return None;
        }
        let now = self.evicted.load(Ordering::Relaxed);
        Some(Return {
            distance: now.wrapping_sub(moment) & MOMENT,
            weight: 1 << self.zeros.load(Ordering::Relaxed),
        })
    }

    /// `page` was discarded while it was evicted: its next use is a first one.
    pub fn forget(&self, page: Page) {
        let hash = hash(page);
        if self.follows(hash)
            && let Some(place) = find(self.set(hash), page)
        {
            place.fetch_and(!MOMENT, Ordering::Relaxed);
        }
    }

    /// Pages that are followed and have come back.
    pub fn returned(&self) -> u64 {
        let all = self.sets.iter().flatten();
        all.filter(|entry| entry.load(Ordering::Relaxed) & RETURNED != 0)
            .count() as u64
    }

    fn follows(&self, hash: u64) -> bool {
        hash.trailing_zeros() >= self.zeros.load(Ordering::Relaxed)
    }

    fn set(&self, hash: u64) -> &[AtomicU64; WAYS] {
        &self.sets[(hash >> 48) as usize % SETS]
    }

    /// Follows half as many pages.
    fn thin(&self) {
        self.zeros.fetch_add(1, Ordering::Relaxed);
        for place in self.sets.iter().flatten() {
            let entry = place.load(Ordering::Relaxed);
            if entry != 0 && !self.follows(hash(page_of(entry))) {
                place.store(0, Ordering::Relaxed);
            }
        }
    }
}

impl Default for Distances {
    fn default() -> Self {
        Self::new()
    }
}

/// The entry of `page` in `set`, if it is followed.
fn find(set: &[AtomicU64; WAYS], page: Page) -> Option<&AtomicU64> {
    let is_it = |entry: u64| entry != 0 && page_of(entry) == page;
    set.iter()
        .find(|place| is_it(place.load(Ordering::Relaxed)))
}

fn free(set: &[AtomicU64; WAYS]) -> Option<&AtomicU64> {
    set.iter().find(|place| place.load(Ordering::Relaxed) == 0)
}

fn page_of(entry: u64) -> Page {
    ((entry >> 32) - 1) as Page
}

/// A hash in which each bit depends on all bits of the page number (the end of MurmurHash3).
pub(super) fn hash(page: Page) -> u64 {
    let mut hash = u64::from(page) + 1;
    for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ hash >> 33).wrapping_mul(factor);
    }
    hash ^ hash >> 33
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    /// A memory of `room` pages with LRU eviction. Returns the distances according to a full
    /// account and according to the sample: shares of returns within each power of two.
    fn replay(uses: impl Iterator<Item = Page>, room: usize) -> (Vec<f64>, Vec<f64>, u64) {
        let sampled = Box::leak(Box::new(Distances::new()));
        let mut resident: Vec<Page> = Vec::new();
        let mut left: HashMap<Page, u64> = HashMap::new();
        let (mut exact, mut estimate) = (vec![0.0; 33], vec![0.0; 33]);
        let mut evicted = 0_u64;
        let class = |distance: u64| {
            distance
                .checked_ilog2()
                .map_or(0, |power| power as usize + 1)
        };
        for page in uses {
            if let Some(at) = resident.iter().rposition(|one| *one == page) {
                resident.remove(at);
                resident.push(page);
                continue;
            }
            let found = sampled.come_back(page);
            if let Some(moment) = left.remove(&page) {
                exact[class(evicted - moment)] += 1.0;
                if let Some(back) = found {
                    assert_eq!(
                        back.distance,
                        evicted - moment,
                        "no distance is an estimate"
                    );
                    estimate[class(back.distance)] += back.weight as f64;
                }
            } else {
                assert_eq!(found, None, "page {page} never left");
            }
            resident.push(page);
            if resident.len() > room {
                let page = resident.remove(0);
                evicted += 1;
                left.insert(page, evicted);
                sampled.leave(Some(page));
            }
        }
        let weight = 1 << sampled.zeros.load(Ordering::Relaxed);
        (running_shares(&exact), running_shares(&estimate), weight)
    }

    fn running_shares(counts: &[f64]) -> Vec<f64> {
        let whole: f64 = counts.iter().sum();
        let mut sum = 0.0;
        let running = counts.iter().map(|count| {
            sum += count;
            sum / whole
        });
        running.collect()
    }

    struct Noise(u64);

    impl Noise {
        fn next(&mut self) -> f64 {
            self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
            (hash((self.0 >> 32) as Page ^ self.0 as Page) >> 11) as f64 / (1_u64 << 53) as f64
        }
    }

    #[test]
    fn what_fits_the_table_is_followed_to_the_page() {
        let sweeps = (0..8).flat_map(|_| 0..2000);
        let (exact, estimate, weight) = replay(sweeps, 500);
        assert_eq!(weight, 1);
        assert_eq!(exact, estimate);
        // 2000 pages are used between two uses of one, of which 500 are still resident.
        assert_eq!((exact[10], exact[11]), (0.0, 1.0), "distances are 1500");
    }

    #[test]
    fn a_sample_tells_the_distances_of_all() {
        let mut noise = Noise(7);
        let pages = 60_000.0_f64;
        let skewed = (0..400_000).map(|_| pages.powf(noise.next()) as Page * 37);
        let (exact, estimate, weight) = replay(skewed, 200);
        assert!(weight >= 2, "60,000 pages do not fit");
        for (place, (exact, estimate)) in exact.iter().zip(&estimate).enumerate() {
            assert!(
                (exact - estimate).abs() < 0.03,
                "2^{place}: {exact} {estimate}"
            );
        }
    }

    #[test]
    fn a_page_that_was_given_up_does_not_come_back() {
        let distances = Distances::new();
        distances.leave(Some(5));
        distances.forget(5);
        assert_eq!(distances.come_back(5), None);
        distances.leave(Some(5));
        distances.leave(None);
        let back = distances.come_back(5).map(|back| back.distance);
        assert_eq!((back, distances.returned()), (Some(1), 1));
        assert_eq!(distances.come_back(5), None, "it is there already");
    }
}
