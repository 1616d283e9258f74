//! The loop: look, decide, act, until the program ends or the user stops it.

mod changes;
mod flips;
mod search;

use super::budget::{Budget, Limits};
use super::population::Population;
use super::signal::{Sample, Signal};
use anyhow::Result;
use pagewise_answer::balance_verdict::Pair;
use pagewise_linux::hugepages::progress::Progress;
use pagewise_linux::hugepages::trial::Trial;
use pagewise_linux::process::{Running, interrupt};
use pagewise_linux::sys::machine::thread_cpu_time;
use pagewise_model::balance::{BalancePoint, PageState};
use pagewise_model::run::Ending;
use pagewise_model::units::{Bytes, Estimate, Nanos};
use pagewise_simulate::balance::{Controller, Observation, Pages};
use std::time::{Duration, Instant};

/// What to do and within which limits.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Whether page sizes are changed at all.
    pub acts: bool,
    /// What works with this kernel; `None` if nothing is changed.
    pub trial: Option<Trial>,
    /// What counts as work.
    pub progress: Option<Progress>,
    pub limits: Limits,
    pub interval: Duration,
    pub duration: Option<Duration>,
    pub max_rss: Option<Bytes>,
    /// Compare base and huge pages in alternation at the end.
    pub prove: bool,
    /// Restore page sizes at the end.
    pub restore: bool,
}

/// One controller at work on one population.
pub struct Session<'a> {
    pub plan: Plan,
    pub population: Population,
    pub signal: Signal,
    pub points: Vec<BalancePoint>,
    pub before: PageState,
    pub peak_rss: Bytes,
    /// Pairs of a comparison in alternation.
    pub pairs: Vec<Pair>,
    pub notes: Vec<String>,
    pub controller_name: &'static str,
    pub budget: Budget,
    pub started: Instant,
    controller: Box<dyn Controller>,
    /// Receives messages on what is done.
    listener: &'a dyn Fn(&str),
    /// When mappings were last read afresh.
    refreshed: Instant,
    refresh_every: Duration,
    is_settled: bool,
    /// Whether a number is being tried.
    is_searching: bool,
    /// Whether a comparison is in progress, which was requested and has no budget.
    pub is_comparing: bool,
    /// Whether any work has been seen.
    has_begun: bool,
    /// Whether a page has changed its size by us.
    has_acted: bool,
    /// State at the last look.
    pub last: PageState,
    /// The number to stay at until the account has filled up again.
    resting_at: Option<u64>,
    /// A chase's gain on this machine, once measured; `Some(None)` if it could not be.
    chase: Option<Option<Estimate>>,
    /// Slots changed since the last look, and in the interval before it.
    changes: u64,
    changes_before: u64,
}

/// Mappings are read afresh this often at first…
const REFRESH: Duration = Duration::from_millis(500);
/// … and then at intervals of this many times the time of reading: 0.2 % of a CPU.
const REFRESH_SHARE: u32 = 500;
/// Factor for the interval once a number has been settled on.
const CALM: u32 = 5;
/// Points are thinned out beyond this number.
const MOST_POINTS: usize = 20_000;

impl<'a> Session<'a> {
    pub fn new(
        plan: Plan,
        population: Population,
        controller: Box<dyn Controller>,
        listener: &'a dyn Fn(&str),
    ) -> Self {
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
            pairs: Vec::new(),
            notes: Vec::new(),
            controller_name: controller.name(),
            budget,
            started: now,
            controller,
            listener,
            refreshed: now,
            refresh_every: REFRESH,
            is_settled: false,
            is_searching: false,
            is_comparing: false,
            has_begun: false,
            has_acted: false,
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

    /// Current page sizes and memory, as last read.
    pub fn state(&self) -> PageState {
        let sum = self.population.summary();
        PageState {
            huge: sum.huge,
            small: sum.small,
            blocked: sum.blocked,
            growth: sum.growth,
            // A process that has just ended has no resident memory; use its last value.
            rss: match self.population.rss() {
                Bytes(0) => self.last.rss,
                resident => resident,
            },
        }
    }

    /// Continues until the program ends, the time is over or a signal comes. Returns how a program
    /// of ours ended.
    ///
    /// # Errors
    /// If a journal cannot be written, or the named counter cannot be read.
    pub fn watch(&mut self, mut child: Option<&mut Running>) -> Result<Option<Ending>> {
        self.signal.sample(&self.population.pids())?;
        loop {
            if let Some(ending) = self.pause(child.as_deref_mut())? {
                return Ok(Some(ending));
            }
            let over = self
                .watching_time()
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

    /// The time for the controller: a comparison at the end takes the second half.
    fn watching_time(&self) -> Option<Duration> {
        let all = self.plan.duration?;
        Some(if self.compares() { all / 2 } else { all })
    }

    fn compares(&self) -> bool {
        self.plan.prove && self.plan.acts
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
        // A program that is just ending shows empty maps, which carry no information.
        if self.population.rss() == Bytes(0) {
            return Ok(());
        }
        let sample = self.sample()?;
        self.signal.check()?;
        let seen = self.observation(&sample);
        // Page sizes before the program starts to work carry no information.
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
        self.has_acted |= self.changes_before > 0;
        if !self.has_begun && !self.has_acted {
            self.before = self.last;
        }
        Ok(())
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

    /// Keeps the present page sizes for the map.
    pub fn remember(&mut self) {
        self.population.remember(self.started.elapsed());
    }

    /// Final steps that need the program to be still running.
    fn finish_live(&mut self) -> Result<()> {
        if self.population.members.is_empty() {
            return Ok(());
        }
        // The request to end stops the watching; the comparison is the next phase.
        if self.compares() && interrupt::requested().is_none() {
            self.say("alternating between base and huge pages");
            self.is_comparing = true;
            let end = self.plan.duration.map(|all| self.started + all);
            self.pairs = flips::run(self, end)?;
            self.is_comparing = false;
        } else if self.plan.acts && self.is_searching {
            self.settle()?;
        }
        if self.plan.restore {
            self.restore()?;
        }
        self.population.refresh()
    }

    fn say(&self, message: &str) {
        let elapsed = Nanos::from(self.started.elapsed());
        (self.listener)(&format!("{elapsed}: {message}"));
    }
}
