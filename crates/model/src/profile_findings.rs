//! What a profile shows: the sums that a reader looks at first, and anything unusual in them.

use crate::answer::{Document, Evidence, Kind};
use crate::profile::{FrameKind, WeightUnit};
use crate::symbol::Unnamed;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// What an analysis of a profile found.
pub type ProfileFindings = Document<ProfileSummary>;

/// What a profile shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileSummary {
    /// Time that was observed; zero where the input has no times.
    pub span: Nanos,
    /// Each event's sums; the most important one first.
    pub events: Vec<EventProfile>,
    /// Counters and ratios of them; counters that the machine does not have are absent.
    pub counters: Vec<CounterRate>,
    /// Frames without a name, by cause, largest share first.
    pub unknown: Vec<UnknownShare>,
    /// Estimated nanoseconds that recording itself cost, if the recorder reports it.
    pub own_cost: Option<Nanos>,
}

impl Evidence for ProfileSummary {
    const KIND: Kind = Kind::Profile;
}

/// Sums of one event. Weights are in `unit`; those of idle CPUs are only in `idle`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventProfile {
    /// perf's name of the event.
    pub name: String,
    /// What one unit of weight is.
    pub unit: WeightUnit,
    /// Samples per second that were requested, if chosen by frequency.
    pub frequency: Option<u64>,
    /// Samples.
    pub samples: u64,
    /// Sum of their weights, without idle time.
    pub weight: u64,
    /// Weight of samples that found a CPU idle.
    pub idle: u64,
    /// Functions, largest own weight first.
    pub functions: Vec<FunctionShare>,
    /// Stacks, heaviest first.
    pub stacks: Vec<StackShare>,
    /// Processes, heaviest first.
    pub processes: Vec<ProcessShare>,
    /// Control groups, heaviest first; empty where none were recorded.
    pub cgroups: Vec<CgroupShare>,
    /// CPUs by number; empty where the input has none.
    pub cpus: Vec<CpuShare>,
    /// The stretch of time that stands out most.
    pub burst: Option<Burst>,
}

/// One function's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FunctionShare {
    /// Its name.
    pub name: String,
    /// The file that contains it; empty where not known.
    pub module: String,
    /// What kind of code it is.
    pub kind: FrameKind,
    /// Weight of samples in the function itself.
    pub own: u64,
    /// Weight of samples in it or in what it called; a recursive function counts once per sample.
    pub total: u64,
}

/// One stack's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackShare {
    /// Functions, outermost first.
    pub frames: Vec<String>,
    /// Its weight.
    pub weight: u64,
}

/// One process's part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessShare {
    /// Process id; -1 where not known.
    pub pid: i32,
    /// Name of its heaviest thread.
    pub comm: String,
    /// Threads that were sampled.
    pub threads: u64,
    /// Its weight.
    pub weight: u64,
}

/// One control group's part, without those below it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CgroupShare {
    /// Path from the root of its hierarchy.
    pub path: String,
    /// Its weight.
    pub weight: u64,
}

/// One CPU's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CpuShare {
    /// Its number.
    pub cpu: u16,
    /// Weight without idle time.
    pub weight: u64,
}

/// A stretch of time in which far more happened than usual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Burst {
    /// Its beginning, since the profile's start.
    pub from: Nanos,
    /// Its end.
    pub to: Nanos,
    /// Weight in it.
    pub weight: u64,
    /// Usual weight of a stretch of the same length (the median).
    pub usual: u64,
    /// The function whose total weight grew most compared with the rest of the time.
    pub function: String,
    /// That function's share of the burst's weight (0 to 1).
    pub share: f64,
    /// Its share at other times.
    pub share_elsewhere: f64,
}

/// Frames without a name for one reason.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnknownShare {
    /// Why.
    pub reason: Unnamed,
    /// The file, where one is known.
    pub module: String,
    /// Share of the leading event's weight whose stack has such a frame (0 to 1).
    pub touched: f64,
    /// Share of its weight whose stack ends in such a frame.
    pub own: f64,
    /// What it means and what to do.
    pub remedy: String,
}

/// A counter over the whole time, or a ratio of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CounterRate {
    /// perf's name for it; `instructions per cycle`, `cache misses per reference` for ratios.
    pub name: String,
    /// Count; `None` for ratios.
    pub total: Option<f64>,
    /// Count per second, or the ratio.
    pub rate: f64,
    /// Share of the time in which it was actually counted; values are scaled up accordingly.
    pub counted: f64,
}
