//! The distinct call trees of faults, each stored once.
//!
//! Faults repeat: a few hundred shapes cover a whole workload. Properties that depend on the
//! functions alone (class, layers, number of calls) are computed once per shape; a fault costs one
//! hash of its tree, one comparison and its sums.

use super::cells::Cells;
use super::layer::Layer;
use super::roles::Roles;
use super::signature::{Class, Signs, classify};
use super::tally::Tally;
use pagewise_model::fault_paths::Lock;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// The number of shapes in a trace of one workload stays below this. Further ones are stored too,
/// and counted in [`Shapes::beyond_limit`]; memory grows by one shape each.
pub(super) const MOST_SHAPES: usize = 1 << 16;

/// One node of a shape: the function and its depth below the root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Token(pub u64);

impl Token {
    #[inline]
    pub(super) fn new(name: u32, depth: u16) -> Self {
        Self(u64::from(name) << 16 | u64::from(depth))
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the name was put there as 32 bits"
    )]
    pub(super) fn name(self) -> u32 {
        (self.0 >> 16) as u32
    }

    #[allow(
        clippy::cast_possible_truncation,
        reason = "the depth was put there as 16 bits"
    )]
    pub(super) fn depth(self) -> u16 {
        self.0 as u16
    }
}

/// A layer's position in a shape: its outermost call and the number of calls inside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub layer: Layer,
    pub node: u32,
    pub calls_inside: u32,
}

/// A shape with the sums of its faults.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    pub tokens: Box<[Token]>,
    pub class: Class,
    /// Index of its calls' cost in [`super::probe::Costs`].
    pub source: u16,
    /// Context of each node in [`super::contexts::Contexts`].
    pub contexts: Box<[u32]>,
    pub places: Box<[Place]>,
    /// The function that represents [`Layer::Handler`].
    pub handler: u32,
    /// Latency by layer, in the order of [`Layer::ALL`]: time on the CPU without interrupts, but
    /// for locks and waits the elapsed time.
    pub latency: [Tally; Layer::ALL.len()],
    /// Elapsed time in the fault, including waits, without interrupts.
    pub elapsed: Tally,
    /// Waits for the lock before the fault, found by task.
    pub lock_before: Tally,
    pub split: Split,
    /// Interrupts during its faults.
    pub interrupts: u64,
    /// Its faults by duration.
    pub cells: Cells,
    /// Self time by node of faults that are in no cell because they were added as sums; or empty.
    pub own_added: Box<[u64]>,
    /// Outermost calls that acquire a lock.
    pub locks: Box<[(u32, Lock)]>,
}

/// Where the time of faults went, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Split {
    pub own: u128,
    pub children: u128,
    pub interrupts: u128,
    pub runnable: u128,
    pub blocked: u128,
    pub estimated: u128,
}

impl Split {
    pub(super) fn add(&mut self, other: &Self) {
        self.own += other.own;
        self.children += other.children;
        self.interrupts += other.interrupts;
        self.runnable += other.runnable;
        self.blocked += other.blocked;
        self.estimated += other.estimated;
    }
}

impl Shape {
    /// Calls inside the fault, all of which were slowed down by the tracer.
    pub(super) fn calls_inside(&self) -> usize {
        self.tokens.len().saturating_sub(1)
    }

    /// Self time by node over all its faults, ns.
    pub(super) fn own_times(&self) -> Vec<u64> {
        let mut all = vec![0_u64; self.tokens.len()];
        let cells = self.cells.iter().map(|cell| &cell.own[..]);
        for own in cells.chain([&self.own_added[..]]) {
            for (sum, own) in all.iter_mut().zip(own) {
                *sum = sum.saturating_add(*own);
            }
        }
        all
    }

    /// Adds to the self time of each node.
    pub(super) fn add_own_times(&mut self, own: &[u64]) {
        if self.own_added.is_empty() {
            self.own_added = vec![0; self.tokens.len()].into();
        }
        for (sum, own) in self.own_added.iter_mut().zip(own) {
            *sum = sum.saturating_add(*own);
        }
    }

    /// Calls made directly by each node.
    pub(super) fn direct_calls(&self) -> Vec<u32> {
        let (mut direct, mut open) = (Vec::new(), Vec::new());
        self.count_direct_calls(&mut direct, &mut open);
        direct
    }

    /// The same in reused memory; `open` is for calls that have not ended.
    pub(super) fn count_direct_calls(&self, direct: &mut Vec<u32>, open: &mut Vec<usize>) {
        direct.clear();
        direct.resize(self.tokens.len(), 0);
        open.clear();
        for (node, token) in self.tokens.iter().enumerate() {
            while open
                .last()
                .is_some_and(|&caller| self.tokens[caller].depth() >= token.depth())
            {
                open.pop();
            }
            if let Some(&caller) = open.last() {
                direct[caller] += 1;
            }
            open.push(node);
        }
    }

    /// Its layers, in order, with the number of calls inside each.
    pub(super) fn layers(&self) -> Vec<(Layer, usize)> {
        let mut calls = [None::<usize>; Layer::ALL.len()];
        for place in &self.places {
            *calls[place.layer as usize].get_or_insert(0) += place.calls_inside as usize;
        }
        let each = Layer::ALL.into_iter().zip(calls);
        each.filter_map(|(layer, calls)| Some((layer, calls?)))
            .collect()
    }
}

/// All shapes of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Shapes {
    pub all: Vec<Shape>,
    by_hash: FxHashMap<u64, Vec<u32>>,
    /// The previous shape: faults of one kind come in runs.
    last: usize,
    /// The source of the current faults: those of other sources have other shapes.
    pub source: u16,
    pub beyond_limit: u64,
}

impl Shapes {
    /// The shape with these tokens, if it is known.
    #[inline]
    pub(super) fn find(
        &mut self,
        hash: u64,
        tokens: &[Token],
        class: Option<Class>,
    ) -> Option<usize> {
        let source = self.source;
        let is_it = |shape: &Shape| {
            let same_class = class.is_none_or(|class| class == shape.class);
            *shape.tokens == *tokens && same_class && shape.source == source
        };
        if self.all.get(self.last).is_some_and(is_it) {
            return Some(self.last);
        }
        let candidates = self.by_hash.get(&hash)?;
        let found = candidates
            .iter()
            .map(|&shape| shape as usize)
            .find(|&shape| is_it(&self.all[shape]))?;
        self.last = found;
        Some(found)
    }

    /// Adds a shape.
    pub(super) fn add(&mut self, hash: u64, shape: Shape) -> usize {
        let index = self.all.len();
        self.all.push(shape);
        let id = u32::try_from(index).unwrap_or(u32::MAX);
        self.by_hash.entry(hash).or_default().push(id);
        index
    }
}

/// The properties that depend on the functions of a tree alone.
pub(super) fn describe(tokens: &[Token], roles: &Roles) -> (Class, Vec<Place>, u32) {
    let mut signs = Signs::default();
    let mut places: Vec<Place> = Vec::new();
    let mut open_until = [0_usize; Layer::ALL.len()];
    let mut huge_until = 0;
    let mut fell_back = false;
    for (node, token) in tokens.iter().enumerate() {
        let role = roles.role(token.name());
        signs = signs.with(role.signs);
        if role.signs.has(Signs::HUGE) {
            huge_until = huge_until.max(end_of(tokens, node));
        }
        fell_back |= role.signs.has(Signs::NEW_ANON) && node >= huge_until;
        let layer = if node == 0 {
            Some(Layer::Fault)
        } else {
            role.layer
        };
        let root_is_mm_fault = node == 0 && role.layer == Some(Layer::MmFault);
        let layers = [layer, root_is_mm_fault.then_some(Layer::MmFault)];
        for layer in layers.into_iter().flatten() {
            if node >= open_until[layer as usize] {
                let end = end_of(tokens, node);
                open_until[layer as usize] = end;
                places.push(place(layer, node, end));
            }
        }
    }
    if fell_back {
        // A huge page was tried, and a small one mapped.
        signs = signs.without(Signs::HUGE);
    }
    let handler = add_handler(tokens, roles, &mut places);
    (classify(signs), places, handler)
}

fn place(layer: Layer, node: usize, end: usize) -> Place {
    Place {
        layer,
        node: u32::try_from(node).unwrap_or(u32::MAX),
        calls_inside: u32::try_from(end - node - 1).unwrap_or(u32::MAX),
    }
}

/// Outermost calls that acquire a lock. A semaphore outside `handle_mm_fault` is the mmap lock.
pub(super) fn locks(tokens: &[Token], roles: &Roles) -> Vec<(u32, Lock)> {
    let mut found = Vec::new();
    let mut inside_until = 0;
    let mut open_until = 0;
    for (node, token) in tokens.iter().enumerate() {
        let role = roles.role(token.name());
        if role.layer == Some(Layer::MmFault) {
            inside_until = inside_until.max(end_of(tokens, node));
        }
        if let Some(lock) = role.lock.filter(|_| node >= open_until) {
            open_until = end_of(tokens, node);
            let lock = match lock {
                Lock::Rwsem if node >= inside_until => Lock::Mmap,
                lock => lock,
            };
            found.push((u32::try_from(node).unwrap_or(u32::MAX), lock));
        }
    }
    found
}

/// The first node after a call and all its callees.
pub(super) fn end_of(tokens: &[Token], node: usize) -> usize {
    let depth = tokens[node].depth();
    let inside = tokens[node + 1..].iter();
    node + 1 + inside.take_while(|token| token.depth() > depth).count()
}

/// If no handler is a separate function, the innermost outer frame represents it.
fn add_handler(tokens: &[Token], roles: &Roles, places: &mut Vec<Place>) -> u32 {
    if let Some(place) = places.iter().find(|place| place.layer == Layer::Handler) {
        return tokens[place.node as usize].name();
    }
    let outer = Signs::FRAME.with(Signs::ENTRY).0;
    let is_frame = |token: &Token| roles.role(token.name()).signs.0 & outer != 0;
    let node = tokens.iter().rposition(is_frame).unwrap_or(0);
    places.push(place(Layer::Handler, node, end_of(tokens, node)));
    tokens[node].name()
}
