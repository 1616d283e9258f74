//! Decides which arms get more runs, from the first run of each, and after each round from all
//! their runs.

use super::Experiment;
use pagewise_compare::proof::fate::{Fate, Rules, Standing};
use pagewise_compare::proof::{
    avoids_nothing, is_far_behind, is_untouched, trial_gain, why_no_more,
};

impl Experiment<'_> {
    /// Gives no more runs to arms whose first run shows that their settings have no effect on the
    /// program, or that they avoid none of the faults that they should avoid.
    pub(super) fn leave_out_untouched(&mut self) {
        let Some(baseline) = self.arms[0].runs.first().copied() else {
            return;
        };
        let has_reads = !self.options.cold.is_empty();
        for at in self.in_play() {
            let arm = &mut self.arms[at];
            let Some(run) = arm.runs.first() else {
                continue;
            };
            // The kernel refuses a policy of nodes or applies it to any program, and where memory is
            // shows in user time alone.
            let reaches_any = arm.candidate.settings.place_on_nodes();
            arm.untouched = !reaches_any && is_untouched(&baseline, run, has_reads);
            if arm.untouched {
                self.notes.push(format!(
                    "'{}' does not reach the program: in a trial run it changed neither the page faults \
                     ({} against {}) nor peak memory, system time or waits. Possible reasons: a static program, another allocator, set-user-ID, or a program that cleans its environment.",
                    arm.candidate.name,
                    run.faults(),
                    baseline.faults(),
                ));
            } else if arm.candidate.fewer_faults && avoids_nothing(&baseline, run) {
                arm.given_up = true;
                self.notes.push(format!(
                    "'{}' was dropped after a trial: it reaches the program, but avoids no page faults ({} against {}), and reduces neither system time nor waits.",
                    arm.candidate.name,
                    run.faults(),
                    baseline.faults(),
                ));
            }
        }
    }

    /// Gives no more runs to arms whose first run was far slower than that of the best one, so that the
    /// budget goes to those that may be the best. Arms that start the command by another program keep
    /// theirs: they answer a question of their own.
    pub(super) fn leave_out_far_behind(&mut self) {
        let arms = self.in_play();
        let by_gain =
            |a: &&usize, b: &&usize| self.trial_gain(**a).total_cmp(&self.trial_gain(**b));
        let Some(&best) = arms.iter().max_by(by_gain) else {
            return;
        };
        let Some(fastest) = self.arms[best].runs.first().copied() else {
            return;
        };
        let leader = self.arms[best].candidate.name.clone();
        for at in arms {
            let arm = &mut self.arms[at];
            let behind = arm.runs.first().filter(|run| is_far_behind(&fastest, run));
            let Some(run) = behind.filter(|_| arm.candidate.under.is_empty()) else {
                continue;
            };
            arm.given_up = true;
            self.notes.push(format!(
                "'{}' was dropped after a trial: it took {} of CPU time, {} elapsed, and '{leader}' {} and {}.",
                arm.candidate.name,
                run.cpu(),
                run.wall,
                fastest.cpu(),
                fastest.wall,
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
        let told = standings.iter().zip(&fates);
        let told: Vec<String> = told
            .filter_map(|(standing, fate)| why_no_more(&standing.comparison, fate, rules.pairs))
            .collect();
        for (&at, fate) in active.iter().zip(&fates) {
            self.arms[at].given_up = matches!(fate, Fate::Hopeless | Fate::Beaten(_));
        }
        self.notes.extend(told);
        let mut fates = fates.into_iter();
        active.retain(|_| fates.next() == Some(Fate::Open));
    }

    /// Whether an arm got fewer runs than there was time for.
    pub(super) fn is_given_up(&self, name: &str) -> bool {
        self.arms[self.arm_named(name)].given_up
    }

    /// How much less time the first run of an arm took than the first of the baseline.
    pub fn trial_gain(&self, at: usize) -> f64 {
        match (self.arms[0].runs.first(), self.arms[at].runs.first()) {
            (Some(baseline), Some(run)) => trial_gain(baseline, run),
            _ => 0.0,
        }
    }
}
