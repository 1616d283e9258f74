//! Which calls are an interrupt's, learned from where they stand.
//!
//! Trees are held back until enough of them have been seen, [`BATCH`] calls or all that the
//! trace has, and are handed on in their order with the interrupts in them marked. Names known
//! beforehand ([`is_interrupt`]) are the starting point; the others are recognised by three
//! signs, none of which asks for a name:
//!
//! ```text
//! off level    frames one level off at the entry or the exit of a call (see [`super::task`]) are
//!              an interrupt's, whatever they are called, and so is what follows what there
//! beside       a function that is only ever met right before or behind an interrupt's frame
//! put aside    a task that is preempted runs the scheduler inside whatever was interrupted
//! ```
//!
//! Against them speaks that a function has a caller of its own: one that calls it time and again.
//! An interrupt strikes anywhere, and no function as a rule.

use super::builder::Sink;
use super::interrupts::is_interrupt;
use super::line::{Line, Span, Tail};
use super::names::Names;
use super::scheduling::{Part, Parts};
use super::tree::CallTree;
use crate::trace_note::TraceNote;
use rustc_hash::{FxHashMap, FxHashSet};

/// Calls that are held back at a time, 8 MiB worth.
const BATCH: usize = 1 << 18;
/// What a tree weighs beside its calls.
const TREE: usize = 8;
/// Learning one name may show another; longer tails of interrupts than this were never met.
const ROUNDS: usize = 8;
/// Trees whose memory is kept.
const KEPT_TREES: usize = 4096;
/// Times that a function has to be met at an interrupt's place.
const LEAST_MET: u32 = 3;

/// Hands trees on to `sink` once the interrupts in them are known.
pub(in crate::formats) struct Settling<'s, S> {
    pub sink: &'s mut S,
    held: Vec<CallTree>,
    weight: usize,
    spare: Vec<CallTree>,
    learned: Learned,
}

impl<'s, S: Sink> Settling<'s, S> {
    pub fn new(sink: &'s mut S) -> Self {
        Self {
            sink,
            held: Vec::new(),
            weight: 0,
            spare: Vec::new(),
            learned: Learned::default(),
        }
    }

    /// Hands on what is still held back.
    pub fn finish(&mut self, names: &Names) {
        self.learned.study(&self.held, names);
        for mut tree in self.held.drain(..) {
            self.learned.mark(&mut tree);
            let used = self.sink.keep(tree, names);
            if self.spare.len() < KEPT_TREES {
                self.spare.extend(used);
            }
        }
        self.weight = 0;
    }

    fn hold(&mut self, tree: CallTree, names: &Names) {
        self.weight += tree.nodes.len() + TREE;
        self.held.push(tree);
        if self.weight >= BATCH {
            self.finish(names);
        }
    }
}

impl<S: Sink> Sink for Settling<'_, S> {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        let mut copy = self.spare.pop().unwrap_or_default();
        copy.copy_from(tree);
        self.hold(copy, names);
    }

    fn keep(&mut self, tree: CallTree, names: &Names) -> Option<CallTree> {
        self.hold(tree, names);
        self.spare.pop()
    }

    fn bare_close(&mut self, tail: Tail, depth: u32, span: Option<Span>) {
        self.sink.bare_close(tail, depth, span);
    }

    fn event(&mut self, line: &Line<'_>, text: &[u8]) {
        self.sink.event(line, text);
    }

    fn note(&mut self, note: TraceNote) {
        self.sink.note(note);
    }
}

/// What is known of the names of a trace, by id.
#[derive(Default)]
struct Learned {
    /// Known to be an interrupt's.
    sure: Vec<bool>,
    /// A name begins the scheduler's part of a switch: `rcu_note_context_switch()`.
    begins_switch: Vec<bool>,
    parts: Parts,
    /// What batches before have told.
    before: Evidence,
}

/// What the trees of some batches tell of functions that are not known to be an interrupt's.
#[derive(Clone, Default)]
struct Evidence {
    /// Calls by name, interrupts' left out.
    calls: Vec<u32>,
    /// Calls off level by name.
    off_level: FxHashMap<u32, u32>,
    /// Calls right beside an interrupt's frame, by name and caller.
    beside: FxHashMap<(u32, u32), u32>,
    /// Calls of names that one of these tells of, by name and caller.
    callers: FxHashMap<(u32, u32), u32>,
    /// Which name follows which off level.
    pairs: FxHashSet<(u32, u32)>,
    /// Names that begin and that end a row of frames off level.
    begins: FxHashSet<u32>,
    ends: FxHashSet<u32>,
}

/// A call among those of one caller.
#[derive(Clone, Copy)]
struct Sibling {
    node: u32,
    name: u32,
    sure: bool,
    /// One level off, or behind an arrow.
    marked: bool,
}

impl Learned {
    fn know(&mut self, names: &Names) {
        for (id, _) in names.iter().skip(self.sure.len()) {
            let base = names.base(id);
            self.sure.push(is_interrupt(base));
            self.begins_switch.push(base == "rcu_note_context_switch");
        }
        self.parts.learn(names);
    }

    /// Learns what the trees of a batch tell.
    fn study(&mut self, trees: &[CallTree], names: &Names) {
        self.know(names);
        for _ in 0..ROUNDS {
            let mut evidence = self.before.clone();
            evidence.calls.resize(names.len(), 0);
            for tree in trees {
                self.observe(tree, &mut evidence);
            }
            self.observe_callers(trees, &mut evidence);
            let new: Vec<u32> = self.convicted(&evidence);
            for &name in &new {
                self.sure[name as usize] = true;
            }
            if new.is_empty() {
                self.before = evidence;
                return;
            }
        }
    }

    /// Whether any call of a tree is an interrupt's for sure.
    fn has_any(&self, tree: &CallTree) -> bool {
        let mut nodes = tree.nodes.iter();
        !tree.interrupts.is_empty() || nodes.any(|node| self.sure[node.name as usize])
    }

    fn observe(&self, tree: &CallTree, evidence: &mut Evidence) {
        if !self.has_any(tree) {
            for node in &tree.nodes {
                evidence.calls[node.name as usize] += 1;
            }
            return;
        }
        self.each_caller(tree, |caller, row| {
            for call in row.iter().filter(|call| !call.sure && !call.marked) {
                evidence.calls[call.name as usize] += 1;
            }
            evidence.beside(caller, row);
            evidence.off_level(row);
        });
        if let Some(root) = tree.root() {
            evidence.calls[root.name as usize] += 1;
        }
    }

    /// Counts who calls the functions in question.
    fn observe_callers(&self, trees: &[CallTree], evidence: &mut Evidence) {
        let mut asked = vec![false; evidence.calls.len()];
        let beside = evidence.beside.keys().map(|&(name, _)| name);
        for name in beside.chain(evidence.off_level.keys().copied()) {
            asked[name as usize] = !self.sure[name as usize];
        }
        for tree in trees {
            if !tree.nodes.iter().any(|node| asked[node.name as usize]) {
                continue;
            }
            self.each_caller(tree, |caller, row| {
                for call in row.iter().filter(|call| !call.marked) {
                    if asked[call.name as usize] {
                        *evidence.callers.entry((call.name, caller)).or_default() += 1;
                    }
                }
            });
        }
    }

    /// Names that are an interrupt's by what was seen.
    fn convicted(&self, evidence: &Evidence) -> Vec<u32> {
        let mut beside: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
        for (&(name, _), &count) in &evidence.beside {
            let (met, callers) = beside.entry(name).or_default();
            *met += count;
            *callers += 1;
        }
        let only_beside = beside
            .into_iter()
            .filter(|&(name, (met, callers))| {
                met >= LEAST_MET && callers >= 2 && met >= evidence.calls[name as usize]
            })
            .map(|(name, _)| name);
        let off_level = evidence.off_level.iter();
        // Of a hundred interrupts, six or more strike where their frames are off level.
        let off_level = off_level
            .filter(|&(&name, &met)| met >= 2 && met >= evidence.calls[name as usize] / 50)
            .map(|(&name, _)| name);
        let names = only_beside.chain(off_level).filter(|&name| {
            let is_known = self.sure[name as usize] || self.begins_switch[name as usize];
            !is_known && self.parts.known(name) == Part::None && !evidence.has_caller(name)
        });
        let mut names: Vec<u32> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Hands each caller that is no interrupt's to `visit`, with all it calls in order.
    fn each_caller(&self, tree: &CallTree, mut visit: impl FnMut(u32, &[Sibling])) {
        let mut row = Vec::new();
        let mut at = 0;
        while let Some(node) = tree.nodes.get(at) {
            if self
                .sibling(tree, at)
                .is_none_or(|call| call.sure || call.marked)
                && at > 0
            {
                at = node.end as usize;
                continue;
            }
            row.clear();
            let mut child = at + 1;
            while child < node.end as usize {
                let Some(call) = self.sibling(tree, child) else {
                    break;
                };
                row.push(call);
                child = (tree.nodes[child].end as usize).max(child + 1);
            }
            if !row.is_empty() {
                visit(node.name, &row);
            }
            at += 1;
        }
    }

    fn sibling(&self, tree: &CallTree, at: usize) -> Option<Sibling> {
        let name = tree.nodes.get(at)?.name;
        let node = u32::try_from(at).ok()?;
        Some(Sibling {
            node,
            name,
            sure: self.sure[name as usize],
            marked: !tree.interrupts.is_empty() && tree.interrupts.binary_search(&node).is_ok(),
        })
    }

    /// Marks the interrupts of a tree.
    fn mark(&self, tree: &mut CallTree) {
        let is_back = |name: u32| self.parts.known(name) == Part::Back;
        if !self.has_any(tree) && !tree.nodes.iter().any(|node| is_back(node.name)) {
            return;
        }
        let mut found: Vec<u32> = Vec::new();
        self.each_caller(tree, |caller, row| {
            let mut is: Vec<bool> = row.iter().map(|call| call.sure || call.marked).collect();
            self.put_aside(caller, row, &mut is);
            self.extend(row, &mut is);
            let marked = row.iter().zip(is).filter(|(_, is)| *is);
            found.extend(marked.map(|(call, _)| call.node));
        });
        tree.interrupts.extend(found);
        tree.interrupts.sort_unstable();
        tree.interrupts.dedup();
    }

    /// Adds what is known to follow, and to precede, an interrupt's frames.
    fn extend(&self, row: &[Sibling], is: &mut [bool]) {
        let seen = &self.before;
        for next in 1..row.len() {
            let (a, b) = (row[next - 1].name, row[next].name);
            let goes_on = !seen.ends.contains(&a) && seen.pairs.contains(&(a, b));
            is[next] |= is[next - 1] && goes_on;
        }
        for next in (1..row.len()).rev() {
            let (a, b) = (row[next - 1].name, row[next].name);
            let came_on = !seen.begins.contains(&b) && seen.pairs.contains(&(a, b));
            is[next - 1] |= is[next] && came_on;
        }
    }

    /// Adds the scheduler's calls in a function that is not the scheduler's: an interrupt has put
    /// the task aside. One that takes itself off the run queue does so of its own.
    fn put_aside(&self, caller: u32, row: &[Sibling], is: &mut [bool]) {
        if self.parts.known(caller) != Part::None {
            return;
        }
        let mut begun = None;
        for (place, call) in row.iter().enumerate() {
            match self.parts.known(call.name) {
                Part::Dequeue => begun = None,
                Part::Back => {
                    if let Some(begun) = begun.take() {
                        is[begun..=place].fill(true);
                    }
                }
                _ if self.begins_switch[call.name as usize] => begun = Some(place),
                _ => {}
            }
        }
    }
}

impl Evidence {
    fn beside(&mut self, caller: u32, row: &[Sibling]) {
        let is = |place: Option<usize>| {
            let call = place.and_then(|place| row.get(place));
            call.is_some_and(|call| call.sure || call.marked)
        };
        for (place, call) in row.iter().enumerate() {
            let is_beside = is(place.checked_sub(1)) || is(Some(place + 1));
            if !is(Some(place)) && is_beside {
                *self.beside.entry((call.name, caller)).or_default() += 1;
            }
        }
    }

    fn off_level(&mut self, row: &[Sibling]) {
        let is_marked = |place: Option<usize>| {
            let call = place.and_then(|place| row.get(place));
            call.filter(|call| call.marked)
        };
        for (place, call) in row.iter().enumerate().filter(|(_, call)| call.marked) {
            *self.off_level.entry(call.name).or_default() += 1;
            match is_marked(place.checked_sub(1)) {
                Some(last) => drop(self.pairs.insert((last.name, call.name))),
                None => drop(self.begins.insert(call.name)),
            }
            if is_marked(Some(place + 1)).is_none() {
                self.ends.insert(call.name);
            }
        }
    }

    /// Whether a function has callers of its own: such as call it three times and more, and one
    /// time in five, and make a twentieth of its calls.
    fn has_caller(&self, name: u32) -> bool {
        let callers = self
            .callers
            .iter()
            .filter(|((called, _), _)| *called == name);
        let regular = callers.filter(|((_, caller), count)| {
            **count >= LEAST_MET && **count >= self.calls[*caller as usize] / 5
        });
        let regular: u32 = regular.map(|(_, count)| count).sum();
        regular >= LEAST_MET && regular >= self.calls[name as usize] / 20
    }
}
