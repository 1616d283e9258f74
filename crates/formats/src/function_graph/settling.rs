//! Which calls belong to interrupts, learned from their position.
//!
//! Trees are held back until enough of them have been seen, [`BATCH`] calls or all that the trace
//! has, and are then passed on in order with their interrupts marked. Names known beforehand
//! ([`is_interrupt`]) are the starting point; the others are recognised by three signs, none of
//! which depends on a name:
//!
//! ```text
//! off level    frames one level off at the entry or the exit of a call (see [`super::task`])
//!              belong to an interrupt, whatever their names, and so do their sequences
//! beside       a function that occurs only right before or after an interrupt's frame
//! put aside    a task that is preempted runs the scheduler inside whatever was interrupted
//! ```
//!
//! The counter-evidence is a caller of its own: a function that calls it time and again. An
//! interrupt strikes anywhere, and as a rule strikes no function repeatedly.

mod batch;

use super::builder::Sink;
use super::interrupts::is_interrupt;
use super::line::{Line, Span, Tail};
use super::names::Names;
use super::scheduling::{Part, Parts};
use super::tree::{CallTree, EMPTY};
use batch::{Batch, Calls};
use pagewise_model::trace_note::TraceNote;
use rustc_hash::{FxHashMap, FxHashSet};

/// Number of calls held back at a time: 8 MiB.
const BATCH: usize = 1 << 18;
/// Learning one name may reveal another; longer tails of interrupts than this were never observed.
const ROUNDS: usize = 8;
/// How often a function must be found at an interrupt's position.
const LEAST_MET: u32 = 3;

/// Hands trees on to `sink` once the interrupts in them are known.
pub(crate) struct Settling<'s, S> {
    pub sink: &'s mut S,
    held: Batch,
    weight: usize,
    learned: Learned,
    /// The current tree.
    tree: CallTree,
}

impl<'s, S: Sink> Settling<'s, S> {
    pub fn new(sink: &'s mut S) -> Self {
        Self {
            sink,
            held: Batch::default(),
            weight: 0,
            learned: Learned::default(),
            tree: CallTree::default(),
        }
    }

    /// Passes on what is still held back.
    pub fn finish(&mut self, names: &Names) {
        let met = self.learned.study(&self.held, names);
        for place in 0..self.held.len() {
            let met = match &met {
                Some(met) => met[place],
                None => self.learned.met(self.held.calls(place)),
            };
            self.held.take(place, &mut self.tree);
            self.learned.mark(&mut self.tree, met);
            self.sink.keep(&mut self.tree, names);
        }
        self.held.clear();
        self.weight = 0;
    }
}

impl<S: Sink> Sink for Settling<'_, S> {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.keep(&mut tree.clone(), names);
    }

    fn keep(&mut self, tree: &mut CallTree, names: &Names) {
        self.weight += tree.nodes.len() + EMPTY;
        self.held.push(tree);
        if self.weight >= BATCH {
            self.finish(names);
        }
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

/// What is known about the names of a trace, by id.
#[derive(Default)]
struct Learned {
    signs: Vec<Sign>,
    parts: Parts,
    /// The evidence of earlier batches.
    before: Evidence,
    memory: Memory,
}

/// What a name implies about its calls, as bits.
type Sign = u8;

/// They certainly belong to an interrupt.
const SURE: Sign = 1;
/// A task is back on a CPU: the end of a switch.
const BACK: Sign = 2;
/// The scheduler's part of a switch begins: `rcu_note_context_switch()`.
const BEGINS_SWITCH: Sign = 4;

/// Memory reused from tree to tree.
#[derive(Default)]
struct Memory {
    /// The calls around the current one.
    open: Vec<u32>,
    /// Callers whose calls are examined in a row.
    callers: Vec<u32>,
    row: Vec<Sibling>,
}

/// The evidence in the trees of some batches about functions that are not known to belong to
/// interrupts.
#[derive(Clone, Debug, Default, PartialEq)]
struct Evidence {
    /// Calls by name, without those of interrupts.
    calls: Vec<u32>,
    /// Calls off level by name.
    off_level: FxHashMap<u32, u32>,
    /// Calls right next to an interrupt's frame, by name and caller.
    beside: FxHashMap<(u32, u32), u32>,
    /// Calls of the names in these tables, by name and caller.
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
        self.parts.learn(names);
        for (id, _) in names.iter().skip(self.signs.len()) {
            let base = names.base(id);
            let sign = |is: bool, sign| if is { sign } else { 0 };
            let back = self.parts.known(id.0) == Part::Back;
            let begins = base == "rcu_note_context_switch";
            self.signs.push(
                sign(is_interrupt(base), SURE) | sign(back, BACK) | sign(begins, BEGINS_SWITCH),
            );
        }
    }

    fn has(&self, name: u32, sign: Sign) -> bool {
        self.signs[name as usize] & sign != 0
    }

    /// Learns from the trees of a batch. Returns the combined signs of the names of each tree,
    /// unless more was learned after the tree was examined.
    fn study(&mut self, trees: &Batch, names: &Names) -> Option<Vec<Sign>> {
        self.know(names);
        let mut memory = std::mem::take(&mut self.memory);
        let mut met = Vec::with_capacity(trees.len());
        for _ in 0..ROUNDS {
            let mut evidence = self.before.clone();
            evidence.calls.resize(names.len(), 0);
            met.clear();
            let each = trees.iter();
            met.extend(each.map(|tree| self.observe(tree, &mut evidence, &mut memory)));
            self.observe_callers(trees, &mut evidence, &mut memory.open);
            let new: Vec<u32> = self.convicted(&evidence);
            for &name in &new {
                self.signs[name as usize] |= SURE;
            }
            if new.is_empty() {
                self.before = evidence;
                self.memory = memory;
                return Some(met);
            }
        }
        self.memory = memory;
        None
    }

    /// The combined signs of the names of a tree.
    fn met(&self, tree: Calls<'_>) -> Sign {
        let nodes = tree.nodes.iter();
        nodes.fold(0, |met, node| met | self.signs[node.name as usize])
    }

    /// Adds the evidence of a tree, and returns the combined signs of its names.
    fn observe(&self, tree: Calls<'_>, evidence: &mut Evidence, memory: &mut Memory) -> Sign {
        let mut met = 0;
        for node in tree.nodes {
            met |= self.signs[node.name as usize];
            evidence.calls[node.name as usize] += 1;
        }
        if met & SURE != 0 || !tree.interrupts.is_empty() {
            for node in tree.nodes {
                evidence.calls[node.name as usize] -= 1;
            }
            self.observe_interrupted(tree, evidence, memory);
        }
        met
    }

    /// Adds the evidence of a tree with interrupts.
    fn observe_interrupted(&self, tree: Calls<'_>, evidence: &mut Evidence, memory: &mut Memory) {
        let Some(root) = tree.nodes.first() else {
            return;
        };
        evidence.calls[root.name as usize] += 1;
        let callers = &mut memory.callers;
        callers.clear();
        self.each_call(tree, &mut memory.open, |caller, call| match call {
            Sibling {
                sure: false,
                marked: false,
                name,
                ..
            } => evidence.calls[name as usize] += 1,
            _ => callers.push(caller),
        });
        self.each_row(tree, memory, |caller, row| {
            evidence.beside(caller, row);
            evidence.off_level(row);
        });
    }

    /// Counts the callers of the functions in question.
    fn observe_callers(&self, trees: &Batch, evidence: &mut Evidence, open: &mut Vec<u32>) {
        let mut asked = vec![false; evidence.calls.len()];
        let beside = evidence.beside.keys().map(|&(name, _)| name);
        for name in beside.chain(evidence.off_level.keys().copied()) {
            asked[name as usize] = !self.has(name, SURE);
        }
        if !asked.contains(&true) {
            return;
        }
        for tree in trees.iter() {
            if !tree.nodes.iter().any(|node| asked[node.name as usize]) {
                continue;
            }
            self.each_call(tree, open, |caller, call| {
                if asked[call.name as usize] && !call.marked {
                    let caller = tree.nodes[caller as usize].name;
                    *evidence.callers.entry((call.name, caller)).or_default() += 1;
                }
            });
        }
    }

    /// Names that belong to interrupts according to the evidence.
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
        // Of a hundred interrupts, six or more strike at a point where their frames are off level.
        let off_level = off_level
            .filter(|&(&name, &met)| met >= 2 && met >= evidence.calls[name as usize] / 50)
            .map(|(&name, _)| name);
        let names = only_beside.chain(off_level).filter(|&name| {
            let is_known = self.has(name, SURE | BEGINS_SWITCH);
            !is_known && self.parts.known(name) == Part::None && !evidence.has_caller(name)
        });
        let mut names: Vec<u32> = names.collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Passes the calls made by callers outside interrupts to `visit`, each with the index of its
    /// caller, or of the outermost call if it has no caller.
    fn each_call(&self, tree: Calls<'_>, open: &mut Vec<u32>, mut visit: impl FnMut(u32, Sibling)) {
        open.clear();
        open.push(0);
        let mut marked = tree.interrupts.iter().copied().peekable();
        let mut at = 1;
        while let (Some(node), Ok(place)) = (tree.nodes.get(at), u32::try_from(at)) {
            let is_over = |above: &mut u32| tree.nodes[*above as usize].end <= place;
            while open.len() > 1 && open.pop_if(is_over).is_some() {}
            while marked.next_if(|&interrupt| interrupt < place).is_some() {}
            let call = Sibling {
                node: place,
                name: node.name,
                sure: self.has(node.name, SURE),
                marked: marked.peek() == Some(&place),
            };
            visit(open.last().copied().unwrap_or(0), call);
            if call.sure || call.marked {
                at = (node.end as usize).max(at + 1);
                continue;
            }
            if node.end > place + 1 {
                open.push(place);
            }
            at += 1;
        }
    }

    /// Passes each of the recorded callers to `visit`, by name, with all its calls in order.
    fn each_row(
        &self,
        tree: Calls<'_>,
        memory: &mut Memory,
        mut visit: impl FnMut(u32, &[Sibling]),
    ) {
        let Memory { callers, row, .. } = memory;
        callers.sort_unstable();
        callers.dedup();
        for &caller in callers.iter() {
            let node = &tree.nodes[caller as usize];
            row.clear();
            let mut child = caller as usize + 1;
            while child < node.end as usize {
                let Some(call) = self.sibling(tree, child) else {
                    break;
                };
                row.push(call);
                child = (tree.nodes[child].end as usize).max(child + 1);
            }
            visit(node.name, row);
        }
    }

    fn sibling(&self, tree: Calls<'_>, at: usize) -> Option<Sibling> {
        let name = tree.nodes.get(at)?.name;
        let node = u32::try_from(at).ok()?;
        Some(Sibling {
            node,
            name,
            sure: self.has(name, SURE),
            marked: tree.interrupts.binary_search(&node).is_ok(),
        })
    }

    /// Marks the interrupts of a tree whose names have these combined signs.
    fn mark(&mut self, tree: &mut CallTree, met: Sign) {
        if met & (SURE | BACK) == 0 && tree.interrupts.is_empty() {
            return;
        }
        let mut memory = std::mem::take(&mut self.memory);
        let callers = &mut memory.callers;
        callers.clear();
        let calls = Calls {
            nodes: &tree.nodes,
            interrupts: &tree.interrupts,
        };
        self.each_call(calls, &mut memory.open, |caller, call| {
            if call.sure || call.marked || self.has(call.name, BACK) {
                callers.push(caller);
            }
        });
        let mut found: Vec<u32> = Vec::new();
        self.each_row(calls, &mut memory, |caller, row| {
            let mut is: Vec<bool> = row.iter().map(|call| call.sure || call.marked).collect();
            self.put_aside(caller, row, &mut is);
            self.extend(row, &mut is);
            let marked = row.iter().zip(is).filter(|(_, is)| *is);
            found.extend(marked.map(|(call, _)| call.node));
        });
        self.memory = memory;
        tree.interrupts.extend(found);
        tree.interrupts.sort_unstable();
        tree.interrupts.dedup();
    }

    /// Adds the calls known to follow, and to precede, an interrupt's frames.
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
    /// the task aside. A task that takes itself off the run queue does so on its own.
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
                _ if self.has(call.name, BEGINS_SWITCH) => begun = Some(place),
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

    /// Whether a function has callers of its own: those that call it three times or more, in at
    /// least a fifth of their calls, and make at least a twentieth of its calls.
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

#[cfg(test)]
mod tests;
