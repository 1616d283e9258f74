//! What a difference of means consists of, in parts that add up to it.
//!
//! Faults of kind *c* make up the share p_c and take m_c on average. Between two traces, with a
//! bar for the average of both (Kitagawa, 1955):
//!
//! ```text
//! Δ Σ p_c m_c  =  Σ Δp_c (m̄_c − m̄)        the mix: more of the slow kinds
//!              +  Σ p̄_c Δm_c               the same kind takes longer …
//! ```
//!
//! and Δm_c is the sum of the changes of all its functions' own times and of its waits.

use super::super::analyse::base_names;
use super::super::cells::{Cell, Waits};
use super::super::collector::Collector;
use super::super::probe::Calibration;
use super::super::signature::Class;
use super::side::whole;
use pagewise_model::fault_diff::{Explanation, Pair, Pairs, Part, PartCause};
use pagewise_model::formats::function_graph::Names;
use std::collections::{BTreeMap, BTreeSet};

/// Parts shown; the others are summed up.
const MOST_PARTS: usize = 40;

/// Sums over (some of) the faults of a trace.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Sums<'a> {
    pub faults: f64,
    pub by_class: BTreeMap<Class, ClassSums<'a>>,
}

/// Sums over faults of a class: as traced and corrected, ns.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct ClassSums<'a> {
    pub faults: f64,
    pub own: BTreeMap<&'a str, (f64, f64)>,
    pub waits: [f64; 4],
}

const WAITS: [PartCause; 4] = [
    PartCause::Runnable,
    PartCause::Blocked,
    PartCause::OffCpu,
    PartCause::LockBefore,
];

/// Which part of a trace's faults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) enum Chosen {
    /// All.
    All,
    /// The slowest, by whole time without the tracer's cost: this share of them.
    Slowest(f64),
    /// All but those.
    Rest(f64),
}

/// Sums over the chosen faults of a class, or all.
pub(in super::super) fn sums<'a>(
    collector: &Collector,
    names: &'a Names,
    calibration: Calibration,
    class: Option<Class>,
    part: Chosen,
) -> (Sums<'a>, f64) {
    let mut cells: Vec<(f64, usize, &Cell)> = Vec::new();
    for (at, shape) in collector.shapes.all.iter().enumerate() {
        if class.is_none_or(|class| class == shape.class) {
            let cost = calibration.cost(shape.calls_inside());
            cells.extend(
                shape
                    .cells
                    .iter()
                    .map(|cell| (cell.mean_ns(cost), at, cell)),
            );
        }
    }
    cells.sort_by(|x, y| y.0.total_cmp(&x.0).then(x.1.cmp(&y.1)));
    let all: f64 = cells.iter().map(|(_, _, cell)| whole(cell.faults)).sum();
    let (from, to) = match part {
        Chosen::All => (0.0, all),
        Chosen::Slowest(share) => (0.0, (all * share).ceil()),
        Chosen::Rest(share) => ((all * share).ceil(), all),
    };
    let bases = base_names(names);
    let mut found = Sums::default();
    let mut threshold = f64::INFINITY;
    let mut rank = 0.0;
    for (mean, shape, cell) in cells {
        let faults = whole(cell.faults);
        let taken = (rank + faults).min(to) - f64::max(rank, from);
        rank += faults;
        if taken <= 0.0 {
            continue;
        }
        threshold = threshold.min(mean);
        found.add(collector, &bases, calibration, shape, cell, taken / faults);
    }
    (found, threshold)
}

impl<'a> Sums<'a> {
    fn add(
        &mut self,
        collector: &Collector,
        bases: &[&'a str],
        calibration: Calibration,
        shape: usize,
        cell: &Cell,
        share: f64,
    ) {
        let shape = &collector.shapes.all[shape];
        let faults = whole(cell.faults) * share;
        self.faults += faults;
        let class = self.by_class.entry(shape.class).or_default();
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
        let inside = calibration.inside_ns;
        let outside = calibration.per_call_ns - inside;
        let direct = shape.direct_calls();
        for (node, (token, own)) in shape.tokens.iter().zip(&cell.own).enumerate() {
            let own = whole(*own) * share;
            let cost = if node == 0 { 0.0 } else { inside } + f64::from(direct[node]) * outside;
            let entry = class.own.entry(bases[token.name() as usize]).or_default();
            entry.0 += own;
            entry.1 += own - cost * faults;
        }
    }

    /// Mean whole time, as traced and corrected.
    pub(in super::super) fn mean(&self) -> (f64, f64) {
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

    fn mean(&self) -> (f64, f64) {
        let (raw, corrected) = self.total();
        (over(raw, self.faults), over(corrected, self.faults))
    }
}

fn over(sum: f64, count: f64) -> f64 {
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The difference of both means, B less A, in parts.
pub(super) fn explain(a: &Sums<'_>, b: &Sums<'_>) -> Explanation {
    let (mean_a, mean_b) = (a.mean(), b.mean());
    let overall = ((mean_a.0 + mean_b.0) / 2.0, (mean_a.1 + mean_b.1) / 2.0);
    let classes: BTreeSet<Class> = a
        .by_class
        .keys()
        .chain(b.by_class.keys())
        .copied()
        .collect();
    let none = ClassSums::default();
    let mut parts = Vec::new();
    for class in classes {
        let of = |sums: &'_ Sums<'_>| sums.by_class.contains_key(&class);
        let in_a = a.by_class.get(&class).unwrap_or(&none);
        let in_b = b.by_class.get(&class).unwrap_or(&none);
        let (share_a, share_b) = (over(in_a.faults, a.faults), over(in_b.faults, b.faults));
        // A kind that one trace lacks is all mix: it takes there what it takes in the other.
        let (class_a, class_b) = match (of(a), of(b)) {
            (true, false) => (in_a.mean(), in_a.mean()),
            (false, true) => (in_b.mean(), in_b.mean()),
            _ => (in_a.mean(), in_b.mean()),
        };
        let mean = ((class_a.0 + class_b.0) / 2.0, (class_a.1 + class_b.1) / 2.0);
        let change = share_b - share_a;
        parts.push(Part {
            cause: PartCause::Mix,
            class: Some(class),
            function: None,
            figures: Pair {
                a: share_a,
                b: share_b,
            },
            ns: change * (mean.1 - overall.1),
            raw_ns: change * (mean.0 - overall.0),
        });
        if of(a) && of(b) {
            let share = f64::midpoint(share_a, share_b);
            within(class, in_a, in_b, share, &mut parts);
        }
    }
    let largest = |part: &Part| part.ns.abs().max(part.raw_ns.abs() * 1e-6);
    parts.retain(|part| part.ns != 0.0 || part.raw_ns != 0.0);
    parts.sort_by(|x, y| largest(y).total_cmp(&largest(x)));
    let rest = parts.split_off(parts.len().min(MOST_PARTS));
    if !rest.is_empty() {
        parts.push(Part {
            cause: PartCause::Rest,
            class: None,
            function: None,
            figures: Pair::default(),
            ns: rest.iter().map(|part| part.ns).sum(),
            raw_ns: rest.iter().map(|part| part.raw_ns).sum(),
        });
    }
    Explanation {
        figures: Pairs {
            raw: Pair {
                a: mean_a.0,
                b: mean_b.0,
            },
            corrected: Pair {
                a: mean_a.1,
                b: mean_b.1,
            },
        },
        change_ns: mean_b.1 - mean_a.1,
        parts,
        sentences: Vec::new(),
    }
}

/// What faults of the same kind take longer for.
fn within(class: Class, a: &ClassSums<'_>, b: &ClassSums<'_>, share: f64, parts: &mut Vec<Part>) {
    let functions: BTreeSet<&str> = a.own.keys().chain(b.own.keys()).copied().collect();
    for function in functions {
        let mean = |sums: &ClassSums<'_>| {
            let (raw, corrected) = sums.own.get(function).copied().unwrap_or_default();
            (over(raw, sums.faults), over(corrected, sums.faults))
        };
        let (mean_a, mean_b) = (mean(a), mean(b));
        parts.push(Part {
            cause: PartCause::Function,
            class: Some(class),
            function: Some(function.to_owned()),
            figures: Pair {
                a: mean_a.1,
                b: mean_b.1,
            },
            ns: share * (mean_b.1 - mean_a.1),
            raw_ns: share * (mean_b.0 - mean_a.0),
        });
    }
    for (at, cause) in WAITS.into_iter().enumerate() {
        let figures = Pair {
            a: over(a.waits[at], a.faults),
            b: over(b.waits[at], b.faults),
        };
        let change = figures.b - figures.a;
        parts.push(Part {
            cause,
            class: Some(class),
            function: None,
            figures,
            ns: share * change,
            raw_ns: share * change,
        });
    }
}
