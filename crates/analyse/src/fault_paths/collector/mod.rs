//! Takes the complete calls of a trace and adds up its faults.
//!
//! Each fault's time is split so that nothing counts twice:
//!
//! ```text
//! total = own time of every call        (on CPU, this fault's work)
//!       + interrupts                    (frames taken out with all they called)
//!       + off CPU                       (from sched_switch; else the switch lines; else the gap
//!                                        before finish_task_switch(); else schedule())
//! ```

mod descend;
mod scratch;

use scratch::{From, Kind, Scratch, Timed, add_split, waits_of};

use super::call_times::CallTimes;
use super::cells::{Cells, FaultLog};
use super::contexts::Contexts;
use super::descent::{Descent, Step};
use super::layer::Layer;
use super::locks::Locks;
use super::probe::ProbeSigns;
use super::roles::{Role, Roles};
use super::shapes::{MOST_SHAPES, Shape, Shapes, Split, Token, describe};
use super::signature::{Class, Signs, class_returned};
use super::stretches::Stretches;
use super::tally::Tally;
use pagewise_model::fault_paths::{Calibration, Lock, Source};
use pagewise_model::formats::function_graph::{
    CallTree, Line, Names, Node, Sink, Span, Tail, Wait,
};
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
    /// What tracing cost each of several sources, where shapes and contexts come from those.
    pub(super) costs: Vec<Calibration>,
    /// Reports whose sums these are, and their faults with the root alone that measured nothing.
    pub(super) reports: u64,
    pub(super) unmeasured: u64,
    pub(super) first_time: Option<u64>,
    pub(super) last_time: Option<u64>,
    /// Latencies that the capture noted of stretches in which the roots alone were traced.
    root_only: Histogram,
    pub(super) log: FaultLog,
    /// Kept for comparisons.
    pub(super) stretches: Option<Stretches>,
    pub(super) locks: Locks,
    pub(super) descent: Option<Descent>,
    /// Calls taken for an interrupt's by their place alone.
    pub(super) by_place: u64,
    /// Waits that are shorter than the calls around them, and waits that are longer.
    pub(super) sleep_signs: (u64, u64),
    pending_locks: FxHashMap<u32, u64>,
    scratch: Scratch,
    /// The faults of the call at hand, where someone wants to be told.
    told: Option<Vec<Told>>,
}

/// One fault, as it was added up.
#[derive(Clone, Debug)]
pub(super) struct Told {
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

/// Faults whose calls all tell of the tracer's cost; of later ones, one in so many does.
const ALL_PROBED: u64 = 1000;
const PROBED_EVERY: u64 = 16;
/// Faults whose single calls all go into the distributions by call path; of later ones, one in
/// so many does. Sums are over all faults.
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
    }

    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.roles.learn(names);
        self.first_time = self.first_time.or(tree.start);
        self.last_time = tree.end.or(self.last_time);
        let mut found = false;
        let mut at = 0;
        while let Some(node) = tree.nodes.get(at) {
            if self.roles.of(node.name).signs.has(Signs::ENTRY) {
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
    /// Latencies of faults with their roots alone traced, as the capture noted them beside the
    /// trace; empty when it noted none.
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

    /// A collector that also notes what the comparison with another trace needs of every call.
    #[must_use]
    pub fn for_comparison() -> Self {
        Self {
            stretches: Some(Stretches::default()),
            ..Self::default()
        }
    }

    /// A collector of the calls that a descent leaves, with the tracer's cost as calibrated: each
    /// is taken as a fault is elsewhere.
    #[must_use]
    pub fn descending(steps: Vec<Step>, calibration: Calibration) -> Self {
        Self {
            descent: Some(Descent::new(steps, calibration.per_call_ns)),
            ..Self::default()
        }
    }

    /// What the returned value of `handle_mm_fault` says of the fault's kind, where the trace has
    /// it (`funcgraph-retval`) and no function would tell.
    fn returned_class(&self, tree: &CallTree, root: usize) -> Option<Class> {
        let end = tree.nodes[root].end as usize;
        let is_handler = |node: usize| {
            let role = self.roles.of(tree.nodes[node].name);
            (root..end).contains(&node) && role.layer == Some(Layer::MmFault)
        };
        let mut returned = tree
            .details
            .iter()
            .filter(|detail| is_handler(detail.node as usize));
        class_returned(returned.find_map(|detail| detail.returned)?)
    }

    fn is_slow_path(&self, name: u32) -> bool {
        let role = self.roles.of(name);
        role.signs.has(Signs::SCHEDULE) || role.lock == Some(Lock::Rwsem)
    }

    /// Complete faults in total.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.checks.faults
    }

    /// A call at the top level that holds no fault: a lock helper, a system call.
    fn other(&mut self, tree: &CallTree) {
        let Some(root) = tree.root() else { return };
        self.others
            .entry(root.name)
            .or_default()
            .record(root.span.ns);
        if self.roles.of(root.name).layer == Some(Layer::Lock)
            && let Some(pid) = tree.pid
        {
            *self.pending_locks.entry(pid).or_default() += root.span.ns;
        }
        let lock = match self.roles.of(root.name).lock {
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

    /// Collects the nodes that are the fault's own work, and what is to be taken out.
    #[inline]
    fn walk(&mut self, tree: &CallTree, root: usize, scratch: &mut Scratch) -> u64 {
        scratch.tokens.clear();
        scratch.kept.clear();
        scratch.cuts.clear();
        scratch.open.clear();
        let end = tree.nodes[root].end as usize;
        let top = tree.nodes[root].depth;
        let any_marked = !tree.interrupts.is_empty();
        let mut hash = 0_u64;
        let mut at = root;
        while at < end {
            let node = &tree.nodes[at];
            let role = self.roles.of(node.name);
            // A call at a place for interrupts alone is one, unless it is known to be a fault's.
            let by_place = any_marked
                && is_marked(&tree.interrupts, at)
                && role.layer.is_none()
                && role.signs.without(Signs::INSIDE) == Signs::default();
            if role.interrupt || by_place {
                self.by_place += u64::from(!role.interrupt);
                self.interrupt(tree, at, scratch);
                at = node.end as usize;
                continue;
            }
            let token = Token::new(node.name, node.depth - top);
            hash = mix(hash, token);
            scratch.tokens.push(token);
            let own = self.own_time(node);
            scratch.keep(at, node, own);
            at += 1;
            if let Some(wait) = role.wait
                && gives_up_unseen(tree, at - 1, role)
            {
                scratch.cut(place(at - 1), node.span.ns, Kind::Off(wait), From::Whole);
                at = node.end as usize;
            }
        }
        for off in &tree.off_cpu {
            if (root..end).contains(&(off.node as usize)) {
                // Both ends of the wait are printed in microseconds.
                if tree.nodes[off.node as usize].span.ns + 2000 < off.ns {
                    // Durations leave sleep out (`nosleep-time`): there is nothing to take out.
                    self.sleep_signs.1 += 1;
                    continue;
                }
                self.sleep_signs.0 += 1;
                let from = match scratch.kept_at(off.node) {
                    true => From::Own,
                    false => From::Gone,
                };
                scratch.cut(off.node, off.ns, Kind::Off(off.wait), from);
            }
        }
        if self.checks.faults < ALL_PROBED || self.checks.faults.is_multiple_of(PROBED_EVERY) {
            self.note_probe(tree, scratch);
        }
        hash
    }

    /// Time in a call but in none that it made. It can't be negative by more than the printed
    /// precision of the call.
    #[inline]
    fn own_time(&mut self, node: &Node) -> u64 {
        if node.children_ns > node.span.ns + u64::from(node.span.tick) {
            self.checks.violations += 1;
        }
        node.span.ns.saturating_sub(node.children_ns)
    }

    #[inline]
    fn note_probe(&mut self, tree: &CallTree, scratch: &Scratch) {
        for kept in &scratch.kept {
            let node = &tree.nodes[kept.node as usize];
            self.probe.record(node.name, kept.direct_calls, kept.own);
        }
    }

    /// Takes an interrupt out; while its task was put aside, it did not run.
    #[cold]
    fn interrupt(&mut self, tree: &CallTree, at: usize, scratch: &mut Scratch) {
        let mut away = tree.off_cpu_inside(at);
        let end = tree.nodes[at].end as usize;
        let mut inside = at;
        while let Some(node) = tree.nodes[..end].get(inside) {
            let role = self.roles.of(node.name);
            inside += 1;
            if let Some(wait) = role.wait
                && gives_up_unseen(tree, inside - 1, role)
            {
                let ns = node.span.ns;
                scratch.cut(place(inside - 1), ns, Kind::Off(wait), From::Gone);
                away += ns;
                inside = node.end as usize;
            }
        }
        let ns = tree.nodes[at].span.ns.saturating_sub(away);
        scratch.cut(place(at), ns, Kind::Interrupt, From::Gone);
    }

    /// Takes interrupts and time off the CPU out of the calls that they struck.
    #[cold]
    fn take_out(&mut self, tree: &CallTree, scratch: &mut Scratch) {
        let Scratch { cuts, kept, .. } = scratch;
        for cut in cuts.iter_mut() {
            let is_around = |kept: &Timed| {
                kept.node <= cut.node && cut.node < tree.nodes[kept.node as usize].end
            };
            if cut.from == From::Own
                && let Some(innermost) = kept.iter_mut().rev().find(|kept| is_around(kept))
            {
                // Both ends of the wait are printed in microseconds.
                let tick = u64::from(tree.nodes[innermost.node as usize].span.tick) + 1000;
                self.checks.violations += u64::from(cut.ns > innermost.own + tick);
                cut.ns = cut.ns.min(innermost.own);
                innermost.own -= cut.ns;
            }
            for kept in kept.iter_mut().filter(|kept| is_around(kept)) {
                kept.on = kept.on.saturating_sub(cut.ns);
                if cut.kind != Kind::Interrupt {
                    kept.waited = kept.waited.saturating_add(cut.ns);
                }
            }
        }
        for cut in cuts.iter().filter(|cut| cut.from == From::Whole) {
            for kept in kept.iter_mut().filter(|kept| kept.node == cut.node) {
                kept.own = 0;
            }
        }
    }

    /// The shape with these calls, which has no faults if it is new.
    pub(super) fn shape_of(&mut self, tokens: &[Token]) -> usize {
        let hash = tokens.iter().fold(0, |hash, token| mix(hash, *token));
        match self.shapes.find(hash, tokens, None) {
            Some(shape) => shape,
            None => self.new_shape(hash, tokens, None),
        }
    }

    /// Faults with the root alone that did not serve as the measure.
    pub(super) fn unmeasured(&self, calibration: &Calibration) -> u64 {
        match self.costs.is_empty() && calibration.source != Source::RootOnly {
            true => self.root_only.count(),
            false => self.unmeasured,
        }
    }

    /// Says where the shapes that come next are from.
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

    #[cold]
    fn new_shape(&mut self, hash: u64, tokens: &[Token], of: Option<Class>) -> usize {
        let (class, places, handler) = describe(tokens, &self.roles);
        let class = of.unwrap_or(class);
        let full = self.shapes.all.len() >= MOST_SHAPES;
        let shape = Shape {
            contexts: self.contexts_of(class, tokens),
            tokens: tokens.into(),
            class,
            source: self.shapes.source,
            places: places.into(),
            handler,
            latency: Default::default(),
            cells: Cells::default(),
            own_added: Box::default(),
            locks: super::shapes::locks(tokens, &self.roles).into(),
            elapsed: Tally::default(),
            lock_before: Tally::default(),
            split: Split::default(),
            interrupts: 0,
        };
        self.shapes.beyond_limit += u64::from(full);
        self.shapes.add(hash, shape)
    }

    fn contexts_of(&mut self, class: super::Class, tokens: &[Token]) -> Box<[u32]> {
        let mut open: Vec<(u16, u32)> = Vec::new();
        let mut found = Vec::with_capacity(tokens.len());
        for token in tokens {
            while open
                .last()
                .is_some_and(|(depth, _)| *depth >= token.depth())
            {
                open.pop();
            }
            let context = match open.last() {
                Some(&(_, parent)) => self.contexts.child(parent, token.name()),
                None => self.contexts.root(class, token.name()),
            };
            open.push((token.depth(), context));
            found.push(context);
        }
        found.into()
    }

    /// A collector that keeps each fault until it is asked for.
    pub(super) fn telling() -> Self {
        Self {
            told: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// The faults since the last time.
    pub(super) fn take_told(&mut self) -> Vec<Told> {
        self.told.as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn tell(&mut self, shape: usize, total: u64, lock_before: Option<u64>, scratch: &Scratch) {
        let (Some(told), Some(root)) = (&mut self.told, scratch.kept.first()) else {
            return;
        };
        let places = self.shapes.all[shape].places.iter();
        let locks = places.filter(|place| place.layer == Layer::Lock);
        let lock = locks.map(|place| scratch.kept[place.node as usize]);
        let cut = |wanted: fn(Kind) -> bool| {
            let cuts = scratch.cuts.iter().filter(|cut| wanted(cut.kind));
            cuts.map(|cut| cut.ns).sum()
        };
        told.push(Told {
            shape,
            total,
            on: root.on,
            own: root.own,
            direct_calls: root.direct_calls,
            interrupts: cut(|kind| kind == Kind::Interrupt),
            runnable: cut(|kind| kind == Kind::Off(Wait::Runnable)),
            blocked: cut(|kind| kind == Kind::Off(Wait::Blocked)),
            unknown: cut(|kind| kind == Kind::Off(Wait::Estimated)),
            lock_before: lock_before.unwrap_or(0),
            lock: lock.map(|kept| kept.on.saturating_add(kept.waited)).sum(),
        });
    }

    fn add_times(&mut self, shape: usize, scratch: &Scratch) {
        let durations = scratch.kept.iter().map(|kept| kept.on);
        self.call_times
            .record(shape, &self.shapes.all[shape], durations);
    }

    #[inline]
    fn add(&mut self, shape: usize, total: u64, scratch: &Scratch) -> LayerTimes {
        let shape = &mut self.shapes.all[shape];
        let Some(root) = scratch.kept.first() else {
            return LayerTimes::default();
        };
        let latency = u128::from(root.on);
        for (kept, &context) in scratch.kept.iter().zip(&shape.contexts) {
            let context = &mut self.contexts.all[context as usize];
            context.calls += 1;
            context.total += u128::from(kept.on);
            context.own += u128::from(kept.own);
            context.own_below_1us += u64::from(kept.own < 1000);
            context.own_by_fault += u128::from(kept.own) * latency;
            context.total_by_fault += u128::from(kept.on) * latency;
            context.direct_calls += u64::from(kept.direct_calls);
        }
        shape.elapsed.record(root.on.saturating_add(root.waited));
        add_split(&mut shape.split, total, root.own, scratch);
        add_latencies(shape, scratch)
    }

    /// Notes what comparisons need: which fault it was among others, and how slow.
    #[inline]
    fn remember(
        &mut self,
        shape: usize,
        end_ns: Option<u64>,
        lock: u64,
        scratch: &Scratch,
        layers: LayerTimes,
    ) {
        let Some(root) = scratch.kept.first() else {
            return;
        };
        let waits = waits_of(&scratch.cuts, lock);
        let own = scratch.kept.iter().map(|kept| kept.own);
        let found = &mut self.shapes.all[shape];
        found.cells.add(root.on, waits, own.clone());
        if let Some(stretches) = &mut self.stretches {
            let contexts = found.contexts.iter().copied();
            stretches.own_times(contexts.zip(own));
            stretches.fault(&self.contexts.all);
        }
        for &(node, lock) in &found.locks {
            let kept = scratch.kept[node as usize];
            let (name, ns) = (found.tokens[node as usize].name(), kept.on + kept.waited);
            self.locks.got(lock, name, true, ns, kept.waited > 0);
        }
        let layers = layers.into_iter().flatten();
        self.log.add(shape, end_ns, root.on, waits, layers);
    }
}

/// Time by layer, for layers that a fault has.
type LayerTimes = [Option<u64>; Layer::ALL.len()];

/// One more call in the hash of a shape.
#[inline]
fn mix(hash: u64, token: Token) -> u64 {
    (hash.rotate_left(23) ^ token.0).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Whether a call is an interrupt's by arrow or place.
fn is_marked(interrupts: &[u32], node: usize) -> bool {
    u32::try_from(node).is_ok_and(|node| interrupts.binary_search(&node).is_ok())
}

fn place(node: usize) -> u32 {
    u32::try_from(node).unwrap_or(u32::MAX)
}

/// A call that only looks whether others want the CPU takes well below a microsecond.
const LONGEST_LOOK_NS: u64 = 10_000;

/// Whether a task gave up the CPU in a call, and nothing in it tells for how long.
fn gives_up_unseen(tree: &CallTree, at: usize, role: Role) -> bool {
    let node = &tree.nodes[at];
    let is_sure = role.signs.has(Signs::SCHEDULE);
    let is_long = node.end as usize == at + 1 && node.span.ns > LONGEST_LOOK_NS;
    (is_sure || is_long) && !is_switch_seen(tree, at)
}

/// Whether the trace shows the switch inside a call of `schedule()`.
fn is_switch_seen(tree: &CallTree, node: usize) -> bool {
    let range = node..tree.nodes[node].end as usize;
    let mut switches = tree.off_cpu.iter();
    switches.any(|off| range.contains(&(off.node as usize)))
}

fn add_latencies(shape: &mut Shape, scratch: &Scratch) -> LayerTimes {
    let mut by_layer = LayerTimes::default();
    for place in &shape.places {
        let sum = by_layer[place.layer as usize].get_or_insert(0);
        let kept = scratch.kept[place.node as usize];
        *sum += match place.layer {
            Layer::Lock | Layer::Wait => kept.on.saturating_add(kept.waited),
            _ => kept.on,
        };
    }
    for (tally, latency) in shape.latency.iter_mut().zip(by_layer) {
        if let Some(latency) = latency {
            tally.record(latency);
        }
    }
    by_layer
}
