//! Two traces compared: what differs beyond chance, and what explains it.
//!
//! [`compare`] cuts both traces into blocks ([`side`]), makes every figure a ratio of sums over
//! blocks ([`figures`]), tests them together ([`crate::compare::blocks`]), puts intervals around
//! shifts of quantiles ([`shifts`]) and takes the difference of means apart ([`explain`]).

mod assemble;
pub(super) mod explain;
mod figures;
mod results;
mod shifts;
mod side;
mod words;

pub use results::compare_results;

use super::collector::Collector;
use super::probe::Calibration;
use assemble::Assembly;
use figures::Figures;
use pagewise_model::fault_diff::{FaultDiff, Method};
use pagewise_model::formats::function_graph::Summary;
use shifts::Draws;
use side::{Alike, Side};

/// Blocks that either trace needs for tests: 16 faults each.
const FEWEST_BLOCKS: usize = 8;

/// A trace to compare.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The file.
    pub name: &'a str,
    /// What sentences call it.
    pub label: &'a str,
    /// Its faults; from [`Collector::for_comparison`], or slow calls are not compared.
    pub collector: &'a Collector,
    /// What was read.
    pub summary: &'a Summary,
    /// The tracer's cost.
    pub calibration: Calibration,
}

/// How to test.
#[derive(Clone, Copy, Debug)]
pub struct Criteria {
    /// The chance of any false finding, over all tests.
    pub level: f64,
    /// Random exchanges of blocks at most.
    pub permutations: u32,
    /// Resamples of blocks behind the intervals of quantiles; 0: no such intervals.
    pub resamples: u32,
    /// The seed of exchanges and resamples.
    pub seed: u64,
}

impl Default for Criteria {
    /// One comparison in a hundred of equal traces finds something.
    fn default() -> Self {
        Self {
            level: 0.01,
            permutations: 1999,
            resamples: 400,
            seed: 1,
        }
    }
}

/// What differs between two traces.
#[must_use]
pub fn compare<'a>(mut a: Input<'a>, mut b: Input<'a>, criteria: Criteria) -> FaultDiff {
    (a.calibration, b.calibration) = common(a.calibration, b.calibration);
    let side = |input: Input<'a>, alike| {
        Side::new(
            input.collector,
            &input.summary.names,
            input.calibration,
            alike,
        )
    };
    let sides = [a, b].map(|input| side(input, Alike::Faults));
    let within = [a, b].map(|input| side(input, Alike::WithinKinds));
    let blocks = [sides[0].blocks.len(), sides[1].blocks.len()];
    let enough = blocks.iter().all(|blocks| *blocks >= FEWEST_BLOCKS);
    let testing = enough.then_some((criteria.permutations, criteria.seed));
    let figures = Figures::new(&sides, &within, testing);
    let method = Method {
        level: criteria.level,
        tests: figures.count() as u64,
        permutations: figures.permutations(),
        resamples: criteria.resamples,
        seed: criteria.seed,
        not_tested: (!enough).then(|| {
            format!(
                "tests need {} faults in either trace: {FEWEST_BLOCKS} blocks of 16",
                FEWEST_BLOCKS * 16
            )
        }),
    };
    let draws = Draws::new(blocks, criteria.resamples, criteria.seed);
    Assembly::new([a, b], &sides, &figures, &draws, method).diff()
}

/// The tracer's cost in both: one and the same where the two don't contradict each other, since
/// their errors would otherwise look like differences of every function.
fn common(a: Calibration, b: Calibration) -> (Calibration, Calibration) {
    let error = a.error_ns + b.error_ns;
    let agree = (a.per_call_ns - b.per_call_ns).abs() <= error
        && (a.inside_ns - b.inside_ns).abs() <= error;
    if !agree || a.source != b.source || !a.corrects() {
        return (a, b);
    }
    let both = Calibration {
        per_call_ns: f64::midpoint(a.per_call_ns, b.per_call_ns),
        inside_ns: f64::midpoint(a.inside_ns, b.inside_ns),
        error_ns: a.error_ns.max(b.error_ns),
        source: a.source,
        withdrawn: None,
    };
    (both, both)
}
