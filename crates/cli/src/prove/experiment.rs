//! The runs themselves: rounds in shuffled order, failures told apart from slowness.

use super::{Options, Progress, compare_arm, doubt_note, noise_note};
use anyhow::{Context, Result, bail};
use pagewise_analyse::compare::{Criteria, Random};
use pagewise_linux::page_cache;
use pagewise_linux::process::{Finished, Launch, interrupt};
use pagewise_model::advice::Settings;
use pagewise_model::proof::{Arm, Comparison, Verdict};
use pagewise_model::quantity::told_factor;
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::units::{Bytes, Nanos};
use std::ffi::OsString;
use std::time::{Duration, Instant};

/// Settings to be tried.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Short name for tables.
    pub name: String,
    /// Settings on top of the environment.
    pub settings: Settings,
    /// Whether it claims to work by avoiding faults; then a gain without fewer faults is luck.
    pub fewer_faults: bool,
}

/// How a round ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All its runs count.
    Complete,
    /// Interrupted, or the command itself failed: no more rounds; earlier ones count.
    Stopped,
}

/// Runs of a baseline and its arms. Arm 0 is the baseline.
pub struct Experiment<'a> {
    command: &'a [OsString],
    options: &'a Options,
    arms: Vec<Contender>,
    /// How the unchanged command ends.
    reference: Ending,
    /// Runs that make one measurement, for very short commands.
    batch: u32,
    /// A run that takes longer is ended and its arm rejected.
    patience: Duration,
    /// Time that one run of the baseline takes.
    typical: Duration,
    random: Random,
    /// No run begins after this moment, and one that is beyond it by a run's time is ended.
    deadline: Option<Instant>,
    stopped: bool,
    notes: Vec<String>,
}

#[derive(Clone, Debug)]
struct Contender {
    candidate: Candidate,
    /// What the command is an argument of: a program that runs it, with its options.
    under: Vec<OsString>,
    runs: Vec<RunCost>,
    /// Whether the command fails with it.
    rejected: bool,
    /// Whether it gets no more runs, without blame.
    left_out: bool,
    /// Whether its first run showed that its settings do not reach the program.
    untouched: bool,
}

/// What one measurement gave.
enum Measured {
    Cost(RunCost),
    Failed(String),
    Interrupted,
    OutOfTime,
}

/// A single run shorter than this drowns in the cost of starting it.
const SHORT: Duration = Duration::from_millis(10);
/// Most runs in one measurement.
const LARGEST_BATCH: u32 = 50;
/// An arm may take so many times as long as the baseline.
const PATIENCE_FACTOR: u32 = 10;
/// … but is never ended sooner than this.
const LEAST_PATIENCE: Duration = Duration::from_secs(10);
/// A run that passes the budget is not ended sooner than this after it.
const LEAST_BEYOND: Duration = Duration::from_secs(1);
/// Said where the budget ended within a round.
const OUT_OF_TIME: &str = "The time budget ended in the middle of a round, because the machine or a \
    setting became slower: that round does not count.";
/// Settings that change faults and memory by no more than one part in so many did not reach the
/// program: fault counts of one program repeat within about 1 %.
const UNTOUCHED: u64 = 100;
/// The same of small programs, whose stack and libraries lie elsewhere in each run.
const UNTOUCHED_FAULTS: u64 = 32;
const UNTOUCHED_BYTES: u64 = 512 << 10;
const UNTOUCHED_READS: u64 = 16;
/// Whatever its faults and memory are: a setting with which the program is so much faster reached it.
const TOUCHED_GAIN: f64 = 1.5;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(500);

impl<'a> Experiment<'a> {
    /// Runs the command once, unmeasured: that fills caches, and shows how it ends and how long
    /// it takes.
    ///
    /// # Errors
    /// When it cannot be started, or was interrupted.
    pub fn begin(
        command: &'a [OsString],
        candidates: &[Candidate],
        options: &'a Options,
        progress: &Progress,
    ) -> Result<Self> {
        progress.show("first run, not measured");
        let baseline = Candidate {
            name: "baseline".to_owned(),
            ..Candidate::default()
        };
        let arms = std::iter::once(&baseline).chain(candidates).cloned();
        let mut experiment = Self {
            command,
            options,
            arms: arms.map(Contender::new).collect(),
            reference: Ending::Running,
            batch: 1,
            patience: Duration::MAX,
            typical: options.one_run.unwrap_or_default(),
            random: Random::seeded(options.seed),
            deadline: Instant::now().checked_add(options.budget),
            stopped: false,
            notes: Vec::new(),
        };
        experiment.warm_up()?;
        Ok(experiment)
    }

    fn warm_up(&mut self) -> Result<()> {
        let first = self.run_once(&self.arms[0])?;
        if interrupt::requested().is_some() {
            bail!("interrupted before the first measurement");
        }
        let Some(first) = first else {
            bail!(
                "the unchanged command took {} before, and was ended because it now took longer \
                 than the time budget of {}",
                Nanos::from(self.typical),
                Nanos::from(self.options.budget)
            );
        };
        self.reference = first.ending;
        self.typical = Duration::from_nanos(first.cost.wall.0);
        self.patience = self
            .typical
            .saturating_mul(PATIENCE_FACTOR)
            .max(LEAST_PATIENCE);
        if self.typical < SHORT {
            let runs = SHORT.as_nanos().div_ceil(self.typical.as_nanos().max(1));
            self.batch = u32::try_from(runs)
                .unwrap_or(LARGEST_BATCH)
                .min(LARGEST_BATCH);
            self.notes.push(format!(
                "The command takes only {}: each measurement is the mean of {} runs.",
                first.cost.wall, self.batch
            ));
        }
        if first.ending != Ending::Exited(0) {
            self.notes
                .push(format!("The command {}.", first.ending.clause()));
        }
        Ok(())
    }

    /// Runs the baseline and the arms in `active` once each, in shuffled order.
    ///
    /// # Errors
    /// When a run cannot be started or waited for.
    pub fn round(&mut self, active: &[usize]) -> Result<Outcome> {
        let mut order: Vec<usize> = std::iter::once(0).chain(active.iter().copied()).collect();
        self.random.shuffle(&mut order);
        let mut costs = Vec::with_capacity(order.len());
        for at in order {
            // A machine that became slower in the middle of a round must not double the budget.
            if self.is_late() {
                return Ok(self.stop(OUT_OF_TIME));
            }
            match self.measure(at)? {
                Measured::Cost(cost) => costs.push((at, cost)),
                Measured::OutOfTime => return Ok(self.stop(OUT_OF_TIME)),
                Measured::Interrupted => {
                    return Ok(self.stop("Interrupted: the rounds that were complete count."));
                }
                Measured::Failed(how) if at == 0 => {
                    return Ok(self.stop(&format!(
                        "The unchanged command {how}, unlike before: a proof needs a command that \
                         ends the same way each time."
                    )));
                }
                Measured::Failed(how) => self.reject(at, &how),
            }
        }
        for (at, cost) in costs {
            self.arms[at].runs.push(cost);
        }
        Ok(Outcome::Complete)
    }

    fn stop(&mut self, note: &str) -> Outcome {
        self.stopped = true;
        self.note(note);
        Outcome::Stopped
    }

    fn reject(&mut self, at: usize, how: &str) {
        self.arms[at].rejected = true;
        let name = &self.arms[at].candidate.name;
        self.notes
            .push(format!("'{name}' is rejected: with it the command {how}."));
    }

    fn measure(&self, at: usize) -> Result<Measured> {
        let arm = &self.arms[at];
        let mut costs = Vec::new();
        for _ in 0..self.batch {
            let finished = self.run_once(arm)?;
            if interrupt::requested().is_some() {
                return Ok(Measured::Interrupted);
            }
            match finished {
                None if self.patience_now() < self.patience => return Ok(Measured::OutOfTime),
                None => {
                    let limit = Nanos::from(self.patience);
                    return Ok(Measured::Failed(format!(
                        "took more than {limit} and was ended"
                    )));
                }
                Some(run) if run.ending != self.reference => {
                    return Ok(Measured::Failed(run.ending.clause()));
                }
                Some(run) => costs.push(run.cost),
            }
        }
        Ok(Measured::Cost(mean(&costs)))
    }

    /// One run; `None` when it was ended because it took too long.
    fn run_once(&self, arm: &Contender) -> Result<Option<Finished>> {
        let command = [&arm.under, self.command].concat();
        let launch = Launch::of(&command).context("no command was given")?;
        let launch = Launch {
            settings: arm.candidate.settings.clone(),
            input: self.options.input.clone(),
            output: self.options.output.clone(),
            ..launch
        };
        for file in &self.options.cold {
            // Whether it worked is seen from the major faults.
            let _ = page_cache::evict(file);
        }
        Ok(launch.spawn()?.wait_within(self.patience_now(), GRACE)?)
    }

    /// Whether the budget is used up, with a tenth more for what a busy machine adds.
    fn is_late(&self) -> bool {
        let late = |deadline: Instant| deadline + self.options.budget / 10;
        self.deadline
            .is_some_and(|deadline| Instant::now() > late(deadline))
    }

    /// How long a run that begins now may take: what is left of the budget, and twice what a run
    /// took first.
    fn patience_now(&self) -> Duration {
        let Some(deadline) = self.deadline.filter(|_| !self.typical.is_zero()) else {
            return self.patience;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        let beyond = (2 * self.typical).max(LEAST_BEYOND);
        self.patience.min(left + beyond)
    }

    /// Arms that may still run.
    #[must_use]
    pub fn in_play(&self) -> Vec<usize> {
        (1..self.arms.len())
            .filter(|&at| {
                let arm = &self.arms[at];
                !(self.stopped || arm.rejected || arm.left_out || arm.untouched)
            })
            .collect()
    }

    /// Whether another round of `arms` fits before `deadline`; `least` rounds run in any case.
    #[must_use]
    pub fn has_time(&self, arms: &[usize], deadline: Instant, least: usize) -> bool {
        let rounds = self.arms[0].runs.len();
        !self.stopped && (rounds < least || Instant::now() + self.round_time(arms) < deadline)
    }

    /// Time that a round of `arms` and the baseline takes, by what their runs took so far; an
    /// arm without runs is taken to be no faster than the first run.
    #[must_use]
    pub fn round_time(&self, arms: &[usize]) -> Duration {
        let in_round = std::iter::once(&0).chain(arms);
        let once: Duration = in_round.map(|&at| self.run_time(at)).sum();
        once.saturating_mul(self.batch)
    }

    fn run_time(&self, at: usize) -> Duration {
        match self.arms[at].runs.as_slice() {
            [] => self.typical,
            runs => Duration::from_nanos(mean(runs).wall.0),
        }
    }

    /// Arms whose first run shows that their settings do not reach the program: neither its faults
    /// nor its memory changed, nor its reads where each run has files to read. They get no more runs.
    pub fn leave_out_untouched(&mut self) {
        let Some(baseline) = self.arms[0].runs.first().copied() else {
            return;
        };
        for at in self.in_play() {
            let Some(run) = self.arms[at].runs.first() else {
                continue;
            };
            let alike =
                |a: u64, b: u64, least: u64| a.abs_diff(b) <= (a.max(b) / UNTOUCHED).max(least);
            let reads_alike = self.options.cold.is_empty()
                || alike(run.major_faults, baseline.major_faults, UNTOUCHED_READS);
            let same = reads_alike
                && alike(run.faults(), baseline.faults(), UNTOUCHED_FAULTS)
                && alike(run.max_rss.0, baseline.max_rss.0, UNTOUCHED_BYTES)
                && self.trial_gain(at) < TOUCHED_GAIN;
            if same {
                let name = self.arms[at].candidate.name.clone();
                self.note(&format!(
                    "'{name}' does not reach the program: in a trial run it changed neither the page \
                     faults ({} against {}) nor the peak memory. Reasons: a static program, another \
                     allocator, set-user-ID, or a program that cleans its environment.",
                    run_faults(&self.arms[at].runs),
                    baseline.faults(),
                ));
                self.arms[at].untouched = true;
            }
        }
    }

    /// Gives an arm no more runs, without blame.
    pub fn leave_out(&mut self, at: usize) {
        self.arms[at].left_out = true;
    }

    /// How much less of what it needs, CPU time or elapsed time, the first run of an arm took than the
    /// first of the baseline: a guide to where runs are worth most, no measurement.
    #[must_use]
    pub fn trial_gain(&self, at: usize) -> f64 {
        let (Some(base), Some(run)) = (self.arms[0].runs.first(), self.arms[at].runs.first())
        else {
            return 0.0;
        };
        let ratio = |base: Nanos, run: Nanos| base.as_secs_f64() / run.as_secs_f64().max(1e-9);
        ratio(base.wall, run.wall).max(ratio(base.cpu(), run.cpu()))
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
        let found = compare_arm(&self.arms[0].runs, &arm.candidate, &arm.runs, criteria);
        match arm.untouched {
            true => Comparison {
                verdict: Verdict::NotReached,
                ..found
            },
            false => found,
        }
    }

    /// Each arm against the baseline, but those with which the command fails and those never tried.
    #[must_use]
    pub fn comparisons(&self, criteria: &Criteria) -> Vec<Comparison> {
        let is_untried = |arm: &Contender| arm.left_out && arm.runs.is_empty();
        let is_sound = |arm: &Contender| !arm.rejected && !is_untried(arm);
        let sound = (1..self.arms.len()).filter(|&at| is_sound(&self.arms[at]));
        sound.map(|at| self.compare(at, criteria)).collect()
    }

    /// Index of the arm of this name; the baseline's when there is none.
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

    /// One more arm, whose runs are those of another program that runs the command.
    pub fn add_under(&mut self, candidate: Candidate, under: Vec<OsString>) {
        let at = self.add(candidate);
        self.arms[at].under = under;
    }

    /// A new experiment of the baseline and `at` alone, without any runs yet.
    #[must_use]
    pub fn fresh(&self, at: usize) -> Self {
        self.fresh_pair(
            self.arms[0].candidate.clone(),
            self.arms[at].candidate.clone(),
        )
    }

    /// A new experiment of two candidates, the first in the baseline's place.
    #[must_use]
    pub fn fresh_pair(&self, first: Candidate, second: Candidate) -> Self {
        Self {
            arms: vec![Contender::new(first), Contender::new(second)],
            random: Random::seeded(self.options.seed ^ 1),
            notes: Vec::new(),
            command: self.command,
            options: self.options,
            ..*self
        }
    }

    /// Takes over what happened in an experiment made by [`Experiment::fresh`].
    pub fn adopt_notes(&mut self, other: &Self) {
        self.notes.extend(other.notes.iter().cloned());
        self.stopped |= other.stopped;
    }

    /// Something that a reader should know.
    pub fn note(&mut self, text: &str) {
        self.notes.push(text.to_owned());
    }

    /// Notes a noisy machine.
    pub fn note_noise(&mut self) {
        self.notes.extend(noise_note(&self.arms[0].runs));
    }

    /// Notes a gain that its supposed cause does not explain.
    pub fn note_doubt(&mut self, winner: &str) {
        let at = self.arm_named(winner);
        self.notes.extend(doubt_note(
            &self.arms[0].clone().into(),
            &self.arms[at].clone().into(),
        ));
    }

    /// Where we are, for the progress line.
    #[must_use]
    pub fn status(&self, active: &[usize], options: &Options) -> String {
        let round = self.arms[0].runs.len() + 1;
        let arms = active.len();
        let most = options.stopping.max_pairs;
        let leader = active.iter().filter(|&&at| self.pairs_of(at) > 1);
        let leader = leader
            .map(|&at| self.compare(at, &options.criteria))
            .max_by(|a, b| a.wall_speedup.value.total_cmp(&b.wall_speedup.value));
        // The figures first: a narrow terminal cuts the end off.
        let so_far = leader.map_or(String::new(), |best| {
            told_factor(&best.wall_speedup)
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

impl Contender {
    fn new(candidate: Candidate) -> Self {
        Self {
            candidate,
            under: Vec::new(),
            runs: Vec::new(),
            rejected: false,
            left_out: false,
            untouched: false,
        }
    }
}

impl From<Contender> for Arm {
    fn from(contender: Contender) -> Self {
        let Candidate { name, settings, .. } = contender.candidate;
        Self {
            name,
            settings,
            runs: contender.runs,
        }
    }
}

fn run_faults(runs: &[RunCost]) -> u64 {
    runs.first().map_or(0, RunCost::faults)
}

/// The mean cost of a few runs, and their highest peak.
fn mean(costs: &[RunCost]) -> RunCost {
    let count = u64::try_from(costs.len()).unwrap_or(1).max(1);
    let of = |part: fn(&RunCost) -> u64| costs.iter().map(part).sum::<u64>() / count;
    RunCost {
        wall: Nanos(of(|cost| cost.wall.0)),
        user: Nanos(of(|cost| cost.user.0)),
        system: Nanos(of(|cost| cost.system.0)),
        minor_faults: of(|cost| cost.minor_faults),
        major_faults: of(|cost| cost.major_faults),
        max_rss: costs
            .iter()
            .map(|cost| cost.max_rss)
            .max()
            .unwrap_or(Bytes(0)),
        voluntary_switches: of(|cost| cost.voluntary_switches),
        involuntary_switches: of(|cost| cost.involuntary_switches),
    }
}
