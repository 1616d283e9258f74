//! The calling context tree of all faults as findings.

use super::collector::Collector;
use super::contexts::Context;
use super::contributors::{corrected, inner};
use super::layer::Layer;
use super::probe::Costs;
use super::shapes::Shape;
use pagewise_formats::function_graph::{NameId, Names};
use pagewise_model::call_map::{CallMap, CallNode};
use pagewise_model::histogram::wider;
use rustc_hash::FxHashMap;

/// Nodes in a report: more than a reader unfolds, and a page of bounded size.
const MOST_NODES: usize = 2000;
/// Buckets of a histogram in one of a path's times.
const MERGED: u32 = 16;

/// The call paths of the collected faults. If there are more than [`MOST_NODES`], those with the
/// most traced time are kept: every caller takes at least as long as its callees, so no path loses
/// its caller.
pub(super) fn call_map(collector: &Collector, names: &Names, costs: Costs<'_>) -> CallMap {
    let contexts = &collector.contexts.all;
    let join = Join::new(contexts);
    let counts = counts(&collector.shapes.all, &join);
    let times = join.summed(corrected_times(contexts, costs), |sum, more| {
        sum.own += more.own;
        sum.total += more.total;
        sum.error += more.error;
    });
    let durations = collector.call_times.by_context(contexts, costs);
    let durations = join.summed(durations, |sum, more| {
        sum.raw.merge(&more.raw);
        sum.corrected.merge(&more.corrected);
    });
    let contexts = &join.contexts;
    let mut order = join.paths();
    order.sort_by_key(|&at| (std::cmp::Reverse(contexts[at].total), at));
    order.truncate(MOST_NODES);
    order.sort_unstable();

    let mut functions = Functions::default();
    let mut places: FxHashMap<usize, u32> = FxHashMap::default();
    let mut nodes = Vec::with_capacity(order.len());
    for at in order {
        let context = &contexts[at];
        let parent = context.parent as usize;
        let is_root = parent == at;
        if !is_root && !places.contains_key(&parent) {
            // Equal times: the caller was cut off at the same limit.
            continue;
        }
        places.insert(at, u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        nodes.push(CallNode {
            function: functions.index(context.name, names),
            parent: if is_root {
                None
            } else {
                places.get(&parent).copied()
            },
            class: context.class,
            layer: collector.roles.role(context.name).layer,
            total_by_latency: context.total_by_fault as f64,
            faults: counts[at].faults,
            calls: context.calls,
            calls_inside: counts[at].calls_inside,
            total_ns: narrow(context.total),
            corrected_total_ns: whole(times[at].total),
            error_ns: whole(times[at].error.ceil()),
            self_ns: narrow(context.own),
            corrected_self_ns: whole(times[at].own),
            times: wider(durations[at].raw.buckets(), MERGED),
            corrected_times: wider(durations[at].corrected.buckets(), MERGED),
        });
    }
    let all = collector.contexts.all.iter().map(|context| context.own);
    let kept: u64 = nodes.iter().map(|node| node.self_ns).sum();
    CallMap {
        functions: functions.names,
        nodes_left_out: (join.paths().len() - nodes.len()) as u64,
        self_ns_left_out: narrow(all.sum()).saturating_sub(kept),
        nodes,
        timed_faults: collector.call_times.faults,
    }
}

/// Merges paths that differ only in the source of their calls.
struct Join {
    /// The path that represents each.
    to: Vec<u32>,
    /// The representing paths, with the sums of all merged ones.
    contexts: Vec<Context>,
}

impl Join {
    fn new(all: &[Context]) -> Self {
        let mut first: FxHashMap<(Option<u32>, u32, u32), u32> = FxHashMap::default();
        let mut to: Vec<u32> = Vec::with_capacity(all.len());
        let mut contexts = all.to_vec();
        for (at, context) in (0..).zip(all) {
            // Callers come before their callees.
            let caller = (context.parent != at).then(|| to[context.parent as usize]);
            let key = (caller, context.class as u32, context.name);
            let joined = *first.entry(key).or_insert(at);
            to.push(joined);
            contexts[at as usize].parent = caller.unwrap_or(at);
            if joined != at {
                contexts[joined as usize].add(context);
            }
        }
        Self { to, contexts }
    }

    /// Paths that represent themselves.
    fn paths(&self) -> Vec<usize> {
        let each = (0_u32..).zip(&self.to);
        each.filter(|(at, to)| at == *to)
            .map(|(at, _)| at as usize)
            .collect()
    }

    /// Figures by path, with those of merged paths added up.
    fn summed<T>(&self, mut figures: Vec<T>, add: impl Fn(&mut T, &T)) -> Vec<T> {
        for at in 0..figures.len() {
            let to = self.to[at] as usize;
            if to < at {
                let (before, from) = figures.split_at_mut(at);
                add(&mut before[to], &from[0]);
            }
        }
        figures
    }
}

/// Self times and totals of all paths without the tracer's cost, and the error of the totals.
#[derive(Clone, Copy, Default)]
struct Corrected {
    own: f64,
    total: f64,
    error: f64,
}

fn corrected_times(contexts: &[Context], costs: Costs<'_>) -> Vec<Corrected> {
    let own = (0..).zip(contexts).map(|(index, context)| {
        let cost = *costs.calibration(context.source);
        let own = corrected(index, context, cost);
        Corrected {
            own,
            total: own,
            error: cost.error(inner(index, context)),
        }
    });
    let mut times: Vec<Corrected> = own.collect();
    // Callers come before their callees.
    for at in (0..times.len()).rev() {
        let (Corrected { total, error, .. }, parent) = (times[at], contexts[at].parent as usize);
        if parent != at {
            times[parent].total += total;
            times[parent].error += error;
        }
    }
    times
}

#[derive(Clone, Copy, Default)]
struct Counts {
    faults: u64,
    calls_inside: u64,
    /// The last shape that was counted, plus one.
    seen: usize,
}

/// How many faults take each path, and how many calls are below it.
fn counts(shapes: &[Shape], join: &Join) -> Vec<Counts> {
    let mut counts = vec![Counts::default(); join.to.len()];
    for (place, shape) in (1..).zip(shapes) {
        let faults = shape.latency[Layer::Fault as usize].count;
        let mut open: Vec<(u16, u32)> = Vec::new();
        for (token, &context) in shape.tokens.iter().zip(&shape.contexts) {
            let context = join.to[context as usize];
            while open.pop_if(|(depth, _)| *depth >= token.depth()).is_some() {}
            for &(_, above) in &open {
                counts[above as usize].calls_inside += faults;
            }
            open.push((token.depth(), context));
            let count = &mut counts[context as usize];
            if count.seen != place {
                count.seen = place;
                count.faults += faults;
            }
        }
    }
    counts
}

#[derive(Default)]
struct Functions {
    names: Vec<String>,
    by_id: FxHashMap<u32, u32>,
}

impl Functions {
    fn index(&mut self, id: u32, names: &Names) -> u32 {
        *self.by_id.entry(id).or_insert_with(|| {
            self.names.push(names.text(NameId(id)).to_owned());
            u32::try_from(self.names.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

fn narrow(ns: u128) -> u64 {
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a sum of durations, not negative"
)]
fn whole(ns: f64) -> u64 {
    ns as u64
}
