//! The support that a pattern would keep with one more item at any position: this decides whether
//! it is closed or maximal.
//!
//! A longer pattern with the same support (or a frequent one) exists exactly if one with a single
//! additional item does, since every pattern between two has a support between theirs. Item x fits
//! between the items i-1 and i of pattern P within sequence S exactly if it occurs after the
//! earliest place where P's first i-1 items end and before the latest place where the others begin:
//! the "maximum period" of BIDE (Wang & Han, 2004).

use super::database::{Database, Item};
use rustc_hash::FxHashMap;

/// The length of patterns.
#[derive(Clone, Copy)]
pub(super) struct Limit(usize);

impl Limit {
    pub(super) fn new(max_length: Option<usize>) -> Self {
        Self(max_length.unwrap_or(usize::MAX))
    }

    pub(super) fn allows_longer_than(self, length: usize) -> bool {
        length < self.0
    }
}

/// Memory reused from pattern to pattern.
#[derive(Default)]
pub(super) struct Extensions {
    earliest: Vec<usize>,
    latest: Vec<usize>,
    counts: FxHashMap<(usize, Item), (u32, u64)>,
}

impl Extensions {
    /// The largest support of `pattern` with one additional item, given the sequences that contain
    /// it.
    pub(super) fn best(
        &mut self,
        database: &Database,
        pattern: &[Item],
        holders: impl Iterator<Item = u32>,
    ) -> u64 {
        self.counts.clear();
        for index in holders {
            self.count(database, pattern, index);
        }
        let best = self.counts.values().map(|&(_, support)| support).max();
        best.unwrap_or(0)
    }

    fn count(&mut self, database: &Database, pattern: &[Item], index: u32) {
        let sequence = database.sequence(index);
        if !self.find_places(sequence, pattern) {
            return;
        }
        let weight = database.weight(index);
        for gap in 0..=pattern.len() {
            let start = gap
                .checked_sub(1)
                .map_or(0, |before| self.earliest[before] + 1);
            let end = self.latest.get(gap).copied().unwrap_or(sequence.len());
            for &item in sequence.get(start..end).unwrap_or_default() {
                let (seen, support) = self.counts.entry((gap, item)).or_insert((u32::MAX, 0));
                if *seen != index {
                    *seen = index;
                    *support += weight;
                }
            }
        }
    }

    /// The earliest and the latest positions of the pattern's items.
    fn find_places(&mut self, sequence: &[Item], pattern: &[Item]) -> bool {
        self.earliest.clear();
        let mut wanted = pattern.iter().peekable();
        for (place, item) in sequence.iter().enumerate() {
            if wanted.next_if_eq(&item).is_some() {
                self.earliest.push(place);
            }
        }
        self.latest.clear();
        let mut wanted = pattern.iter().rev().peekable();
        for (place, item) in sequence.iter().enumerate().rev() {
            if wanted.next_if_eq(&item).is_some() {
                self.latest.push(place);
            }
        }
        self.latest.reverse();
        self.earliest.len() == pattern.len()
    }
}
