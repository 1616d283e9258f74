//! Faults ordered from slow to fast, and sums over parts of them.

use super::cells::{Cell, Waits};
use super::collector::Collector;
use super::figures::whole;
use super::outline::base_names;
use super::probe::Calibration;
use super::signature::Class;
use pagewise_formats::function_graph::Names;
use std::collections::BTreeMap;

/// Sums over (some of) the faults of a trace.
#[derive(Clone, Debug, Default)]
pub(super) struct Sums<'a> {
    pub faults: f64,
    pub by_class: BTreeMap<Class, ClassSums<'a>>,
}

/// Sums over faults of a class: as traced and corrected, ns.
#[derive(Clone, Debug, Default)]
pub(super) struct ClassSums<'a> {
    pub faults: f64,
    pub own: BTreeMap<&'a str, (f64, f64)>,
    pub waits: [f64; 4],
}

/// A part of a trace's faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Chosen {
    /// All.
    All,
    /// The slowest, by whole time without the tracer's cost: this share of them.
    Slowest(f64),
    /// All others.
    Rest(f64),
}

/// The functions of a trace; names that differ only in what the build added are merged.
pub(super) struct Functions<'a> {
    /// Ascending.
    names: Vec<&'a str>,
    /// The position there of each name's id.
    places: Vec<usize>,
}

impl<'a> Functions<'a> {
    pub(super) fn new(names: &'a Names) -> Self {
        let bases = base_names(names);
        let mut names = bases.clone();
        names.sort_unstable();
        names.dedup();
        let place = |base: &&str| names.partition_point(|name| name < base);
        Self {
            places: bases.iter().map(place).collect(),
            names,
        }
    }
}

/// The faults of a kind, or all, by their whole time without the tracer's cost; those of a cell
/// count as equal.
pub(super) struct Ranked<'a> {
    collector: &'a Collector,
    calibration: Calibration,
    /// The slowest first, with their shapes.
    cells: Vec<(f64, usize, &'a Cell)>,
    faults: f64,
}

impl<'a> Ranked<'a> {
    pub(super) fn new(
        collector: &'a Collector,
        calibration: Calibration,
        class: Option<Class>,
    ) -> Self {
        let mut cells: Vec<(f64, usize, &Cell)> = Vec::new();
        for (at, shape) in collector.shapes.all.iter().enumerate() {
            if class.is_none_or(|class| class == shape.class) {
                let cost = calibration.cost(shape.calls_inside());
                let of_shape = shape.cells.iter();
                cells.extend(of_shape.map(|cell| (cell.mean_ns(cost), at, cell)));
            }
        }
        cells.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
        Self {
            collector,
            calibration,
            faults: cells.iter().map(|(_, _, cell)| whole(cell.faults)).sum(),
            cells,
        }
    }

    /// Sums over the chosen faults.
    pub(super) fn sums<'n>(&self, functions: &Functions<'n>, part: Chosen) -> Sums<'n> {
        let (from, to) = match part {
            Chosen::All => (0.0, self.faults),
            Chosen::Slowest(share) => (0.0, (self.faults * share).ceil()),
            Chosen::Rest(share) => ((self.faults * share).ceil(), self.faults),
        };
        let mut adding = Adding::new(functions, self.calibration);
        let mut rank = 0.0;
        for &(_, shape, cell) in &self.cells {
            let faults = whole(cell.faults);
            let taken = (rank + faults).min(to) - f64::max(rank, from);
            rank += faults;
            if taken > 0.0 {
                adding.add(self.collector, shape, cell, taken / faults);
            }
        }
        adding.finish()
    }
}

/// Sums under construction.
struct Adding<'f, 'n> {
    functions: &'f Functions<'n>,
    calibration: Calibration,
    faults: f64,
    by_class: BTreeMap<Class, ByPlace>,
    /// Direct calls by node of the current shape, and its open calls.
    direct: Vec<u32>,
    open: Vec<usize>,
}

/// [`ClassSums`] with functions by their position.
struct ByPlace {
    faults: f64,
    own: Vec<Option<(f64, f64)>>,
    waits: [f64; 4],
}

impl<'f, 'n> Adding<'f, 'n> {
    fn new(functions: &'f Functions<'n>, calibration: Calibration) -> Self {
        Self {
            functions,
            calibration,
            faults: 0.0,
            by_class: BTreeMap::new(),
            direct: Vec::new(),
            open: Vec::new(),
        }
    }

    /// Adds this share of a cell's faults.
    fn add(&mut self, collector: &Collector, shape: usize, cell: &Cell, share: f64) {
        let shape = &collector.shapes.all[shape];
        let faults = whole(cell.faults) * share;
        self.faults += faults;
        let class = self.by_class.entry(shape.class).or_insert_with(|| ByPlace {
            faults: 0.0,
            own: vec![None; self.functions.names.len()],
            waits: [0.0; 4],
        });
        class.faults += faults;
        let Waits {
            runnable,
            blocked,
            unknown,
            lock,
        } = cell.waits;
        for (sum, wait) in class
            .waits
            .iter_mut()
            .zip([runnable, blocked, unknown, lock])
        {
            *sum += whole(wait) * share;
        }
        let inside = self.calibration.inside_ns;
        let outside = self.calibration.per_call_ns - inside;
        shape.count_direct_calls(&mut self.direct, &mut self.open);
        let calls = shape.tokens.iter().zip(&self.direct).zip(&cell.own);
        for (node, ((token, direct), own)) in calls.enumerate() {
            let own = whole(*own) * share;
            let cost = if node == 0 { 0.0 } else { inside } + f64::from(*direct) * outside;
            let place = self.functions.places[token.name() as usize];
            let sums = class.own[place].get_or_insert_default();
            sums.0 += own;
            sums.1 += own - cost * faults;
        }
    }

    fn finish(self) -> Sums<'n> {
        let names = &self.functions.names;
        let named = |class: ByPlace| {
            let own = names.iter().zip(class.own);
            ClassSums {
                faults: class.faults,
                own: own
                    .filter_map(|(name, sums)| Some((*name, sums?)))
                    .collect(),
                waits: class.waits,
            }
        };
        let classes = self.by_class.into_iter();
        Sums {
            faults: self.faults,
            by_class: classes.map(|(class, sums)| (class, named(sums))).collect(),
        }
    }
}

impl Sums<'_> {
    /// Mean whole time, as traced and corrected.
    pub(super) fn mean(&self) -> (f64, f64) {
        let (mut raw, mut corrected) = (0.0, 0.0);
        for class in self.by_class.values() {
            let (own_raw, own) = class.total();
            raw += own_raw;
            corrected += own;
        }
        (over(raw, self.faults), over(corrected, self.faults))
    }
}

impl ClassSums<'_> {
    fn total(&self) -> (f64, f64) {
        let waits: f64 = self.waits.iter().sum();
        let sum = |sum: (f64, f64), own: &(f64, f64)| (sum.0 + own.0, sum.1 + own.1);
        self.own.values().fold((waits, waits), sum)
    }

    /// Mean whole time, as traced and corrected.
    pub(super) fn mean(&self) -> (f64, f64) {
        let (raw, corrected) = self.total();
        (over(raw, self.faults), over(corrected, self.faults))
    }
}

/// A mean; 0 if empty.
pub(super) fn over(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}
