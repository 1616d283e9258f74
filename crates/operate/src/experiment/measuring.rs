//! One measurement: a run of an arm, or the mean of several of a very short command.

use super::Experiment;
use super::arms::{Contender, mean};
use super::runner::{Measured, Run};
use super::server::Failure;
use anyhow::Result;
use pagewise_model::units::Nanos;
use std::time::Duration;

impl Experiment<'_> {
    /// Runs an arm, for at most `patience`. With `looks`, its processes are examined meanwhile.
    pub(super) fn measure(
        &mut self,
        at: usize,
        patience: Duration,
        looks: bool,
    ) -> Result<Measured> {
        let mut costs = Vec::new();
        for count in 0..self.batch {
            let limit = patience.min(self.patience_now());
            let candidate = &self.arms[at].candidate;
            let finished = match looks && count == 0 {
                true => {
                    let (run, reach) = self.runner.run_observed(candidate, limit)?;
                    self.arms[at].reach = reach;
                    run
                }
                false => self.runner.run(candidate, limit)?,
            };
            if self.runner.is_interrupted() {
                return Ok(Measured::Interrupted);
            }
            match finished {
                Run::TooLong if limit < patience => return Ok(Measured::OutOfTime),
                Run::TooLong => return Ok(Measured::TooLong),
                Run::Failed(failure) => return Ok(Measured::Failed(failure)),
                Run::Ended(run) if run.ending != self.reference => {
                    return Ok(Measured::Failed(Failure {
                        who: self.whom(),
                        how: run.ending.clause(),
                    }));
                }
                Run::Ended(run) => costs.push(run.cost),
            }
        }
        Ok(Measured::Cost(mean(&costs)))
    }

    /// How an arm fails whose run was ended by its patience.
    pub(super) fn too_long(&self) -> Failure {
        let limit = Nanos::from(self.patience);
        Failure {
            who: self.whom(),
            how: format!("took more than {limit} and was terminated"),
        }
    }

    /// One run, within what is left of the budget.
    pub(super) fn run_once(&self, arm: &Contender) -> Result<Run> {
        self.runner.run(&arm.candidate, self.patience_now())
    }
}
