//! Proving that settings help: the command again and again, with and without them, in shuffled
//! rounds, until the answer is sharp or the budget is used up.

pub mod cold;
mod experiment;
mod input;
pub mod predictions;
mod progress;

pub use experiment::{Candidate, Experiment, Outcome};
pub use input::SavedInput;
pub use progress::Progress;

use anyhow::Result;
use pagewise_analyse::compare::{
    Clock, Criteria, FEWEST_PAIRS, Stopping, causal_doubt, compare, correct_for_many, faster_by,
    fewest_pairs, noise, promised, sentence,
};
use pagewise_linux::process::{Input, Output, interrupt};
use pagewise_model::proof::{Arm, Comparison, Proof, Verdict};
use pagewise_model::run::RunCost;
use pagewise_model::units::Nanos;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How to run and when to stop.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time for everything. What does not fit is not begun.
    pub budget: Duration,
    /// How long one run of the command took before, where that is known.
    pub one_run: Option<Duration>,
    /// Number of pairs.
    pub stopping: Stopping,
    /// What counts as faster.
    pub criteria: Criteria,
    /// Standard input of each run.
    pub input: Input,
    /// Standard output and error of each run.
    pub output: Output,
    /// Files that each run finds on their disk, not in memory.
    pub cold: Vec<PathBuf>,
    /// Seed of the order of runs.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(120),
            one_run: None,
            stopping: Stopping::default(),
            criteria: Criteria::default(),
            input: Input::Null,
            output: Output::Null,
            cold: Vec::new(),
            seed: 0x5061_6765_7769_7365,
        }
    }
}

/// Rounds that run whatever the budget says.
const LEAST_ROUNDS: usize = 0;
/// Share of the budget kept for confirming the best of several arms.
const FOR_CONFIRMATION: f64 = 0.35;
/// Run-to-run differences from which on a reader should know.
const NOISY: f64 = 0.05;

/// Runs `command` with nothing and with each candidate's settings, and says whether that helped.
/// Ctrl-C ends it early; complete rounds count.
///
/// # Errors
/// When the command cannot be started at all, or was interrupted before two rounds were complete.
pub fn prove(command: &[OsString], candidates: &[Candidate], options: &Options) -> Result<Proof> {
    interrupt::install()?;
    // A request that ended what came before must not end these runs; callers that mean to give up
    // look before they call.
    interrupt::clear();
    let started = Instant::now();
    if let Some(why) = does_not_fit(options) {
        return Ok(not_run(&why));
    }
    let progress = Progress::new();
    let mut experiment = Experiment::begin(command, candidates, options, &progress)?;
    leave_out_untried(&mut experiment, options, started.elapsed());
    let several = experiment.in_play().len() > 1;
    run_rounds(&mut experiment, options, &progress, started)?;
    let mut comparisons = experiment.comparisons(&options.criteria);
    correct_for_many(&mut comparisons, &options.criteria);
    let promising = if several { most_promising } else { best };
    let winner =
        promising(&comparisons, &options.criteria).map(|comparison| comparison.arm.clone());
    let confirmation = match &winner {
        Some(name) if several && !experiment.was_stopped() => {
            let deadline = started + options.budget;
            let chosen = experiment.arm_named(name);
            Some(confirm(
                &mut experiment,
                chosen,
                options,
                &progress,
                deadline,
            )?)
        }
        _ => None,
    };
    progress.finish();
    Ok(conclude(experiment, comparisons, winner, confirmation))
}

/// A proof that did not run, with the reason.
#[must_use]
pub fn not_run(why: &str) -> Proof {
    Proof {
        arms: Vec::new(),
        comparisons: Vec::new(),
        winner: None,
        confirmation: None,
        summary: format!("No proof: {why}."),
        notes: Vec::new(),
    }
}

/// Why nothing is begun: a first run and one pair would already pass the budget.
fn does_not_fit(options: &Options) -> Option<String> {
    let one = options.one_run?;
    let (least, enough) = (3, 1 + 2 * FEWEST_PAIRS);
    (one.saturating_mul(least) > options.budget).then(|| {
        format!(
            "one run takes {}, so {} give no pair of runs; six pairs need --budget {}",
            Nanos::from(one),
            Nanos::from(options.budget),
            rounded_up(one.saturating_mul(enough).mul_f64(1.2))
        )
    })
}

/// Leaves out the last arms, those that promise least, where the budget does not give all of them a
/// trial run and one of them the pairs without which nothing is proved. `spent` of it is used up.
fn leave_out_untried(experiment: &mut Experiment<'_>, options: &Options, spent: Duration) {
    let arms = experiment.in_play();
    let left = options.budget.saturating_sub(spent);
    let time = |count: usize| {
        let trials = if count > 1 { &arms[..count] } else { &[] };
        needed(experiment, &arms[..1], count, options) + experiment.round_time(trials)
    };
    let kept = (1..=arms.len()).rev().find(|&count| time(count) <= left);
    leave_out(experiment, &arms, kept.unwrap_or(1), options, spent);
}

/// After a trial run of each arm, keeps as many of those that looked best as the budget covers.
/// They compete with those left out for chance as well, so all count as compared.
fn leave_out_unpromising(experiment: &mut Experiment<'_>, options: &Options, spent: Duration) {
    let mut arms = experiment.in_play();
    let (tried, left) = (arms.len(), options.budget.saturating_sub(spent));
    let gain = |&at: &usize| experiment.trial_gain(at);
    arms.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    let fits = |&count: &usize| needed(experiment, &arms[..count], tried, options) <= left;
    let kept = (1..=arms.len()).rev().find(fits).unwrap_or(1);
    leave_out(experiment, &arms, kept, options, spent);
}

/// Leaves out all but the first `kept` of `arms`, and says so.
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
        "The time budget of {} does not cover enough runs of all {} settings, so {}{looked} {} \
         left out. --budget {} covers all.",
        Nanos::from(options.budget),
        arms.len(),
        names.join(" and "),
        if names.len() == 1 { "was" } else { "were" },
        rounded_up(all),
    ));
    dropped.iter().for_each(|&at| experiment.leave_out(at));
}

/// Time in which each of `arms` can be proved where `tried` are compared, and the best of several
/// confirmed, beside what ran already.
fn needed(
    experiment: &Experiment<'_>,
    arms: &[usize],
    tried: usize,
    options: &Options,
) -> Duration {
    let ran = u32::try_from(experiment.runs(0).len()).unwrap_or(u32::MAX);
    let pairs = fewest_pairs(tried, options.criteria.level).saturating_sub(ran);
    let proving = experiment.round_time(arms).saturating_mul(pairs);
    if tried < 2 {
        return proving;
    }
    let confirming = experiment
        .round_time(&arms[..1])
        .saturating_mul(FEWEST_PAIRS);
    let by_proving = proving.div_f64(1.0 - FOR_CONFIRMATION);
    by_proving.max(confirming.div_f64(FOR_CONFIRMATION))
}

/// A time budget in whole seconds or minutes, as it is written on the command line.
fn rounded_up(time: Duration) -> String {
    match time.as_secs() + 1 {
        seconds @ ..=90 => format!("{seconds}s"),
        seconds => format!("{}m", seconds.div_ceil(60)),
    }
}

/// Rounds of all arms that still need pairs.
fn run_rounds(
    experiment: &mut Experiment<'_>,
    options: &Options,
    progress: &Progress,
    started: Instant,
) -> Result<()> {
    let mut active = experiment.in_play();
    let share = if active.len() > 1 {
        1.0 - FOR_CONFIRMATION
    } else {
        1.0
    };
    let deadline = started + options.budget.mul_f64(share);
    let stopping = options.stopping.among(active.len(), options.criteria.level);
    while !active.is_empty() && experiment.has_time(&active, deadline, LEAST_ROUNDS) {
        progress.show(&experiment.status(&active, options));
        if experiment.round(&active)? == Outcome::Stopped {
            return Ok(());
        }
        if experiment.runs(0).len() == 1 {
            experiment.leave_out_untouched();
            leave_out_unpromising(experiment, options, started.elapsed());
        }
        let in_play = experiment.in_play();
        active.retain(|arm| {
            let comparison = || experiment.compare(*arm, &options.criteria);
            in_play.contains(arm) && !stopping.enough(&comparison())
        });
    }
    if let Some(&first) = active.first() {
        experiment.note(&ended_early(experiment, first, &active, stopping));
    }
    Ok(())
}

/// What a reader should know where the budget ended before arm `first` was done.
fn ended_early(
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
            "The time budget has no room for a pair of runs; a proof needs {} and takes about {}.",
            stopping.min_pairs,
            rounded_up(more)
        );
    }
    let Some(missing) = stopping
        .min_pairs
        .checked_sub(pairs)
        .filter(|&more| more > 0)
    else {
        return "The time budget ended before the intervals were as narrow as asked.".to_owned();
    };
    let more = experiment.round_time(active).saturating_mul(missing);
    format!(
        "The time budget ended after {pairs} pairs of runs; a proof needs at least {}. The missing \
         {missing} take about {} more: raise --budget by that.",
        stopping.min_pairs,
        rounded_up(more),
    )
}

/// The best arm that is beyond doubt faster: the one whose interval begins highest.
pub fn best<'a>(comparisons: &'a [Comparison], criteria: &Criteria) -> Option<&'a Comparison> {
    highest(comparisons, criteria, Verdict::Faster)
}

/// The best arm, or where none is beyond doubt the one that looks best so far. Fresh runs must
/// confirm it, and those are of one arm chosen before: they need no correction for many.
pub fn most_promising<'a>(
    comparisons: &'a [Comparison],
    criteria: &Criteria,
) -> Option<&'a Comparison> {
    best(comparisons, criteria).or_else(|| highest(comparisons, criteria, Verdict::Undecided))
}

/// Of the arms with this verdict whose interval is above 1, the one whose interval begins highest.
fn highest<'a>(
    comparisons: &'a [Comparison],
    criteria: &Criteria,
    verdict: Verdict,
) -> Option<&'a Comparison> {
    let floor = |comparison: &&Comparison| match faster_by(comparison, criteria) {
        Some(Clock::Wall) => comparison.wall_speedup.low,
        Some(Clock::Cpu) => comparison.cpu_speedup.low,
        None => 0.0,
    };
    comparisons
        .iter()
        .filter(|comparison| comparison.verdict == verdict && floor(comparison) > 1.0)
        .max_by(|a, b| floor(a).total_cmp(&floor(b)))
}

/// The winner against the baseline once more, with runs that took no part in choosing it.
pub fn confirm(
    experiment: &mut Experiment<'_>,
    chosen: usize,
    options: &Options,
    progress: &Progress,
    deadline: Instant,
) -> Result<Comparison> {
    let winner = experiment.candidate(chosen).name.clone();
    let mut fresh = experiment.fresh(chosen);
    loop {
        let comparison = fresh.compare(1, &options.criteria);
        let done =
            options.stopping.enough(&comparison) || !fresh.has_time(&[1], deadline, LEAST_ROUNDS);
        if done {
            experiment.adopt_notes(&fresh);
            return Ok(comparison);
        }
        progress.show(&format!(
            "confirming {winner}: {}",
            fresh.status(&[1], options)
        ));
        if fresh.round(&[1])? == Outcome::Stopped {
            experiment.adopt_notes(&fresh);
            return Ok(fresh.compare(1, &options.criteria));
        }
    }
}

fn conclude(
    mut experiment: Experiment<'_>,
    comparisons: Vec<Comparison>,
    mut winner: Option<String>,
    confirmation: Option<Comparison>,
) -> Proof {
    let confirmation = confirmation.filter(|again| again.pairs >= FEWEST_PAIRS);
    let proved = |name: &String| {
        let alone = comparisons.iter().find(|one| one.arm == *name);
        let decisive = confirmation.as_ref().or(alone);
        decisive.is_some_and(|one| one.verdict == Verdict::Faster)
    };
    if let Some(name) = winner.take_if(|name| !proved(name)) {
        let why = match confirmation {
            Some(_) => "fresh runs did not confirm it",
            None => "there was no time to confirm that by fresh runs",
        };
        experiment.note(&format!("'{name}' looked faster among several, but {why}."));
    }
    experiment.note_noise();
    if let Some(name) = &winner {
        experiment.note_doubt(name);
    }
    let summary = summary(&comparisons, winner.as_deref(), confirmation.as_ref());
    let (arms, notes) = experiment.into_parts();
    Proof {
        arms,
        comparisons,
        winner,
        confirmation,
        summary,
        notes,
    }
}

fn summary(
    comparisons: &[Comparison],
    winner: Option<&str>,
    confirmation: Option<&Comparison>,
) -> String {
    let named = |name: &str| comparisons.iter().find(|comparison| comparison.arm == name);
    match winner.and_then(|name| confirmation.or_else(|| named(name))) {
        Some(proved) => format!("Proved: '{}' makes it {}.", proved.arm, sentence(proved)),
        None => unproved(comparisons),
    }
}

/// What runs without a winner have shown.
fn unproved(comparisons: &[Comparison]) -> String {
    let tried = || comparisons.iter().filter(|one| one.pairs > 0);
    let arms = tried().count();
    let likely = tried()
        .filter_map(|one| Some((one, promised(one, arms, &Criteria::default())?)))
        .max_by(|(a, _), (b, _)| a.cpu_speedup.value.total_cmp(&b.cpu_speedup.value));
    match (likely, comparisons) {
        (_, []) => "Not proved: no setting was left to compare; the notes say why.".to_owned(),
        (Some((one, words)), several) if several.len() > 1 => {
            format!("Not proved: with '{}' it is {words}.", one.arm)
        }
        (_, [only]) => format!("Not proved: '{}': {}.", only.arm, sentence(only)),
        _ if tried().all(|one| one.verdict != Verdict::Undecided) => {
            "Not proved: no setting made the command faster.".to_owned()
        }
        _ => "Not proved: whether a setting makes the command faster stays open.".to_owned(),
    }
}

/// One arm against the baseline.
fn compare_arm(
    baseline: &[RunCost],
    candidate: &Candidate,
    runs: &[RunCost],
    criteria: &Criteria,
) -> Comparison {
    let criteria = Criteria {
        fewer_faults: candidate.fewer_faults,
        ..*criteria
    };
    compare(&candidate.name, baseline, runs, &criteria)
}

/// What a reader should know about the machine, from the baseline's own runs.
fn noise_note(baseline: &[RunCost]) -> Option<String> {
    let found = noise(baseline)?;
    (found.wall > NOISY || found.cpu > NOISY).then(|| {
        format!(
            "Noisy machine: the same command differs from run to run by {:.0} % in elapsed and \
             {:.0} % in CPU time. Interleaving and the intervals account for that.",
            100.0 * found.wall,
            100.0 * found.cpu,
        )
    })
}

fn doubt_note(baseline: &Arm, arm: &Arm) -> Option<String> {
    causal_doubt(&baseline.runs, &arm.runs).map(|doubt| format!("'{}': {doubt}.", arm.name))
}

#[cfg(test)]
mod tests;
