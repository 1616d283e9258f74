//! Builds findings from sums.

use super::call_map::call_map;
use super::charges::charges;
use super::collector::Collector;
use super::contexts::Context;
use super::contrast::contrasts;
use super::contributors::contributors;
use super::corrected::{Group, latencies};
use super::figures::{figures, ratio, share};
use super::layer::Layer;
use super::outline::outline;
use super::probe::{Calibration, Costs};
use super::reading::reading;
use super::shapes::{MOST_SHAPES, Shape, Split};
use super::signature::Class;
use super::tally::Tally;
use super::timeline::timeline;
use super::trees::{TreeQuery, frequent_trees};
use pagewise_formats::function_graph::{NameId, Names, Summary};
use pagewise_model::answer::Document;
use pagewise_model::fault_paths::{
    ClassFindings, Conservation, FaultPaths, Latencies, Latency, LayerFindings, OtherCalls, Path,
    TimeSplit, Timeline, TracedFaults,
};
use pagewise_model::histogram::Histogram;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::quantity::counted;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::thread::{self, ScopedJoinHandle};

/// Contributors and paths in a report.
const MOST_CONTRIBUTORS: usize = 40;
const MOST_PATHS: usize = 40;
const MOST_TREES: usize = 60;
/// Least share of all faults, or of their time, of a tree in a report.
const TREE_SHARE: f64 = 0.01;

/// The findings about the collected faults, without the tracer's calibrated cost.
#[must_use]
pub fn analyse(collector: &Collector, summary: &Summary, calibration: Calibration) -> FaultPaths {
    let names = &summary.names;
    let view = View {
        collector,
        names,
        costs: Costs::new(&collector.costs, &calibration),
    };
    // These depend on nothing else, and take about as long as all the rest.
    let found = thread::scope(|scope| {
        let contrasts = scope.spawn(|| contrasts(collector, names, calibration));
        let timeline = scope.spawn(|| timeline(collector, calibration));
        let trees =
            scope.spawn(|| frequent_trees(collector, names, calibration, wanted_trees(collector)));
        let found = view.findings(calibration);
        let trees = joined(trees);
        TracedFaults {
            contrasts: joined(contrasts),
            timeline: joined(timeline),
            trees: trees.trees,
            trees_left_out: trees.left_out,
            ..found
        }
    });
    let mut losses = losses(summary);
    losses.add(LossKind::Unmeasured, collector.unmeasured(&calibration));
    Document {
        losses,
        ..Document::new(found).with_notes(notes(collector, summary))
    }
}

/// A thread's result.
fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread
        .join()
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// What a reader should know about how the figures were computed.
fn notes(collector: &Collector, summary: &Summary) -> Vec<String> {
    let beyond = collector.shapes.beyond_limit;
    let many = || {
        let trees = counted(beyond, "call tree");
        format!("{trees} beyond {MOST_SHAPES}: kept, at the cost of memory")
    };
    let beyond = (beyond > 0).then(many);
    let events = collector.events.alone(summary.counts.calls);
    events.into_iter().chain(beyond).collect()
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a count"
)]
fn wanted_trees(collector: &Collector) -> TreeQuery {
    TreeQuery {
        min_faults: (collector.checks.faults as f64 * TREE_SHARE).ceil() as u64,
        min_share: TREE_SHARE,
        most: MOST_TREES,
    }
}

/// Whole time of all faults, including waits and the lock before them, as traced.
fn whole_time(collector: &Collector) -> u64 {
    let shapes = collector.shapes.all.iter();
    let sum: u128 = shapes
        .map(|shape| shape.elapsed.sum + shape.lock_before.sum)
        .sum();
    u64::try_from(sum).unwrap_or(u64::MAX)
}

/// What the trace reader had to leave out.
#[must_use]
pub fn losses(summary: &Summary) -> Losses {
    let counts = summary.counts;
    let unread = [
        (LossKind::UnknownRecord, counts.unknown_lines),
        (LossKind::Repeats, counts.repeats),
        (LossKind::RepeatedLines, counts.repeated_lines),
        (LossKind::TimesBack, counts.times_back),
        (LossKind::TracerEvents, counts.lost_events),
        (LossKind::TracerGaps, counts.losses),
        (LossKind::CutLine, counts.truncated_bytes),
        (LossKind::MalformedRecord, counts.malformed_records),
        (LossKind::Truncated, counts.missing_bytes),
        (LossKind::UnnamedFunctions, counts.unnamed_functions),
        (LossKind::OtherBuffers, counts.other_buffers),
    ];
    let mut losses = summary.incomplete.clone();
    for (kind, count) in unread {
        losses.add(kind, count);
    }
    losses
}

struct View<'a> {
    collector: &'a Collector,
    names: &'a Names,
    costs: Costs<'a>,
}

impl View<'_> {
    /// Everything but contrasts, the timeline and frequent trees.
    fn findings(&self, calibration: Calibration) -> TracedFaults {
        let Self {
            collector,
            names,
            costs,
        } = *self;
        let shapes: Vec<&Shape> = collector.shapes.all.iter().collect();
        let latency = self.latencies(&shapes, Layer::Fault);
        let exceeds = latency.corrected.mean_ns < latency.raw.mean_ns / 2.0;
        TracedFaults {
            faults: collector.checks.faults,
            duration_ns: collector.duration(),
            calibration,
            correction_exceeds_signal: exceeds && costs.corrects(),
            latency,
            elapsed: figures(&merged(shapes.iter().map(|shape| &shape.elapsed))),
            split: split(&shapes),
            conservation: Conservation {
                faults: collector.checks.faults,
                violations: collector.checks.violations,
                without_durations: collector.checks.untimed,
            },
            classes: self.classes(),
            layers: self.layers(&shapes),
            paths: self.paths(&shapes),
            distinct_paths: shapes.len() as u64,
            contributors: self.contributors(None, collector.checks.faults),
            call_map: call_map(collector, names, costs),
            calls_below_1us: below_1us(collector),
            other_calls: self.others(&collector.others),
            bare_ends: self.others(&collector.bare),
            descent: collector
                .descent
                .as_ref()
                .map_or(Vec::new(), |descent| descent.findings()),
            contrasts: Vec::new(),
            timeline: Timeline::default(),
            lock_waits: collector.locks.findings(names, whole_time(collector)),
            charges: charges(collector, names, costs),
            trees: Vec::new(),
            trees_left_out: 0,
            reading: reading(collector),
        }
    }

    fn classes(&self) -> Vec<ClassFindings> {
        let mut by_class: BTreeMap<Class, Vec<&Shape>> = BTreeMap::new();
        for shape in &self.collector.shapes.all {
            by_class.entry(shape.class).or_default().push(shape);
        }
        let mut found: Vec<ClassFindings> = by_class
            .iter()
            .map(|(&class, shapes)| self.class(class, shapes))
            .collect();
        let all: f64 = found.iter().map(|c| seconds(&c.latency.corrected)).sum();
        for class in &mut found {
            class.time_share = share(seconds(&class.latency.corrected), all);
        }
        found.sort_by_key(|class| std::cmp::Reverse(class.faults));
        found
    }

    fn class(&self, class: Class, shapes: &[&Shape]) -> ClassFindings {
        let latency = self.latencies(shapes, Layer::Fault);
        let faults = latency.raw.count;
        let lock_before = merged(shapes.iter().map(|shape| &shape.lock_before));
        ClassFindings {
            class,
            faults,
            share: ratio(faults, self.collector.checks.faults),
            time_share: 0.0,
            paths: shapes.len() as u64,
            latency,
            split: split(shapes),
            lock_before: (lock_before.count() > 0).then(|| figures(&lock_before)),
            layers: self.layers(shapes),
            contributors: self.contributors(Some(class), faults),
        }
    }

    fn layers(&self, shapes: &[&Shape]) -> Vec<LayerFindings> {
        let mut found = Vec::new();
        for layer in Layer::ALL {
            let latency = self.latencies(shapes, layer);
            if latency.raw.count > 0 {
                found.push(LayerFindings {
                    layer,
                    stood_for_by: self.stood_for_by(shapes, layer),
                    latency,
                });
            }
        }
        found
    }

    fn stood_for_by(&self, shapes: &[&Shape], layer: Layer) -> Vec<String> {
        if layer != Layer::Handler {
            return Vec::new();
        }
        let mut faults: BTreeMap<u32, u64> = BTreeMap::new();
        for shape in shapes {
            *faults.entry(shape.handler).or_default() += shape.latency[layer as usize].count;
        }
        let mut order: Vec<(u32, u64)> = faults.into_iter().collect();
        order.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let text = |(name, _): &(u32, u64)| self.names.text(NameId(*name)).to_owned();
        order.iter().map(text).collect()
    }

    /// A layer's time per fault, raw and corrected for each shape's calls inside the layer.
    fn latencies(&self, shapes: &[&Shape], layer: Layer) -> Latencies {
        let costs = self.costs;
        let groups = shapes.iter().map(|shape| {
            let places = shape.places.iter().filter(|place| place.layer == layer);
            let inside = places.map(|place| place.calls_inside as usize).sum();
            let tally = &shape.latency[layer as usize];
            Group {
                times: tally,
                calls: inside,
                interrupts: interrupts_in(shape, layer),
                cost: costs.calibration(shape.source),
            }
        });
        latencies(groups)
    }

    fn contributors(
        &self,
        class: Option<Class>,
        faults: u64,
    ) -> Vec<pagewise_model::fault_paths::Contributor> {
        let contexts = (0..).zip(&self.collector.contexts.all);
        let wanted = |(_, context): &(u32, &Context)| class.is_none_or(|c| c == context.class);
        let contexts = contexts.filter(wanted);
        let mut found = contributors(contexts, faults, self.costs, self.names);
        found.truncate(MOST_CONTRIBUTORS);
        found
    }

    /// Shapes by outline: down to the third level, repeats merged.
    fn paths(&self, shapes: &[&Shape]) -> Vec<Path> {
        let mut by_outline: FxHashMap<(Class, String), Vec<&Shape>> = FxHashMap::default();
        for shape in shapes {
            let outline = outline(&shape.tokens, self.names);
            by_outline
                .entry((shape.class, outline))
                .or_default()
                .push(shape);
        }
        let mut found: Vec<Path> = by_outline
            .into_iter()
            .map(|((class, outline), shapes)| self.path(class, outline, &shapes))
            .collect();
        found.sort_by(|a, b| {
            b.faults
                .cmp(&a.faults)
                .then_with(|| a.outline.cmp(&b.outline))
        });
        found.truncate(MOST_PATHS);
        found
    }

    fn path(&self, class: Class, outline: String, shapes: &[&Shape]) -> Path {
        let latency = self.latencies(shapes, Layer::Fault);
        let faults = latency.raw.count;
        let calls = shapes
            .iter()
            .map(|shape| shape.calls_inside() as u64 * shape.latency[Layer::Fault as usize].count);
        Path {
            outline,
            class,
            faults,
            share: ratio(faults, self.collector.checks.faults),
            trees: shapes.len() as u64,
            mean_calls: calls.sum::<u64>() as f64 / faults.max(1) as f64,
            latency,
        }
    }

    fn others(&self, tallies: &FxHashMap<u32, Tally>) -> Vec<OtherCalls> {
        let mut found: Vec<OtherCalls> = tallies
            .iter()
            .map(|(&name, tally)| OtherCalls {
                function: self.names.text(NameId(name)).to_owned(),
                latency: figures(&tally.histogram()),
            })
            .collect();
        found.sort_by(|a, b| {
            let by_count = b.latency.count.cmp(&a.latency.count);
            by_count.then_with(|| a.function.cmp(&b.function))
        });
        found
    }
}

/// Average interrupts in one of a shape's faults, for the layers that make up all or most of it;
/// for the others it is not known which were interrupted.
fn interrupts_in(shape: &Shape, layer: Layer) -> f64 {
    match layer {
        Layer::Fault | Layer::MmFault | Layer::Handler => {
            let faults = shape.latency[Layer::Fault as usize].count;
            shape.interrupts as f64 / faults.max(1) as f64
        }
        _ => 0.0,
    }
}

fn merged<'a>(tallies: impl Iterator<Item = &'a Tally>) -> Histogram {
    let mut all = Histogram::default();
    for tally in tallies {
        tally.add_to(&mut all);
    }
    all
}

fn split(shapes: &[&Shape]) -> TimeSplit {
    let sum = |part: fn(&Split) -> u128| {
        let all: u128 = shapes.iter().map(|shape| part(&shape.split)).sum();
        u64::try_from(all).unwrap_or(u64::MAX)
    };
    let mut split = TimeSplit {
        total_ns: 0,
        self_ns: sum(|split| split.own),
        children_ns: sum(|split| split.children),
        interrupts_ns: sum(|split| split.interrupts),
        runnable_ns: sum(|split| split.runnable),
        blocked_ns: sum(|split| split.blocked),
        off_cpu_ns: sum(|split| split.estimated),
    };
    split.total_ns = split.self_ns
        + split.children_ns
        + split.interrupts_ns
        + split.runnable_ns
        + split.blocked_ns
        + split.off_cpu_ns;
    split
}

fn below_1us(collector: &Collector) -> f64 {
    let calls = collector.contexts.all.iter().map(|context| context.calls);
    let below = collector.contexts.all.iter();
    let below = below.map(|context| context.own_below_1us);
    ratio(below.sum(), calls.sum())
}

fn seconds(latency: &Latency) -> f64 {
    latency.sum_ns as f64 / 1e9
}
