//! What the first run of each arm says: whether its settings reach the program.

use super::Experiment;
use pagewise_analyse::proof::{is_untouched, trial_gain};

impl Experiment<'_> {
    /// Gives no more runs to arms whose first run shows that their settings do not reach the program.
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
            arm.untouched = is_untouched(&baseline, run, has_reads);
            if arm.untouched {
                self.notes.push(format!(
                    "'{}' does not reach the program: in a trial run it changed neither the page faults \
                     ({} against {}) nor peak memory, system time or waits. Reasons: a static program, \
                     another allocator, set-user-ID, or a program that cleans its environment.",
                    arm.candidate.name,
                    run.faults(),
                    baseline.faults(),
                ));
            }
        }
    }

    /// How much less the first run of an arm took than the first of the baseline.
    pub fn trial_gain(&self, at: usize) -> f64 {
        match (self.arms[0].runs.first(), self.arms[at].runs.first()) {
            (Some(baseline), Some(run)) => trial_gain(baseline, run),
            _ => 0.0,
        }
    }
}
