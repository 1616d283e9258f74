//! Decides which arms get pairs of runs, from one run of each, and after each round from all their
//! runs.

use super::reach::Reach;
use super::rounds::{OUT_OF_TIME, Outcome};
use super::runner::Measured;
use super::{Experiment, Listener};
use anyhow::Result;
use pagewise_compare::proof::fate::{Fate, Rules, Standing};
use pagewise_compare::proof::{
    avoids_nothing, changes_nothing, promising, smallest, trial_gain, why_no_more,
};
use pagewise_model::units::Nanos;
use std::time::{Duration, Instant};

/// A trial run is ended at this many times the shortest one so far: it would not be chosen.
const TRIAL_PATIENCE: u32 = 2;
/// … but never sooner than this: short runs differ more.
const LEAST_TRIAL_PATIENCE: Duration = Duration::from_secs(1);

impl Experiment<'_> {
    /// Runs the baseline and then each arm once, in their order, until `deadline`.
    ///
    /// # Errors
    /// If a run cannot be started or waited for.
    pub fn screen(&mut self, deadline: Instant, progress: &Listener<'_>) -> Result<Outcome> {
        progress("trial run without any setting");
        if !self.screen_baseline(deadline)? {
            return Ok(Outcome::Stopped);
        }
        let arms = self.in_play();
        let mut untried = Vec::new();
        let mut shortest = self.run_time(0);
        for (count, &at) in arms.iter().enumerate() {
            if self.now() + self.run_time(0) > deadline {
                untried.push(at);
                continue;
            }
            let name = &self.arms[at].candidate.name;
            progress(&format!(
                "trial run {} of {}: {name}",
                count + 1,
                arms.len()
            ));
            // Arms that start the command by another program, or in another control group, answer a
            // question of their own, however slow they are.
            let patience = match self.has_own_question(at) {
                true => self.patience,
                false => (shortest.saturating_mul(TRIAL_PATIENCE))
                    .max(LEAST_TRIAL_PATIENCE)
                    .min(self.patience),
            };
            match self.measure(at, patience, true)? {
                Measured::Cost(cost) => {
                    self.arms[at].trial = Some(cost);
                    shortest = shortest.min(self.run_time(at));
                }
                Measured::TooLong if patience < self.patience => self.end_slow_trial(at, patience),
                Measured::TooLong => self.reject(at, &self.too_long()),
                Measured::Failed(failure) => self.reject(at, &failure),
                Measured::OutOfTime => untried.push(at),
                Measured::Interrupted => {
                    return Ok(self.stop("Interrupted: only complete rounds count."));
                }
            }
        }
        self.leave_untried(&untried);
        Ok(Outcome::Complete)
    }

    /// The run to compare trial runs with: the observed one where there is no time for another.
    /// Returns whether there is one.
    fn screen_baseline(&mut self, deadline: Instant) -> Result<bool> {
        let two = self.run_time(0).saturating_mul(2);
        if self.now() + two > deadline
            && let Some(observed) = self.options.observed
        {
            self.arms[0].trial = Some(observed.cost);
            return Ok(true);
        }
        let failure = match self.measure(0, self.patience, false)? {
            Measured::Cost(cost) => {
                self.arms[0].trial = Some(cost);
                return Ok(true);
            }
            Measured::Failed(failure) => failure,
            Measured::TooLong => self.too_long(),
            Measured::OutOfTime => {
                self.stop(OUT_OF_TIME);
                return Ok(false);
            }
            Measured::Interrupted => {
                self.stop("Interrupted: only complete rounds count.");
                return Ok(false);
            }
        };
        self.stop_changed(&failure);
        Ok(false)
    }

    fn has_own_question(&self, at: usize) -> bool {
        let candidate = &self.arms[at].candidate;
        !candidate.under.is_empty() || candidate.larger_limit.is_some()
    }

    fn end_slow_trial(&mut self, at: usize, patience: Duration) {
        let arm = &mut self.arms[at];
        arm.given_up = true;
        self.notes.push(format!(
            "'{}' was ended after {}: others had taken half of that.",
            arm.candidate.name,
            Nanos::from(patience)
        ));
    }

    /// Names the arms for which there was no time.
    fn leave_untried(&mut self, untried: &[usize]) {
        if untried.is_empty() {
            return;
        }
        let names = untried.iter().map(|&at| {
            let arm = &mut self.arms[at];
            arm.left_out = true;
            format!("'{}'", arm.candidate.name)
        });
        let names = names.collect::<Vec<_>>().join(", ");
        self.notes
            .push(format!("Not tried for lack of time: {names}."));
    }

    /// Gives no more runs to arms whose trial run shows that they do not deserve pairs of runs.
    pub fn keep_promising(&mut self) {
        let Some(baseline) = self.arms[0].trial else {
            return;
        };
        let mut tried = Vec::new();
        for at in 1..self.arms.len() {
            self.note_reach(at);
            let arm = &mut self.arms[at];
            let Some(run) = arm.trial.filter(|_| arm.failed.is_none()) else {
                continue;
            };
            arm.given_up |= arm.candidate.fewer_faults && avoids_nothing(&baseline, &run);
            if !arm.given_up && !matches!(arm.reach, Reach::Not(_)) {
                tried.push((at, run));
            }
        }
        let runs: Vec<_> = tried.iter().map(|(_, run)| *run).collect();
        let kept = promising(&baseline, &runs);
        for (index, (at, _)) in tried.iter().enumerate() {
            let is_kept = kept.contains(&index) || self.has_own_question(*at);
            self.arms[*at].given_up = !is_kept;
        }
    }

    /// Gives runs to arms of which the trial run needed least memory, too.
    pub fn keep_small(&mut self) {
        let Some(baseline) = self.arms[0].trial else {
            return;
        };
        let sound = (1..self.arms.len()).filter_map(|at| {
            let arm = &self.arms[at];
            let runs = arm.failed.is_none() && !matches!(arm.reach, Reach::Not(_));
            Some((at, arm.trial.filter(|_| runs)?))
        });
        let (arms, runs): (Vec<usize>, Vec<_>) = sound.unzip();
        for index in smallest(&baseline, &runs) {
            self.arms[arms[index]].given_up = false;
        }
    }

    /// The same after the first pair, for an arm that had no trial run.
    pub(super) fn leave_out_useless(&mut self) {
        let Some(baseline) = self.arms[0].runs.first().copied() else {
            return;
        };
        let has_reads = !self.options.cold.is_empty();
        for at in self.in_play() {
            let arm = &mut self.arms[at];
            let Some(run) = arm.runs.first().filter(|_| arm.trial.is_none()) else {
                continue;
            };
            // Where memory is shows in user time alone.
            let shows = !arm.candidate.settings.place_on_nodes();
            let why = if shows && changes_nothing(&baseline, run, has_reads) {
                "changed neither page faults, peak memory, system time nor waits"
            } else if arm.candidate.fewer_faults && avoids_nothing(&baseline, run) {
                "avoids no page faults, and reduces neither system time nor waits"
            } else {
                continue;
            };
            arm.given_up = true;
            self.notes.push(format!(
                "'{}' was dropped after a trial run: it {why} ({} faults against {}).",
                arm.candidate.name,
                run.faults(),
                baseline.faults(),
            ));
        }
        for at in 1..self.arms.len() {
            if self.arms[at].trial.is_none() {
                self.note_reach(at);
            }
        }
    }

    /// Says why settings do not reach the program.
    fn note_reach(&mut self, at: usize) {
        let arm = &self.arms[at];
        if let (Reach::Not(why), None) = (arm.reach, &arm.failed) {
            self.notes.push(format!(
                "'{}' does not reach the program: {why}.",
                arm.candidate.name
            ));
        }
    }

    /// Ends the arms of `active` that need no more runs, with a note on why undecided ones get no
    /// more. The remaining ones are open.
    pub(super) fn leave_out_settled(&mut self, active: &mut Vec<usize>, rules: &Rules<'_>) {
        let standing = |&at: &usize| Standing {
            comparison: self.compare(at, rules.criteria),
            runs: [&self.arms[0].runs, &self.arms[at].runs],
        };
        let standings: Vec<Standing<'_>> = active.iter().map(standing).collect();
        let fates = rules.fates(&standings);
        let message = standings.iter().zip(&fates);
        let message: Vec<String> = message
            .filter_map(|(standing, fate)| why_no_more(&standing.comparison, fate, rules.pairs))
            .collect();
        for (&at, fate) in active.iter().zip(&fates) {
            self.arms[at].given_up = matches!(fate, Fate::Hopeless | Fate::Beaten(_));
        }
        self.notes.extend(message);
        let mut fates = fates.into_iter();
        active.retain(|_| fates.next() == Some(Fate::Open));
    }

    /// Whether an arm got fewer runs than there was time for.
    pub(super) fn is_given_up(&self, name: &str) -> bool {
        self.arms[self.arm_named(name)].given_up
    }

    /// How much less time the trial run of an arm took than that of the baseline.
    pub(super) fn trial_gain(&self, at: usize) -> f64 {
        match (&self.arms[0].trial, &self.arms[at].trial) {
            (Some(baseline), Some(run)) => trial_gain(baseline, run),
            _ => 0.0,
        }
    }
}
