//! Time and memory of each compared setting.

use super::front;
use crate::{Clock, noise};
use pagewise_model::proof::Comparison;
use pagewise_model::run::RunCost;
use pagewise_model::tuning::Point;

/// If other programs take the CPUs away, elapsed time varies this many times more than CPU time
/// from run to run; then it reflects those programs.
const NOISIER: f64 = 3.0;

/// Run-to-run differences of elapsed time that are still acceptable.
const QUIET: f64 = 0.03;

/// The clock for showing settings, chosen from runs of the baseline.
#[must_use]
pub fn quieter_clock(baseline: &[RunCost]) -> Clock {
    match noise(baseline) {
        Some(noise) if noise.wall > QUIET && noise.wall > NOISIER * noise.cpu => Clock::Cpu,
        _ => Clock::Wall,
    }
}

/// Typical time and peak of the baseline and each arm. An arm's time is the baseline's divided by
/// its paired speed-up, so that arms run at different times compare fairly. Nothing if nothing ran.
#[must_use]
pub fn points(baseline: &[RunCost], comparisons: &[Comparison], clock: Clock) -> Vec<Point> {
    if baseline.is_empty() {
        return Vec::new();
    }
    let (seconds, peak) = typical(baseline, clock);
    let baseline = Point {
        arm: "baseline".to_owned(),
        seconds,
        peak_bytes: peak,
        told_apart: true,
        on_front: false,
    };
    let compared = comparisons.iter().filter(|comparison| comparison.pairs > 0);
    let arms = compared.map(|comparison| {
        let peak_bytes = (peak + comparison.rss_change_bytes).max(0.0);
        Point {
            arm: comparison.arm.clone(),
            seconds: seconds / clock.speed_up(comparison).value,
            peak_bytes,
            told_apart: is_told_apart(comparison, clock, peak_bytes / peak),
            on_front: false,
        }
    });
    let mut points: Vec<Point> = std::iter::once(baseline).chain(arms).collect();
    front(&mut points);
    points
}

/// Less memory than this share of the baseline's counts as a difference.
const LESS_MEMORY: f64 = 0.97;

/// Whether an arm differs from the baseline, judged by its interval, since a verdict needs more
/// pairs than the sweep gives each arm.
fn is_told_apart(comparison: &Comparison, clock: Clock, memory: f64) -> bool {
    !clock.speed_up(comparison).covers(1.0) || memory < LESS_MEMORY
}

fn typical(baseline: &[RunCost], clock: Clock) -> (f64, f64) {
    let time = |run: &RunCost| match clock {
        Clock::Wall => run.wall,
        Clock::Cpu => run.cpu(),
    };
    let mut runs = baseline.to_vec();
    runs.sort_by_key(time);
    let seconds = runs
        .get(runs.len() / 2)
        .map_or(0.0, |run| time(run).as_secs_f64());
    runs.sort_by_key(|run| run.max_rss);
    (
        seconds,
        runs.get(runs.len() / 2)
            .map_or(0.0, |run| run.max_rss.0 as f64),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_run_there_is_no_point() {
        assert_eq!(points(&[], &[], Clock::Wall).len(), 0);
    }
}
