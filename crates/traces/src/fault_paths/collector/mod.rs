//! Takes the complete calls of a trace and sums up its faults.
//!
//! Each fault's time is split so that nothing is counted twice:
//!
//! ```text
//! total = self time of every call       (on CPU, this fault's work)
//!       + interrupts                    (frames subtracted with all callees)
//!       + off CPU                       (from sched_switch; else the switch lines; else the gap
//!                                        before finish_task_switch(); else schedule())
//! ```

mod add;
mod descend;
mod events;
mod scratch;
mod walk;

use events::Events;
use scratch::{Kind, Scratch};
use walk::mix;

use super::call_times::CallTimes;
use super::cells::FaultLog;
use super::contexts::Contexts;
use super::descent::{Descent, Step};
use super::layer::Layer;
use super::locks::Locks;
use super::probe::ProbeSigns;
use super::roles::Roles;
use super::shapes::{Shapes, Token};
use super::signature::{Class, Signs, class_returned};
use super::stretches::Stretches;
use super::tally::Tally;
use pagewise_formats::function_graph::{CallTree, Line, Names, Sink, Span, Tail};
use pagewise_model::fault_paths::{Calibration, Lock, Source};
use pagewise_model::histogram::Histogram;
use pagewise_model::trace_note::TraceNote;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Sums over the faults of one trace; [`super::analyse()`] makes a report of them.
#[derive(Clone, Debug, Default)]
pub struct Collector {
    pub(super) roles: Roles,
    pub(super) shapes: Shapes,
    pub(super) contexts: Contexts,
    pub(super) call_times: CallTimes,
    pub(super) others: FxHashMap<u32, Tally>,
    pub(super) bare: FxHashMap<u32, Tally>,
    pub(super) checks: Checks,
    pub(super) probe: ProbeSigns,
    /// The tracer's cost in each of several sources, if shapes and contexts come from several.
    pub(super) costs: Vec<Calibration>,
    /// Number of merged reports, and their root-only faults that were not used to measure the
    /// tracer's cost.
    pub(super) reports: u64,
    pub(super) unmeasured: u64,
    pub(super) first_time: Option<u64>,
    pub(super) last_time: Option<u64>,
    /// Latencies recorded by the capture in stretches in which only the roots were traced.
    root_only: Histogram,
    pub(super) log: FaultLog,
    /// Recorded for comparisons.
    pub(super) stretches: Option<Stretches>,
    pub(super) locks: Locks,
    pub(super) events: Events,
    pub(super) descent: Option<Descent>,
    /// Calls classified as interrupts only by their position.
    pub(super) by_place: u64,
    /// Waits that are shorter than the calls around them, and waits that are longer.
    pub(super) sleep_signs: (u64, u64),
    pending_locks: FxHashMap<u32, u64>,
    scratch: Scratch,
    /// The faults of the current call, if they were requested.
    kept_faults: Option<Vec<KeptFault>>,
}

/// One fault, as it was added to the sums.
#[derive(Clone, Debug)]
pub(super) struct KeptFault {
    pub shape: usize,
    pub total: u64,
    pub on: u64,
    pub own: u64,
    pub direct_calls: u32,
    pub interrupts: u64,
    pub runnable: u64,
    pub blocked: u64,
    pub unknown: u64,
    pub lock_before: u64,
    pub lock: u64,
}

/// Number of first faults all of whose calls are used to estimate the tracer's cost; of later
/// faults, one in [`PROBED_EVERY`] is used.
const ALL_PROBED: u64 = 1000;
const PROBED_EVERY: u64 = 16;
/// Number of first faults all of whose calls go into the distributions by call path; of later
/// faults, one in [`TIMED_EVERY`]. Sums are over all faults.
const ALL_TIMED: u64 = 10_000;
const TIMED_EVERY: u64 = 16;

/// Whether the time adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checks {
    pub faults: u64,
    pub violations: u64,
    pub untimed: u64,
}

impl Checks {
    pub(super) fn add(&mut self, other: Self) {
        self.faults += other.faults;
        self.violations += other.violations;
        self.untimed += other.untimed;
    }
}

impl Sink for Collector {
    fn event(&mut self, line: &Line<'_>, text: &[u8]) {
        self.locks.event(line.pid, line.time, text);
        self.events.take(text);
    }

    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.roles.learn(names);
        self.first_time = self.first_time.or(tree.start);
        self.last_time = tree.end.or(self.last_time);
        let mut found = false;
        let mut at = 0;
        while let Some(node) = tree.nodes.get(at) {
            if self.roles.role(node.name).signs.has(Signs::ENTRY) {
                match self.descent.is_some() {
                    true => self.descend_from(tree, at, names),
                    false => {
                        let class = self.returned_class(tree, at);
                        self.fault(tree, at, class);
                    }
                }
                found = true;
                at = node.end as usize;
            } else {
                at += 1;
            }
        }
        if !found {
            self.other(tree);
        }
    }

    fn note(&mut self, note: TraceNote) {
        if let TraceNote::RootOnly { latency } = note {
            self.root_only.merge(&latency);
        }
    }

    fn bare_close(&mut self, tail: Tail, _depth: u32, span: Option<Span>) {
        if let (Some(name), Some(span)) = (tail.name, span) {
            self.bare.entry(name.0).or_default().record(span.ns);
        }
    }
}

impl Collector {
    /// Latencies of faults with only their roots traced, as the capture recorded them next to the
    /// trace; empty if there are none.
    #[must_use]
    pub fn root_only(&self) -> &Histogram {
        &self.root_only
    }

    /// Latencies of the faults, without interrupts and time off the CPU.
    #[must_use]
    pub fn fault_latencies(&self) -> Histogram {
        let mut all = Histogram::default();
        for shape in &self.shapes.all {
            shape.latency[Layer::Fault as usize].add_to(&mut all);
        }
        all
    }

    /// A collector that also records what the comparison with another trace needs of every call.
    #[must_use]
    pub fn for_comparison() -> Self {
        Self {
            stretches: Some(Stretches::default()),
            ..Self::default()
        }
    }

    /// A collector of the calls selected by a descent, with the tracer's cost as calibrated: each
    /// is treated as a fault is elsewhere.
    #[must_use]
    pub fn descending(steps: Vec<Step>, calibration: Calibration) -> Self {
        Self {
            descent: Some(Descent::new(steps, calibration.per_call_ns)),
            ..Self::default()
        }
    }

    /// The fault's kind according to the return value of `handle_mm_fault`, if the trace has it
    /// (`funcgraph-retval`); used when no function shows the kind.
    fn returned_class(&self, tree: &CallTree, root: usize) -> Option<Class> {
        let end = tree.nodes[root].end as usize;
        let is_handler = |node: usize| {
            let role = self.roles.role(tree.nodes[node].name);
            (root..end).contains(&node) && role.layer == Some(Layer::MmFault)
        };
        let mut returned = tree
            .details
            .iter()
            .filter(|detail| is_handler(detail.node as usize));
        class_returned(returned.find_map(|detail| detail.returned)?)
    }

    fn is_slow_path(&self, name: u32) -> bool {
        let role = self.roles.role(name);
        role.signs.has(Signs::SCHEDULE) || role.lock == Some(Lock::Rwsem)
    }

    /// Complete faults in total.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.checks.faults
    }

    /// A top-level call that contains no fault: a lock helper, a system call.
    fn other(&mut self, tree: &CallTree) {
        let Some(root) = tree.root() else { return };
        self.others
            .entry(root.name)
            .or_default()
            .record(root.span.ns);
        if self.roles.role(root.name).layer == Some(Layer::Lock)
            && let Some(pid) = tree.pid
        {
            *self.pending_locks.entry(pid).or_default() += root.span.ns;
        }
        let lock = match self.roles.role(root.name).lock {
            Some(Lock::Rwsem) => Some(Lock::Mmap),
            lock => lock,
        };
        if let Some(lock) = lock {
            let nodes = tree.nodes.iter();
            let slept = !tree.off_cpu.is_empty();
            let slow = slept || nodes.skip(1).any(|node| self.is_slow_path(node.name));
            self.locks.got(lock, root.name, false, root.span.ns, slow);
        }
    }

    fn fault(&mut self, tree: &CallTree, root: usize, class: Option<Class>) {
        let mut scratch = std::mem::take(&mut self.scratch);
        let hash = self.walk(tree, root, &mut scratch);
        if !scratch.cuts.is_empty() {
            self.take_out(tree, &mut scratch);
        }
        // The same calls inside faults of several kinds are several shapes.
        let hash = class.map_or(hash, |class| hash ^ (class as u64 + 1));
        let shape = match self.shapes.find(hash, &scratch.tokens, class) {
            Some(shape) => shape,
            None => self.new_shape(hash, &scratch.tokens, class),
        };
        let struck = scratch
            .cuts
            .iter()
            .filter(|cut| cut.kind == Kind::Interrupt);
        self.shapes.all[shape].interrupts += struck.count() as u64;
        let lock = tree.pid.and_then(|pid| self.pending_locks.remove(&pid));
        let layers = self.add(shape, tree.nodes[root].span.ns, &scratch);
        self.remember(shape, tree.end, lock.unwrap_or(0), &scratch, layers);
        if self.checks.faults < ALL_TIMED || self.checks.faults.is_multiple_of(TIMED_EVERY) {
            self.add_times(shape, &scratch);
        }
        if let Some(wait) = lock {
            self.shapes.all[shape].lock_before.record(wait);
        }
        self.tell(shape, tree.nodes[root].span.ns, lock, &scratch);
        self.checks.faults += 1;
        self.checks.untimed += u64::from(!tree.timed);
        self.scratch = scratch;
    }

    /// The shape with these calls, without faults if it is new.
    pub(super) fn shape_of(&mut self, tokens: &[Token]) -> usize {
        let hash = tokens.iter().fold(0, |hash, token| mix(hash, *token));
        match self.shapes.find(hash, tokens, None) {
            Some(shape) => shape,
            None => self.new_shape(hash, tokens, None),
        }
    }

    /// Root-only faults that were not used to measure the tracer's cost.
    pub(super) fn unmeasured(&self, calibration: &Calibration) -> u64 {
        match self.costs.is_empty() && calibration.source != Source::RootOnly {
            true => self.root_only.count(),
            false => self.unmeasured,
        }
    }

    /// Sets the source of the following shapes.
    pub(super) fn set_source(&mut self, source: u16) {
        self.shapes.source = source;
        self.contexts.source = source;
    }

    pub(super) fn add_root_only(&mut self, latency: &Histogram) {
        self.root_only.merge(latency);
    }

    /// From the first to the last complete call, ns.
    pub(super) fn duration(&self) -> Option<u64> {
        Some(self.last_time?.saturating_sub(self.first_time?))
    }

    /// A collector that keeps each fault until it is requested.
    pub(super) fn keeping_faults() -> Self {
        Self {
            kept_faults: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// The faults since the last call.
    pub(super) fn take_faults(&mut self) -> Vec<KeptFault> {
        self.kept_faults
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }
}
