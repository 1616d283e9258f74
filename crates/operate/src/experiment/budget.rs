//! What a time budget covers, and the notes on what it does not.

use super::rounds::RUNS_OF_A_PROOF;
use super::{Experiment, FOR_CONFIRMATION, Options, Run};
use anyhow::Result;
use pagewise_compare::proof::{by_gain, not_run};
use pagewise_compare::{FEWEST_EARLY, FEWEST_PAIRS, Stopping, fewest_pairs};
use pagewise_model::proof::Proof;
use pagewise_model::units::Nanos;
use std::time::{Duration, Instant};

impl Experiment<'_> {
    /// What trial runs showed of `arms`, where there is no time for a pair.
    pub(super) fn no_time_for_pairs(&self, arms: &[usize]) -> String {
        let by_gain =
            |a: &&usize, b: &&usize| self.trial_gain(**a).total_cmp(&self.trial_gain(**b));
        let best = arms.iter().max_by(by_gain).copied().unwrap_or(0);
        let took = |at: usize| self.arms[at].trial.unwrap_or_default();
        let (with, without) = (took(best), took(0));
        let enough = self.typical.saturating_mul(RUNS_OF_A_PROOF).mul_f64(1.2);
        format!(
            "Not proved: one run took {} ({} CPU time) with '{}', and {} ({}) without; pairs of runs need --budget {} or more.",
            with.wall,
            with.cpu(),
            self.candidate(best).name,
            without.wall,
            without.cpu(),
            rounded_up(self.options.budget + enough),
        )
    }

    /// One run of arm `at`, where there is no time for a pair: an indication, not a proof.
    pub(super) fn try_once(&mut self, at: usize) -> Result<Proof> {
        let budget = Nanos::from(self.options.budget);
        let found = match self.run_once(&self.arms[at])? {
            _ if self.runner.is_interrupted() => "it was interrupted".to_owned(),
            Run::Ended(run) if run.ending == self.reference => {
                let without = Nanos::from(self.typical);
                format!(
                    "one run took {} with '{}' and {without} without",
                    run.cost.wall,
                    self.candidate(at).name
                )
            }
            Run::Ended(run) => format!(
                "with '{}', the command {}",
                self.candidate(at).name,
                run.ending.clause()
            ),
            Run::TooLong => format!(
                "one run takes {} without '{}', and did not end within the budget of {budget} with it",
                Nanos::from(self.typical),
                self.candidate(at).name
            ),
            Run::Failed(failure) => format!("with '{}', {failure}", self.candidate(at).name),
        };
        let enough = self.typical.saturating_mul(RUNS_OF_A_PROOF).mul_f64(1.2);
        let mut proof = not_run(&format!(
            "{found}; six pairs of runs need --budget {}",
            rounded_up(enough)
        ));
        proof.notes.append(&mut self.notes);
        Ok(proof)
    }
}

/// Runs of pairs for which a screening leaves time, where there is some: those of a proof, or at least
/// the few that prove what is far beyond the noise.
const RUNS_AFTER_SCREENING: u32 = 2 * FEWEST_PAIRS;
const FEWEST_AFTER_SCREENING: u32 = 2 * FEWEST_EARLY;

/// When trial runs end that began now: half of the budget is theirs, more where pairs need less, and all
/// of it where pairs do not fit anyway.
pub(super) fn end_of_screening(experiment: &Experiment<'_>, deadline: Instant) -> Instant {
    let now = experiment.now();
    let left = deadline.saturating_duration_since(now);
    let runs = |count: u32| experiment.run_time(0).saturating_mul(count);
    // The baseline and one arm at least.
    if left < runs(FEWEST_AFTER_SCREENING + 2) {
        return deadline;
    }
    let half = (left / 2).min(left.saturating_sub(runs(FEWEST_AFTER_SCREENING)));
    now + half.max(left.saturating_sub(runs(RUNS_AFTER_SCREENING)))
}

/// After a trial run of each arm, keeps as many of the best ones as the budget covers. The arms
/// left out also competed by chance, so all count as compared.
pub(super) fn leave_out_unpromising(
    experiment: &mut Experiment<'_>,
    options: &Options,
    deadline: Instant,
) {
    let left = deadline.saturating_duration_since(experiment.now());
    let arms = by_gain(experiment.in_play(), |at| experiment.trial_gain(at));
    let tried = arms.len();
    let fits = |&count: &usize| needed(experiment, &arms[..count], tried, options) <= left;
    let kept = (1..=arms.len()).rev().find(fits).unwrap_or(1);
    let spent = options.budget.saturating_sub(left);
    leave_out(experiment, &arms, kept, options, spent);
}

/// Leaves out all but the first `kept` of `arms`, with a note.
fn leave_out(
    experiment: &mut Experiment<'_>,
    arms: &[usize],
    kept: usize,
    options: &Options,
    spent: Duration,
) {
    let Some(dropped) = arms.get(kept..).filter(|dropped| !dropped.is_empty()) else {
        return;
    };
    let names = dropped
        .iter()
        .map(|&at| format!("'{}'", experiment.candidate(at).name));
    let names: Vec<String> = names.collect();
    let all = needed(experiment, arms, arms.len(), options) + spent;
    experiment.note(&format!(
        "The time budget of {} is too short for enough runs of all {} settings that deserve them, so \
         {}, which gained least in a trial run, {} left out. --budget {} is enough for all.",
        Nanos::from(options.budget),
        arms.len(),
        names.join(" and "),
        if names.len() == 1 { "was" } else { "were" },
        rounded_up(all),
    ));
    dropped.iter().for_each(|&at| experiment.leave_out(at));
}

/// Time to prove each of `arms` if `tried` are compared, and to confirm the best of several, in
/// addition to past runs. What is left alone after a trial run is proved by fresh runs.
fn needed(
    experiment: &Experiment<'_>,
    arms: &[usize],
    tried: usize,
    options: &Options,
) -> Duration {
    if arms.len() < 2 {
        return experiment.round_time(arms).saturating_mul(FEWEST_PAIRS);
    }
    let ran = u32::try_from(experiment.runs(0).len()).unwrap_or(u32::MAX);
    let pairs = fewest_pairs(tried, options.criteria.level).saturating_sub(ran);
    let proving = experiment.round_time(arms).saturating_mul(pairs);
    let confirming = experiment
        .round_time(&arms[..1])
        .saturating_mul(FEWEST_PAIRS);
    let by_proving = proving.div_f64(1.0 - FOR_CONFIRMATION);
    by_proving.max(confirming.div_f64(FOR_CONFIRMATION))
}

/// A time budget in whole seconds or minutes, as written on the command line.
fn rounded_up(time: Duration) -> String {
    match time.as_secs() + 1 {
        seconds @ ..=90 => format!("{seconds}s"),
        seconds => format!("{}m", seconds.div_ceil(60)),
    }
}

/// Note for the reader if the budget ended before arm `first` was done.
pub(super) fn ended_early(
    experiment: &Experiment<'_>,
    first: usize,
    active: &[usize],
    stopping: Stopping,
) -> String {
    let pairs = u32::try_from(experiment.pairs_of(first)).unwrap_or(u32::MAX);
    let noun = if pairs == 1 { "pair" } else { "pairs" };
    if pairs == 0 {
        let more = experiment
            .round_time(active)
            .saturating_mul(stopping.min_pairs);
        return format!(
            "The time budget is too short for a pair of runs; a proof needs {} and takes about {}.",
            stopping.min_pairs,
            rounded_up(more)
        );
    }
    let Some(missing) = stopping
        .min_pairs
        .checked_sub(pairs)
        .filter(|&more| more > 0)
    else {
        return "The time budget ended before the intervals were as narrow as requested."
            .to_owned();
    };
    let more = experiment.round_time(active).saturating_mul(missing);
    format!(
        "The time budget ended after {pairs} {noun} of runs; a proof needs at least {}: raise --budget by {} or more.",
        stopping.min_pairs,
        rounded_up(more),
    )
}
