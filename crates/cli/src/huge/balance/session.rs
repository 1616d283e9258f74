//! The loop: look, decide, act, until the program ends or somebody asks to stop.

use super::budget::{Budget, Limits};
use super::flips::{self, Flips};
use super::population::Population;
use super::signal::{Sample, Signal};
use crate::huge::probe::effect_on_chase;
use anyhow::Result;
use pagewise_linux::hugepages::actuator::Change;
use pagewise_linux::hugepages::progress::Progress;
use pagewise_linux::hugepages::trial::Trial;
use pagewise_linux::process::{Running, interrupt};
use pagewise_linux::sys::machine::thread_cpu_time;
use pagewise_model::balance::{BalancePoint, PageState};
use pagewise_model::run::Ending;
use pagewise_model::units::{Bytes, Estimate, Nanos};
use pagewise_simulate::balance::{Action, Controller, Observation, Pages, Reason, Victims};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// What to do and within which limits.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether page sizes are changed at all.
    pub acts: bool,
    /// What this kernel does; `None` where nothing is changed.
    pub trial: Option<Trial>,
    /// What counts as work.
    pub progress: Option<Progress>,
    pub limits: Limits,
    pub interval: Duration,
    pub duration: Option<Duration>,
    pub max_rss: Option<Bytes>,
    /// Compare base and huge pages in turn at the end.
    pub prove: bool,
    /// Give page sizes back at the end.
    pub restore: bool,
    pub quiet: bool,
}

/// One controller at work on one population.
pub struct Session {
    pub plan: Plan,
    pub population: Population,
    pub signal: Signal,
    pub points: Vec<BalancePoint>,
    pub before: PageState,
    pub peak_rss: Bytes,
    pub flips: Option<Flips>,
    pub notes: Vec<String>,
    pub controller_name: &'static str,
    pub budget: Budget,
    pub started: Instant,
    controller: Box<dyn Controller>,
    /// When mappings were last read afresh.
    refreshed: Instant,
    refresh_every: Duration,
    is_settled: bool,
    /// Whether a number is on trial.
    is_searching: bool,
    /// Whether a comparison is under way, which was asked for and knows no budget.
    pub is_comparing: bool,
    /// Whether work was seen yet.
    has_begun: bool,
    /// State at the last look.
    pub last: PageState,
    /// The number to stay at until the account has filled again.
    resting_at: Option<u64>,
    /// What a chase gains on this machine, once it was measured; `Some(None)` where it could not be.
    chase: Option<Option<Estimate>>,
    /// Slots changed since the last look, and in the interval that it showed.
    changes: u64,
    changes_before: u64,
}

/// Mappings are read afresh so often at first…
const REFRESH: Duration = Duration::from_millis(500);
/// … and this many times as seldom as reading takes: 0.2 % of a CPU.
const REFRESH_SHARE: u32 = 500;
/// Intervals get so many times longer once a number has been settled on.
const CALM: u32 = 5;
/// Intervals from which on a number's cost is known.
const ENOUGH: usize = 3;
/// Time without any work seen after which the last rung of the ladder is taken.
const WITHOUT_WORK: Duration = Duration::from_secs(3);
/// What a chase must gain (a share) for huge pages to be built unmeasured.
const ASSUMED_GAIN: f64 = 0.05;
/// Memory of the chase at most.
const MOST_CHASE: Bytes = Bytes(256 << 20);
/// Points are thinned out beyond this number.
const MOST_POINTS: usize = 20_000;

impl Session {
    pub fn new(plan: Plan, population: Population, controller: Box<dyn Controller>) -> Self {
        let signal = Signal::open(plan.progress.as_ref());
        let now = Instant::now();
        let budget = Budget::new(plan.limits, now, thread_cpu_time());
        let mut session = Self {
            plan,
            population,
            signal,
            points: Vec::new(),
            before: PageState::default(),
            peak_rss: Bytes(0),
            flips: None,
            notes: Vec::new(),
            controller_name: controller.name(),
            budget,
            started: now,
            controller,
            refreshed: now,
            refresh_every: REFRESH,
            is_settled: false,
            is_searching: false,
            is_comparing: false,
            has_begun: false,
            last: PageState::default(),
            resting_at: None,
            chase: None,
            changes: 0,
            changes_before: 0,
        };
        session.before = session.state();
        session.last = session.before;
        session
    }

    /// Page sizes and memory now, as far as they were last read.
    pub fn state(&self) -> PageState {
        let sum = self.population.summary();
        PageState {
            huge: sum.huge,
            small: sum.small,
            blocked: sum.blocked,
            growth: sum.growth,
            // One that has just ended has none: what it held last is more telling.
            rss: match self.population.rss() {
                Bytes(0) => self.last.rss,
                resident => resident,
            },
        }
    }

    /// Goes on until the program ends, the time is over or a signal comes. Returns how a program
    /// of ours ended.
    ///
    /// # Errors
    /// When a journal cannot be written, or the named counter not be read.
    pub fn watch(&mut self, mut child: Option<&mut Running>) -> Result<Option<Ending>> {
        self.signal.sample(&self.population.pids())?;
        loop {
            if let Some(ending) = self.pause(child.as_deref_mut())? {
                return Ok(Some(ending));
            }
            let over = self
                .plan
                .duration
                .is_some_and(|most| self.started.elapsed() >= most);
            if over || interrupt::requested().is_some() {
                break;
            }
            self.look()?;
            if self.population.members.is_empty() {
                break;
            }
            self.step()?;
        }
        self.finish_live()?;
        Ok(None)
    }

    /// Waits for the next interval, or until the program ends.
    fn pause(&self, child: Option<&mut Running>) -> Result<Option<Ending>> {
        let interval = match self.is_settled {
            true => self.plan.interval * CALM,
            false => self.plan.interval,
        };
        match child {
            Some(child) => Ok(child.wait_for(interval)?.map(|finished| finished.ending)),
            None => {
                std::thread::sleep(interval);
                Ok(None)
            }
        }
    }

    /// Reads the maps again: new mappings now and then, known ones each time.
    fn look(&mut self) -> Result<()> {
        if self.refreshed.elapsed() < self.refresh_every {
            self.population.rescan();
            return Ok(());
        }
        let began = thread_cpu_time();
        self.population.refresh()?;
        let took = Duration::from_nanos((thread_cpu_time() - began).0);
        self.refreshed = Instant::now();
        self.refresh_every = (took * REFRESH_SHARE).max(REFRESH);
        Ok(())
    }

    fn step(&mut self) -> Result<()> {
        // A program that is just ending shows empty maps, which say nothing of it.
        if self.population.rss() == Bytes(0) {
            return Ok(());
        }
        let sample = self.sample()?;
        self.signal.check()?;
        let seen = self.observation(&sample);
        // What a program held before it began to work says nothing.
        self.has_begun |= seen.cost.is_some();
        let reason = match self.plan.acts {
            true => self.act(&seen)?,
            false => "dry run".to_owned(),
        };
        self.keep_promise()?;
        self.push_point(&sample, &seen, reason);
        self.changes_before = std::mem::take(&mut self.changes);
        if self.population.rss() > Bytes(0) {
            self.last = self.state();
        }
        if !self.has_begun {
            self.before = self.last;
        }
        Ok(())
    }

    /// Asks the controller and does what it says, as far as the account reaches.
    fn act(&mut self, seen: &Observation) -> Result<String> {
        self.budget.update(Instant::now(), thread_cpu_time());
        if let Some(number) = self.resting_at.take_if(|_| !self.budget.is_half_full()) {
            self.resting_at = Some(number);
            self.carry_out(Action::Reach(number))?;
            return Ok(format!(
                "{number} huge pages until CPU time has been earned again"
            ));
        }
        self.resting_at = None;
        if !self.has_begun && self.started.elapsed() >= WITHOUT_WORK {
            return self.assume(seen);
        }
        let order = self.controller.decide(seen);
        self.note_settled(order.reason);
        if self.budget.is_low() {
            self.rest(order.action, seen.pages.huge);
        } else {
            self.carry_out(order.action)?;
        }
        Ok(order.reason.to_string())
    }

    /// The last rung: nothing counts this program's work, so what a chase gains through as much
    /// memory decides whether huge pages are built. That is a guess, and said to be one.
    fn assume(&mut self, seen: &Observation) -> Result<String> {
        let gains = self
            .chase()
            .is_some_and(|change| change.high < -ASSUMED_GAIN);
        if gains {
            self.carry_out(Action::Reach(seen.pages.possible))?;
        }
        Ok(match gains {
            true => "no work is counted: huge pages by what a chase gains here".to_owned(),
            false => "no work is counted, and a chase gains nothing here".to_owned(),
        })
    }

    /// Change of a chase's time from base to huge pages, through as much memory as there is here
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

    /// A search that has spent its CPU time looks at the number where it stands, which costs
    /// nothing, and then stays at the best number so far: the account's last two fifths are kept for
    /// getting there.
    fn rest(&mut self, wanted: Action, huge: u64) {
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

    /// The number of huge pages at which work cost least, of those that were seen often enough.
    fn best_number(&self) -> Option<u64> {
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

    /// What a unit of work cost, by number of huge pages.
    fn costs(&self) -> BTreeMap<u64, Vec<f64>> {
        let mut costs: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for point in &self.points {
            if let Some(cost) = point.cost_ns.filter(|_| point.changes == 0) {
                costs.entry(point.huge).or_default().push(cost);
            }
        }
        costs
    }

    pub fn sample(&mut self) -> Result<Sample> {
        self.signal.sample(&self.population.pids())
    }

    fn observation(&self, sample: &Sample) -> Observation {
        Observation {
            interval: sample.elapsed,
            refills: Signal::refills(sample),
            refill_share: sample.count.walk_share(),
            cost: self.signal.cost(sample),
            pages: Pages {
                huge: self.population.summary().huge,
                possible: self.population.possible(),
            },
        }
    }

    fn note_settled(&mut self, reason: Reason) {
        match reason {
            Reason::Best { huge, saves } => {
                self.is_settled = true;
                self.say(&format!(
                    "{huge} huge pages: {:.1} % less CPU time for the same work",
                    saves * 100.0
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

    fn carry_out(&mut self, action: Action) -> Result<()> {
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

    /// Changes up to `count` slots, as far as the budget goes. Returns how many it changed.
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
            done += u64::from(act.is_some_and(|act| {
                act.outcome == pagewise_linux::hugepages::actuator::Outcome::Done
            }));
            self.peak_rss = self.peak_rss.max(self.population.rss());
        }
        Ok(done)
    }

    /// Where the program grew beyond the promise, what we filled up is given back.
    fn keep_promise(&mut self) -> Result<()> {
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

    fn push_point(&mut self, sample: &Sample, seen: &Observation, reason: String) {
        let rss = self.population.rss();
        self.peak_rss = self.peak_rss.max(rss);
        let gauge = self.controller.gauge();
        let walks = Signal::walks_by_size(sample);
        self.points.push(BalancePoint {
            time: self.started.elapsed().into(),
            huge: seen.pages.huge,
            possible: seen.pages.possible,
            changes: std::mem::take(&mut self.changes_before),
            rss,
            cpu: sample.cpu,
            cost_ns: seen.cost.map(|cost| cost * 1e9),
            walk_share: seen.refill_share,
            huge_walks_per_s: walks.map(|(huge, _)| huge),
            small_walks_per_s: walks.map(|(_, small)| small),
            load: gauge.load,
            imbalance: gauge.imbalance,
            reason,
        });
        self.remember();
        if self.points.len() >= MOST_POINTS {
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
    }

    /// Keeps the page sizes of this moment for the map.
    pub fn remember(&mut self) {
        self.population.remember(self.started.elapsed());
    }

    /// What is left to do while the program still runs.
    fn finish_live(&mut self) -> Result<()> {
        if self.population.members.is_empty() {
            return Ok(());
        }
        // The request ended the watching; the comparison is the next phase.
        if self.plan.prove && self.plan.acts && interrupt::requested().is_none() {
            self.say("comparing base and huge pages in turn");
            self.is_comparing = true;
            self.flips = flips::run(self)?;
            self.is_comparing = false;
        } else if self.plan.acts && self.is_searching {
            self.settle()?;
        }
        if self.plan.restore {
            self.restore()?;
        }
        self.population.refresh()
    }

    /// A search that was cut short leaves the number of its last trial behind: the best so far
    /// takes its place.
    fn settle(&mut self) -> Result<()> {
        if let Some(best) = self.best_number() {
            self.is_comparing = true;
            self.carry_out(Action::Reach(best))?;
            self.is_comparing = false;
        }
        Ok(())
    }

    /// Gives every slot that we changed its first size back.
    pub fn restore(&mut self) -> Result<()> {
        for (at, address, change) in self.population.to_restore() {
            self.population.apply(at, address, change)?;
        }
        match self.population.to_restore().len() {
            0 => self.population.forget()?,
            left => self.notes.push(format!(
                "{left} slots could not be given their first size back; the journal keeps them."
            )),
        }
        Ok(())
    }

    pub fn say(&self, message: &str) {
        if !self.plan.quiet {
            let elapsed = Nanos::from(self.started.elapsed());
            // Progress that cannot be shown is no reason to stop.
            let _ = writeln!(io::stderr(), "pagewise: {elapsed}: {message}");
        }
    }
}
