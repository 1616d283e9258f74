//! Running sums over faults: bounded by unique stacks, causes, page ranges and time bins, never by
//! the number of events.

use super::mappers::MappedBy;
use super::pages::Route;
use super::syscalls::MmCall;
use super::variation::Variation;
use crate::churn::Sightings;
use pagewise_model::findings::{Cause, RegionKind};
use pagewise_model::histogram::Histogram;
use pagewise_model::stack::StackId;
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// A sum of weights with the data for its uncertainty.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Weight {
    /// Sum of the weights.
    pub sum: f64,
    /// Sum of their squares.
    pub squares: f64,
}

impl Weight {
    /// Adds one observation.
    pub fn add(&mut self, weight: f64) {
        self.sum += weight;
        self.squares += weight * weight;
    }

    /// Removes one observation.
    pub fn take(&mut self, weight: f64) {
        self.sum -= weight;
        self.squares -= weight * weight;
    }

    /// Kish's effective number of observations: (Σw)² / Σw².
    #[must_use]
    pub fn effective_samples(self) -> f64 {
        if self.squares <= 0.0 {
            return 0.0;
        }
        self.sum * self.sum / self.squares
    }
}

/// The key by which faults are counted: everything that the findings need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cell {
    /// Call stack, if one was recorded.
    pub stack: Option<StackId>,
    /// Cause.
    pub cause: Cause,
    /// Kind of memory.
    pub region: RegionKind,
}

/// Pages behind the faults on one kind of memory that were sampled at about the same rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Census {
    /// How often samples saw them.
    pub seen: Sightings,
    /// Faults that they stand for.
    pub faults: f64,
}

/// Order of magnitude of a sampling period: its binary logarithm, at most 11. Samples of different
/// rates are not one uniform sample, so they are counted separately.
pub(super) fn magnitude(period: u64) -> u16 {
    let bits = period.max(1).ilog2().min(11);
    u16::try_from(bits).unwrap_or(11)
}

/// One route by which memory was freed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReleaseTotals {
    /// Sizes of the stretches (bytes).
    pub sizes: Histogram,
    /// Pages that had been touched (all pages of the stretch if faults are sampled).
    pub pages: u64,
}

/// One system call's costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CallTotals {
    /// Number of calls.
    pub calls: u64,
    /// Bytes covered.
    pub bytes: u64,
    /// Calls whose entry and exit were both seen.
    pub timed: u64,
    /// Time inside those.
    pub time: Nanos,
}

/// All sums.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Faults by stack, cause and region.
    pub cells: FxHashMap<Cell, f64>,
    /// Faults by cause.
    pub causes: BTreeMap<Cause, Weight>,
    /// Faults by kind of memory.
    pub regions: BTreeMap<RegionKind, Weight>,
    /// Faults counted as first touches that may have copied pages shared by a fork, since those
    /// pages may have been touched unseen.
    pub perhaps_shared: f64,
    /// All faults.
    pub all: Weight,
    /// Variance of the sums by cause, if faults are sampled.
    pub cause_variation: Variation<Cause>,
    /// The same by kind of memory.
    pub region_variation: Variation<RegionKind>,
    /// Fault records behind the sums.
    pub samples: u64,
    /// Latency of faults by cause, with the recorder's own cost subtracted.
    pub latency: BTreeMap<Cause, Histogram>,
    /// Distinct pages by kind of memory and magnitude of the sampling period, if faults are
    /// sampled.
    pub census: BTreeMap<(RegionKind, u16), Census>,
    /// Faults outside any census, which mapping records explain: their number, and how many of
    /// these are churn.
    pub told_by_records: BTreeMap<RegionKind, (f64, f64)>,
    /// Pages of mapping records that mapped the same stretch again, by kind of memory.
    pub remapped: BTreeMap<RegionKind, u64>,
    /// Freed memory, by route and kind of memory.
    pub releases: BTreeMap<(Route, RegionKind), ReleaseTotals>,
    /// Pages freed, by stack and route.
    pub release_stacks: FxHashMap<(StackId, Route), f64>,
    /// Pages allocated, by stack (`mmap`, `brk` upwards).
    pub growth_stacks: FxHashMap<StackId, f64>,
    /// Sizes of anonymous mappings and heap growths (bytes).
    pub growth_sizes: BTreeMap<RegionKind, Histogram>,
    /// System calls on memory.
    pub calls: BTreeMap<MmCall, CallTotals>,
    /// Bytes that mmap was asked to populate.
    pub populate_requested: u64,
    /// Waits for sleeping reader-writer locks, by stack: number and time.
    pub lock_waits: FxHashMap<Option<StackId>, (u64, Nanos)>,
    /// Separately mapped blocks, by whose code had mapped the freed memory.
    pub mapped_by: MappedBy,
    /// Separately mapped blocks whose first two faults were both seen, and how many of them were
    /// started by other code than continued them: an allocator wrote its header first.
    pub blocks: u64,
    /// See [`Self::blocks`].
    pub headed_blocks: u64,
    /// Faults on memory for which the kernel allocates huge pages, by cause.
    pub huge_eligible: BTreeMap<Cause, f64>,
    /// Faults that needed I/O.
    pub major: Weight,
    /// Ends of faults that needed I/O, whether or not their begin was recorded.
    pub major_ends: u64,
    /// Stretches of a huge page's size that were eligible for one but took base pages.
    pub huge_refused: u64,
    /// Processes created by forks.
    pub forks: u64,
    /// Those that executed another program.
    pub spawned: u64,
    /// Those that ended soon without executing another program, and their faults.
    pub short_lived: u64,
    /// See [`Self::short_lived`].
    pub faults_of_short_lived: f64,
    /// Pages whose release was concluded only from mapping records, not from recorded releases.
    pub inferred: f64,
    /// Faults whose address was not recorded: their cause cannot be known.
    pub without_address: f64,
}

impl Tally {
    /// Adds `weight` faults to one cell and its margins.
    pub(super) fn add(&mut self, cell: Cell, weight: f64) {
        *self.cells.entry(cell).or_default() += weight;
        self.causes.entry(cell.cause).or_default().add(weight);
        self.regions.entry(cell.region).or_default().add(weight);
    }

    /// Records a sampled fault on private memory whose page had been seen `before` times at this
    /// rate.
    pub(super) fn census_of(&mut self, region: RegionKind, period: u64, before: u32) {
        let key = (region, magnitude(period));
        let census = self.census.entry(key).or_default();
        census.seen.see(before);
        census.faults += period as f64;
    }

    /// Records a sampled fault on memory that was mapped again, with the chance that it is churn.
    pub(super) fn tell_by_records(&mut self, region: RegionKind, period: u64, chance: f64) {
        let (faults, churn) = self.told_by_records.entry(region).or_default();
        *faults += period as f64;
        *churn += chance * period as f64;
    }

    /// Moves `weight` faults from one cause to another.
    pub(super) fn recause(&mut self, cell: Cell, to: Cause, weight: f64) {
        if let Some(held) = self.cells.get_mut(&cell) {
            *held -= weight;
        }
        self.causes.entry(cell.cause).or_default().take(weight);
        self.causes.entry(to).or_default().add(weight);
        *self.cells.entry(Cell { cause: to, ..cell }).or_default() += weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moving_faults_between_causes_keeps_the_total() {
        let mut tally = Tally::default();
        let cell = Cell {
            stack: None,
            cause: Cause::FirstTouch,
            region: RegionKind::Heap,
        };
        tally.add(cell, 3.0);
        tally.recause(cell, Cause::HugePage, 1.0);
        assert!((tally.causes[&Cause::FirstTouch].sum - 2.0).abs() < 1e-12);
        assert!((tally.causes[&Cause::HugePage].sum - 1.0).abs() < 1e-12);
        assert!((tally.cells.values().sum::<f64>() - 3.0).abs() < 1e-12);
    }

    #[test]
    fn unequal_weights_count_as_fewer_samples() {
        let mut even = Weight::default();
        let mut uneven = Weight::default();
        (0..10).for_each(|_| even.add(5.0));
        (0..9).for_each(|_| uneven.add(1.0));
        uneven.add(91.0);
        assert!((even.effective_samples() - 10.0).abs() < 1e-9);
        assert!(uneven.effective_samples() < 1.3);
    }

    #[test]
    fn a_fault_that_moves_takes_its_certainty_along() {
        let mut tally = Tally::default();
        let cell = Cell {
            stack: None,
            cause: Cause::FirstTouch,
            region: RegionKind::Heap,
        };
        (0..4).for_each(|_| tally.add(cell, 2.0));
        tally.recause(cell, Cause::HugePage, 2.0);
        let left = tally.causes[&Cause::FirstTouch];
        assert_eq!((left.sum, left.squares), (6.0, 12.0));
        assert!((left.effective_samples() - 3.0).abs() < 1e-12);
        let moved = tally.causes[&Cause::HugePage];
        assert_eq!((moved.sum, moved.squares), (2.0, 4.0));
    }
}
