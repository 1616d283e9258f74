//! Memory that was mapped anew where it had been mapped before: it had been given back in between,
//! though no call is on record.
//!
//! The kernel joins a new mapping with its neighbours and records the joint one, so a record tells
//! which part is new only beside the record before it. A record like the one before means that the
//! part which that one had brought came again.

use super::density::Density;
use super::regions::Region;
use rustc_hash::FxHashMap;

/// Parts of a process's memory that are watched; others count as never mapped anew.
const MOST_PARTS: usize = 1 << 16;

/// One part: sampled faults on it, and how often it came again.
#[derive(Clone, Copy, Debug, Default)]
struct Part {
    density: Density,
    times: u16,
}

/// Parts of a process's memory that were mapped anew, by start and end.
#[derive(Clone, Debug, Default)]
pub(super) struct Remaps(FxHashMap<(u64, u64), Part>);

impl Remaps {
    /// A record of memory from `start`, which lies over or beside `old`: the part that it brought.
    pub(super) fn record(
        &mut self,
        (start, end): (u64, u64),
        writable: bool,
        old: Option<(u64, Region)>,
        page_shift: u32,
    ) -> (u64, u64) {
        let whole = (start, end);
        let Some((old_start, old)) = old.filter(|(_, old)| old.writable == writable) else {
            return whole;
        };
        let (from, to) = old.newest;
        let came_again = match (start.cmp(&old_start), end == old.end) {
            (std::cmp::Ordering::Equal, true) => (from, to),
            // A smaller mapping in the place of the newest.
            (std::cmp::Ordering::Greater, true) if (from..to).contains(&start) => (start, to),
            (std::cmp::Ordering::Less, true) => return (start, old_start),
            (std::cmp::Ordering::Equal, false) if end > old.end => return (old.end, end),
            _ => return whole,
        };
        if self.0.len() < MOST_PARTS || self.0.contains_key(&came_again) {
            let part = self.0.entry(came_again).or_default();
            let pages = came_again.1.saturating_sub(came_again.0) >> page_shift;
            part.density.released(pages);
            part.times = part.times.saturating_add(1);
        }
        came_again
    }

    /// Notes a sampled fault for `period` others. The chance that its page had been touched in an
    /// earlier life; `None` where it had none.
    pub(super) fn touch(&mut self, address: u64, region: Region, period: u64) -> Option<f64> {
        let (from, to) = region.newest;
        if !(from..to).contains(&address) {
            return None;
        }
        let part = self.0.get_mut(&(from, to))?;
        part.density.touched(period);
        Some(part.density.touched_before(part.times))
    }
}
