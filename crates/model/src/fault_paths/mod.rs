//! The faults of a function_graph trace as findings: kinds, layers, paths, latencies.
//!
//! Plain data, passed from the analysis to the reports.

mod calibration;
mod course;
mod kinds;
mod waits;

pub use calibration::{Bounds, Calibration, Misfit, Source, Withdrawal};
pub use course::{ChangePoint, Changed, Contrast, Excess, Overrepresented, TimeBlock, Timeline};
pub use kinds::{Class, Layer};
pub use waits::{ChargePath, ChargeWay, Hold, Holder, Lock, LockWait, LockWaits};

use crate::answer::Document;
use crate::call_map::CallMap;
use crate::histogram::wider;
use serde::{Deserialize, Serialize};

/// What an analysis of one trace found.
pub type FaultPaths = Document<TracedFaults>;

/// Everything about the faults of one trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TracedFaults {
    /// Complete faults, on which all figures are based.
    pub faults: u64,
    /// From the first to the last complete call, ns; where the trace has times.
    pub duration_ns: Option<u64>,
    /// The tracer's own cost.
    pub calibration: Calibration,
    /// Whether the correction is more than half of the mean latency: differences between paths are
    /// then mostly differences in their number of calls.
    pub correction_exceeds_signal: bool,
    /// All faults together.
    pub latency: Latencies,
    /// Time that passed in faults, waits included, interrupts not.
    pub elapsed: Latency,
    /// Where the time of all faults went.
    pub split: TimeSplit,
    /// Whether the times add up.
    pub conservation: Conservation,
    /// By kind, the most frequent first.
    pub classes: Vec<ClassFindings>,
    /// Over all faults, in the order of [`Layer::ALL`].
    pub layers: Vec<LayerFindings>,
    /// The most frequent paths; see [`Path`].
    pub paths: Vec<Path>,
    /// Different paths in all.
    pub distinct_paths: u64,
    /// Functions by their share of fault time, the largest first.
    pub contributors: Vec<Contributor>,
    /// The call paths of all faults as a tree.
    pub call_map: CallMap,
    /// The share of calls whose own time, raw, is below 1 µs.
    pub calls_below_1us: f64,
    /// Calls at the top level that are not faults, such as lock helpers, the most frequent first.
    pub other_calls: Vec<OtherCalls>,
    /// Ends of calls without a beginning, by function: the only content with `tracing_thresh`.
    pub bare_ends: Vec<OtherCalls>,
    /// The part of the faults that was examined, from the outside in; empty: all of each fault.
    pub descent: Vec<DescentStep>,
    /// What sets the slowest faults apart, overall and by kind.
    pub contrasts: Vec<Contrast>,
    /// How the faults changed over time.
    pub timeline: Timeline,
    /// Waits for locks, and which tasks held them.
    pub lock_waits: LockWaits,
    /// Charges to the memory cgroup by path.
    pub charges: Vec<ChargePath>,
    /// Calls with everything below them, repeats merged, by their share of time.
    pub trees: Vec<TreePattern>,
    /// Further such trees that are as frequent, or take as much time.
    pub trees_left_out: u64,
    /// What was assumed in reading the trace.
    pub reading: Reading,
}

impl TracedFaults {
    /// What was counted: faults, or the calls inside them after a descent.
    #[must_use]
    pub fn counted_as(&self) -> &'static str {
        match self.descent.is_empty() {
            true => "fault",
            false => "call",
        }
    }
}

/// One step of a descent: the calls of a function or layer inside the calls of the step above.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DescentStep {
    /// The function or layer.
    pub name: String,
    /// Only faults of this kind.
    pub class: Option<Class>,
    /// Only calls that take at least this long (ns, corrected)…
    pub from_ns: Option<u64>,
    /// … and less than that.
    pub to_ns: Option<u64>,
    /// Calls found inside those of the step above.
    pub met: u64,
    /// Of these, calls within the class and the range.
    pub calls: u64,
    /// Their time on the CPU, corrected, ns.
    pub time_ns: u64,
}

/// A call with everything below it, repeats merged: a tree that many faults share, or a few slow
/// ones. It is closed: its occurrences do not all lie inside one larger tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TreePattern {
    /// The tree as text: `root { a b ×3–15 { c } ( d e ) ×2 }`. For a large tree, only the first
    /// calls.
    pub outline: String,
    /// Its outermost function.
    pub root: String,
    /// The kind of the faults that have it, if there is only one.
    pub class: Option<Class>,
    /// Whether it is a whole fault, from its entry on.
    pub complete: bool,
    /// Faults that have it: its support.
    pub faults: u64,
    /// Occurrences in these faults.
    pub occurrences: u64,
    /// Calls inside an occurrence, at least and at most.
    pub calls: (u64, u64),
    /// Its time on the CPU as a share of all faults', raw.
    pub time_share: f64,
    /// The same, corrected.
    pub corrected_time_share: f64,
    /// Time of all its occurrences, as traced, ns.
    pub total_ns: u64,
    /// The same, corrected.
    pub corrected_total_ns: u64,
    /// Own time of its outermost function in these occurrences, as traced, ns.
    pub self_ns: u64,
    /// The same, corrected.
    pub corrected_self_ns: u64,
    /// Mean time of an occurrence, as traced, ns.
    pub raw_mean_ns: f64,
    /// The same, corrected.
    pub mean_ns: f64,
    /// Median time of an occurrence, corrected, ns.
    pub p50_ns: u64,
    /// 99th percentile, corrected, ns.
    pub p99_ns: u64,
    /// How far the corrected mean, median and percentile may be off, either way, ns.
    pub error_ns: f64,
    /// Occurrences behind the median and the percentile: a sample where there are many faults.
    pub timed: u64,
    /// How often the calls of its outermost function repeat.
    pub repeats: Vec<Repeat>,
}

/// Calls that a tree repeats.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repeat {
    /// The function, or the functions of a loop, separated by blanks.
    pub function: String,
    /// Number of repetitions in a row, ascending, and how many rows have that number.
    pub counts: Vec<(u64, u64)>,
}

/// What was assumed in reading a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reading {
    /// Whether durations include time asleep.
    pub sleep_time: SleepTime,
    /// The deepest level traced, if the trace appears to be cut there (`max_graph_depth`): calls
    /// below it cost time that no correction covers.
    pub depth_limit: Option<u16>,
    /// Calls attributed to an interrupt by their position (one level too deep), not by name.
    pub interrupts_by_place: u64,
    /// Different call trees beyond those that fit the fast look-up.
    pub trees_beyond_limit: u64,
}

/// Whether durations include time asleep (the tracer's option `sleep-time`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SleepTime {
    /// Assumed, following the kernel's default: no wait in the trace decides it.
    #[default]
    Assumed,
    /// Waits in the trace are shorter than the calls around them.
    Included,
    /// Waits in the trace are longer than the calls around them.
    Excluded,
}

/// A distribution in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latency {
    /// Values.
    pub count: u64,
    /// Sum, ns.
    pub sum_ns: u64,
    /// Arithmetic mean, ns.
    pub mean_ns: f64,
    /// Smallest, ns.
    pub min_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// 90th percentile, ns.
    pub p90_ns: u64,
    /// 99th percentile, ns.
    pub p99_ns: u64,
    /// Largest, ns.
    pub max_ns: u64,
    /// Peaks, from fast to slow.
    pub modes: Vec<Mode>,
    /// First value, first value past it and count of each filled bucket, ns: 128 per doubling, in
    /// JSON 32.
    #[serde(serialize_with = "wide")]
    pub buckets: Vec<(u64, u64, u64)>,
}

impl Latency {
    /// The buckets as JSON has them: a plot needs no finer ones, quantiles stand beside them, and
    /// what is to be added up is in the sums.
    #[must_use]
    pub fn wide_buckets(&self) -> Vec<(u64, u64, u64)> {
        widened(&self.buckets)
    }
}

fn widened(buckets: &[(u64, u64, u64)]) -> Vec<(u64, u64, u64)> {
    wider(buckets.iter().copied(), 4)
}

fn wide<S: serde::Serializer>(
    buckets: &[(u64, u64, u64)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    widened(buckets).serialize(serializer)
}

/// As traced, and without the tracer's cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Latencies {
    /// As traced.
    pub raw: Latency,
    /// Without the tracer's cost; as traced where nothing is corrected.
    pub corrected: Latency,
    /// Bounds of the corrected figures; absent where nothing is corrected.
    pub bounds: Option<Bounds>,
}

/// Where time went; the parts add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeSplit {
    /// From begin to end, ns.
    pub total_ns: u64,
    /// In the outermost function itself, ns.
    pub self_ns: u64,
    /// In what it called, on the CPU, ns.
    pub children_ns: u64,
    /// In interrupts, softirqs and NMIs, ns.
    pub interrupts_ns: u64,
    /// Runnable, while another task ran, ns.
    pub runnable_ns: u64,
    /// Asleep, ns.
    pub blocked_ns: u64,
    /// Off the CPU for an unknown reason (no `sched_switch` events), ns.
    pub off_cpu_ns: u64,
}

/// Whether self + children + interrupts + off-CPU = total, for every call of every fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conservation {
    /// Faults checked.
    pub faults: u64,
    /// Calls in which the parts exceed the whole by more than the printed precision.
    pub violations: u64,
    /// Faults without a duration for every call: their times come from the time column.
    pub without_durations: u64,
}

/// Faults of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassFindings {
    /// The kind.
    pub class: Class,
    /// How many.
    pub faults: u64,
    /// Share of all faults.
    pub share: f64,
    /// Share of the time of all faults, corrected.
    pub time_share: f64,
    /// Different paths.
    pub paths: u64,
    /// Latency on the CPU.
    pub latency: Latencies,
    /// Where the time went.
    pub split: TimeSplit,
    /// Waits for the mmap lock or the area's lock before the fault, found by task.
    pub lock_before: Option<Latency>,
    /// Latency by layer.
    pub layers: Vec<LayerFindings>,
    /// Functions by their share of time.
    pub contributors: Vec<Contributor>,
}

/// A layer's time per fault that has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerFindings {
    /// The layer.
    pub layer: Layer,
    /// The functions that stand for the handler on this kernel, most frequent first; empty for
    /// other layers.
    pub stood_for_by: Vec<String>,
    /// Time per fault.
    pub latency: Latencies,
}

/// A function's part of the time and of its variance. The parts of all functions add up to one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contributor {
    /// The function.
    pub function: String,
    /// Calls.
    pub calls: u64,
    /// Own time, raw, ns.
    pub self_ns: u64,
    /// Own time without the tracer's cost, ns; not below zero.
    pub corrected_self_ns: u64,
    /// How far the corrected time may be off, either way, ns.
    pub error_ns: u64,
    /// Share of the faults' time on the CPU, raw.
    pub time_share: f64,
    /// The same share, corrected.
    pub corrected_time_share: f64,
    /// Share of the variance of the faults' latency: the covariance of the function's own time
    /// with it. Negative where the function is shorter in slow faults.
    pub variance_share: f64,
}

/// A path: the functions of a fault down to the third level, adjacent repeats merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Path {
    /// Functions with `{` and `}` around what they called, `×n` behind repeats.
    pub outline: String,
    /// The kind.
    pub class: Class,
    /// Faults.
    pub faults: u64,
    /// Share of all faults.
    pub share: f64,
    /// Complete trees merged into this outline.
    pub trees: u64,
    /// Calls inside, on average.
    pub mean_calls: f64,
    /// Latency on the CPU.
    pub latency: Latencies,
}

/// Calls of one function outside faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherCalls {
    /// The function.
    pub function: String,
    /// Its total time, as traced.
    pub latency: Latency,
}

/// One peak.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Mode {
    /// The most frequent latency, ns.
    pub peak_ns: u64,
    /// Lower end of the interval with the middle nine tenths of the mode's values, ns.
    pub low_ns: u64,
    /// Its upper end.
    pub high_ns: u64,
    /// The share of all values that belongs to the mode.
    pub share: f64,
}
