//! Durations of single calls by call path.
//!
//! The tracer's cost inside a call depends on how many calls it makes, which differs between
//! faults; so durations are kept apart by that number, and corrected exactly once the cost is
//! known.

use super::probe::Calibration;
use super::shapes::{Token, end_of};
use super::tally::Tally;
use pagewise_model::histogram::Histogram;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Distributions by call path and number of calls inside.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct CallTimes {
    /// Faults whose calls were recorded.
    pub faults: u64,
    slots: Vec<Slot>,
    #[serde(skip)]
    by_key: FxHashMap<(u32, u32), u32>,
    /// For each shape met, the slot of each of its calls.
    #[serde(skip)]
    by_shape: FxHashMap<usize, Box<[u32]>>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Slot {
    context: u32,
    inside: u32,
    times: Tally,
}

/// The durations of the calls on one path.
#[derive(Clone, Debug, Default)]
pub(super) struct Durations {
    pub raw: Histogram,
    pub corrected: Histogram,
}

impl CallTimes {
    /// Adds the calls of a fault: their tokens, call paths and durations, all in the same order.
    pub(super) fn record(
        &mut self,
        shape: usize,
        tokens: &[Token],
        contexts: &[u32],
        durations: impl Iterator<Item = u64>,
    ) {
        if !self.by_shape.contains_key(&shape) {
            let slots = (0..).zip(contexts).map(|(node, &context)| {
                let inside = end_of(tokens, node) - node - 1;
                self.slot(context, u32::try_from(inside).unwrap_or(u32::MAX))
            });
            let slots = slots.collect();
            self.by_shape.insert(shape, slots);
        }
        for (&slot, duration) in self.by_shape[&shape].iter().zip(durations) {
            self.slots[slot as usize].times.record(duration);
        }
        self.faults += 1;
    }

    /// Whether all call paths are among so many.
    pub(super) fn fits(&self, contexts: usize) -> bool {
        let mut slots = self.slots.iter();
        slots.all(|slot| (slot.context as usize) < contexts && slot.times.is_sound())
    }

    /// Adds another trace's; `contexts` says where its call paths are here.
    pub(super) fn add(&mut self, other: &Self, contexts: &[Option<u32>]) {
        self.faults += other.faults;
        for theirs in &other.slots {
            if let Some(context) = contexts[theirs.context as usize] {
                let slot = self.slot(context, theirs.inside);
                self.slots[slot as usize].times.merge(&theirs.times);
            }
        }
    }

    fn slot(&mut self, context: u32, inside: u32) -> u32 {
        let next = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let slot = *self.by_key.entry((context, inside)).or_insert(next);
        if slot == next {
            self.slots.push(Slot {
                context,
                inside,
                times: Tally::default(),
            });
        }
        slot
    }

    /// The durations by call path; `is_root` tells the paths of outermost functions, whose own
    /// tracing stays in.
    pub(super) fn by_context(
        &self,
        contexts: usize,
        is_root: impl Fn(u32) -> bool,
        calibration: Calibration,
    ) -> Vec<Durations> {
        let mut found = vec![Durations::default(); contexts];
        for slot in &self.slots {
            let own = match is_root(slot.context) {
                true => 0.0,
                false => calibration.inside_ns,
            };
            let cost = calibration.cost(slot.inside as usize) + own;
            let durations = &mut found[slot.context as usize];
            durations.raw.merge(&slot.times.histogram());
            durations.corrected.merge(&slot.times.shifted(cost));
        }
        found
    }
}
