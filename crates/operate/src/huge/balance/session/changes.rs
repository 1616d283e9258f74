//! Changes of page sizes, within the budget, and their reversal.

use super::Session;
use anyhow::Result;
use pagewise_linux::hugepages::actuator::{Change, Outcome};
use pagewise_linux::process::interrupt;
use pagewise_linux::sys::machine::thread_cpu_time;
use pagewise_simulate::balance::{Action, Victims};
use std::time::Instant;

impl Session<'_> {
    pub(super) fn carry_out(&mut self, action: Action) -> Result<()> {
        let huge = self.population.summary().huge;
        let goal = match action {
            Action::Hold => return Ok(()),
            Action::Limit(most) => most.min(huge),
            Action::Reach(number) => number,
        };
        let change = match goal >= huge {
            true => Change::Collapse,
            false => Change::Split,
        };
        self.change(change, goal.abs_diff(huge), self.controller.victims())?;
        Ok(())
    }

    /// Changes up to `count` slots, as far as the budget allows. Returns how many it changed.
    pub fn change(&mut self, change: Change, count: u64, victims: Victims) -> Result<u64> {
        if count == 0 || !self.plan.trial.is_some_and(|trial| trial.allows(change)) {
            return Ok(0);
        }
        let mut done = 0;
        for (at, address) in self.population.queue(change, victims) {
            self.budget.update(Instant::now(), thread_cpu_time());
            let affordable = self.is_comparing || self.budget.take_action();
            if done >= count || !affordable || interrupt::requested().is_some() {
                break;
            }
            if change == Change::Collapse && !self.population.fits(at, address) {
                break;
            }
            let act = self.population.apply(at, address, change)?;
            self.changes += 1;
            done += u64::from(act.is_some_and(|act| act.outcome == Outcome::Done));
            self.peak_rss = self.peak_rss.max(self.population.rss());
        }
        Ok(done)
    }

    /// If the program grew beyond the memory limit, splits huge pages that added memory.
    pub(super) fn keep_promise(&mut self) -> Result<()> {
        let Some(most) = self.plan.max_rss else {
            return Ok(());
        };
        for (at, address) in self.population.filled_up() {
            if self.population.rss() <= most {
                break;
            }
            self.population.apply(at, address, Change::Split)?;
            self.changes += 1;
        }
        Ok(())
    }

    /// A search that was cut short leaves the number of its last trial: the best so far replaces
    /// it.
    pub(super) fn settle(&mut self) -> Result<()> {
        if let Some(best) = self.best_number() {
            self.is_comparing = true;
            self.carry_out(Action::Reach(best))?;
            self.is_comparing = false;
        }
        Ok(())
    }

    /// Restores the first size of every slot that we changed.
    pub fn restore(&mut self) -> Result<()> {
        for (at, address, change) in self.population.to_restore() {
            self.population.apply(at, address, change)?;
        }
        match self.population.to_restore().len() {
            0 => self.population.forget()?,
            left => self.notes.push(format!(
                "{left} slots could not be restored to their original size; they remain in the journal."
            )),
        }
        Ok(())
    }
}
