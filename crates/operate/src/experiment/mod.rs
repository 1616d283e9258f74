//! Proves that settings help: runs the command repeatedly, with and without them, in shuffled
//! rounds, until the result is precise or clear, no gain can be shown any more, or the budget is
//! used up.

mod advice;
mod arms;
mod budget;
mod group;
mod input;
mod killed;
mod larger_limit;
mod measuring;
mod order;
mod paged;
mod reach;
mod rounds;
mod runner;
mod screening;
#[cfg(test)]
pub(crate) mod scripted;
mod server;

pub use advice::{Listeners, Request, offer, prove_advice};
pub use arms::Candidate;
pub(crate) use group::{Group, spawn as spawn_in};
pub use input::SavedInput;
pub use larger_limit::LargerLimit;
pub use reach::Reach;
pub use rounds::{Experiment, Outcome};
pub use runner::{Live, Run, Runner};
pub use server::{Failure, Load, Ready, observe_driven};

use crate::Listener;
use anyhow::Result;
use budget::{end_of_screening, ended_early, leave_out_unpromising};
use pagewise_compare::proof::fate::Rules;
use pagewise_compare::proof::{best, most_promising, summary};
use pagewise_compare::{Criteria, FEWEST_EARLY, FEWEST_PAIRS, Stopping, correct_for_many};
use pagewise_linux::process::{Finished, Input, Output, interrupt};
use pagewise_model::proof::{Comparison, Proof, Verdict};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How to run and when to stop.
#[derive(Clone, Debug)]
pub struct Options {
    /// Time for everything. Runs that do not fit are not started.
    pub budget: Duration,
    /// A run of the command just before, if there was one.
    pub observed: Option<Finished>,
    /// Number of pairs.
    pub stopping: Stopping,
    /// What counts as faster.
    pub criteria: Criteria,
    /// Standard input of each run.
    pub input: Input,
    /// Standard output and error of each run.
    pub output: Output,
    /// Files that each run has to read from disk, not from memory.
    pub cold: Vec<PathBuf>,
    /// The load that drives the command, if it is a server.
    pub load: Option<Load>,
    /// Seed of the order of runs.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            budget: Duration::from_secs(120),
            observed: None,
            stopping: Stopping::default(),
            criteria: Criteria::default(),
            input: Input::Null,
            output: Output::Null,
            cold: Vec::new(),
            load: None,
            seed: 0x5061_6765_7769_7365,
        }
    }
}

/// Rounds that run whatever the budget.
const LEAST_ROUNDS: usize = 0;

/// Share of the budget kept for confirming the best of several arms.
const FOR_CONFIRMATION: f64 = 0.35;

/// Runs `command` unchanged and with each candidate's settings, and determines whether they helped.
/// Ctrl-C ends it early; complete rounds count.
///
/// # Errors
/// If the command cannot be started at all, or was interrupted before two rounds were complete.
pub fn prove(
    command: &[OsString],
    candidates: &[Candidate],
    options: &Options,
    progress: &Listener<'_>,
) -> Result<Proof> {
    interrupt::install()?;
    // An earlier request to end must not end these runs; callers that mean to give up check for it
    // before they call.
    interrupt::clear();
    prove_by(&Live::new(command, options), candidates, options, progress)
}

/// The same, with runs and time of `runner`.
///
/// # Errors
/// As [`prove`].
pub fn prove_by(
    runner: &dyn Runner,
    candidates: &[Candidate],
    options: &Options,
    progress: &Listener<'_>,
) -> Result<Proof> {
    let started = runner.now();
    let mut experiment = Experiment::begin(runner, candidates, options, progress)?;
    let deadline = started + options.budget;
    let &[only] = experiment.in_play().as_slice() else {
        return compete(experiment, options, progress, deadline);
    };
    if !experiment.has_time(&[only], deadline, LEAST_ROUNDS) {
        return experiment.try_once(only);
    }
    run_rounds(&mut experiment, options, progress, deadline, 1)?;
    let comparisons = experiment.comparisons(&options.criteria);
    let winner = best(&comparisons, &options.criteria).map(|one| one.arm.clone());
    Ok(conclude(experiment, comparisons, winner, None))
}

/// A proof of several arms: a trial run of each shows which deserve pairs of runs. Their rounds choose
/// one, and fresh runs confirm it.
fn compete(
    mut experiment: Experiment<'_>,
    options: &Options,
    progress: &Listener<'_>,
    deadline: Instant,
) -> Result<Proof> {
    let until = end_of_screening(&experiment, deadline);
    if experiment.screen(until, progress)? == Outcome::Complete {
        experiment.keep_promising();
        leave_out_unpromising(&mut experiment, options, deadline);
    }
    let chosen = experiment.in_play();
    let criteria = &options.criteria;
    if let Some(&first) = chosen.first()
        && !experiment.has_time(&[first], deadline, LEAST_ROUNDS)
    {
        let comparisons = experiment.comparisons(criteria);
        let summary = experiment.no_time_for_pairs(&chosen);
        let proof = conclude(experiment, comparisons, None, None);
        return Ok(Proof { summary, ..proof });
    }
    let choosing = match chosen.len() {
        1 => deadline,
        _ => {
            let left = deadline.saturating_duration_since(experiment.now());
            deadline - left.mul_f64(FOR_CONFIRMATION)
        }
    };
    run_rounds(&mut experiment, options, progress, choosing, chosen.len())?;
    let mut comparisons = experiment.comparisons(criteria);
    let is_chosen = |one: &mut Comparison| {
        let at = chosen.iter();
        at.map(|&at| &experiment.candidate(at).name)
            .any(|name| *name == one.arm)
    };
    // Others had no pairs, so they cannot win by chance.
    let mut paired: Vec<Comparison> = comparisons.extract_if(.., is_chosen).collect();
    correct_for_many(&mut paired, criteria);
    let winner = match paired.len() {
        1 => best(&paired, criteria),
        _ => most_promising(&paired, criteria),
    };
    let winner = winner.map(|one| one.arm.clone());
    let confirmation = match &winner {
        Some(name) if paired.len() > 1 && !experiment.was_stopped() => {
            let chosen = experiment.arm_named(name);
            Some(confirm(
                &mut experiment,
                chosen,
                options,
                progress,
                deadline,
            )?)
        }
        _ => None,
    };
    paired.append(&mut comparisons);
    Ok(conclude(experiment, paired, winner, confirmation))
}

/// Rounds of all arms that need more pairs; `compared` arms competed from the beginning.
fn run_rounds(
    experiment: &mut Experiment<'_>,
    options: &Options,
    progress: &Listener<'_>,
    deadline: Instant,
    compared: usize,
) -> Result<()> {
    let mut active = experiment.in_play();
    let stopping = options.stopping.among(compared, options.criteria.level);
    while !active.is_empty() && experiment.has_time(&active, deadline, LEAST_ROUNDS) {
        progress(&experiment.status(&active, options));
        if experiment.round(&active)? == Outcome::Stopped {
            return Ok(());
        }
        if experiment.runs(0).len() == 1 {
            experiment.leave_out_useless();
        }
        let in_play = experiment.in_play();
        active.retain(|arm| in_play.contains(arm));
        let rules = Rules {
            stopping,
            criteria: &options.criteria,
            arms: compared,
            pairs: experiment.rounds_by(deadline, &active, stopping.max_pairs),
        };
        experiment.leave_out_settled(&mut active, &rules);
    }
    if let Some(&first) = active.first() {
        experiment.note(&ended_early(experiment, first, &active, stopping));
    }
    Ok(())
}

/// The winner against the baseline once more, with runs that were not used to choose it.
///
/// # Errors
/// If a run cannot be started or waited for.
pub fn confirm(
    experiment: &mut Experiment<'_>,
    chosen: usize,
    options: &Options,
    progress: &Listener<'_>,
    deadline: Instant,
) -> Result<Comparison> {
    let winner = experiment.candidate(chosen).name.clone();
    let mut fresh = experiment.fresh(chosen);
    let mut active = vec![1];
    while !active.is_empty() && fresh.has_time(&active, deadline, LEAST_ROUNDS) {
        progress(&format!(
            "confirming {winner}: {}",
            fresh.status(&active, options)
        ));
        if fresh.round(&active)? == Outcome::Stopped {
            break;
        }
        let rules = Rules {
            stopping: options.stopping,
            criteria: &options.criteria,
            arms: 1,
            pairs: fresh.rounds_by(deadline, &active, options.stopping.max_pairs),
        };
        fresh.leave_out_settled(&mut active, &rules);
    }
    experiment.adopt_notes(&fresh);
    Ok(fresh.compare(1, &options.criteria))
}

fn conclude(
    mut experiment: Experiment<'_>,
    comparisons: Vec<Comparison>,
    mut winner: Option<String>,
    confirmation: Option<Comparison>,
) -> Proof {
    let confirmation = confirmation.filter(|again| again.pairs >= FEWEST_EARLY);
    let proved = |name: &String| {
        let alone = comparisons.iter().find(|one| one.arm == *name);
        let decisive = confirmation.as_ref().or(alone);
        decisive.is_some_and(|one| one.verdict == Verdict::Faster)
    };
    if let Some(name) = winner.take_if(|name| !proved(name)) {
        let why = match &confirmation {
            Some(again) if again.pairs < FEWEST_PAIRS => "a few fresh runs did not confirm it",
            Some(_) => "fresh runs did not confirm it",
            None => "there was no time to confirm that by fresh runs",
        };
        experiment.note(&format!("'{name}' looked faster among several, but {why}."));
    }
    experiment.note_noise();
    if let Some(name) = &winner {
        experiment.note_doubt(name);
    }
    let is_open = |one: &Comparison| {
        one.verdict == Verdict::Undecided && one.pairs > 0 && !experiment.is_given_up(&one.arm)
    };
    let is_open = comparisons.iter().any(is_open);
    let summary = summary(
        &comparisons,
        winner.as_deref(),
        confirmation.as_ref(),
        is_open,
    );
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

#[cfg(test)]
mod tests;
