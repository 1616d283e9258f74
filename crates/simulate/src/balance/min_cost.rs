//! Finds the number of huge pages at which a unit of work costs least.
//!
//! Imbalance shows that something is wrong, but not where to stop: with random replacement the
//! paper's rule stops at more huge pages than is best, and with true LRU the cost has a cliff
//! without a slope that leads to it. So this controller tries numbers directly: first repeated
//! halves, then the gaps around the best, each for a window of intervals after the pages have
//! settled.
//!
//! Trying a worse number costs time. A running account of that loss, relative to the number before
//! the search, keeps it below a share of all time: a search that has spent its allowance goes back
//! to the best number so far until enough time has passed, and a trial that is clearly worse is cut
//! short.
//!
//! It matters which pages are huge as well as how many, and this depends on the path to a number:
//! the number that looks best is measured again in its present state, until the one measured last
//! is the best. At rest, a new search starts only when the cost or the memory has changed, or after
//! a long time.

use super::{Action, Controller, Entries, Gauge, Observation, Order, Reason, Victims};

/// Constants of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinCostSettings {
    /// TLB entries by page size, where refills are counted by size: a search then also requires
    /// imbalance. `None` starts a search whenever refills take time.
    pub entries: Option<Entries>,
    /// Imbalance that starts a search.
    pub threshold: f64,
    /// Share of time in refills above which an interval counts as loaded; an interval with an
    /// unknown share always does.
    pub loaded_share: f64,
    /// Loaded intervals before a search.
    pub gate: u32,
    /// Intervals over which a number's cost is averaged.
    pub window: u32,
    /// Unmeasured intervals after a change of pages.
    pub settle: u32,
    /// Intervals after which a number that was not reached is abandoned.
    pub patience: u32,
    /// Least share of time that a new number must save.
    pub gain: f64,
    /// Share of all time that searches may lose.
    pub regret: f64,
    /// Relative change of the cost at rest that starts a new search.
    pub drift: f64,
    /// Most huge pages that may be built, for instance because memory is reserved for others.
    pub ceiling: u64,
    /// Which huge pages are split first.
    pub victims: Victims,
}

impl Default for MinCostSettings {
    fn default() -> Self {
        Self {
            entries: None,
            threshold: 4.0,
            loaded_share: 0.02,
            gate: 16,
            window: 8,
            settle: 2,
            patience: 64,
            gain: 0.01,
            regret: 0.005,
            drift: 0.05,
            ceiling: u64::MAX,
            victims: Victims::Sparsest,
        }
    }
}

/// Trials in one search; a bound on its length, not a target.
const MOST_TRIALS: usize = 24;
/// A trial at this multiple of the start's cost is cut short after a quarter of its window.
const CLEARLY_WORSE: f64 = 1.25;
/// Times that a best number is measured again; each time another may turn out better.
const MOST_CONFIRMATIONS: u32 = 4;
/// Each search doubles the wait before the next, up to this factor.
const MOST_BACKOFF: u32 = 64;

/// The controller that minimises cost.
#[derive(Clone, Debug)]
pub struct MinCost {
    settings: MinCostSettings,
    load: u32,
    backoff: u32,
    counting: bool,
    imbalance: Option<f64>,
    phase: Phase,
    /// The result of the last search.
    rest: Option<Rest>,
    /// Seconds observed.
    elapsed: f64,
    /// Seconds lost in trials, minus the gains of trials.
    lost: f64,
}

#[derive(Clone, Debug)]
enum Phase {
    Watching,
    Searching(Search),
}

#[derive(Clone, Debug)]
struct Search {
    start: u64,
    possible: u64,
    pending: Vec<u64>,
    points: Vec<Point>,
    trial: Trial,
    /// Times that the best number was measured again.
    confirmations: u32,
}

/// Where a search ended, and the data to check whether that is still valid.
#[derive(Clone, Copy, Debug)]
struct Rest {
    huge: u64,
    possible: u64,
    cost: f64,
    /// Sum and count of costs in the current window.
    sum: f64,
    seen: u32,
    /// Intervals until the result expires.
    left: u32,
}

impl Rest {
    /// Takes an interval; returns whether pages, memory and cost are still the same.
    fn holds(&mut self, seen: &Observation, settings: &MinCostSettings) -> bool {
        self.left = self.left.saturating_sub(1);
        let possible = seen.pages.possible.min(settings.ceiling);
        let huge = seen.pages.huge;
        let has_moved = |was: u64, is: u64| was.abs_diff(is) > was / 8;
        if self.left == 0 || has_moved(self.huge, huge) || has_moved(self.possible, possible) {
            return false;
        }
        if let Some(cost) = seen.cost {
            self.sum += cost;
            self.seen += 1;
        }
        if self.seen < settings.window {
            return true;
        }
        let mean = self.sum / f64::from(self.seen);
        (self.sum, self.seen) = (0.0, 0);
        (mean / self.cost - 1.0).abs() <= settings.drift
    }
}

/// Cost of a number of huge pages.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    huge: u64,
    cost: f64,
}

#[derive(Clone, Copy, Debug)]
struct Trial {
    huge: u64,
    waited: u32,
    settled: u32,
    sum: f64,
    seen: u32,
}

impl Trial {
    fn new(huge: u64) -> Self {
        Self {
            huge,
            waited: 0,
            settled: 0,
            sum: 0.0,
            seen: 0,
        }
    }

    fn mean(&self) -> f64 {
        self.sum / f64::from(self.seen.max(1))
    }
}

impl Search {
    fn best(&self) -> Option<Point> {
        let cheapest = |a: &&Point, b: &&Point| a.cost.total_cmp(&b.cost);
        self.points.iter().min_by(cheapest).copied()
    }

    fn start_cost(&self) -> Option<f64> {
        let start = self.points.iter().find(|point| point.huge == self.start);
        start.map(|point| point.cost)
    }

    /// The middles of the gaps next to the best point that are still wide.
    fn refinements(&self) -> Vec<u64> {
        let Some(best) = self.best() else {
            return Vec::new();
        };
        let least_gap = (best.huge / 8).max(1);
        let numbers = self.points.iter().map(|point| point.huge);
        let below = numbers.clone().filter(|&huge| huge < best.huge).max();
        let above = numbers.filter(|&huge| huge > best.huge).min();
        [below, above]
            .into_iter()
            .flatten()
            .filter(|other| other.abs_diff(best.huge) > least_gap)
            .map(|other| u64::midpoint(other, best.huge))
            .collect()
    }
}

/// The numbers tried first: everything, then halves of it down to zero.
fn ladder(start: u64, possible: u64) -> Vec<u64> {
    let mut rungs: Vec<u64> = Vec::new();
    let mut huge = possible;
    while huge > 0 {
        rungs.push(huge);
        // Five halvings span all TLBs that are worth balancing.
        huge = if rungs.len() < 6 { huge / 2 } else { 0 };
    }
    rungs.push(0);
    rungs.retain(|&rung| rung != start);
    // The last is tried first.
    rungs.reverse();
    rungs
}

impl MinCost {
    /// A controller at rest.
    #[must_use]
    pub fn new(settings: MinCostSettings) -> Self {
        Self {
            settings,
            load: 0,
            backoff: 1,
            counting: false,
            imbalance: None,
            phase: Phase::Watching,
            rest: None,
            elapsed: 0.0,
            lost: 0.0,
        }
    }

    fn order(&self, action: Action, reason: Reason) -> Order {
        Order {
            count_huge: self.counting,
            action,
            reason,
        }
    }

    fn watch(&mut self, seen: &Observation) -> Order {
        if let Some(rest) = &mut self.rest {
            if rest.holds(seen, &self.settings) {
                return self.order(Action::Hold, Reason::Calm);
            }
            self.rest = None;
        }
        let loaded = seen
            .refill_share
            .is_none_or(|share| share > self.settings.loaded_share);
        self.load = if loaded {
            self.load.saturating_add(1)
        } else {
            self.load.saturating_sub(1)
        };
        let gate = self.settings.gate.saturating_mul(self.backoff);
        if seen.cost.is_none() || self.load < gate {
            self.counting = false;
            return self.order(Action::Hold, Reason::Calm);
        }
        match self.trigger(seen) {
            Trigger::Wait => self.order(Action::Hold, Reason::Comparing),
            Trigger::No(reason) => {
                self.wait();
                self.order(Action::Hold, reason)
            }
            Trigger::Yes => self.begin(seen),
        }
    }

    /// Whether load justifies a search.
    fn trigger(&mut self, seen: &Observation) -> Trigger {
        let (Some(entries), Some(refills)) = (self.settings.entries, seen.refills) else {
            return Trigger::Yes;
        };
        let Some(imbalance) = entries.imbalance(refills) else {
            let asked = std::mem::replace(&mut self.counting, true);
            // Requested and still not counted: there is no such counter.
            return if asked { Trigger::Yes } else { Trigger::Wait };
        };
        self.imbalance = Some(imbalance.factor);
        if imbalance.factor <= self.settings.threshold {
            return Trigger::No(Reason::Balanced);
        }
        let most = seen.pages.possible.min(self.settings.ceiling);
        if !imbalance.on_huge && seen.pages.huge >= most {
            // Small entries are overloaded, and there is nothing to build.
            return Trigger::No(Reason::SmallOverloaded(imbalance.factor));
        }
        Trigger::Yes
    }

    fn wait(&mut self) {
        self.load = 0;
        self.counting = false;
        self.phase = Phase::Watching;
    }

    fn begin(&mut self, seen: &Observation) -> Order {
        let possible = seen.pages.possible.min(self.settings.ceiling);
        let start = seen.pages.huge;
        self.counting = false;
        self.phase = Phase::Searching(Search {
            start,
            possible,
            pending: ladder(start, possible),
            points: Vec::new(),
            trial: Trial::new(start),
            confirmations: 0,
        });
        self.order(Action::Hold, Reason::Trying(start))
    }

    fn search(&mut self, mut search: Search, seen: &Observation) -> Order {
        if let (Some(base), Some(cost)) = (search.start_cost(), seen.cost) {
            // The difference to what the interval's work would have taken at the start's cost.
            self.lost += seen.interval.as_secs_f64() * (1.0 - base / cost);
        }
        let is_over = self.measure(&mut search, seen);
        if !is_over {
            let huge = search.trial.huge;
            self.phase = Phase::Searching(search);
            return self.order(Action::Reach(huge), Reason::Trying(huge));
        }
        self.next(search)
    }

    /// Takes an interval of a trial; returns whether the trial is over.
    fn measure(&self, search: &mut Search, seen: &Observation) -> bool {
        let trial = &mut search.trial;
        if seen.pages.huge != trial.huge && trial.seen == 0 {
            trial.waited += 1;
            if trial.waited < self.settings.patience {
                return false;
            }
            // Not all could be split or built: this is the number that can be reached.
            trial.huge = seen.pages.huge;
        }
        if trial.settled < self.settings.settle {
            trial.settled += 1;
            return false;
        }
        let Some(cost) = seen.cost else {
            trial.waited += 1;
            return trial.waited >= self.settings.patience;
        };
        trial.sum += cost;
        trial.seen += 1;
        if trial.seen >= self.settings.window {
            return true;
        }
        let trial = *trial;
        let is_worse = search
            .start_cost()
            .is_some_and(|base| trial.mean() > base * CLEARLY_WORSE);
        is_worse && trial.seen * 4 >= self.settings.window
    }

    /// Records the trial's result and chooses the next, or ends the search.
    fn next(&mut self, mut search: Search) -> Order {
        let trial = search.trial;
        if trial.seen > 0 {
            let cost = trial.mean();
            search.points.retain(|point| point.huge != trial.huge);
            search.points.push(Point {
                huge: trial.huge,
                cost,
            });
        }
        let Some(best) = search.best() else {
            self.wait();
            return self.order(Action::Hold, Reason::Calm);
        };
        if self.lost > self.settings.regret * self.elapsed {
            // Rest on the best number until trials are affordable again.
            search.trial = Trial::new(best.huge);
            self.phase = Phase::Searching(search);
            return self.order(Action::Reach(best.huge), Reason::Trying(best.huge));
        }
        if search.pending.is_empty() && search.points.len() < MOST_TRIALS {
            search.pending = search.refinements();
        }
        match search.pending.pop() {
            Some(huge) => {
                search.trial = Trial::new(huge);
                self.phase = Phase::Searching(search);
                self.order(Action::Reach(huge), Reason::Trying(huge))
            }
            None if best.huge != trial.huge && search.confirmations < MOST_CONFIRMATIONS => {
                search.confirmations += 1;
                search.trial = Trial::new(best.huge);
                self.phase = Phase::Searching(search);
                self.order(Action::Reach(best.huge), Reason::Trying(best.huge))
            }
            None => self.finish(&search, best),
        }
    }

    fn finish(&mut self, search: &Search, best: Point) -> Order {
        let base = search.start_cost().unwrap_or(best.cost);
        let saves = 1.0 - best.cost / base;
        self.wait();
        self.backoff = (self.backoff * 2).min(MOST_BACKOFF);
        let is_better = saves >= self.settings.gain;
        let (huge, cost) = if is_better {
            (best.huge, best.cost)
        } else {
            (search.start.min(search.possible), base)
        };
        self.rest = Some(Rest {
            huge,
            possible: search.possible,
            cost,
            sum: 0.0,
            seen: 0,
            left: self.settings.gate.saturating_mul(MOST_BACKOFF).max(1),
        });
        let reason = if is_better {
            Reason::Best { huge, saves }
        } else {
            Reason::NothingBetter
        };
        self.order(Action::Reach(huge), reason)
    }
}

enum Trigger {
    Yes,
    Wait,
    No(Reason),
}

impl Controller for MinCost {
    fn name(&self) -> &'static str {
        "min-cost"
    }

    fn victims(&self) -> Victims {
        self.settings.victims
    }

    fn decide(&mut self, seen: &Observation) -> Order {
        self.elapsed += seen.interval.as_secs_f64();
        match std::mem::replace(&mut self.phase, Phase::Watching) {
            Phase::Watching => self.watch(seen),
            Phase::Searching(search) => self.search(search, seen),
        }
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            load: self.load,
            imbalance: self.imbalance,
        }
    }
}
