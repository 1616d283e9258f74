//! Programs that run in simulated time, with a controller that changes their page sizes.
//!
//! Time passes by accesses: each takes a base time, which stands for everything except translation,
//! plus the cost of its translation. Programs take turns of one tick. After each tick, the
//! program's controller gets the tick's values as counters and a clock would show them, and its
//! order is carried out at the stage that its kernel controls: the second for guests, otherwise the
//! first.

use super::counts::Counts;
use super::engine::{Engine, Space, SpaceId};
use super::exact::Exact;
use super::machine::Machine;
use super::machine::{PageSize, Stage};
use super::visit::Visit;
use super::workload::Workload;
use crate::balance::{Action, Controller, Gauge, Observation, Pages, Reason, Refills, Victims};
use pagewise_model::units::Nanos;
use pagewise_stats::Random;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};

/// A simulated program.
pub struct Program {
    /// The displayed name.
    pub name: String,
    /// The initial state of its address space.
    pub space: Space,
    /// What it accesses.
    pub workload: Box<dyn Workload>,
    /// The controller of its huge pages; none by default.
    pub controller: Option<Box<dyn Controller>>,
}

/// How long and how finely to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Nanoseconds of an access with free translation.
    pub base_ns: f64,
    /// Nanoseconds between a controller's observations.
    pub tick_ns: f64,
    /// Accesses of each program that are measured at the end, after all ticks; more if a round of
    /// it ends later.
    pub measured: u64,
    /// Ticks before the measured part.
    pub ticks: u32,
    /// Most points of a timeline.
    pub points: usize,
    /// Huge pages that the kernel builds by itself per second, up to a controller's limit.
    /// (khugepaged scans 4096 base pages every 10 s: `scan_sleep_millisecs`, `pages_to_scan`.)
    pub khugepaged_per_s: f64,
    /// Factor by which the simulated second is shorter than a real one, for the rates of kernel
    /// threads and for the cost of changing pages.
    pub time_scale: f64,
    /// Seed of random victims.
    pub seed: u64,
}

/// The results of a program's run.
#[derive(Clone, Debug)]
pub struct Run {
    /// Its name.
    pub name: String,
    /// Counts of the measured part.
    pub counts: Counts,
    /// Nanoseconds of the measured part.
    pub ns: f64,
    /// Accesses and nanoseconds of the whole run, including changes of pages.
    pub whole: (u64, f64),
    /// Values over time.
    pub timeline: Vec<Point>,
    /// Which chunks were huge over time: a row for each chunk in order of address, true for huge.
    pub map: Vec<(u64, Vec<bool>)>,
    /// Huge pages split and built.
    pub changes: (u64, u64),
    /// Huge pages and chunks at the end.
    pub pages: Pages,
    /// The controller's last decision that changed something or ended a search.
    pub reason: Option<Reason>,
}

impl Run {
    /// Accesses per nanosecond of the measured part.
    #[must_use]
    pub fn speed(&self) -> f64 {
        self.counts.accesses as f64 / self.ns
    }

    /// Accesses per nanosecond of the whole run.
    #[must_use]
    pub fn whole_speed(&self) -> f64 {
        self.whole.0 as f64 / self.whole.1
    }

    /// Refills of huge and of small pages per second in the measured part.
    #[must_use]
    pub fn refill_rates(&self) -> (f64, f64) {
        let per_second = |refills: u64| refills as f64 / self.ns * 1e9;
        (
            per_second(self.counts.huge()),
            per_second(self.counts.small()),
        )
    }
}

/// A point of a timeline: means since the previous point.
#[derive(Clone, Copy, Debug, Default)]
pub struct Point {
    /// Seconds.
    pub at_s: f64,
    /// Refills of huge pages per second.
    pub huge_per_s: f64,
    /// Refills of small pages per second.
    pub small_per_s: f64,
    /// Huge pages at the end.
    pub huge: u64,
    /// State of the controller at the end.
    pub gauge: Gauge,
    /// Nanoseconds per access.
    pub ns_per_access: f64,
}

/// A simulation of programs that share a processor's TLBs.
pub struct Simulation<'a> {
    machine: &'a Machine,
    settings: Settings,
    engine: Exact,
    random: Random,
    programs: Vec<State>,
    buffer: Vec<Visit>,
}

/// Visits of pages generated at a time.
const BATCH: usize = 256;
/// Ticks after which the density of chunks is counted again.
const DENSITY_TICKS: u32 = 1024;
/// Addresses of a batch that are sampled for density.
const DENSITY_SAMPLE: usize = 16;

struct State {
    program: Program,
    id: SpaceId,
    stage: Stage,
    chunks: Chunks,
    counting: bool,
    limit: u64,
    /// Huge pages that the kernel may build by itself, accumulated over time.
    earned: f64,
    accesses: u64,
    ns: f64,
    since: (u64, f64, Counts),
    counts: Counts,
    timeline: Vec<Point>,
    map: BTreeMap<u64, Vec<bool>>,
    changes: (u64, u64),
    reason: Option<Reason>,
    ticks: u32,
}

impl State {
    /// Whether the kernel has had time to build a huge page, and may do so.
    fn may_build(&self) -> bool {
        let pages = self.chunks.pages();
        self.earned >= 1.0 && pages.huge < self.limit.min(pages.possible)
    }
}

/// A program's chunks at the controlled stage.
#[derive(Default)]
struct Chunks {
    huge: BTreeSet<u64>,
    small: BTreeSet<u64>,
    /// Distinct small pages of each chunk in the samples of this and the last period.
    pages: FxHashMap<u64, FxHashSet<u64>>,
    before: FxHashMap<u64, usize>,
}

impl Chunks {
    fn pages(&self) -> Pages {
        Pages {
            huge: self.huge.len() as u64,
            possible: (self.huge.len() + self.small.len()) as u64,
        }
    }

    fn density(&self, chunk: u64) -> usize {
        let now = self.pages.get(&chunk).map_or(0, FxHashSet::len);
        now.max(self.before.get(&chunk).copied().unwrap_or(0))
    }

    /// The next chunk to split or to build: sparse ones are split first and built last.
    fn choose(
        &self,
        from: &BTreeSet<u64>,
        victims: Victims,
        builds: bool,
        random: &mut Random,
    ) -> Option<u64> {
        match victims {
            Victims::Random => from.iter().nth(random.below(from.len())).copied(),
            Victims::Sparsest => {
                let density = |chunk: &&u64| self.density(**chunk);
                if builds {
                    from.iter().max_by_key(density).copied()
                } else {
                    from.iter().min_by_key(density).copied()
                }
            }
        }
    }
}

impl<'a> Simulation<'a> {
    /// Starts with programs that have touched all their memory once.
    #[must_use]
    pub fn new(machine: &'a Machine, settings: Settings, programs: Vec<Program>) -> Self {
        let mut simulation = Self {
            machine,
            settings,
            engine: Exact::new(machine),
            random: Random::seeded(settings.seed),
            programs: Vec::new(),
            buffer: vec![Visit::default(); BATCH],
        };
        for program in programs {
            simulation.add(program);
        }
        simulation
    }

    fn add(&mut self, program: Program) {
        let id = self.engine.add(program.space);
        let stage = match program.space.second {
            Some(_) => Stage::Second,
            None => Stage::First,
        };
        let begins = program.space.second.unwrap_or(program.space.first);
        let shift = self.machine.huge_shift();
        let mut chunks = Chunks::default();
        for (start, bytes) in program.workload.memory() {
            for chunk in start >> shift..=(start + bytes.max(1) - 1) >> shift {
                self.engine.access(id, &[chunk << shift]);
                match begins {
                    PageSize::Huge => chunks.huge.insert(chunk),
                    PageSize::Small => chunks.small.insert(chunk),
                };
            }
        }
        self.programs.push(State {
            limit: (chunks.huge.len() + chunks.small.len()) as u64,
            program,
            id,
            stage,
            chunks,
            counting: false,
            earned: 0.0,
            accesses: 0,
            ns: 0.0,
            since: (0, 0.0, Counts::default()),
            counts: Counts::default(),
            timeline: Vec::new(),
            map: BTreeMap::new(),
            changes: (0, 0),
            reason: None,
            ticks: 0,
        });
    }

    /// Runs all ticks, then the measured part.
    #[must_use]
    pub fn run(mut self) -> Vec<Run> {
        let every = (self.settings.ticks as usize / self.settings.points.max(1)).max(1) as u32;
        for tick in 0..self.settings.ticks {
            for index in 0..self.programs.len() {
                self.tick(index);
                if tick % every == every - 1 {
                    self.note(index);
                }
            }
        }
        self.measure()
    }

    /// Runs a program for a tick, then lets its controller decide.
    fn tick(&mut self, index: usize) {
        let before = self.engine.counts();
        let (began_at, began_ns) = (self.programs[index].accesses, self.programs[index].ns);
        let end = began_ns + self.settings.tick_ns;
        while self.programs[index].ns < end {
            self.batch(index);
        }
        let seen = self.engine.counts() - before;
        let state = &mut self.programs[index];
        let ns = state.ns - began_ns;
        // Counters as in a tick of full length.
        let scale = self.settings.time_scale;
        let counted = |refills: u64| (refills as f64 * scale) as u64;
        let observation = Observation {
            interval: Nanos((ns * scale) as u64),
            refills: Some(Refills {
                all: counted(seen.huge() + seen.small()),
                huge: state.counting.then(|| counted(seen.huge())),
            }),
            refill_share: Some(seen.refill_ns(self.machine) / ns),
            cost: Some(ns / (state.accesses - began_at) as f64),
            pages: state.chunks.pages(),
        };
        state.ticks += 1;
        if state.ticks.is_multiple_of(DENSITY_TICKS) {
            let pages = std::mem::take(&mut state.chunks.pages);
            state.chunks.before = pages
                .into_iter()
                .map(|(chunk, set)| (chunk, set.len()))
                .collect();
        }
        let Some(controller) = &mut state.program.controller else {
            return;
        };
        let order = controller.decide(&observation);
        let victims = controller.victims();
        state.counting = order.count_huge;
        if order.action != Action::Hold || matches!(order.reason, Reason::NothingBetter) {
            state.reason = Some(order.reason);
        }
        self.carry_out(index, order.action, victims, ns);
    }

    fn batch(&mut self, index: usize) {
        let state = &mut self.programs[index];
        state.program.workload.visits(&mut self.buffer);
        let before = self.engine.counts();
        self.engine.access_visits(state.id, &self.buffer);
        let spent = self.engine.counts() - before;
        let base = self.settings.base_ns * spent.accesses as f64;
        state.ns += base + spent.translation_ns(self.machine);
        state.accesses += spent.accesses;
        state.counts += spent;
        if state.program.controller.is_some() {
            let (small, huge) = (self.machine.small_shift(), self.machine.huge_shift());
            for address in self
                .buffer
                .iter()
                .take(DENSITY_SAMPLE)
                .map(|visit| visit.address())
            {
                let pages = state.chunks.pages.entry(address >> huge).or_default();
                pages.insert(address >> small);
            }
        }
    }

    fn carry_out(&mut self, index: usize, action: Action, victims: Victims, ns: f64) {
        let state = &mut self.programs[index];
        let now = state.chunks.pages();
        match action {
            Action::Hold => {}
            Action::Limit(limit) => {
                state.limit = limit;
                for _ in limit..now.huge {
                    self.change(index, PageSize::Small, victims);
                }
            }
            Action::Reach(wanted) => {
                state.limit = wanted;
                state.earned = 0.0;
                for _ in wanted..now.huge {
                    self.change(index, PageSize::Small, victims);
                }
                for _ in now.huge..wanted.min(now.possible) {
                    self.change(index, PageSize::Huge, victims);
                }
                return;
            }
        }
        let state = &mut self.programs[index];
        // Pages that the kernel builds by itself.
        if state.chunks.pages().huge < state.limit && state.chunks.pages().huge < now.possible {
            state.earned += self.settings.khugepaged_per_s * self.settings.time_scale * ns / 1e9;
            while self.programs[index].may_build() {
                self.programs[index].earned -= 1.0;
                self.change(index, PageSize::Huge, Victims::Random);
            }
        }
    }

    /// Splits or builds a huge page.
    fn change(&mut self, index: usize, to: PageSize, victims: Victims) {
        let state = &mut self.programs[index];
        let chunks = &mut state.chunks;
        let (from, builds) = match to {
            PageSize::Small => (&chunks.huge, false),
            PageSize::Huge => (&chunks.small, true),
        };
        let Some(chunk) = chunks.choose(from, victims, builds, &mut self.random) else {
            return;
        };
        let cost = &self.machine.change;
        let cost = match to {
            PageSize::Small => {
                chunks.huge.remove(&chunk);
                chunks.small.insert(chunk);
                state.changes.0 += 1;
                cost.split_ns
            }
            PageSize::Huge => {
                chunks.small.remove(&chunk);
                chunks.huge.insert(chunk);
                state.changes.1 += 1;
                cost.collapse_ns
            }
        };
        state.ns += cost / self.settings.time_scale;
        self.engine.remap(state.id, state.stage, chunk, to);
    }

    /// Adds a point to a program's timeline.
    fn note(&mut self, index: usize) {
        let state = &mut self.programs[index];
        let (accesses, ns, counts) = state.since;
        let seen = state.counts - counts;
        let spent = state.ns - ns;
        let gauge = state.program.controller.as_ref().map(|c| c.gauge());
        state.timeline.push(Point {
            at_s: state.ns / 1e9 * self.settings.time_scale,
            huge_per_s: seen.huge() as f64 / spent * 1e9,
            small_per_s: seen.small() as f64 / spent * 1e9,
            huge: state.chunks.pages().huge,
            gauge: gauge.unwrap_or_default(),
            ns_per_access: spent / (state.accesses - accesses) as f64,
        });
        state.since = (state.accesses, state.ns, state.counts);
        let columns = state.timeline.len();
        let huge = state.chunks.huge.iter().map(|&chunk| (chunk, true));
        let small = state.chunks.small.iter().map(|&chunk| (chunk, false));
        for (chunk, is_huge) in huge.chain(small) {
            let row = state.map.entry(chunk).or_default();
            row.resize(columns - 1, is_huge);
            row.push(is_huge);
        }
    }

    /// Runs the measured part, with the controllers still active.
    fn measure(mut self) -> Vec<Run> {
        let begins: Vec<(u64, f64, Counts)> = self
            .programs
            .iter()
            .map(|state| (state.accesses, state.ns, state.counts))
            .collect();
        let rounds = |state: &State| state.program.workload.round().unwrap_or(1).max(1);
        let wanted: Vec<u64> = self
            .programs
            .iter()
            .map(|state| self.settings.measured.next_multiple_of(rounds(state)))
            .collect();
        loop {
            let mut is_done = true;
            for (index, begin) in begins.iter().enumerate() {
                if self.programs[index].accesses - begin.0 < wanted[index] {
                    is_done = false;
                    self.tick(index);
                }
            }
            if is_done {
                break;
            }
        }
        let finish = |(state, begin): (State, (u64, f64, Counts))| Run {
            counts: state.counts - begin.2,
            ns: state.ns - begin.1,
            whole: (state.accesses, state.ns),
            timeline: state.timeline,
            map: state.map.into_iter().collect(),
            changes: state.changes,
            pages: state.chunks.pages(),
            reason: state.reason,
            name: state.program.name,
        };
        self.programs.into_iter().zip(begins).map(finish).collect()
    }
}
