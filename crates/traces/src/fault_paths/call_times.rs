//! Durations of single calls by call path and by the tree below them.
//!
//! The tracer's cost inside a call depends on how many calls it makes, which differs between
//! faults; so durations are stored separately by that number, and corrected exactly once the cost
//! is known.

use super::contexts::Context;
use super::probe::Costs;
use super::shapes::Shape;
use super::tally::Tally;
use super::trees::Forest;
use pagewise_model::histogram::Histogram;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Distributions by call path, tree below and number of calls inside.
#[derive(Clone, Debug, Default)]
pub(super) struct CallTimes {
    /// Faults whose calls were recorded.
    pub faults: u64,
    forest: Forest,
    slots: Vec<Slot>,
    by_key: FxHashMap<Key, u32>,
    /// By shape: the slot of each of its calls; empty until the shape occurs.
    by_shape: Vec<Box<[u32]>>,
}

/// The properties shared by calls with a common distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    context: u32,
    tree: u32,
    inside: u32,
}

#[derive(Clone, Debug)]
struct Slot {
    key: Key,
    /// The first of these calls: shape and node.
    first: (u32, u32),
    times: Tally,
}

/// The stored form: a slot's key follows from any of its calls.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredTimes {
    faults: u64,
    /// Shape, node, times.
    slots: Vec<(u32, u32, Tally)>,
}

/// The durations of some calls.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    pub raw: Histogram,
    pub corrected: Histogram,
}

impl CallTimes {
    /// Adds the calls of a fault: their durations in the order of the shape's calls.
    pub(super) fn record(
        &mut self,
        at: usize,
        shape: &Shape,
        durations: impl Iterator<Item = u64>,
    ) {
        self.meet(at, shape);
        for (&slot, duration) in self.by_shape[at].iter().zip(durations) {
            self.slots[slot as usize].times.record(duration);
        }
        self.faults += 1;
    }

    /// The trees so far.
    pub(super) fn forest(&self) -> &Forest {
        &self.forest
    }

    fn meet(&mut self, at: usize, shape: &Shape) {
        if at >= self.by_shape.len() {
            self.by_shape.resize(at + 1, Box::default());
        }
        if !self.by_shape[at].is_empty() {
            return;
        }
        let folded = self.forest.fold(&shape.tokens);
        let first = u32::try_from(at).unwrap_or(u32::MAX);
        let calls = folded.trees.iter().zip(&folded.ends).zip(&shape.contexts);
        let slots = (0..).zip(calls).map(|(node, ((&tree, &end), &context))| {
            let key = Key {
                context,
                tree,
                inside: end - node - 1,
            };
            let next = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
            let slot = *self.by_key.entry(key).or_insert(next);
            if slot == next {
                self.slots.push(Slot {
                    key,
                    first: (first, node),
                    times: Tally::default(),
                });
            }
            slot
        });
        self.by_shape[at] = slots.collect();
    }

    pub(super) fn stored(&self) -> StoredTimes {
        let slots = self.slots.iter();
        StoredTimes {
            faults: self.faults,
            slots: slots
                .map(|slot| (slot.first.0, slot.first.1, slot.times.clone()))
                .collect(),
        }
    }

    /// Adds another trace's durations; `shapes` maps its shapes to those here, in `all`.
    pub(super) fn add(&mut self, other: &StoredTimes, shapes: &[usize], all: &[Shape]) {
        self.faults += other.faults;
        for (shape, node, times) in &other.slots {
            let at = shapes[*shape as usize];
            self.meet(at, &all[at]);
            let slot = self.by_shape[at][*node as usize];
            self.slots[slot as usize].times.merge(times);
        }
    }

    /// The durations by call path. The tracing cost of outermost functions themselves is not
    /// subtracted.
    pub(super) fn by_context(&self, contexts: &[Context], costs: Costs<'_>) -> Vec<Durations> {
        let mut found = vec![Durations::default(); contexts.len()];
        for slot in &self.slots {
            let durations = &mut found[slot.key.context as usize];
            durations.add(slot, contexts, costs);
        }
        found
    }

    /// The durations by tree, of `trees` in all.
    pub(super) fn by_tree(
        &self,
        trees: usize,
        wanted: &[u32],
        contexts: &[Context],
        costs: Costs<'_>,
    ) -> Vec<Durations> {
        let mut places = vec![usize::MAX; trees];
        for (place, &tree) in wanted.iter().enumerate() {
            places[tree as usize] = place;
        }
        let mut found = vec![Durations::default(); wanted.len()];
        for slot in &self.slots {
            if let Some(durations) = found.get_mut(places[slot.key.tree as usize]) {
                durations.add(slot, contexts, costs);
            }
        }
        found
    }
}

impl StoredTimes {
    /// Whether every slot refers to an existing call; `calls` are the numbers of calls by shape.
    pub(super) fn fits(&self, calls: &[usize]) -> bool {
        self.slots.iter().all(|(shape, node, times)| {
            let calls = calls.get(*shape as usize).copied().unwrap_or(0);
            (*node as usize) < calls && times.is_sound()
        })
    }
}

impl Durations {
    fn add(&mut self, slot: &Slot, contexts: &[Context], costs: Costs<'_>) {
        let context = &contexts[slot.key.context as usize];
        let calibration = costs.calibration(context.source);
        let is_root = context.parent == slot.key.context;
        let own = if is_root { 0.0 } else { calibration.inside_ns };
        let cost = calibration.cost(slot.key.inside as usize) + own;
        slot.times.add_to(&mut self.raw);
        self.corrected.merge(&slot.times.shifted(cost));
    }
}
