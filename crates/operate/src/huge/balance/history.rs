//! A process's page sizes over time, for a picture.

use pagewise_model::huge_map::HugeMap as Picture;
use pagewise_model::huge_pages::HugeMap;
use pagewise_model::units::Bytes;
use std::collections::BTreeSet;
use std::time::Duration;

/// Page sizes at some moments. If there are too many, every other one is dropped.
#[derive(Default)]
pub struct History {
    moments: Vec<(Duration, Vec<u64>)>,
    /// Looks from one kept moment to the next, and looks since the last.
    stride: usize,
    since: usize,
    /// Slots in all moments.
    slots: usize,
}

/// Columns of the picture.
const COLUMNS: usize = 240;
/// Maximum numbers of kept moments and slots: a few MiB.
const MOST_MOMENTS: usize = 2 * COLUMNS;
const MOST_SLOTS: usize = 1 << 20;
/// Lowest bit of a slot's address, which is aligned: set if the slot is huge.
const HUGE: u64 = 1;

impl History {
    /// Keeps the map's current state, if it is time.
    pub fn add(&mut self, at: Duration, map: &HugeMap) {
        self.since += 1;
        if self.since < self.stride {
            return;
        }
        self.since = 0;
        let slots = map.changeable();
        let slots: Vec<u64> = slots
            .map(|(address, slot)| address | (u64::from(slot.huge) * HUGE))
            .collect();
        self.slots += slots.len();
        self.moments.push((at, slots));
        while self.moments.len() > MOST_MOMENTS
            || (self.slots > MOST_SLOTS && self.moments.len() > 2)
        {
            self.thin_out();
        }
    }

    fn thin_out(&mut self) {
        let mut at = 0;
        // The first moment stays.
        self.moments.retain(|_| {
            at += 1;
            at % 2 == 1
        });
        self.stride = (self.stride * 2).max(2);
        self.slots = self.moments.iter().map(|(_, slots)| slots.len()).sum();
    }

    /// The picture, in columns of equal time: each shows the last moment before its end.
    pub fn map(&self, slot: Bytes) -> Picture {
        let all: BTreeSet<u64> = self
            .moments
            .iter()
            .flat_map(|(_, slots)| slots.iter().map(|slot| slot & !HUGE))
            .collect();
        let all: Vec<u64> = all.into_iter().collect();
        let Some((end, _)) = self.moments.last() else {
            return Picture::default();
        };
        let columns = COLUMNS.min(self.moments.len());
        let moments = (1..=columns).map(|column| {
            let until = end.mul_f64(column as f64 / columns as f64);
            let behind = self.moments.partition_point(|(at, _)| *at <= until);
            let (_, slots) = &self.moments[behind.saturating_sub(1)];
            slots.iter().map(|slot| (slot & !HUGE, slot & HUGE != 0))
        });
        Picture::new(slot.0, &all, (*end).into(), moments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::findings::RegionKind;
    use pagewise_model::huge_pages::{Area, Slot};
    use pagewise_model::units::Nanos;

    fn map(huge: &[bool]) -> HugeMap {
        let slots = huge.iter().map(|&huge| Slot {
            huge,
            present: 512,
            zero: 0,
            swapped: 0,
        });
        HugeMap {
            huge_page: Bytes(2 << 20),
            base_page: Bytes(4096),
            areas: vec![Area {
                start: 0x40_0000,
                end: 0x40_0000 + huge.len() as u64 * (2 << 20),
                region: RegionKind::Anonymous,
                path: "//anon".into(),
                advised: false,
                obstacle: None,
                first_slot: 0x40_0000,
                slots: slots.collect(),
            }],
        }
    }

    #[test]
    fn columns_are_equal_times_whatever_the_intervals() {
        let mut history = History::default();
        for (second, huge) in [(1, [true, false]), (2, [false, false]), (6, [true, true])] {
            history.add(Duration::from_secs(second), &map(&huge));
        }
        let picture = history.map(Bytes(2 << 20));
        assert_eq!(picture.starts, ["0x400000", "0x600000"]);
        assert_eq!(picture.rows, ["..#", "..#"]);
        assert_eq!(picture.until, Nanos(6_000_000_000));
    }

    #[test]
    fn long_runs_are_thinned_out_evenly() {
        let mut history = History::default();
        for tenth in 0..5_000_u64 {
            let huge = tenth >= 2_500;
            history.add(Duration::from_millis(tenth * 100), &map(&[huge]));
        }
        assert!(history.moments.len() <= MOST_MOMENTS);
        let picture = history.map(Bytes(2 << 20));
        let small = picture.rows[0].matches('.').count();
        assert_eq!(picture.rows[0].len(), COLUMNS);
        assert!((118..=122).contains(&small), "{small}");
    }
}
