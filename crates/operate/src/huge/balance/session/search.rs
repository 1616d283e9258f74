//! Carries out the controller's decisions, also if CPU time is short or no work is seen.

use super::Session;
use crate::huge::probe::effect_on_chase;
use anyhow::Result;
use pagewise_linux::sys::machine::thread_cpu_time;
use pagewise_model::quantity::percent;
use pagewise_model::units::{Bytes, Estimate};
use pagewise_simulate::balance::{Action, Observation, Reason};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Number of intervals after which a number's cost counts as known.
const ENOUGH: usize = 3;
/// Time without any visible work after which the last rung of the ladder is used.
const WITHOUT_WORK: Duration = Duration::from_secs(3);
/// Gain (a share) of a chase above which huge pages are built without a measurement.
const ASSUMED_GAIN: f64 = 0.05;
/// Maximum memory of the chase.
const MOST_CHASE: Bytes = Bytes(256 << 20);

impl Session<'_> {
    /// Asks the controller and does what it decides, as far as the account allows.
    pub(super) fn act(&mut self, seen: &Observation) -> Result<String> {
        self.budget.update(Instant::now(), thread_cpu_time());
        if let Some(number) = self.resting_at.take_if(|_| !self.budget.is_half_full()) {
            self.resting_at = Some(number);
            self.carry_out(Action::Reach(number))?;
            return Ok(format!(
                "{number} huge pages until there is CPU time to spend again"
            ));
        }
        self.resting_at = None;
        if !self.has_begun && self.started.elapsed() >= WITHOUT_WORK {
            return self.assume(seen);
        }
        let order = self.controller.decide(seen);
        self.note_settled(order.reason);
        if self.budget.is_low() {
            self.stop_searching(order.action, seen.pages.huge);
        } else {
            self.carry_out(order.action)?;
        }
        Ok(order.reason.to_string())
    }

    /// The last rung: there is no counter of this program's work, so a chase's gain through the
    /// same amount of memory decides whether huge pages are built. That is a guess, and reported as
    /// one.
    fn assume(&mut self, seen: &Observation) -> Result<String> {
        let gains = self
            .chase()
            .is_some_and(|change| change.high < -ASSUMED_GAIN);
        if gains {
            self.carry_out(Action::Reach(seen.pages.possible))?;
        }
        Ok(match gains {
            true => "no work is counted: huge pages by what a pointer chase gains here".to_owned(),
            false => "no work is counted, and a pointer chase gains nothing here".to_owned(),
        })
    }

    /// Change of a chase's time from base to huge pages, through as much memory as the program has,
    /// up to a limit. Takes a second or two, once.
    pub fn chase(&mut self) -> Option<Estimate> {
        let sum = self.population.summary();
        let first = self.population.members.first();
        let sizes = first.map(|member| member.target.sizes());
        *self.chase.get_or_insert_with(|| {
            let sizes = sizes?;
            let memory = Bytes((sum.huge + sum.small) * sizes.huge.0).min(MOST_CHASE);
            (memory > Bytes(0)).then(|| effect_on_chase(memory, sizes))?
        })
    }

    /// A search that has spent its CPU time observes the current number, which costs nothing, and
    /// then stays at the best number so far: the account's last two fifths are kept for getting
    /// there.
    fn stop_searching(&mut self, wanted: Action, huge: u64) {
        let is_satisfied = match wanted {
            Action::Hold => true,
            Action::Limit(most) => huge <= most,
            Action::Reach(number) => huge == number,
        };
        let is_known = self
            .costs()
            .get(&huge)
            .is_some_and(|costs| costs.len() >= ENOUGH);
        if !is_satisfied && is_known {
            self.resting_at = self.best_number();
        }
    }

    /// The number of huge pages at which work cost least, among those seen often enough.
    pub(super) fn best_number(&self) -> Option<u64> {
        let known = self
            .costs()
            .into_iter()
            .filter(|(_, costs)| costs.len() >= ENOUGH);
        let medians = known.map(|(huge, mut costs)| {
            costs.sort_by(f64::total_cmp);
            (huge, costs[costs.len() / 2])
        });
        let best = medians.min_by(|a, b| a.1.total_cmp(&b.1));
        best.map(|(huge, _)| huge)
    }

    /// Cost of a unit of work, by number of huge pages.
    fn costs(&self) -> BTreeMap<u64, Vec<f64>> {
        let mut costs: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for point in &self.points {
            if let Some(cost) = point.cost_ns.filter(|_| point.changes == 0) {
                costs.entry(point.huge).or_default().push(cost);
            }
        }
        costs
    }

    fn note_settled(&mut self, reason: Reason) {
        match reason {
            Reason::Best { huge, saves } => {
                self.is_settled = true;
                self.say(&format!(
                    "{huge} huge pages: {} less CPU time for the same work",
                    percent(saves)
                ));
            }
            Reason::NothingBetter => {
                self.is_settled = true;
                self.say("no other number of huge pages is better");
            }
            Reason::Trying(_) => {
                self.is_settled = false;
                self.is_searching = true;
                return;
            }
            _ => {}
        }
        self.is_searching = false;
    }
}
