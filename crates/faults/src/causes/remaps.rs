//! Memory that was mapped again where it had been mapped before: it must have been freed in
//! between, although no call is recorded.
//!
//! The kernel merges a new mapping with its neighbours and records the merged one, so only a
//! comparison with the previous record shows which part is new. If a record equals the previous
//! one, the part that the previous one had added was mapped again.

use super::density::Density;
use super::regions::Region;
use rustc_hash::FxHashMap;
use std::cmp::Ordering;

/// Parts of a process's memory that are tracked; others count as never mapped again.
const MOST_PARTS: usize = 1 << 16;

/// One part: sampled faults on it, and how often it was mapped again.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    density: Density,
    times: u16,
}

/// Parts of a process's memory that were mapped again.
#[derive(Clone, Debug, Default)]
pub(super) struct Remaps {
    /// Parts that were mapped again, by start and end.
    parts: FxHashMap<(u64, u64), Part>,
    /// Ends of all parts that records added, by their start.
    brought: FxHashMap<u64, u64>,
}

/// The part that a record added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Brought {
    /// Start and end.
    pub(super) part: (u64, u64),
    /// Whether it had been mapped before.
    pub(super) again: bool,
}

impl Remaps {
    /// Takes a record of memory from `start`, over or next to `old`; returns the part that it
    /// added.
    pub(super) fn record(
        &mut self,
        (start, end): (u64, u64),
        writable: bool,
        old: Option<(u64, Region)>,
        page_shift: u32,
    ) -> Brought {
        let alike = old.filter(|(_, old)| old.writable == writable);
        let brought = match alike {
            Some((old_start, old)) => self.beside((start, end), old_start, old),
            None => Brought {
                part: (start, end),
                again: false,
            },
        };
        if brought.again {
            self.count(brought.part, page_shift);
        }
        let (from, to) = brought.part;
        if self.brought.len() < MOST_PARTS || self.brought.contains_key(&from) {
            self.brought.insert(from, to);
        }
        brought
    }

    fn beside(&self, (start, end): (u64, u64), old_start: u64, old: Region) -> Brought {
        let (from, to) = old.newest;
        let new = |part| Brought { part, again: false };
        let came = |part| Brought { part, again: true };
        match (start.cmp(&old_start), end == old.end) {
            (Ordering::Equal, true) => came((from, to)),
            // A smaller mapping in the place of the newest.
            (Ordering::Greater, true) if (from..to).contains(&start) => came((start, to)),
            (Ordering::Less, true) => new((start, old_start)),
            (Ordering::Equal, false) if end > old.end => new((old.end, end)),
            // The memory below is gone; above is the part mapped since, which the record shows
            // merged.
            (Ordering::Greater, _) => match self.brought.get(&start) {
                Some(&known) if known <= end => came((start, known)),
                _ => new((start, end)),
            },
            _ => new((start, end)),
        }
    }

    fn count(&mut self, part: (u64, u64), page_shift: u32) {
        if self.parts.len() < MOST_PARTS || self.parts.contains_key(&part) {
            let counted = self.parts.entry(part).or_default();
            let pages = part.1.saturating_sub(part.0) >> page_shift;
            counted.density.released(pages);
            counted.times = counted.times.saturating_add(1);
        }
    }

    /// Records a sampled fault that stands for `period` faults. Returns the chance that its page
    /// had been touched in an earlier life; `None` if it had none.
    pub(super) fn touch(&mut self, address: u64, region: Region, period: u64) -> Option<f64> {
        let (from, to) = region.newest;
        if !(from..to).contains(&address) {
            return None;
        }
        let part = self.parts.get_mut(&(from, to))?;
        part.density.touched(period);
        Some(part.density.touched_before(part.times))
    }
}
