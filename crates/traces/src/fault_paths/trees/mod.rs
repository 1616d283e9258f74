//! Call trees that faults have in common, and their cost: frequent closed trees with their repeats
//! folded ([`fold`]), weighted by latency.
//!
//! A tree's support is the number of faults that contain it. A tree that occurs only inside one
//! larger tree adds no information, and is left out (closed trees). All weights are sums of
//! integers over shapes, so the sums of parts of a trace give the same result.

mod fold;
mod outline;
#[cfg(test)]
mod tests;

pub(super) use fold::Forest;

use super::call_times::Durations;
use super::collector::Collector;
use super::layer::Layer;
use super::probe::{Calibration, Costs};
use super::signature::Class;
use fold::{Folded, Run};
use outline::Outline;
use pagewise_formats::function_graph::Names;
use pagewise_model::fault_paths::{Repeat, TreePattern};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Which trees to return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TreeQuery {
    /// Trees in at least this many faults …
    pub min_faults: u64,
    /// … or with at least this share of the time of all faults, corrected.
    pub min_share: f64,
    /// The maximum number of trees; those with the most time are kept.
    pub most: usize,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FrequentTrees {
    /// By their corrected share of time, the largest first.
    pub trees: Vec<TreePattern>,
    /// Trees beyond [`TreeQuery::most`].
    pub left_out: u64,
}

/// Where a tree occurs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Above {
    Nowhere,
    /// Always called by this tree.
    Inside(u32),
    /// Called by several trees, or by none.
    Free,
}

/// Sums over the occurrences of a tree.
#[derive(Clone, Debug)]
struct Sums {
    above: Above,
    class: Option<Class>,
    is_mixed: bool,
    /// At least one occurrence is not a whole fault.
    is_part: bool,
    faults: u64,
    /// The last shape that was counted, plus one.
    seen: usize,
    occurrences: u64,
    calls: (u64, u64),
    /// Tracing cost of all occurrences, in their whole time and in their self time, and the error
    /// of the first, ns.
    cost: f64,
    own_cost: f64,
    error: f64,
    total: u128,
    own: u128,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            above: Above::Nowhere,
            class: None,
            is_mixed: false,
            is_part: false,
            faults: 0,
            seen: 0,
            occurrences: 0,
            calls: (u64::MAX, 0),
            cost: 0.0,
            own_cost: 0.0,
            error: 0.0,
            total: 0,
            own: 0,
        }
    }
}

/// For a stretch of a tree's calls: the number of repeats, and how many rows have that number.
type Rows = BTreeMap<(u32, u32), BTreeMap<u64, u64>>;

/// The frequent closed trees of at least two calls.
#[must_use]
pub fn frequent_trees(
    collector: &Collector,
    names: &Names,
    calibration: Calibration,
    query: TreeQuery,
) -> FrequentTrees {
    let mut forest = collector.call_times.forest().clone();
    let folded: Vec<Folded> = collector
        .shapes
        .all
        .iter()
        .map(|shape| forest.fold(&shape.tokens))
        .collect();
    let costs = Costs::new(&collector.costs, &calibration);
    let sums = sums(collector, &forest, &folded, costs);
    let weigher = Weigher::new(collector, costs);
    let mut wanted: Vec<(f64, u32)> = (0..)
        .zip(&sums)
        .filter(|(tree, sums)| sums.above == Above::Free && !forest.below(*tree).is_empty())
        .map(|(tree, sums)| (weigher.corrected_share(sums), tree))
        .filter(|(share, tree)| {
            let is_frequent = sums[*tree as usize].faults >= query.min_faults.max(1);
            is_frequent || *share >= query.min_share
        })
        .collect();
    wanted.sort_by(|x, y| y.0.total_cmp(&x.0));
    let left_out = wanted.len().saturating_sub(query.most) as u64;
    wanted.truncate(query.most);
    let trees: Vec<u32> = wanted.into_iter().map(|(_, tree)| tree).collect();
    let rows = rows(collector, &forest, &folded, &trees);
    let (times, contexts) = (&collector.call_times, &collector.contexts.all);
    let durations = times.by_tree(forest.len(), &trees, contexts, costs);
    let each = trees.iter().zip(&durations);
    let mut found: Vec<TreePattern> = each
        .map(|(&tree, durations)| {
            let outline = Outline::new(&forest, &rows, names).tree(tree);
            let repeats = repeats(&forest, &rows, names, tree);
            weigher.pattern(&sums[tree as usize], outline, repeats, durations)
        })
        .collect();
    found.sort_by(|x, y| {
        let by_time = y.corrected_time_share.total_cmp(&x.corrected_time_share);
        by_time.then_with(|| x.outline.cmp(&y.outline))
    });
    FrequentTrees {
        trees: found,
        left_out,
    }
}

/// The sums of all trees.
fn sums(collector: &Collector, forest: &Forest, folded: &[Folded], costs: Costs<'_>) -> Vec<Sums> {
    let mut all = vec![Sums::default(); forest.len()];
    for (place, (shape, folded)) in (1..).zip(collector.shapes.all.iter().zip(folded)) {
        let faults = shape.latency[Layer::Fault as usize].count;
        let own = shape.own_times();
        let direct = shape.direct_calls();
        let mut total: Vec<u128> = own.iter().map(|&ns| ns.into()).collect();
        for node in (0..own.len()).rev() {
            let caller = folded.callers[node] as usize;
            let sums = &mut all[folded.trees[node] as usize];
            if node > 0 {
                let below = total[node];
                total[caller] += below;
            }
            let inside = u64::from(folded.ends[node]) - node as u64 - 1;
            sums.met_in(place, faults, shape.class);
            sums.met_below((node > 0).then(|| folded.trees[caller]));
            sums.occurrences += faults;
            sums.calls = (sums.calls.0.min(inside), sums.calls.1.max(inside));
            let inner = u64::from(node > 0);
            sums.pay(
                faults,
                (inner, inside, direct[node].into()),
                costs.calibration(shape.source),
            );
            sums.own += u128::from(own[node]);
            sums.total += total[node];
        }
    }
    all
}

impl Sums {
    /// Adds the tracing cost of this many occurrences, given the numbers of their own traced calls
    /// (except for the outermost), of calls inside, and of direct calls.
    fn pay(&mut self, places: u64, (inner, inside, direct): (u64, u64, u64), cost: &Calibration) {
        let calls = |each: u64| (places * each) as f64;
        let own = cost.inside_ns * calls(inner);
        self.cost += cost.per_call_ns * calls(inside) + own;
        self.own_cost += (cost.per_call_ns - cost.inside_ns) * calls(direct) + own;
        self.error += cost.error(calls(inside + inner));
    }

    fn met_in(&mut self, shape: usize, faults: u64, class: Class) {
        if self.seen != shape {
            self.seen = shape;
            self.faults += faults;
        }
        self.is_mixed |= self.class.is_some_and(|known| known != class);
        self.class = Some(class);
    }

    fn met_below(&mut self, caller: Option<u32>) {
        self.is_part |= caller.is_some();
        self.above = match (self.above, caller) {
            (Above::Nowhere, Some(tree)) => Above::Inside(tree),
            (Above::Inside(known), Some(tree)) if known == tree => self.above,
            _ => Above::Free,
        };
    }
}

/// How often the calls of the wanted trees and of all trees below them repeat.
fn rows(
    collector: &Collector,
    forest: &Forest,
    folded: &[Folded],
    wanted: &[u32],
) -> FxHashMap<u32, Rows> {
    let mut is_shown = vec![false; forest.len()];
    wanted
        .iter()
        .for_each(|&tree| is_shown[tree as usize] = true);
    for tree in (0..forest.len())
        .rev()
        .filter_map(|tree| u32::try_from(tree).ok())
    {
        if is_shown[tree as usize] {
            let below = forest.below(tree).iter();
            below.for_each(|&below| is_shown[below as usize] = true);
        }
    }
    let mut met: FxHashMap<u32, u64> = FxHashMap::default();
    let mut found: FxHashMap<u32, Rows> = FxHashMap::default();
    for (shape, folded) in collector.shapes.all.iter().zip(folded) {
        let faults = shape.latency[Layer::Fault as usize].count;
        for &tree in folded.trees.iter().filter(|&&tree| is_shown[tree as usize]) {
            *met.entry(tree).or_default() += faults;
        }
        for &(node, Run { at, len, times }) in &folded.runs {
            let tree = folded.trees[node as usize];
            if is_shown[tree as usize] {
                let rows = found.entry(tree).or_default().entry((at, len)).or_default();
                *rows.entry(times.into()).or_default() += faults;
            }
        }
    }
    // Occurrences of the tree in which the calls came once.
    for (tree, rows) in &mut found {
        for counts in rows.values_mut() {
            let repeated: u64 = counts.values().sum();
            let once = met[tree].saturating_sub(repeated);
            if once > 0 {
                counts.insert(1, once);
            }
        }
    }
    found
}

fn repeats(forest: &Forest, rows: &FxHashMap<u32, Rows>, names: &Names, tree: u32) -> Vec<Repeat> {
    let of_tree = rows.get(&tree).into_iter().flatten();
    let each = of_tree.map(|(&(at, len), counts)| {
        let calls = &forest.below(tree)[at as usize..(at + len) as usize];
        let calls = calls.iter().map(|&call| outline::name(forest, names, call));
        Repeat {
            function: calls.collect::<Vec<_>>().join(" "),
            counts: counts.iter().map(|(&times, &rows)| (times, rows)).collect(),
        }
    });
    each.collect()
}

/// Converts sums to figures.
struct Weigher {
    /// Time of all faults, as traced and corrected, ns.
    all: f64,
    all_corrected: f64,
}

impl Weigher {
    fn new(collector: &Collector, costs: Costs<'_>) -> Self {
        let (mut all, mut cost) = (0_u128, 0.0);
        for shape in &collector.shapes.all {
            let latency = &shape.latency[Layer::Fault as usize];
            all += latency.sum;
            cost +=
                latency.count as f64 * costs.calibration(shape.source).cost(shape.calls_inside());
        }
        Self {
            all: all as f64,
            all_corrected: (all as f64 - cost).max(0.0),
        }
    }

    fn corrected_total(&self, sums: &Sums) -> f64 {
        (sums.total as f64 - sums.cost).max(0.0)
    }

    fn corrected_own(&self, sums: &Sums) -> f64 {
        (sums.own as f64 - sums.own_cost).max(0.0)
    }

    fn corrected_share(&self, sums: &Sums) -> f64 {
        share(self.corrected_total(sums), self.all_corrected)
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "sums of durations, not negative"
    )]
    fn pattern(
        &self,
        sums: &Sums,
        outline: Outline<'_>,
        repeats: Vec<Repeat>,
        durations: &Durations,
    ) -> TreePattern {
        let (total, corrected) = (sums.total as f64, self.corrected_total(sums));
        let occurrences = sums.occurrences.max(1) as f64;
        TreePattern {
            root: outline.root,
            outline: outline.text,
            class: sums.class.filter(|_| !sums.is_mixed),
            complete: !sums.is_part,
            faults: sums.faults,
            occurrences: sums.occurrences,
            calls: sums.calls,
            time_share: share(total, self.all),
            corrected_time_share: share(corrected, self.all_corrected),
            total_ns: total as u64,
            corrected_total_ns: corrected as u64,
            self_ns: sums.own as u64,
            corrected_self_ns: self.corrected_own(sums) as u64,
            raw_mean_ns: total / occurrences,
            mean_ns: corrected / occurrences,
            p50_ns: durations.corrected.quantile(0.5),
            p99_ns: durations.corrected.quantile(0.99),
            error_ns: sums.error / occurrences,
            timed: durations.corrected.count(),
            repeats,
        }
    }
}

fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { part / whole } else { 0.0 }
}
