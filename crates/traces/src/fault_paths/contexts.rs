//! Call paths with their sums: the calling context tree of all faults of a class.

use super::signature::Class;
use rustc_hash::FxHashMap;

/// A call path that ends in a function; repeated calls from one caller are one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub class: Class,
    /// Index of its calls' cost in [`super::probe::Costs`].
    pub source: u16,
    /// The caller's path; the path's own index for a root.
    pub parent: u32,
    pub name: u32,
    pub calls: u64,
    /// Sum of the calls' time including callees, ns.
    pub total: u128,
    /// Sum of the calls' self time, ns.
    pub own: u128,
    /// Calls with less than 1 µs of self time.
    pub own_below_1us: u64,
    /// Sums of self and total time multiplied by the latency of the fault, ns²: for covariances.
    pub own_by_fault: u128,
    pub total_by_fault: u128,
    /// Sum of traced direct calls: each adds probe time to this path's self time.
    pub direct_calls: u64,
}

impl Context {
    /// Adds the sums of the same path of another source.
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.total += other.total;
        self.own += other.own;
        self.own_below_1us += other.own_below_1us;
        self.own_by_fault += other.own_by_fault;
        self.total_by_fault += other.total_by_fault;
        self.direct_calls += other.direct_calls;
    }
}

/// More than the number of classes.
const CLASSES: u32 = 64;

/// All call paths.
#[derive(Clone, Debug, Default)]
pub(super) struct Contexts {
    pub all: Vec<Context>,
    index: FxHashMap<(u32, u32), u32>,
    /// The source of the current faults: those of other sources have other paths.
    pub source: u16,
}

impl Contexts {
    /// The root's path for a class.
    pub(super) fn root(&mut self, class: Class, name: u32) -> u32 {
        let root = u32::from(self.source) * CLASSES + class as u32;
        self.at(u32::MAX - root, name, class, None)
    }

    /// The path of a call made on another path.
    pub(super) fn child(&mut self, parent: u32, name: u32) -> u32 {
        let class = self.all[parent as usize].class;
        self.at(parent, name, class, Some(parent))
    }

    fn at(&mut self, key: u32, name: u32, class: Class, parent: Option<u32>) -> u32 {
        let next = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        let found = *self.index.entry((key, name)).or_insert(next);
        if found == next {
            self.all.push(Context {
                class,
                source: self.source,
                parent: parent.unwrap_or(next),
                name,
                calls: 0,
                total: 0,
                own: 0,
                own_below_1us: 0,
                own_by_fault: 0,
                total_by_fault: 0,
                direct_calls: 0,
            });
        }
        found
    }
}
