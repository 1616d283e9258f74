//! The events that a simulation counts.

use super::machine::{LEVELS, Machine, PageSize, Stage};
use std::ops::{AddAssign, Sub};

/// Events since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accesses.
    pub accesses: u64,
    /// Accesses that hit in each level of TLBs.
    pub hits: [u64; LEVELS],
    /// Refills by stage, then page size. Where a guest's stages have no separate entries, all
    /// refills count for the first stage, with the smaller of the two sizes.
    pub refills: [[u64; 2]; 2],
    /// Page-table references of walks.
    pub references: u64,
}

impl Counts {
    /// Refills of a stage and size.
    #[must_use]
    pub fn count(&self, stage: Stage, size: PageSize) -> u64 {
        self.refills[stage as usize][size as usize]
    }

    /// Refills of huge pages at either stage.
    #[must_use]
    pub fn huge(&self) -> u64 {
        self.refills[0][1] + self.refills[1][1]
    }

    /// Refills of small pages at either stage.
    #[must_use]
    pub fn small(&self) -> u64 {
        self.refills[0][0] + self.refills[1][0]
    }

    /// Nanoseconds that translation took on `machine`.
    #[must_use]
    pub fn translation_ns(&self, machine: &Machine) -> f64 {
        self.hit_ns(machine) + self.refill_ns(machine)
    }

    /// Nanoseconds that refills took.
    #[must_use]
    pub fn refill_ns(&self, machine: &Machine) -> f64 {
        let walk = &machine.walk;
        self.small() as f64 * walk.small_ns
            + self.huge() as f64 * walk.huge_ns
            + self.references as f64 * walk.reference_ns
    }

    /// Nanoseconds that hits beyond the first level took.
    fn hit_ns(&self, machine: &Machine) -> f64 {
        let levels = machine.levels.iter().zip(self.hits);
        levels.map(|(level, hits)| level.hit_ns * hits as f64).sum()
    }
}

impl Sub for Counts {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        let refill =
            |stage: usize, size: usize| self.refills[stage][size] - before.refills[stage][size];
        Self {
            accesses: self.accesses - before.accesses,
            hits: std::array::from_fn(|level| self.hits[level] - before.hits[level]),
            refills: [[refill(0, 0), refill(0, 1)], [refill(1, 0), refill(1, 1)]],
            references: self.references - before.references,
        }
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, more: Self) {
        self.accesses += more.accesses;
        for (sum, hits) in self.hits.iter_mut().zip(more.hits) {
            *sum += hits;
        }
        let sums = self.refills.as_flattened_mut();
        for (sum, refills) in sums.iter_mut().zip(more.refills.as_flattened()) {
            *sum += refills;
        }
        self.references += more.references;
    }
}
