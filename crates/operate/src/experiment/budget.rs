//! What a time budget covers, and the notes on what it does not.

use super::{Experiment, FOR_CONFIRMATION, Options};
use pagewise_compare::{FEWEST_PAIRS, Stopping, fewest_pairs};
use pagewise_model::units::Nanos;
use std::time::Duration;

/// Why nothing is started: a first run and one pair would already exceed the budget.
pub(super) fn does_not_fit(options: &Options) -> Option<String> {
    let one = options.one_run?;
    let (least, enough) = (3, 1 + 2 * FEWEST_PAIRS);
    (one.saturating_mul(least) > options.budget).then(|| {
        format!(
            "one run takes {}, so {} is too short for a pair of runs; six pairs need --budget {}",
            Nanos::from(one),
            Nanos::from(options.budget),
            rounded_up(one.saturating_mul(enough).mul_f64(1.2))
        )
    })
}

/// Leaves out the last arms, the least promising ones, if the budget does not suffice for a trial
/// run of each arm and, for one arm, the pairs that a proof requires. `spent` of the budget is used
/// up.
pub(super) fn leave_out_untried(
    experiment: &mut Experiment<'_>,
    options: &Options,
    spent: Duration,
) {
    let arms = experiment.in_play();
    let left = options.budget.saturating_sub(spent);
    let time = |count: usize| {
        let trials = if count > 1 { &arms[..count] } else { &[] };
        needed(experiment, &arms[..1], count, options) + experiment.round_time(trials)
    };
    let kept = (1..=arms.len()).rev().find(|&count| time(count) <= left);
    leave_out(experiment, &arms, kept.unwrap_or(1), options, spent);
}

/// After a trial run of each arm, keeps as many of the best ones as the budget covers. The arms
/// left out also competed by chance, so all count as compared.
pub(super) fn leave_out_unpromising(
    experiment: &mut Experiment<'_>,
    options: &Options,
    spent: Duration,
) {
    let mut arms = experiment.in_play();
    let (tried, left) = (arms.len(), options.budget.saturating_sub(spent));
    let gain = |&at: &usize| experiment.trial_gain(at);
    arms.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    let fits = |&count: &usize| needed(experiment, &arms[..count], tried, options) <= left;
    let kept = (1..=arms.len()).rev().find(fits).unwrap_or(1);
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
    let looked = match experiment.runs(0).len() {
        0 => "",
        _ => ", which gained least in a trial run,",
    };
    experiment.note(&format!(
        "The time budget of {} is too short for enough runs of all {} settings, so {}{looked} {} \
         left out. --budget {} is enough for all.",
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
        "The time budget ended after {pairs} pairs of runs; a proof needs at least {}. The missing {missing} take about {}: raise --budget by that.",
        stopping.min_pairs,
        rounded_up(more),
    )
}
