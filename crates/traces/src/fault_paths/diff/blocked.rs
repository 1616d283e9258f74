//! One of the two traces, cut into blocks.

use super::super::cells::Waits;
use super::super::collector::Collector;
use super::super::figures::whole;
use super::super::layer::Layer;
use super::super::outline::outline;
use super::super::probe::Calibration;
use super::super::shapes::Shape;
use super::super::signature::Class;
use super::super::stretches::{Stretch, Stretches, join};
use super::super::tally::reduce;
use pagewise_formats::function_graph::{NameId, Names};
use pagewise_stats::blocks::neighbour_correlation;
use std::collections::BTreeMap;

/// Blocks of a sufficiently long trace; a longer trace has longer blocks. For questions about the
/// trace, more blocks would hardly add power, but would span fewer of the phases that make
/// neighbours similar; detecting rare slow calls of one function needs more.
const MOST_BLOCKS: usize = 64;
const MOST_BLOCKS_WITHIN: usize = 128;
/// Blocks are lengthened while neighbours are similar, but at least half of these remain.
const FEWEST_TO_JOIN: usize = 48;
/// Neighbouring blocks that correlate more than this are similar.
const ALIKE: f64 = 0.25;
/// Kinds with at least this share of all faults are checked for similarity.
const FREQUENT: f64 = 0.05;

/// The measure of similarity between blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alike {
    /// Latency and shares of kinds: for questions about the trace.
    Faults,
    /// Latency relative to other faults of the same kind: for questions about a kind.
    WithinKinds,
    /// None, with the shortest blocks: for questions about this recording alone.
    Nothing,
}

/// A trace with its faults by block.
pub(super) struct Blocked<'a> {
    pub collector: &'a Collector,
    pub names: &'a Names,
    pub calibration: Calibration,
    pub blocks: Vec<Stretch>,
    pub correlation: f64,
    pub rows: Vec<Row>,
    /// Outline of each shape's path.
    pub paths: Vec<String>,
    /// The layers of each shape with the calls inside.
    layers: Vec<Vec<(Layer, usize)>>,
}

/// A logged fault.
#[derive(Clone, Copy, Debug)]
pub(super) struct Row {
    pub block: usize,
    pub class: Class,
    pub shape: usize,
    /// Its position in the log.
    pub logged: usize,
    /// Its number among all faults.
    number: u64,
    /// When it ended, by the trace's clock.
    end_ns: Option<u64>,
    /// Whole time as traced, ns.
    pub raw: u64,
    /// Whole time without the tracer's cost, ns.
    pub corrected: u64,
    /// Error of the corrected time, ns.
    pub doubt: f64,
    pub waits: Waits,
}

/// Activity of a function in faults of a class, by block.
#[derive(Clone, Debug, Default)]
pub(super) struct FunctionSums {
    pub calls: Vec<f64>,
    pub corrected: Vec<f64>,
    /// Time as traced, of all blocks.
    pub own: f64,
    /// Error of the corrected time, of all blocks.
    pub doubt: f64,
    /// Calls by interval of self time.
    pub bins: BTreeMap<u32, Vec<f64>>,
}

impl<'a> Blocked<'a> {
    pub(super) fn new(
        collector: &'a Collector,
        names: &'a Names,
        calibration: Calibration,
        alike: Alike,
    ) -> Self {
        let contexts = &collector.contexts.all;
        let mut stretches = match &collector.stretches {
            Some(stretches) => stretches.finished(contexts),
            None => Stretches::undivided(collector.checks.faults, contexts),
        };
        let most = match alike {
            Alike::Faults => MOST_BLOCKS,
            Alike::WithinKinds => MOST_BLOCKS_WITHIN,
            Alike::Nothing => usize::MAX,
        };
        let group = stretches.len().div_ceil(most).max(1);
        if group > 1 {
            stretches = grouped(&stretches, group);
        }
        let mut rows = rows(collector, calibration);
        let mut correlation = place(&mut rows, &stretches, alike);
        while alike != Alike::Nothing && correlation > ALIKE && stretches.len() >= FEWEST_TO_JOIN {
            stretches = grouped(&stretches, 2);
            correlation = place(&mut rows, &stretches, alike);
        }
        let outlines = collector.shapes.all.iter();
        let outlines = outlines.map(|shape| outline(&shape.tokens, names));
        Self {
            collector,
            names,
            calibration,
            blocks: stretches,
            correlation,
            rows,
            paths: outlines.collect(),
            layers: collector.shapes.all.iter().map(Shape::layers).collect(),
        }
    }

    /// Faults of a class (or all) by block, whether logged or not.
    pub(super) fn faults(&self, class: Option<Class>) -> Vec<f64> {
        let by_block = self.blocks.iter().map(|block| match class {
            None => block.faults,
            Some(class) => {
                let roots = block.sums.iter().filter(|sums| {
                    let context = self.collector.contexts.all[sums.context as usize];
                    context.parent == sums.context && context.class == class
                });
                roots.map(|sums| sums.calls).sum()
            }
        });
        by_block.map(whole).collect()
    }

    /// Duration of each block, ns; `None` if the trace has no times.
    pub(super) fn durations(&self) -> Option<Vec<f64>> {
        let mut ends = vec![None; self.blocks.len()];
        for row in &self.rows {
            ends[row.block] = ends[row.block].max(row.end_ns);
        }
        let mut before = self.collector.first_time?;
        let duration = |end: Option<u64>| {
            let end = end?.max(before);
            Some(whole(end - std::mem::replace(&mut before, end)))
        };
        ends.into_iter().map(duration).collect()
    }

    /// Sums over the logged faults of a class (or all), by block.
    pub(super) fn sums(&self, class: Option<Class>, of: impl Fn(&Row) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; self.blocks.len()];
        for row in self.rows(class) {
            sums[row.block] += of(row);
        }
        sums
    }

    /// The logged faults of a class, or all.
    pub(super) fn rows(&self, class: Option<Class>) -> impl Iterator<Item = &Row> {
        self.rows
            .iter()
            .filter(move |row| class.is_none_or(|class| class == row.class))
    }

    /// A layer's time in a fault, as traced and corrected, where the fault has the layer.
    pub(super) fn layer(&self, row: &Row, layer: Layer) -> Option<(u64, u64)> {
        let layers = &self.layers[row.shape];
        let at = layers.iter().position(|(found, _)| *found == layer)?;
        let raw = *self.collector.log.layers(row.logged).get(at)?;
        Some((raw, reduce(raw, self.calibration.cost(layers[at].1))))
    }

    /// Error of a layer's corrected time in a fault, ns.
    pub(super) fn layer_doubt(&self, row: &Row, layer: Layer) -> f64 {
        let layers = self.layers[row.shape].iter();
        let calls = layers.filter(|(found, _)| *found == layer);
        doubt(self.calibration) * calls.map(|(_, calls)| whole(*calls as u64)).sum::<f64>()
    }

    /// Activity of each function in faults of each class.
    pub(super) fn functions(&self) -> BTreeMap<(Class, &'a str), FunctionSums> {
        let mut found: BTreeMap<(Class, &str), FunctionSums> = BTreeMap::new();
        let blocks = self.blocks.len();
        let contexts = &self.collector.contexts.all;
        let inside = self.calibration.inside_ns;
        let outside = self.calibration.per_call_ns - inside;
        let doubt = doubt(self.calibration);
        for (block, stretch) in self.blocks.iter().enumerate() {
            for sums in &stretch.sums {
                let context = contexts[sums.context as usize];
                let key = (context.class, self.names.base(NameId(context.name)));
                let entry = found
                    .entry(key)
                    .or_insert_with(|| FunctionSums::new(blocks));
                let traced_inside = if context.parent == sums.context {
                    0
                } else {
                    sums.calls
                };
                let cost = whole(traced_inside) * inside + whole(sums.direct_calls) * outside;
                entry.doubt += doubt * whole(traced_inside.max(sums.direct_calls));
                entry.calls[block] += whole(sums.calls);
                entry.own += whole(sums.own);
                entry.corrected[block] += whole(sums.own) - cost;
            }
            for binned in &stretch.own_times {
                let context = contexts[binned.context as usize];
                let key = (context.class, self.names.base(NameId(context.name)));
                if let Some(entry) = found.get_mut(&key) {
                    let bin = entry
                        .bins
                        .entry(binned.bin)
                        .or_insert_with(|| vec![0.0; blocks]);
                    bin[block] += whole(binned.calls);
                }
            }
        }
        found
    }
}

impl FunctionSums {
    /// Adds the sums of another function or kind.
    pub(super) fn add(&mut self, other: &Self) {
        let add = |to: &mut [f64], from: &[f64]| {
            to.iter_mut()
                .zip(from)
                .for_each(|(sum, value)| *sum += value);
        };
        add(&mut self.calls, &other.calls);
        add(&mut self.corrected, &other.corrected);
        self.own += other.own;
        self.doubt += other.doubt;
        let blocks = self.calls.len();
        for (bin, calls) in &other.bins {
            add(
                self.bins.entry(*bin).or_insert_with(|| vec![0.0; blocks]),
                calls,
            );
        }
    }

    pub(super) fn new(blocks: usize) -> Self {
        Self {
            calls: vec![0.0; blocks],
            corrected: vec![0.0; blocks],
            own: 0.0,
            doubt: 0.0,
            bins: BTreeMap::new(),
        }
    }
}

fn grouped(stretches: &[Stretch], group: usize) -> Vec<Stretch> {
    let groups = stretches.chunks(group).map(|chunk| {
        let joined = chunk[1..].iter();
        joined.fold(chunk[0].clone(), |sum, next| join(&sum, next))
    });
    groups.collect()
}

/// Error of the correction of one call, ns: the whole cost if it was withdrawn.
fn doubt(calibration: Calibration) -> f64 {
    match calibration.withdrawn {
        Some(withdrawn) => withdrawn.per_call_ns,
        None => calibration.error_ns,
    }
}

fn rows(collector: &Collector, calibration: Calibration) -> Vec<Row> {
    let doubt = doubt(calibration);
    let row = |(at, logged): (usize, &super::super::cells::Logged)| {
        let shape = &collector.shapes.all[logged.shape as usize];
        Row {
            block: 0,
            class: shape.class,
            shape: logged.shape as usize,
            logged: at,
            number: logged.number,
            end_ns: logged.end_ns,
            raw: logged.whole(),
            corrected: logged.corrected(calibration.cost(shape.calls_inside())),
            doubt: doubt * whole(shape.calls_inside() as u64),
            waits: logged.waits,
        }
    };
    collector.log.faults.iter().enumerate().map(row).collect()
}

/// Puts each row into its block; returns the largest correlation of neighbouring blocks, in their
/// latency and their shares of each frequent kind.
fn place(rows: &mut [Row], blocks: &[Stretch], alike: Alike) -> f64 {
    let mut ends = Vec::with_capacity(blocks.len());
    let mut end = 0;
    for block in blocks {
        end += block.faults;
        ends.push(end);
    }
    let mut latency = vec![(0.0, 0.0); blocks.len()];
    let mut kinds: BTreeMap<Class, Vec<(f64, f64)>> = BTreeMap::new();
    let last = blocks.len().saturating_sub(1);
    for row in &mut *rows {
        row.block = ends.partition_point(|&end| end <= row.number).min(last);
        let faults = kinds.entry(row.class).or_insert_with(|| latency.clone());
        faults[row.block].0 += 1.0;
    }
    let means = match alike {
        Alike::Faults | Alike::Nothing => BTreeMap::new(),
        Alike::WithinKinds => mean_logarithms(rows),
    };
    let frequent = match alike {
        Alike::Faults => whole(rows.len() as u64) * FREQUENT,
        Alike::WithinKinds | Alike::Nothing => f64::INFINITY,
    };
    kinds.retain(|_, faults| faults.iter().map(|(faults, _)| faults).sum::<f64>() >= frequent);
    for row in rows {
        // A logarithm, so that one slow fault does not dominate its block's mean.
        let sum = &mut latency[row.block];
        let usual = means.get(&row.class).copied().unwrap_or(0.0);
        *sum = (
            sum.0 + whole(row.corrected.max(1)).ln() - usual,
            sum.1 + 1.0,
        );
    }
    for faults in kinds.values_mut() {
        for (share, (_, all)) in faults.iter_mut().zip(&latency) {
            share.1 = *all;
        }
    }
    let series = kinds.values().chain([&latency]);
    let correlations = series.map(|series| {
        let means = series
            .iter()
            .map(|(sum, count)| sum / f64::max(*count, 1.0));
        neighbour_correlation(&means.collect::<Vec<f64>>())
    });
    correlations.fold(0.0, f64::max)
}

/// The mean logarithm of whole time by kind.
fn mean_logarithms(rows: &[Row]) -> BTreeMap<Class, f64> {
    let mut sums: BTreeMap<Class, (f64, f64)> = BTreeMap::new();
    for row in rows {
        let sum = sums.entry(row.class).or_default();
        *sum = (sum.0 + whole(row.corrected.max(1)).ln(), sum.1 + 1.0);
    }
    sums.into_iter()
        .map(|(class, (sum, count))| (class, sum / count))
        .collect()
}
