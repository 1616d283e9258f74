//! Paths: how many faults take each, and whether faults of the same path take longer.
//!
//! Times of different paths differ far more than those of one path. Compared within their path,
//! faults show changes of a few per cent that are hidden in the total, whatever the mix of paths.

use super::super::super::signature::Class;
use super::super::least::OF_FAULTS;
use super::About;
use super::making::{FEWEST, Making};
use crate::fault_paths::figures::whole;
use std::collections::BTreeMap;

/// Faults of a path, in each trace, needed to compare within it.
const FEWEST_OF_PATH: usize = 5;

/// Shorter times are set to this, ns: a correction leaves little of some faults, and the logarithm
/// of a small time varies too much.
const SHORTEST: u64 = 100;

/// The share of slow faults among those of their path.
const SLOW: f64 = 0.01;

/// Block, counted through both traces, and corrected whole time.
type Fault = (usize, u64);

impl<'a> Making<'a> {
    pub(super) fn paths(&mut self, class: Class) {
        let logged = self.denominator(|side| side.sums(Some(class), |_| 1.0));
        let blocks = self.made.denominators[logged].len();
        let least = OF_FAULTS / self.share(class).max(OF_FAULTS);
        for (path, faults) in self.by_path(Some(class)) {
            let all = faults.iter().flatten();
            let count = sums(blocks, all.map(|(block, _)| (*block, 1.0)));
            let enough = count.iter().sum::<f64>() >= FEWEST;
            if enough && self.could_change(&count, logged, least) {
                self.add(About::Path(class, path.1), count, logged);
            }
        }
    }

    /// Faults compared with others of the same path.
    pub(super) fn same_paths(&mut self) {
        let blocks = self.sides.iter().map(|side| side.blocks.len()).sum();
        let mut compared = self.by_path(None);
        compared.retain(|_, faults| faults.iter().all(|of| of.len() >= FEWEST_OF_PATH));
        let all = || compared.values().flat_map(|faults| faults.iter().flatten());
        let below = sums(blocks, all().map(|(block, _)| (*block, 1.0)));
        if below.iter().sum::<f64>() < 2.0 * FEWEST {
            return;
        }
        let (mut longer, mut slow) = (Vec::new(), Vec::new());
        for faults in compared.values() {
            let count = whole(faults.iter().map(Vec::len).sum::<usize>() as u64);
            let logarithms = || {
                faults
                    .iter()
                    .flatten()
                    .map(|(at, ns)| (*at, logarithm(*ns)))
            };
            let usual = logarithms().map(|(_, value)| value).sum::<f64>() / count;
            longer.extend(logarithms().map(|(at, value)| (at, value - usual)));
            let bound = slowest(faults.iter().flatten().map(|(_, ns)| *ns).collect());
            let beyond = faults.iter().flatten().filter(|(_, ns)| *ns > bound);
            slow.extend(beyond.map(|(at, _)| (*at, 1.0)));
        }
        let (longer, slow) = (
            sums(blocks, longer.into_iter()),
            sums(blocks, slow.into_iter()),
        );
        self.made.denominators.push(below);
        let below = self.made.denominators.len() - 1;
        self.add(About::SamePath, longer, below);
        if slow.iter().sum::<f64>() >= FEWEST {
            self.add(About::SamePathTail, slow, below);
        }
    }

    /// The logged faults of a class, or all, by path: those of A and those of B.
    fn by_path(&self, class: Option<Class>) -> BTreeMap<(Class, &'a str), [Vec<Fault>; 2]> {
        let mut found: BTreeMap<(Class, &'a str), [Vec<Fault>; 2]> = BTreeMap::new();
        let sides = self.sides;
        for (place, side) in sides.iter().enumerate() {
            let first = if place == 0 { 0 } else { self.made.blocks_a };
            for row in side.rows(class) {
                let path: &'a str = &side.paths[row.shape];
                let faults = found.entry((row.class, path)).or_default();
                faults[place].push((first + row.block, row.corrected));
            }
        }
        found
    }
}

fn sums(blocks: usize, values: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut sums = vec![0.0; blocks];
    for (block, value) in values {
        sums[block] += value;
    }
    sums
}

fn logarithm(ns: u64) -> f64 {
    whole(ns.max(SHORTEST)).ln()
}

/// The time that few of a path's faults exceed.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank within a count"
)]
fn slowest(mut times: Vec<u64>) -> u64 {
    times.sort_unstable();
    let rank = ((1.0 - SLOW) * times.len() as f64).ceil() as usize;
    times
        .get(rank.saturating_sub(1))
        .copied()
        .unwrap_or(u64::MAX)
}
