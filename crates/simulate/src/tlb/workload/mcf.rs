//! The memory of SPEC CPU2006's 429.mcf: single-depot vehicle scheduling by network simplex.
//!
//! ```text
//!  nodes, 7 MB            arcs, 0x1a10000 × 64 B = 1.63 GiB
//!  ├───────┤              ├──▪────────▪────────▪────────▪─────── … ─┤
//!                            └ stride 5.8 MB: a group of 300 arcs ┘
//! ```
//!
//! *Pricing* looks at one group of arcs after another. A group has about 300 arcs (K in the
//! program), one every `(m − 1) / K + 1` arcs, so that a group touches 300 small pages but every
//! huge page of the array; each arc's two nodes are read too. The next group starts one arc
//! further. *Price-out* keeps the new arcs in a heap laid out over the array: a replacement walks
//! from the root to a leaf, comparing the two children of each arc.

use super::{BASE, Workload, below};
use pagewise_stats::Random;

const ARCS: u64 = 0x1A1_0000;
const ARC: u64 = 64;
const GROUP: u64 = 300;
const GROUPS: u64 = (ARCS - 1) / GROUP + 1;
const NODES: u64 = 7 << 20;
const NODE: u64 = 120;
/// Nodes are in the huge page before the arcs.
const ARC_BASE: u64 = BASE + (32 << 20);

/// A phase of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McfPhase {
    /// Pricing sweeps.
    Sweep,
    /// Heap replacements of price-out.
    Heap,
}

/// Share of accesses in pricing sweeps: CALIBRATED to the paper's figure 7 together with the costs
/// of `machines/3a4000.toml`.
pub const SWEEP_SHARE: f64 = 0.68;
/// Accesses of a sweep phase and the following heap phase together.
const ROUND: u64 = 1_000_000;

/// The mcf-like workload.
pub struct Mcf {
    random: Random,
    group: u64,
    arc: u64,
    /// The next part of an arc's visit: arc, tail, head.
    part: u8,
    /// Place in the heap, from 1; and whether its right child comes next.
    place: u64,
    is_right: bool,
    phases: [u64; 2],
    phase: McfPhase,
    left: u64,
}

impl Mcf {
    /// Sweeps and heap in the calibrated shares.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self::shared(SWEEP_SHARE, seed)
    }

    /// Sweeps take this share of accesses, 0 to 1.
    #[must_use]
    pub fn shared(sweep: f64, seed: u64) -> Self {
        let sweeps = (sweep.clamp(0.0, 1.0) * ROUND as f64).round() as u64;
        Self {
            random: Random::seeded(seed),
            group: 0,
            arc: 0,
            part: 0,
            place: 1,
            is_right: false,
            phases: [sweeps, ROUND - sweeps],
            phase: McfPhase::Heap,
            left: 0,
        }
    }

    /// The same in rounds of this many accesses.
    #[must_use]
    pub fn with_round(mut self, round: u64) -> Self {
        let share = self.phases[0] as f64 / (self.phases[0] + self.phases[1]) as f64;
        let sweeps = (share * round as f64).round() as u64;
        self.phases = [sweeps, round - sweeps];
        self
    }

    /// One phase alone.
    #[must_use]
    pub fn only(phase: McfPhase, seed: u64) -> Self {
        let sweep = match phase {
            McfPhase::Sweep => 1.0,
            McfPhase::Heap => 0.0,
        };
        Self::shared(sweep, seed)
    }

    fn node(&mut self) -> u64 {
        BASE + below(self.random.bits(), NODES / NODE) * NODE
    }

    fn sweep(&mut self) -> u64 {
        match self.part {
            0 => {
                self.part = 1;
                ARC_BASE + self.arc * ARC
            }
            1 => {
                self.part = 2;
                self.node()
            }
            _ => {
                self.part = 0;
                self.arc += GROUPS;
                if self.arc >= ARCS {
                    self.group = (self.group + 1) % GROUPS;
                    self.arc = self.group;
                }
                self.node()
            }
        }
    }

    fn heap(&mut self) -> u64 {
        let left = 2 * self.place;
        if left + 1 > ARCS {
            self.place = 1;
            return self.heap();
        }
        if self.is_right {
            self.is_right = false;
            self.place = left + (self.random.bits() >> 63);
            return ARC_BASE + left * ARC;
        }
        self.is_right = true;
        ARC_BASE + (left - 1) * ARC
    }
}

impl Workload for Mcf {
    fn name(&self) -> &'static str {
        match self.phases {
            [_, 0] => "mcf-sweep",
            [0, _] => "mcf-heap",
            _ => "mcf",
        }
    }

    fn round(&self) -> Option<u64> {
        let [sweeps, heap] = self.phases;
        (sweeps > 0 && heap > 0).then_some(sweeps + heap)
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        vec![(BASE, NODES), (ARC_BASE, ARCS * ARC)]
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            while self.left == 0 {
                (self.phase, self.left) = match self.phase {
                    McfPhase::Heap => (McfPhase::Sweep, self.phases[0]),
                    McfPhase::Sweep => (McfPhase::Heap, self.phases[1]),
                };
            }
            self.left -= 1;
            *address = match self.phase {
                McfPhase::Sweep => self.sweep(),
                McfPhase::Heap => self.heap(),
            };
        }
    }
}
