//! Compares two traces: what differs beyond chance, and what explains it.
//!
//! [`compare`] cuts both traces into blocks ([`blocked`]) and makes every figure a ratio of sums
//! over blocks ([`figures`]). A few questions come first: how many faults, of which kinds, how long
//! at the median, in the tail and overall. Their figures are tested together
//! ([`pagewise_stats::blocks`]); explanations (paths, layers, functions) are tested only if one of
//! them differs. Programs have phases, and a trace contains few of them: a difference that only
//! separates the recordings is reported as such. Differences beyond chance but too small to matter
//! are not reported ([`assemble`]). Shifts of quantiles have intervals ([`shifts`]), and the
//! difference of the means is decomposed ([`explain`]).

mod assemble;
pub(super) mod blocked;
mod explain;
mod figures;
mod headline;
mod least;
mod results;
mod shifts;
mod words;

pub use results::compare_results;

use super::collector::Collector;
use super::probe::{Calibration, Source};
use assemble::Frame;
use blocked::{Alike, Blocked};
use figures::Figures;
use pagewise_formats::function_graph::Summary;
use pagewise_model::answer::Document;
use pagewise_model::fault_diff::{FaultDiff, Method};
use shifts::Draws;

/// Blocks that each trace needs for tests: 16 faults each.
const FEWEST_BLOCKS: usize = 8;

/// A trace to compare.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    /// The file.
    pub name: &'a str,
    /// Its name in sentences.
    pub label: &'a str,
    /// Its faults; from [`Collector::for_comparison`], otherwise nothing is tested.
    pub collector: &'a Collector,
    /// Summary of the trace reader.
    pub summary: &'a Summary,
    /// The tracer's cost.
    pub calibration: Calibration,
}

/// How to test.
#[derive(Clone, Copy, Debug)]
pub struct Criteria {
    /// The chance of any false finding, over all tests.
    pub level: f64,
    /// Most random exchanges of blocks.
    pub permutations: u32,
    /// Resamples of blocks for the intervals of quantiles; 0: no such intervals.
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

/// The differences between two traces.
#[must_use]
pub fn compare<'a>(mut a: Input<'a>, mut b: Input<'a>, criteria: Criteria) -> Document<FaultDiff> {
    let shared = common(a.calibration, b.calibration);
    if let Some((both, _)) = shared {
        (a.calibration, b.calibration) = (both, both);
    }
    let side = |input: Input<'a>, alike| {
        Blocked::new(
            input.collector,
            &input.summary.names,
            input.calibration,
            alike,
        )
    };
    let sides = [a, b].map(|input| side(input, Alike::Faults));
    let short = [a, b].map(|input| side(input, Alike::Nothing));
    let within = [a, b].map(|input| side(input, Alike::WithinKinds));
    let blocks = [sides[0].blocks.len(), sides[1].blocks.len()];
    let enough = blocks.iter().all(|blocks| *blocks >= FEWEST_BLOCKS);
    let testing = enough.then_some((criteria.permutations, criteria.seed));
    let mut figures = Figures::new([&sides, &short, &within], testing);
    let draws = Draws::new(blocks, criteria.resamples, criteria.seed);
    let frame = Frame {
        inputs: [a, b],
        sides: &sides,
        draws: &draws,
        level: criteria.level,
        costs_apart: shared.map(|(_, apart)| apart),
    };
    if let Some(testing) = testing
        && !frame.with(&figures).findings().is_empty()
    {
        figures.explain(testing);
    }
    let (tests, questions) = figures.counts();
    let method = Method {
        level: criteria.level,
        tests: tests as u64,
        questions: questions as u64,
        permutations: figures.permutations(),
        resamples: criteria.resamples,
        seed: criteria.seed,
        not_tested: (!enough).then(|| {
            format!(
                "tests need {} faults in each trace: {FEWEST_BLOCKS} blocks of 16",
                FEWEST_BLOCKS * 16
            )
        }),
    };
    frame.with(&figures).diff(method)
}

/// Relative error, or difference, up to which two costs can be treated as one: those of several
/// traces of one kernel agree within 2 %, those of successive kernels differ by 12 % and more.
const ALIKE: f64 = 0.05;

/// The tracer's common cost, if both traces have the same: the two estimates do not contradict each
/// other, and both are precise or nearly equal. Errors of two separate costs would look like
/// differences of every function. The unknown part of the cost is the same in both, because both
/// lack the same kinds of calls; if calls themselves were more expensive in one trace, its estimate
/// would be higher too. Also returns the difference of the two estimates, as a fraction of their
/// error.
fn common(a: Calibration, b: Calibration) -> Option<(Calibration, f64)> {
    let error = a.error_ns + b.error_ns;
    let apart = (a.per_call_ns - b.per_call_ns).abs();
    let apart_inside = (a.inside_ns - b.inside_ns).abs();
    let agree = apart.max(apart_inside) <= error;
    let corrects = [&a, &b].iter().all(|cost| cost.corrects());
    let much = ALIKE * a.per_call_ns.min(b.per_call_ns);
    let known = a.error_ns.max(b.error_ns) <= much;
    let alike = a.source == Source::OwnTrace && apart.max(apart_inside) <= much;
    if !agree || a.source != b.source || !corrects || !(known || alike) {
        return None;
    }
    let error_ns = a.error_ns.max(b.error_ns);
    let both = Calibration {
        per_call_ns: f64::midpoint(a.per_call_ns, b.per_call_ns),
        inside_ns: f64::midpoint(a.inside_ns, b.inside_ns),
        error_ns,
        source: a.source,
        withdrawn: None,
    };
    Some((both, apart / error_ns.max(f64::MIN_POSITIVE)))
}
