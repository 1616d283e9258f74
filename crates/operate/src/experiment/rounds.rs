//! The runs themselves: rounds in shuffled order, with failures distinguished from slowness.

use super::arms::{Candidate, Contender, mean};
use super::order::Order;
use super::reach::Reach;
use super::runner::{Measured, Run, Runner};
use super::server::Failure;
use super::{Listener, Options};
use anyhow::{Result, bail};
use pagewise_compare::proof::{doubt_note, noise_note};
use pagewise_compare::{Criteria, FEWEST_PAIRS, compare};
use pagewise_linux::process::Finished;
use pagewise_model::proof::{Arm, Comparison, Verdict};
use pagewise_model::quantity::shown_factor;
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::units::Nanos;
use std::time::{Duration, Instant};

/// Runs that make a proof: one that is not measured, and the fewest pairs.
pub(super) const RUNS_OF_A_PROOF: u32 = 1 + 2 * FEWEST_PAIRS;

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its runs count.
    Complete,
    /// Interrupted, or the command itself failed: there are no more rounds, but earlier ones count.
    Stopped,
}

/// Runs of a baseline and its arms. Arm 0 is the baseline.
pub struct Experiment<'a> {
    pub(super) runner: &'a dyn Runner,
    pub(super) options: &'a Options,
    pub(super) arms: Vec<Contender>,
    /// How the unchanged command ends.
    pub(super) reference: Ending,
    /// Runs that make one measurement, for very short commands.
    pub(super) batch: u32,
    /// A run that takes longer is ended and its arm rejected.
    pub(super) patience: Duration,
    /// Time that one run of the baseline takes.
    pub(super) typical: Duration,
    /// Time that a server takes to start and to end, in addition to each run.
    pub(super) around: Duration,
    order: Order,
    /// No run starts after this moment, and one that still runs is ended.
    deadline: Option<Instant>,
    stopped: bool,
    pub(super) notes: Vec<String>,
}

/// A single run shorter than this is dominated by the cost of starting it.
const SHORT: Duration = Duration::from_millis(10);
/// Most runs in one measurement.
const LARGEST_BATCH: u32 = 50;
/// An arm may take this many times as long as the baseline.
const PATIENCE_FACTOR: u32 = 10;
/// … but is never ended sooner than this.
const LEAST_PATIENCE: Duration = Duration::from_secs(10);
/// Note if the budget ended within a round.
pub(super) const OUT_OF_TIME: &str = "The time budget ended in the middle of a round, because the machine or a setting became slower; that round is discarded.";

impl<'a> Experiment<'a> {
    /// Runs the command once, unmeasured: that fills caches, and shows how it ends and how long it
    /// takes.
    ///
    /// # Errors
    /// If it cannot be started, or was interrupted.
    pub fn begin(
        runner: &'a dyn Runner,
        candidates: &[Candidate],
        options: &'a Options,
        progress: &Listener<'_>,
    ) -> Result<Self> {
        let baseline = Candidate {
            name: "baseline".to_owned(),
            ..Candidate::default()
        };
        let arms = std::iter::once(&baseline).chain(candidates).cloned();
        let mut experiment = Self {
            runner,
            options,
            arms: arms.map(Contender::new).collect(),
            reference: Ending::Running,
            batch: 1,
            patience: Duration::MAX,
            typical: options
                .observed
                .map_or(Duration::ZERO, |run| Duration::from_nanos(run.cost.wall.0)),
            around: Duration::ZERO,
            order: Order::seeded(options.seed),
            deadline: runner.now().checked_add(options.budget),
            stopped: false,
            notes: Vec::new(),
        };
        match in_place_of_first(options) {
            Some(observed) => experiment.take_as_usual(&observed),
            None => {
                progress("first run, not measured");
                experiment.warm_up()?;
            }
        }
        Ok(experiment)
    }

    fn warm_up(&mut self) -> Result<()> {
        let began = self.now();
        let first = self.run_once(&self.arms[0])?;
        if self.runner.is_interrupted() {
            bail!("interrupted before the first measurement");
        }
        let first = match first {
            Run::Ended(first) => first,
            Run::Failed(failure) => return Err(failure.into()),
            Run::TooLong => bail!(
                "the unchanged {} took {} before, and was terminated because it now took longer than the time budget of {}",
                self.whom(),
                Nanos::from(self.typical),
                Nanos::from(self.options.budget)
            ),
        };
        self.take_as_usual(&first);
        let took = self.now().saturating_duration_since(began);
        self.around = took.saturating_sub(self.typical);
        if self.typical < SHORT {
            let runs = SHORT.as_nanos().div_ceil(self.typical.as_nanos().max(1));
            self.batch = u32::try_from(runs)
                .unwrap_or(LARGEST_BATCH)
                .min(LARGEST_BATCH);
            self.notes.push(format!(
                "The {} takes only {}: each measurement is the mean of {} runs.",
                self.whom(),
                first.cost.wall,
                self.batch
            ));
        }
        Ok(())
    }

    /// Takes from a run how the unchanged command ends, and how long it takes.
    fn take_as_usual(&mut self, run: &Finished) {
        self.reference = run.ending;
        self.typical = Duration::from_nanos(run.cost.wall.0);
        self.patience = self
            .typical
            .saturating_mul(PATIENCE_FACTOR)
            .max(LEAST_PATIENCE);
        if run.ending != Ending::Exited(0) {
            self.notes
                .push(format!("The command {}.", run.ending.clause()));
        }
    }

    /// Runs the baseline and the arms in `active` once each, in the order of [`Order`].
    ///
    /// # Errors
    /// If a run cannot be started or waited for.
    pub fn round(&mut self, active: &[usize]) -> Result<Outcome> {
        let arms = std::iter::once(0).chain(active.iter().copied()).collect();
        let order = self.order.next(self.arms[0].runs.len(), arms);
        let mut costs = Vec::with_capacity(order.len());
        for at in order {
            if self.is_late() {
                return Ok(self.stop(OUT_OF_TIME));
            }
            // The first round shows whether settings reach the program.
            let looks = self.arms[0].runs.is_empty() && self.arms[at].reach == Reach::Unseen;
            let failure = match self.measure(at, self.patience, looks)? {
                Measured::Cost(cost) => {
                    costs.push((at, cost));
                    continue;
                }
                Measured::Failed(failure) => failure,
                Measured::TooLong => self.too_long(),
                Measured::OutOfTime => return Ok(self.stop(OUT_OF_TIME)),
                Measured::Interrupted => {
                    return Ok(self.stop("Interrupted: only complete rounds count."));
                }
            };
            if at == 0 {
                return Ok(self.stop_changed(&failure));
            }
            self.reject(at, &failure);
        }
        for (at, cost) in costs {
            self.arms[at].runs.push(cost);
        }
        Ok(Outcome::Complete)
    }

    pub(super) fn stop(&mut self, note: &str) -> Outcome {
        self.stopped = true;
        self.note(note);
        Outcome::Stopped
    }

    /// Ends the experiment because the unchanged command ended otherwise than at first.
    pub(super) fn stop_changed(&mut self, Failure { who, how }: &Failure) -> Outcome {
        self.stop(&format!(
            "The unchanged {who} {how}, unlike before: a proof needs a command that ends the same \
             way each time."
        ))
    }

    pub(super) fn reject(&mut self, at: usize, failure: &Failure) {
        let name = &self.arms[at].candidate.name;
        self.notes
            .push(format!("'{name}' is rejected: with it, {failure}."));
        self.arms[at].failed = Some(failure.to_string());
    }

    /// What takes the measured time.
    pub(super) fn whom(&self) -> &'static str {
        match self.options.load {
            Some(_) => "load",
            None => "command",
        }
    }

    /// The present moment, by the clock of the runs.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.runner.now()
    }

    /// Allows runs until `deadline`, if that is beyond the budget.
    pub fn extend(&mut self, deadline: Instant) {
        self.deadline = self.deadline.map(|budget| budget.max(deadline));
    }

    /// Whether the budget is used up.
    pub(super) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| self.now() >= deadline)
    }

    /// How long a run that starts now may take: no longer than what is left of the budget, if it is
    /// known how long one takes.
    pub(super) fn patience_now(&self) -> Duration {
        let Some(deadline) = self.deadline.filter(|_| !self.typical.is_zero()) else {
            return self.patience;
        };
        let left = deadline.saturating_duration_since(self.now());
        self.patience.min(left)
    }

    /// Arms that may still run.
    #[must_use]
    pub fn in_play(&self) -> Vec<usize> {
        (1..self.arms.len())
            .filter(|&at| {
                let arm = &self.arms[at];
                !(self.stopped
                    || arm.failed.is_some()
                    || arm.left_out
                    || matches!(arm.reach, Reach::Not(_))
                    || arm.given_up)
            })
            .collect()
    }

    /// Whether another round of `arms` fits before `deadline`; at least `least` rounds run in any
    /// case.
    #[must_use]
    pub fn has_time(&self, arms: &[usize], deadline: Instant, least: usize) -> bool {
        let rounds = self.arms[0].runs.len();
        !self.stopped && (rounds < least || self.now() + self.round_time(arms) <= deadline)
    }

    /// Number of rounds of `arms` that will be complete by `deadline`, at most `most`.
    pub(super) fn rounds_by(&self, deadline: Instant, arms: &[usize], most: u32) -> u32 {
        let left = deadline.saturating_duration_since(self.now());
        let round = self.round_time(arms).as_nanos().max(1);
        let to_come = u32::try_from(left.as_nanos() / round).unwrap_or(u32::MAX);
        let ran = u32::try_from(self.arms[0].runs.len()).unwrap_or(u32::MAX);
        ran.saturating_add(to_come).min(most)
    }

    /// Time of a round of `arms` and the baseline, from their runs so far; an arm without runs is
    /// assumed to be no faster than the first run.
    #[must_use]
    pub fn round_time(&self, arms: &[usize]) -> Duration {
        let in_round = std::iter::once(&0).chain(arms);
        let once: Duration = in_round.map(|&at| self.run_time(at)).sum();
        once.saturating_mul(self.batch)
    }

    pub(super) fn run_time(&self, at: usize) -> Duration {
        let arm = &self.arms[at];
        let run = match (arm.runs.as_slice(), arm.trial) {
            ([], None) => self.typical,
            ([], Some(trial)) => Duration::from_nanos(trial.wall.0),
            (runs, _) => Duration::from_nanos(mean(runs).wall.0),
        };
        run + self.around
    }

    /// Gives an arm no more runs, although it did not fail.
    pub fn leave_out(&mut self, at: usize) {
        self.arms[at].left_out = true;
    }

    /// Whether it was interrupted or the command failed.
    #[must_use]
    pub fn was_stopped(&self) -> bool {
        self.stopped
    }

    /// Arm `at` against the baseline.
    #[must_use]
    pub fn compare(&self, at: usize, criteria: &Criteria) -> Comparison {
        let arm = &self.arms[at];
        let pairs = [&self.arms[0], arm].map(|one| match arm.runs.is_empty() {
            // Only its trial run tells.
            true => one.trial.as_slice(),
            false => &one.runs,
        });
        let found = compare_arm(pairs[0], &arm.candidate, pairs[1], criteria);
        let verdict = match arm.reach {
            Reach::Not(_) => Verdict::NotReached,
            _ if arm.runs.len() < 2 && arm.given_up => Verdict::TriedOnce,
            _ => found.verdict,
        };
        Comparison { verdict, ..found }
    }

    /// Each arm against the baseline, except arms with which the command fails and those never
    /// tried.
    #[must_use]
    pub fn comparisons(&self, criteria: &Criteria) -> Vec<Comparison> {
        let is_untried = |arm: &Contender| {
            (arm.left_out || arm.given_up) && arm.runs.is_empty() && arm.trial.is_none()
        };
        let is_sound = |arm: &Contender| arm.failed.is_none() && !is_untried(arm);
        let sound = (1..self.arms.len()).filter(|&at| is_sound(&self.arms[at]));
        sound.map(|at| self.compare(at, criteria)).collect()
    }

    /// Index of the arm of this name; the baseline's if there is none.
    #[must_use]
    pub fn arm_named(&self, name: &str) -> usize {
        self.arms
            .iter()
            .position(|arm| arm.candidate.name == name)
            .unwrap_or(0)
    }

    /// The candidate of an arm.
    #[must_use]
    pub fn candidate(&self, at: usize) -> &Candidate {
        &self.arms[at].candidate
    }

    /// Runs of an arm so far.
    #[must_use]
    pub fn runs(&self, at: usize) -> &[RunCost] {
        &self.arms[at].runs
    }

    /// Number of pairs of an arm.
    #[must_use]
    pub fn pairs_of(&self, at: usize) -> usize {
        self.arms[at].runs.len().min(self.arms[0].runs.len())
    }

    /// One more arm, without runs; returns its index.
    pub fn add(&mut self, candidate: Candidate) -> usize {
        self.arms.push(Contender::new(candidate));
        self.arms.len() - 1
    }

    /// A new experiment with only the baseline and `at`, without any runs yet.
    #[must_use]
    pub fn fresh(&self, at: usize) -> Self {
        self.fresh_pair(
            self.arms[0].candidate.clone(),
            self.arms[at].candidate.clone(),
        )
    }

    /// A new experiment with two candidates, the first in place of the baseline.
    #[must_use]
    pub fn fresh_pair(&self, first: Candidate, second: Candidate) -> Self {
        Self {
            arms: vec![Contender::new(first), Contender::new(second)],
            order: Order::seeded(self.options.seed ^ 1),
            notes: Vec::new(),
            runner: self.runner,
            options: self.options,
            ..*self
        }
    }

    /// Adopts the notes and the stop of an experiment made by [`Experiment::fresh`].
    pub fn adopt_notes(&mut self, other: &Self) {
        self.notes.extend(other.notes.iter().cloned());
        self.stopped |= other.stopped;
    }

    /// Adds a note for the reader.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Notes a noisy machine.
    pub fn note_noise(&mut self) {
        self.notes.extend(noise_note(&self.arms[0].runs));
    }

    /// Notes a gain that its supposed cause, fewer page faults, does not explain. Arms that work
    /// otherwise, by less reclaim within a larger limit or fewer lock waits, have no such measure.
    pub fn note_doubt(&mut self, winner: &str) {
        let at = self.arm_named(winner);
        if !self.arms[at].candidate.fewer_faults {
            return;
        }
        self.notes.extend(doubt_note(
            &self.arms[0].clone().into(),
            &self.arms[at].clone().into(),
        ));
    }

    /// The current state, for the progress line.
    #[must_use]
    pub fn status(&self, active: &[usize], options: &Options) -> String {
        let round = self.arms[0].runs.len() + 1;
        let arms = active.len();
        let most = options.stopping.max_pairs;
        let leader = active.iter().filter(|&&at| self.pairs_of(at) > 1);
        let leader = leader
            .map(|&at| self.compare(at, &options.criteria))
            .max_by(|a, b| a.wall_speedup.value.total_cmp(&b.wall_speedup.value));
        // The figures first, because a narrow terminal cuts off the end.
        let so_far = leader.map_or(String::new(), |best| {
            shown_factor(&best.wall_speedup)
                .map_or(String::new(), |gain| format!(": {gain} {}", best.arm))
        });
        let noun = if arms == 1 { "setting" } else { "settings" };
        format!("round {round} of at most {most}, {arms} {noun}{so_far}")
    }

    /// The arms and the notes.
    #[must_use]
    pub fn into_parts(self) -> (Vec<Arm>, Vec<String>) {
        (self.arms.into_iter().map(Arm::from).collect(), self.notes)
    }
}

/// One arm against the baseline.
/// The observed run, if it takes the place of the first one, which is not measured: where that would
/// cost a budget for few runs one of its pairs. A server has to be started to know how long that
/// takes.
fn in_place_of_first(options: &Options) -> Option<Finished> {
    let observed = options.observed.filter(|_| options.load.is_none())?;
    let one = Duration::from_nanos(observed.cost.wall.0);
    let is_short = options.budget < one.saturating_mul(RUNS_OF_A_PROOF);
    (is_short && matches!(observed.ending, Ending::Exited(_))).then_some(observed)
}

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
