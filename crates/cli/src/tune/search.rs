//! The search: successive halving over all settings, the smallest value that suffices, and a
//! confirmation with fresh runs.

use super::Trial;
use crate::prove::{Candidate, Experiment, Options, Outcome, Progress, best, confirm};
use anyhow::Result;
use pagewise_analyse::compare::{Criteria, correct_for_many};
use pagewise_analyse::tune::{Point, front, survivors};
use pagewise_model::advice::Settings;
use pagewise_model::proof::{Arm, Comparison, Verdict};
use pagewise_model::units::Bytes;
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// What the search found.
pub struct Found {
    /// Baseline first.
    pub arms: Vec<Arm>,
    /// Each arm that was not rejected against the baseline.
    pub comparisons: Vec<Comparison>,
    /// Time against memory, the baseline included.
    pub points: Vec<Point>,
    /// The best, when one is beyond doubt faster.
    pub winner: Option<Winner>,
    /// Things to know.
    pub notes: Vec<String>,
}

/// The setting to use.
pub struct Winner {
    /// Its name.
    pub name: String,
    /// Its settings, at the smallest sufficient value.
    pub settings: Settings,
    /// The value at which it won and the smallest that suffices, where it has one.
    pub value: Option<(Bytes, Bytes)>,
    /// Fresh runs of it against the baseline.
    pub confirmation: Comparison,
    /// What it costs, in words.
    pub price: String,
}

/// Rounds between two halvings.
const RUNG: usize = 2;
/// Settings that go into the last, long rung.
const FINALISTS: usize = 3;
/// Shares of the budget that are used up after the sweep and after the search for the smallest
/// value; the rest confirms.
const AFTER_SWEEP: f64 = 0.55;
const AFTER_SMALLEST: f64 = 0.75;
/// Pairs per step of the search for the smallest value.
const PAIRS_PER_STEP: usize = 3;
/// No allocator threshold below this is worth setting: glibc's default is 128 KiB.
const LEAST_VALUE: u64 = 128 << 10;

/// Tries `trials` on `command`.
pub fn search(
    command: &[OsString],
    trials: &[Trial],
    options: &Options,
    notes: Vec<String>,
) -> Result<Found> {
    let started = Instant::now();
    let progress = Progress::new();
    let candidates: Vec<Candidate> = trials.iter().map(|trial| trial.candidate.clone()).collect();
    let mut experiment = Experiment::begin(command, &candidates, options, &progress)?;
    notes.iter().for_each(|note| experiment.note(note));
    let until = |share: f64| started + options.budget.mul_f64(share);

    sweep(&mut experiment, options, &progress, until(AFTER_SWEEP))?;
    let mut comparisons = experiment.comparisons(&options.criteria);
    correct_for_many(&mut comparisons, &options.criteria);
    let leader = best(&comparisons, &options.criteria).map(|best| experiment.arm_named(&best.arm));
    let winner = match leader {
        Some(at) if !experiment.was_stopped() => {
            let trial = &trials[at - 1];
            let smallest =
                smallest_value(&mut experiment, at, trial, &progress, until(AFTER_SMALLEST))?;
            let chosen = smallest.map_or_else(|| trial.clone(), |value| trial.at(value));
            confirmed(
                &mut experiment,
                trial,
                &chosen,
                options,
                &progress,
                until(1.0),
            )?
        }
        _ => None,
    };
    progress.finish();
    experiment.note_noise();
    let points = points(&experiment, &comparisons);
    let (arms, notes) = experiment.into_parts();
    Ok(Found {
        arms: arms
            .into_iter()
            .filter(|arm| !arm.runs.is_empty())
            .collect(),
        comparisons,
        points,
        winner,
        notes,
    })
}

/// Halves the field every [`RUNG`] rounds, then runs the finalists until their intervals are
/// narrow.
fn sweep(
    experiment: &mut Experiment<'_>,
    options: &Options,
    progress: &Progress,
    deadline: Instant,
) -> Result<()> {
    let mut active = affordable(experiment, deadline);
    while !active.is_empty() {
        let rung = if active.len() > FINALISTS { RUNG } else { 1 };
        for _ in 0..rung {
            progress.show(&experiment.status(&active, options));
            if experiment.round(&active)? == Outcome::Stopped {
                return Ok(());
            }
        }
        let in_play = experiment.in_play();
        let mut field: Vec<(usize, Comparison)> = active
            .iter()
            .filter(|at| in_play.contains(at))
            .map(|&at| (at, experiment.compare(at, &options.criteria)))
            .collect();
        drop_the_greedy(experiment, &mut field, &options.criteria);
        active = if field.len() > FINALISTS {
            let kept = survivors(&field, FINALISTS);
            if kept.len() == field.len() {
                kept[..field.len() - 1].to_vec()
            } else {
                kept
            }
        } else {
            field.retain(|(_, comparison)| !options.stopping.enough(comparison));
            field.into_iter().map(|(at, _)| at).collect()
        };
        if !experiment.has_time(active.len(), deadline, RUNG) {
            return Ok(());
        }
    }
    Ok(())
}

/// The first settings for which a rung fits into the time, at least one.
fn affordable(experiment: &mut Experiment<'_>, deadline: Instant) -> Vec<usize> {
    let mut arms = experiment.in_play();
    let left = deadline.saturating_duration_since(Instant::now());
    let rungs = u32::try_from(2 * RUNG).unwrap_or(1);
    let all = arms.len();
    while arms.len() > 1 && experiment.round_time(arms.len()).saturating_mul(rungs) > left {
        arms.pop();
    }
    if arms.len() < all {
        experiment.note(&format!(
            "{} of {all} settings were not tried for lack of time; a larger --budget tries more.",
            all - arms.len()
        ));
    }
    arms
}

/// Settings that need more memory than allowed get no more runs.
fn drop_the_greedy(
    experiment: &mut Experiment<'_>,
    field: &mut Vec<(usize, Comparison)>,
    criteria: &Criteria,
) {
    let Some(most) = criteria.max_rss else { return };
    field.retain(|(at, _)| {
        let peak = experiment
            .runs(*at)
            .iter()
            .map(|run| run.max_rss)
            .min()
            .unwrap_or_default();
        if peak > most {
            let name = experiment.candidate(*at).name.clone();
            experiment.note(&format!(
                "'{name}' needs {peak}, more than the {most} allowed."
            ));
        }
        peak <= most
    });
}

/// Bisects the winner's value, in powers of two, down to the smallest that keeps its gain. `None`
/// when it has no value, or no smaller one suffices.
fn smallest_value(
    experiment: &mut Experiment<'_>,
    winner: usize,
    trial: &Trial,
    progress: &Progress,
    deadline: Instant,
) -> Result<Option<Bytes>> {
    let Some(won_at) = trial.value else {
        return Ok(None);
    };
    let gain = Gain::of(experiment, winner);
    // Invariant: `good` suffices, `bad` does not.
    let (mut good, mut bad) = (won_at.0.ilog2(), LEAST_VALUE.ilog2() - 1);
    let mut best = None;
    while good - bad > 1 {
        let middle = bad + (good - bad) / 2;
        let smaller = trial.at(Bytes(1 << middle));
        progress.show(&format!("is {} enough?", smaller.candidate.name));
        let mut step = experiment.fresh_pair(trial.candidate.clone(), smaller.candidate.clone());
        for _ in 0..PAIRS_PER_STEP {
            if Instant::now() + step.round_time(1) > deadline {
                experiment.note("The budget ended before the smallest sufficient value was found.");
                return Ok(best);
            }
            if step.round(&[1])? == Outcome::Stopped {
                experiment.adopt_notes(&step);
                return Ok(best);
            }
        }
        if !step.in_play().is_empty() && gain.is_kept(&step.compare(1, &Criteria::default())) {
            good = middle;
            best = Some(Bytes(1 << middle));
        } else {
            bad = middle;
        }
    }
    Ok(best)
}

/// What the winner gained over the baseline.
struct Gain {
    /// Baseline's CPU time over the winner's.
    cpu: f64,
    /// Winner's faults over the baseline's.
    faults: f64,
}

/// A smaller value may lose this share of the gain.
const MAY_LOSE: f64 = 0.03;

impl Gain {
    fn of(experiment: &Experiment<'_>, winner: usize) -> Self {
        let comparison = experiment.compare(winner, &Criteria::default());
        Self {
            cpu: comparison.cpu_speedup.value,
            faults: comparison.fault_ratio.value,
        }
    }

    /// Whether a value that compares so with the winner's keeps the gain. Faults decide first:
    /// they repeat within 1 %, time does not.
    fn is_kept(&self, smaller: &Comparison) -> bool {
        let faults_before = 1.0 / self.faults.max(1e-9);
        let may_fault = 1.0 + MAY_LOSE * (faults_before - 1.0).max(0.0);
        let may_slow = 1.0 - MAY_LOSE * (1.0 - 1.0 / self.cpu.max(1.0)).max(MAY_LOSE);
        let slower_beyond_doubt =
            smaller.verdict == Verdict::Slower && smaller.cpu_speedup.value < 1.0 - MAY_LOSE;
        smaller.fault_ratio.value <= may_fault.max(1.02)
            && !slower_beyond_doubt
            && smaller.cpu_speedup.high >= may_slow
    }
}

/// Fresh runs of the chosen settings; `None` with a note when they do not hold.
fn confirmed(
    experiment: &mut Experiment<'_>,
    trial: &Trial,
    chosen: &Trial,
    options: &Options,
    progress: &Progress,
    deadline: Instant,
) -> Result<Option<Winner>> {
    let at = experiment.add(chosen.candidate.clone());
    // Some time in any case, so that a spent budget does not leave a winner unconfirmed.
    let deadline = deadline.max(Instant::now() + Duration::from_secs(1));
    let confirmation = confirm(experiment, at, options, progress, deadline)?;
    if confirmation.verdict != Verdict::Faster {
        experiment.note(&format!(
            "'{}' looked best among all, but fresh runs did not confirm it beyond doubt{}.",
            chosen.candidate.name,
            if confirmation.verdict == Verdict::Undecided {
                " in the time that was left"
            } else {
                ""
            }
        ));
        return Ok(None);
    }
    Ok(Some(Winner {
        name: chosen.candidate.name.clone(),
        settings: chosen.candidate.settings.clone(),
        value: trial.value.zip(chosen.value),
        confirmation,
        price: trial.recipe.price.clone(),
    }))
}

/// Typical time and peak of the baseline and each arm. An arm's time is the baseline's divided by
/// its paired speed-up, so that arms which ran at different times compare fairly.
fn points(experiment: &Experiment<'_>, comparisons: &[Comparison]) -> Vec<Point> {
    let (seconds, peak) = typical(experiment);
    let place = |arm: &str, seconds: f64, peak_bytes: f64| Point {
        arm: arm.to_owned(),
        seconds,
        peak_bytes,
        on_front: false,
    };
    let mut points = vec![place("baseline", seconds, peak)];
    let compared = comparisons.iter().filter(|comparison| comparison.pairs > 0);
    points.extend(compared.map(|comparison| {
        let peak = (peak + comparison.rss_change_bytes).max(0.0);
        place(
            &comparison.arm,
            seconds / comparison.wall_speedup.value,
            peak,
        )
    }));
    front(&mut points);
    points
}

#[allow(
    clippy::cast_precision_loss,
    reason = "a resident set stays far below 2^53 bytes"
)]
fn typical(experiment: &Experiment<'_>) -> (f64, f64) {
    let mut runs = experiment.runs(0).to_vec();
    runs.sort_by_key(|run| run.wall);
    let seconds = runs
        .get(runs.len() / 2)
        .map_or(0.0, |run| run.wall.as_secs_f64());
    runs.sort_by_key(|run| run.max_rss);
    (
        seconds,
        runs.get(runs.len() / 2)
            .map_or(0.0, |run| run.max_rss.0 as f64),
    )
}
