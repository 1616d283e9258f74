//! Lookups in a B-tree.

use super::{BASE, Workload, below, shuffled};
use pagewise_stats::Random;

/// Bytes of a node, as in InnoDB.
pub const NODE: u64 = 16 << 10;
/// Children of an inner node.
const FANOUT: u64 = 512;
const LINE: u64 = 64;
/// Lines that a binary search in a node reads.
const PROBES: u64 = 5;

/// A tree of nodes placed in arbitrary order, searched from the root to a leaf.
pub struct BTree {
    random: Random,
    /// Binary logarithm of the number of leaves.
    bits: u32,
    levels: u32,
    base: u64,
    seed: u64,
    leaf: u64,
    level: u32,
    probe: u64,
}

impl BTree {
    /// A tree whose leaves have `bytes` in total, rounded to a power of two, with the inner nodes
    /// before them.
    #[must_use]
    pub fn new(bytes: u64, seed: u64) -> Self {
        Self::at(BASE, bytes, seed)
    }

    /// The same at another address.
    #[must_use]
    pub fn at(base: u64, bytes: u64, seed: u64) -> Self {
        let leaves = (bytes / NODE).max(2).next_power_of_two();
        let mut levels = 1;
        let mut reached = 1;
        while reached < leaves {
            reached *= FANOUT;
            levels += 1;
        }
        let mut tree = Self {
            random: Random::seeded(seed),
            bits: leaves.trailing_zeros(),
            levels,
            base,
            seed,
            leaf: 0,
            level: 0,
            probe: 0,
        };
        tree.choose();
        tree
    }

    fn choose(&mut self) {
        self.leaf = below(self.random.bits(), 1 << self.bits);
        self.level = self.levels;
        self.probe = 0;
    }

    /// Nodes above the leaves.
    fn inner(&self) -> u64 {
        (1_u64 << self.bits).div_ceil(FANOUT) * 2
    }

    /// Address of the node on the way to the chosen leaf; level 1 is the leaf.
    fn node(&self) -> u64 {
        let number = match self.level {
            1 => self.inner() + shuffled(self.leaf, self.bits, self.seed),
            level => {
                let span = FANOUT.saturating_pow(level - 1);
                (u64::from(level) - 2) * self.inner() / 2 + self.leaf / span
            }
        };
        self.base + number * NODE
    }

    /// The next access of the search.
    fn probe(&mut self) -> u64 {
        // A binary search halves the distance with each probe.
        let lines = NODE / LINE;
        let goal = (self.leaf.wrapping_mul(0x9E37_79B9) >> 7) % lines;
        let step = lines >> (self.probe + 1);
        let line = goal / step.max(1) * step.max(1);
        let address = self.node() + line * LINE;
        self.probe += 1;
        if self.probe == PROBES {
            self.probe = 0;
            self.level -= 1;
            if self.level == 0 {
                self.choose();
            }
        }
        address
    }

    /// Size in bytes, from the base.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        (self.inner() * u64::from(self.levels) + (1 << self.bits) + 1) * NODE
    }
}

impl Workload for BTree {
    fn name(&self) -> &'static str {
        "btree"
    }

    fn memory(&self) -> Vec<(u64, u64)> {
        vec![(self.base, self.bytes())]
    }

    fn fill(&mut self, out: &mut [u64]) {
        for address in out {
            *address = self.probe();
        }
    }
}
