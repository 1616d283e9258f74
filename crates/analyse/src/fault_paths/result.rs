//! The findings about the fault paths of a trace, as data.

use super::layer::Layer;
use super::modes::Mode;
use super::probe::Calibration;
use super::signature::Class;
use serde::{Deserialize, Serialize};

/// Version of [`FaultPaths`] as JSON; `docs/schema/fault-paths.json` describes it.
pub const SCHEMA_VERSION: u32 = 1;

/// Everything about the faults of one trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FaultPaths {
    /// [`SCHEMA_VERSION`].
    pub schema_version: u32,
    /// `fault_paths`, to tell this from other reports.
    pub kind: String,
    /// Complete faults, all that the figures are about.
    pub faults: u64,
    /// From the first to the last complete call, ns; where the trace has times.
    pub duration_ns: Option<u64>,
    /// The tracer's own cost.
    pub calibration: Calibration,
    /// Whether correcting takes more than half of the mean latency: differences between paths
    /// are then mostly differences in their number of calls.
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
    /// The share of calls whose own time, raw, is below 1 µs.
    pub calls_below_1us: f64,
    /// Calls at the top level that are no faults, such as lock helpers, the most frequent first.
    pub other_calls: Vec<OtherCalls>,
    /// Ends of calls without a beginning, by function: all there is with `tracing_thresh`.
    pub bare_ends: Vec<OtherCalls>,
}

/// A distribution in figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
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
    /// First value, first value past it and count of each filled bucket, ns.
    pub buckets: Vec<(u64, u64, u64)>,
}

/// As traced, and without the tracer's cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// As traced.
    pub raw: Latency,
    /// Without the tracer's cost.
    pub corrected: Latency,
}

/// Where time went; the parts add up to the total.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeSplit {
    /// From begin to end, ns.
    pub total_ns: u64,
    /// In the outermost function itself, ns.
    pub self_ns: u64,
    /// In what it called, on the CPU, ns.
    pub children_ns: u64,
    /// In interrupts, softirqs and NMIs, ns.
    pub interrupts_ns: u64,
    /// Able to run, but another task did, ns.
    pub runnable_ns: u64,
    /// Asleep, ns.
    pub blocked_ns: u64,
    /// Off the CPU for an unknown reason (no `sched_switch` events), ns.
    pub off_cpu_ns: u64,
}

/// Whether self + children + interrupts + off-CPU = total, for every call of every fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Conservation {
    /// Faults looked at.
    pub faults: u64,
    /// Calls in which the parts exceed the whole by more than the printed precision.
    pub violations: u64,
    /// Faults without a duration for every call: their times come from the time column.
    pub without_durations: u64,
}

/// Faults of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
pub struct Contributor {
    /// The function.
    pub function: String,
    /// Calls.
    pub calls: u64,
    /// Own time, raw, ns.
    pub self_ns: u64,
    /// Own time without the tracer's cost, ns; not below zero.
    pub corrected_self_ns: u64,
    /// Share of the faults' time on the CPU, raw.
    pub time_share: f64,
    /// Share of it, corrected.
    pub corrected_time_share: f64,
    /// Share of the variance of the faults' latency: the covariance of the function's own time
    /// with it. Negative where the function is shorter in slow faults.
    pub variance_share: f64,
}

/// A path: the functions of a fault down to the third level, adjacent repeats merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
pub struct OtherCalls {
    /// The function.
    pub function: String,
    /// Its total time, as traced.
    pub latency: Latency,
}
