//! Two sets of faults side by side: what differs, by how much, and how certain that is.
//!
//! A is the first input, B the second; every change is B minus A. Times are in nanoseconds. The
//! *whole time* of a fault is its time on the CPU, its waits, and the wait for the lock before it
//! where the trace shows that as a separate call. Raw figures are as traced; corrected figures are
//! without the tracer's cost, and are the ones tested.

use crate::answer::{Evidence, Kind};
use crate::fault_paths::{Calibration, Class, Latency, Layer};
use crate::loss::Losses;
use crate::side::Side;
use crate::units::Estimate;
use serde::{Deserialize, Serialize};

/// Everything that was compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultDiff {
    /// The first input.
    pub a: Side<Traced>,
    /// The second input.
    pub b: Side<Traced>,
    /// How it was tested.
    pub method: Method,
    /// The few questions that were tested first, with their answers.
    pub questions: Vec<Question>,
    /// What differs beyond chance and by enough to matter, in sentences: first the answers to the
    /// questions, then what explains them, the largest part of the difference first. Empty if
    /// nothing differs so.
    pub findings: Vec<Finding>,
    /// Differences between these recordings, beyond chance and by enough to matter, that are
    /// confined to few of their phases: another recording may differ.
    pub phases: Vec<Finding>,
    /// Differences that could be chance (three standard errors, but not certain), and differences
    /// that the error of the correction for the tracer's cost could explain entirely.
    pub suspicions: Vec<Finding>,
    /// Whole time of all faults.
    pub whole: Shift,
    /// Kinds of faults, the most frequent of both first.
    pub classes: Vec<ClassChange>,
    /// Layers over all faults and by kind.
    pub layers: Vec<LayerChange>,
    /// Paths: the most different share first.
    pub paths: Vec<PathChange>,
    /// Functions by kind of fault: the largest change of time first.
    pub functions: Vec<FunctionChange>,
    /// Functions found in only one of the inputs.
    pub extra: Vec<ExtraFunction>,
    /// The parts of the difference of the means.
    pub mean: Explanation,
    /// The parts of the difference between the means of the slowest 1 %.
    pub tail: Explanation,
}

impl Evidence for FaultDiff {
    const KIND: Kind = Kind::FaultDiff;
}

/// Figures of one trace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Traced {
    /// Its name in sentences.
    pub label: String,
    /// Complete faults.
    pub faults: u64,
    /// From the first to the last complete call.
    pub duration_ns: Option<u64>,
    /// The tracer's cost.
    pub calibration: Calibration,
    /// Whether the correction is more than half of the mean latency.
    pub correction_exceeds_signal: bool,
    /// Different paths.
    pub distinct_paths: u64,
    /// Stretches of the trace that were resampled as units; 0 where the input has none.
    pub blocks: u32,
    /// Correlation of neighbouring blocks' mean whole time: near 0 where blocks are long enough.
    pub block_correlation: f64,
    /// What is missing from all figures.
    #[serde(default, skip_serializing_if = "Losses::is_empty")]
    pub losses: Losses,
}

/// How the tests were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Method {
    /// The chance that anything at all is found in two traces of the same behaviour.
    pub level: f64,
    /// Figures tested; what explains a difference is tested only where there is one.
    pub tests: u64,
    /// Of these, the figures behind the questions.
    pub questions: u64,
    /// Random exchanges of blocks between the inputs.
    pub permutations: u32,
    /// Resamples of blocks behind each interval.
    pub resamples: u32,
    /// The seed of both.
    pub seed: u64,
    /// Why nothing was tested, where nothing was.
    pub not_tested: Option<String>,
}

/// A figure of both inputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pair {
    /// In A.
    pub a: f64,
    /// In B.
    pub b: f64,
}

/// The same figure as traced and corrected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Pairs {
    /// As traced.
    pub raw: Pair,
    /// Without the tracer's cost.
    pub corrected: Pair,
}

/// The outcome of one test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Test {
    /// The change in standard errors.
    pub score: f64,
    /// Adjusted for all tests of the comparison.
    pub p_adjusted: f64,
    /// Whether `p_adjusted` is within the level.
    pub significant: bool,
}

/// A question about the faults as a whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Question {
    /// What it is about.
    pub subject: Subject,
    /// The kind of fault, for shares of kinds.
    pub class: Option<Class>,
    /// The quantile, for quantiles.
    pub name: Option<String>,
    /// What [`Self::figures`] count.
    pub unit: Unit,
    /// The figure of both inputs.
    pub figures: Pairs,
    /// B minus A, corrected, with its 95 % interval where there is one.
    pub change: Estimate,
    /// The test.
    pub test: Test,
    /// The answer.
    pub answer: Answer,
}

/// The answer to a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// They differ beyond chance, by enough to matter.
    Differs,
    /// They differ beyond chance, by too little to matter.
    Negligible,
    /// These recordings differ beyond chance, by enough to matter, in few of their phases: another
    /// recording may differ.
    DiffersInPhases,
    /// Nothing beyond chance was found.
    NotFound,
    /// The change is smaller than the error of the correction for the tracer's cost.
    WithinCorrection,
}

/// Something that differs beyond chance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Finding {
    /// What kind of thing differs.
    pub subject: Subject,
    /// The kind of fault concerned; `None`: all faults.
    pub class: Option<Class>,
    /// The layer, for layers.
    pub layer: Option<Layer>,
    /// The function or path, for functions and paths.
    pub name: Option<String>,
    /// The sentence.
    pub sentence: String,
    /// What [`Self::figures`] count.
    pub unit: Unit,
    /// The figure of both inputs.
    pub figures: Pairs,
    /// B minus A, corrected, with its 95 % interval where one was resampled.
    pub change: Estimate,
    /// Its part of the difference of the mean whole times, ns per fault; 0 for what takes no time.
    pub mean_ns: f64,
    /// The test.
    pub test: Test,
    /// The tracer's cost differs between the inputs by more than this change, or its error is
    /// larger than the change: the finding may be an artefact of the tracer.
    pub correction_exceeds_signal: bool,
}

/// What kind of thing differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Faults per second.
    Rate,
    /// The share of a kind of fault.
    ClassShare,
    /// Mean whole time.
    Mean,
    /// A quantile of whole time.
    Quantile,
    /// Whole time compared with that of other faults of the same path.
    SamePath,
    /// The share of faults that are slower than 99 % of both inputs' faults of the same path.
    SamePathTail,
    /// Mean time of a layer.
    Layer,
    /// Time asleep, waiting for a CPU or for the lock before the fault.
    Wait,
    /// The share of a path among faults of its kind.
    PathShare,
    /// A function's own time per fault.
    FunctionTime,
    /// Calls of a function per fault.
    FunctionCalls,
    /// Slow calls of a function: own time beyond a bound that few calls of both exceed.
    FunctionSlowCalls,
}

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Nanoseconds.
    Ns,
    /// A share.
    Share,
    /// Calls per fault.
    PerFault,
    /// Faults per second.
    PerSecond,
    /// B over A, A being 1.
    Ratio,
}

/// A distribution of both inputs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Shift {
    /// In A, corrected.
    pub a: Latency,
    /// In B, corrected.
    pub b: Latency,
    /// In A, as traced.
    pub a_raw: Latency,
    /// In B, as traced.
    pub b_raw: Latency,
    /// Change of the mean, corrected.
    pub mean: Estimate,
    /// The test of the mean.
    pub mean_test: Option<Test>,
    /// From the fastest to the slowest.
    pub quantiles: Vec<QuantileShift>,
}

/// How far a quantile moved.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct QuantileShift {
    /// 0 to 1.
    pub quantile: f64,
    /// As traced and corrected, ns.
    pub ns: Pairs,
    /// B minus A, corrected, ns; the interval by resampling blocks.
    pub change: Estimate,
    /// For the quantiles that are tested: 0.5, 0.9, 0.99.
    pub test: Option<Test>,
}

/// A kind of fault in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ClassChange {
    /// The kind.
    pub class: Class,
    /// Faults.
    pub faults: (u64, u64),
    /// Share of faults.
    pub share: Pair,
    /// Share of whole time, raw and corrected.
    pub time_share: Pairs,
    /// Change of the share of faults.
    pub change: Estimate,
    /// The test of the share of faults.
    pub test: Option<Test>,
    /// Whole time of its faults.
    pub whole: Shift,
}

/// A layer in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LayerChange {
    /// The layer.
    pub layer: Layer,
    /// The kind of fault; `None`: all.
    pub class: Option<Class>,
    /// Share of the whole time of these faults.
    pub time_share: Pairs,
    /// Time per fault that has it.
    pub shift: Shift,
}

/// A path in both: functions to the third level, adjacent repeats merged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathChange {
    /// The kind of fault.
    pub class: Class,
    /// As in [`crate::fault_paths::Path::outline`].
    pub outline: String,
    /// Faults.
    pub faults: (u64, u64),
    /// Share of the faults of its kind.
    pub share: Pair,
    /// Change of that share.
    pub change: Estimate,
    /// Its test.
    pub test: Option<Test>,
    /// Mean whole time.
    pub mean_ns: Pairs,
}

/// A function's own work in faults of a kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionChange {
    /// The function, without suffixes of compiler clones.
    pub function: String,
    /// The kind of fault.
    pub class: Class,
    /// Calls per fault of the kind.
    pub calls: Pair,
    /// Own time per fault of the kind, ns.
    pub own_ns: Pairs,
    /// B minus A of that time, corrected.
    pub change: Estimate,
    /// Test of own time per fault.
    pub time_test: Option<Test>,
    /// Test of calls per fault.
    pub calls_test: Option<Test>,
    /// Slow calls, where they were compared.
    pub slow: Option<SlowCalls>,
}

/// Calls whose own time exceeds a bound that few calls of both inputs exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlowCalls {
    /// The bound on own time, as traced, ns.
    pub above_ns: u64,
    /// Such calls per fault of the kind.
    pub per_fault: Pair,
    /// Median own time of all calls, as traced, ns.
    pub usual_ns: Pair,
    /// Mean own time of the slow calls, as traced, ns.
    pub slow_ns: Pair,
    /// The test.
    pub test: Test,
}

/// A function found in only one input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ExtraFunction {
    /// The function.
    pub function: String,
    /// Whether B has it rather than A.
    pub in_b: bool,
    /// Calls in faults.
    pub calls: u64,
    /// Faults that call it.
    pub faults: u64,
    /// Share of the faults.
    pub share: f64,
    /// Own time, corrected, as a share of the whole time.
    pub time_share: f64,
}

/// A difference in parts that add up to it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Explanation {
    /// What is explained, ns per fault.
    pub figures: Pairs,
    /// B minus A, corrected, ns per fault.
    pub change_ns: f64,
    /// Parts, the largest first; the last one may be the sum of all small ones.
    pub parts: Vec<Part>,
    /// The parts as sentences.
    pub sentences: Vec<String>,
}

/// A part of a difference.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Part {
    /// What the part is.
    pub cause: PartCause,
    /// The kind of fault; `None` where it is about all.
    pub class: Option<Class>,
    /// The function, for functions.
    pub function: Option<String>,
    /// For a mix, the share of the kind among all faults; otherwise corrected ns per fault of the
    /// kind.
    pub figures: Pair,
    /// Its part of the change, corrected, ns per fault.
    pub ns: f64,
    /// Its part as traced, ns per fault.
    pub raw_ns: f64,
}

/// Why a mean differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum PartCause {
    /// A different share of a kind that is slower or faster than the average.
    Mix,
    /// A function takes longer, or is called more, in faults of the same kind.
    Function,
    /// Waiting for a CPU.
    Runnable,
    /// Asleep.
    Blocked,
    /// Off the CPU for an unknown reason.
    OffCpu,
    /// Waiting for the lock before the fault.
    LockBefore,
    /// All smaller parts.
    Rest,
}
