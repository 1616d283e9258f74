//! Faults by address and time in bounded memory: the sizes of granules and time bins double when
//! the recording outgrows them.

use pagewise_model::findings::RegionKind;
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;

/// Time bins kept; a report draws at most as many columns.
pub(crate) const TIME_BINS: u64 = 200;
/// Cells kept before granules double.
const MOST_CELLS: usize = 200_000;
/// First granule: 16 KiB.
const FIRST_SHIFT: u32 = 14;

/// Weight of one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Heat {
    pub(crate) faults: f64,
    pub(crate) churn: f64,
    pub(crate) region: RegionKind,
}

/// One granule of one process in one time bin.
type Key = (i32, u64, u32);

/// The map under construction.
#[derive(Clone, Debug)]
pub(crate) struct HeatMap {
    pub(crate) cells: FxHashMap<Key, Heat>,
    pub(crate) shift: u32,
    pub(crate) step: u64,
    pub(crate) origin: Option<Nanos>,
}

impl HeatMap {
    /// An empty map for a run of about `wall`.
    pub(super) fn new(wall: Nanos) -> Self {
        Self {
            cells: FxHashMap::default(),
            shift: FIRST_SHIFT,
            step: (wall.0 / TIME_BINS).max(100_000),
            origin: None,
        }
    }

    /// Adds faults.
    pub(super) fn add(&mut self, pid: i32, address: u64, time: Nanos, heat: Heat) {
        let origin = *self.origin.get_or_insert(time);
        let elapsed = (time - origin).0;
        while elapsed / self.step >= TIME_BINS {
            self.step *= 2;
            self.rebin(|(pid, granule, bin)| (pid, granule, bin / 2));
        }
        let bin = u32::try_from(elapsed / self.step).unwrap_or(u32::MAX);
        merge(&mut self.cells, (pid, address >> self.shift, bin), heat);
        while self.cells.len() > MOST_CELLS {
            self.shift += 1;
            self.rebin(|(pid, granule, bin)| (pid, granule >> 1, bin));
        }
    }

    fn rebin(&mut self, key: impl Fn(Key) -> Key) {
        let mut coarse = FxHashMap::default();
        for (old, heat) in self.cells.drain() {
            merge(&mut coarse, key(old), heat);
        }
        self.cells = coarse;
    }
}

fn merge(cells: &mut FxHashMap<Key, Heat>, key: Key, heat: Heat) {
    cells
        .entry(key)
        .and_modify(|held| {
            held.faults += heat.faults;
            held.churn += heat.churn;
        })
        .or_insert(heat);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_survive_both_kinds_of_coarsening() {
        let mut map = HeatMap::new(Nanos(0));
        let heat = Heat {
            faults: 1.0,
            churn: 0.5,
            region: RegionKind::Heap,
        };
        for i in 0..300_000_u64 {
            map.add(1, i << FIRST_SHIFT, Nanos(i * 1000), heat);
        }
        let total: f64 = map.cells.values().map(|heat| heat.faults).sum();
        assert!((total - 300_000.0).abs() < 1e-6);
        assert!(map.cells.len() <= MOST_CELLS);
        assert!(map.cells.keys().all(|key| u64::from(key.2) < TIME_BINS));
    }
}
