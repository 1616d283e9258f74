//! Whether a setting helped: paired runs, their ratios with intervals, and a verdict.
//!
//! Runs of all arms are interleaved in shuffled rounds; run *n* of an arm is paired with run *n* of
//! the baseline, so that a machine that gets slower slows both. The ratio of a pair is taken as a
//! logarithm, which makes "twice as fast" and "half as fast" mirror images. On one busy host,
//! blocks of consecutive runs reported 30 % of identical programs as different; shuffled pairs 5 %.
//!
//! Deliberately absent: means (one run that coincides with a backup job would decide), and outlier
//! removal.

#![forbid(unsafe_code)]

mod early;
pub mod gate;
#[cfg(test)]
#[path = "../../profile/src/made.rs"]
mod made;
mod needed;
pub mod profile_diff;
pub mod proof;
pub mod run_diff;
mod stopping;
pub mod tune;
mod verdict;
mod words;

pub use early::{FEWEST_EARLY, is_hopeless, is_overwhelming};
pub use needed::{Promise, promise};
pub use pagewise_model::proof::Clock;
pub use stopping::{FEWEST_PAIRS, Stopping, fewest_pairs, half_width};
pub use verdict::{Criteria, faster_by};
pub use words::{bytes_change, causal_doubt, promised, sentence, tried_once};

use early::Sides;
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Estimate};
use pagewise_stats::{centre, median, p_value};

/// Times below this are the kernel's accounting, not the program's (seconds).
const SHORTEST: f64 = 1e-6;

/// Compares an arm with the baseline: run *n* of one with run *n* of the other; surplus runs of one
/// side are left out. The p-value is that of this single comparison; [`correct_for_many`] adjusts
/// those of several arms.
#[must_use]
pub fn compare(
    name: &str,
    baseline: &[RunCost],
    arm: &[RunCost],
    criteria: &Criteria,
) -> Comparison {
    let pairs: Vec<(RunCost, RunCost)> =
        baseline.iter().copied().zip(arm.iter().copied()).collect();
    let [wall_sides, cpu_sides] =
        [Clock::Wall, Clock::Cpu].map(|clock| sides(baseline, arm, clock));
    let [wall, cpu] = [&wall_sides, &cpu_sides].map(Sides::differences);
    let inverse = |logs: Vec<f64>| logs.into_iter().map(|log| -log).collect::<Vec<_>>();
    let mut comparison = Comparison {
        arm: name.to_owned(),
        wall_speedup: ratio(&wall),
        cpu_speedup: ratio(&cpu),
        fault_ratio: ratio(&inverse(log_ratios(&pairs, faults))),
        rss_change_bytes: rss_change(&pairs),
        p_adjusted: 1.0,
        pairs: u32::try_from(pairs.len()).unwrap_or(u32::MAX),
        verdict: Verdict::Undecided,
    };
    let (decisive, differences) = match decisive(&comparison, criteria) {
        Clock::Wall => (wall_sides, wall),
        Clock::Cpu => (cpu_sides, cpu),
    };
    let early = decisive.p_value();
    comparison.p_adjusted = p_value(&differences).min(early.unwrap_or(1.0));
    comparison.verdict = match comparison.pairs {
        // No exact interval exists; only effects far beyond the noise are reported.
        ..FEWEST_PAIRS if early.is_none_or(|p| p > criteria.level) => Verdict::Undecided,
        _ => judge(&comparison, &pairs, criteria),
    };
    comparison
}

/// The clock that decides: the one by which the arm is faster; by elapsed time it may also be
/// slower.
fn decisive(comparison: &Comparison, criteria: &Criteria) -> Clock {
    faster_by(comparison, criteria).unwrap_or(match comparison.wall_speedup.high < 1.0 {
        true => Clock::Wall,
        false => Clock::Cpu,
    })
}

/// The paired runs of both sides, on one clock.
fn sides(baseline: &[RunCost], arm: &[RunCost], clock: Clock) -> Sides {
    let pairs = baseline.len().min(arm.len());
    let seconds = |run: &RunCost| match clock {
        Clock::Wall => run.wall.as_secs_f64(),
        Clock::Cpu => run.cpu().as_secs_f64(),
    };
    let [baseline, arm] = [baseline, arm].map(|runs| {
        let logarithm = |run| seconds(run).max(SHORTEST).ln();
        runs[..pairs].iter().map(logarithm).collect()
    });
    Sides { baseline, arm }
}

fn judge(comparison: &Comparison, pairs: &[(RunCost, RunCost)], criteria: &Criteria) -> Verdict {
    // A single comparison is decided by its interval; its p-value matters once there are several.
    let alone = Comparison {
        p_adjusted: 0.0,
        ..comparison.clone()
    };
    verdict::judge(&alone, median_rss(pairs), criteria)
}

/// Holm's step-down correction over the arms of one experiment: with ten arms without any effect,
/// one in two experiments would otherwise find a "winner". Verdicts that do not survive become
/// "undecided": the arm looked faster, and more pairs may yet prove it.
pub fn correct_for_many(comparisons: &mut [Comparison], criteria: &Criteria) {
    let count = comparisons.len();
    if count < 2 {
        return;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|&a, &b| {
        comparisons[a]
            .p_adjusted
            .total_cmp(&comparisons[b].p_adjusted)
    });
    let mut floor = 0.0_f64;
    for (rank, &at) in order.iter().enumerate() {
        let left = u32::try_from(count - rank).unwrap_or(u32::MAX);
        floor = floor.max((comparisons[at].p_adjusted * f64::from(left)).min(1.0));
        comparisons[at].p_adjusted = floor;
        let lost = floor > criteria.level;
        if lost && comparisons[at].verdict == Verdict::Faster {
            comparisons[at].verdict = Verdict::Undecided;
        }
    }
}

/// How much unchanged runs differ from one another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Median relative difference of elapsed time between successive baseline runs.
    pub wall: f64,
    /// The same for CPU time.
    pub cpu: f64,
}

/// The noise among runs of one arm; `None` below three runs.
#[must_use]
pub fn noise(runs: &[RunCost]) -> Option<Noise> {
    if runs.len() < 3 {
        return None;
    }
    let pairs: Vec<(RunCost, RunCost)> = runs
        .windows(2)
        .map(|window| (window[0], window[1]))
        .collect();
    let typical =
        |logs: Vec<f64>| median(&mut logs.into_iter().map(f64::abs).collect::<Vec<_>>()).exp_m1();
    Some(Noise {
        wall: typical(log_ratios(&pairs, |run| run.wall.as_secs_f64())),
        cpu: typical(log_ratios(&pairs, |run| run.cpu().as_secs_f64())),
    })
}

/// Logarithm of baseline over arm for each pair.
fn log_ratios(pairs: &[(RunCost, RunCost)], of: fn(&RunCost) -> f64) -> Vec<f64> {
    let log = |run: &RunCost| of(run).max(SHORTEST).ln();
    pairs
        .iter()
        .map(|(baseline, arm)| log(baseline) - log(arm))
        .collect()
}

fn faults(run: &RunCost) -> f64 {
    run.faults().max(1) as f64
}

/// Converts logarithms to a ratio with its interval; unbounded below two pairs.
fn ratio(logs: &[f64]) -> Estimate {
    match centre(logs) {
        Some(found) => Estimate {
            value: found.median.exp(),
            low: found.low.exp(),
            high: found.high.exp().min(f64::MAX),
        },
        None => Estimate {
            value: logs.first().map_or(1.0, |log| log.exp()),
            low: 0.0,
            high: f64::MAX,
        },
    }
}

fn rss_change(pairs: &[(RunCost, RunCost)]) -> f64 {
    let change =
        |(baseline, arm): &(RunCost, RunCost)| arm.max_rss.0 as f64 - baseline.max_rss.0 as f64;
    median(&mut pairs.iter().map(change).collect::<Vec<_>>())
}

fn median_rss(pairs: &[(RunCost, RunCost)]) -> Bytes {
    let mut sizes: Vec<Bytes> = pairs.iter().map(|(_, arm)| arm.max_rss).collect();
    sizes.sort_unstable();
    sizes.get(sizes.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests;
