//! Slow faults compared with the others, and faults over time.

use super::Class;
use serde::{Deserialize, Serialize};

/// The slowest faults compared with the others. Latency here is the whole time, waits and the lock
/// before the fault included, without the tracer's cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contrast {
    /// The kind of fault; `None`: all.
    pub class: Option<Class>,
    /// 0.99 for the slowest hundredth.
    pub quantile: f64,
    /// Faults beyond this are the tail, ns.
    pub threshold_ns: u64,
    /// Faults in the tail.
    pub tail: u64,
    /// The other faults.
    pub body: u64,
    /// Mean whole time in the tail, ns.
    pub tail_mean_ns: f64,
    /// Mean whole time of the others, ns.
    pub body_mean_ns: f64,
    /// How far the two means may be off because of errors in the correction, either way but both
    /// the same way, ns.
    pub error_ns: [f64; 2],
    /// Hypotheses tested together; 0 where the trace is too short.
    pub tests: u64,
    /// Functions more frequent in the tail beyond chance, the strongest first.
    pub functions: Vec<Overrepresented>,
    /// The same for paths.
    pub paths: Vec<Overrepresented>,
    /// What the extra time of the tail consists of, the largest first; the parts of all
    /// functions and waits add up to `tail_mean_ns - body_mean_ns`.
    pub excess: Vec<Excess>,
}

/// Something found more often in slow faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overrepresented {
    /// The function, or the path's outline.
    pub name: String,
    /// Functions found in exactly the same faults.
    pub along: Vec<String>,
    /// The kind of the path's faults.
    pub class: Option<Class>,
    /// Slow faults that have it.
    pub tail: u64,
    /// Other faults that have it.
    pub body: u64,
    /// Share of the slow faults.
    pub tail_share: f64,
    /// Share of the others.
    pub body_share: f64,
    /// Adjusted for all tests of the contrast.
    pub p_adjusted: f64,
}

/// A part of the extra time of slow faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Excess {
    /// The function, or what was waited for.
    pub name: String,
    /// Whether it is a wait.
    pub wait: bool,
    /// Mean in the tail less mean in the others, ns, corrected.
    pub ns: f64,
    /// How far that may be off because of errors in the correction, either way, ns.
    pub error_ns: f64,
    /// Share of the whole difference.
    pub share: f64,
    /// Mean in the tail, ns, corrected.
    pub tail_ns: f64,
    /// Mean in the others, ns, corrected.
    pub body_ns: f64,
}

/// Faults in the order in which they ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "TraceTimeline"))]
pub struct Timeline {
    /// Consecutive blocks of about equal numbers of faults.
    pub blocks: Vec<TimeBlock>,
    /// Where they changed, in order of time.
    pub changes: Vec<ChangePoint>,
    /// Only one in this many faults is in `blocks`: long traces are thinned evenly.
    pub every: u64,
}

/// Faults of one stretch of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeBlock {
    /// From the trace's first call, ns; `None` without times.
    pub start_ns: Option<u64>,
    /// To the last fault's end.
    pub end_ns: Option<u64>,
    /// Faults.
    pub faults: u64,
    /// Mean whole time, corrected, ns.
    pub mean_ns: f64,
    /// How far that may be off because of errors in the correction, either way, ns.
    pub error_ns: f64,
    /// Median of the whole time.
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Faults, whole time raw (ns) and calls inside, by kind.
    pub classes: Vec<(Class, u64, u64, u64)>,
}

/// A moment at which the faults changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChangePoint {
    /// What changed.
    pub what: Changed,
    /// The kind of fault whose share changed.
    pub class: Option<Class>,
    /// From the trace's first call, ns; `None` without times.
    pub at_ns: Option<u64>,
    /// Faults before it in the trace.
    pub faults_before: u64,
    /// Between the change before and this one: faults per second, a share, or ns.
    pub before: f64,
    /// Between this change and the next.
    pub after: f64,
    /// Adjusted for all series searched.
    pub p_adjusted: f64,
}

/// What changed at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// Faults per second.
    Rate,
    /// The share of a kind.
    Mix,
    /// The median of the whole time.
    Median,
    /// The 90th percentile of the whole time.
    Tail,
}
