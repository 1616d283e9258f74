//! Adds a walked fault to the sums: of its shape, its layers, the call paths, the log.

use super::super::cells::Cells;
use super::super::layer::Layer;
use super::super::shapes::{MOST_SHAPES, Shape, Split, Token, describe, locks};
use super::super::signature::Class;
use super::super::tally::Tally;
use super::scratch::{Kind, Scratch, add_split, waits_of};
use super::{Collector, KeptFault};
use pagewise_formats::function_graph::Wait;

impl Collector {
    #[cold]
    pub(super) fn new_shape(&mut self, hash: u64, tokens: &[Token], of: Option<Class>) -> usize {
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
            locks: locks(tokens, &self.roles).into(),
            elapsed: Tally::default(),
            lock_before: Tally::default(),
            split: Split::default(),
            interrupts: 0,
        };
        self.shapes.beyond_limit += u64::from(full);
        self.shapes.add(hash, shape)
    }

    pub(super) fn contexts_of(&mut self, class: Class, tokens: &[Token]) -> Box<[u32]> {
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

    pub(super) fn tell(
        &mut self,
        shape: usize,
        total: u64,
        lock_before: Option<u64>,
        scratch: &Scratch,
    ) {
        let (Some(faults), Some(root)) = (&mut self.kept_faults, scratch.kept.first()) else {
            return;
        };
        let places = self.shapes.all[shape].places.iter();
        let locks = places.filter(|place| place.layer == Layer::Lock);
        let lock = locks.map(|place| scratch.kept[place.node as usize]);
        let cut = |wanted: fn(Kind) -> bool| {
            let cuts = scratch.cuts.iter().filter(|cut| wanted(cut.kind));
            cuts.map(|cut| cut.ns).sum()
        };
        faults.push(KeptFault {
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

    pub(super) fn add_times(&mut self, shape: usize, scratch: &Scratch) {
        let durations = scratch.kept.iter().map(|kept| kept.on);
        self.call_times
            .record(shape, &self.shapes.all[shape], durations);
    }

    #[inline]
    pub(super) fn add(&mut self, shape: usize, total: u64, scratch: &Scratch) -> LayerTimes {
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

    /// Records what comparisons need: the fault's position in the sequence, and how slow it was.
    #[inline]
    pub(super) fn remember(
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

/// Time by layer, for the layers that a fault has.
pub(super) type LayerTimes = [Option<u64>; Layer::ALL.len()];

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
