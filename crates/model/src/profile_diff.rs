//! How two profiles differ: which functions and stacks grew or shrank, how certain that is, and
//! which settings of the two hosts may explain it.

use crate::answer::{Evidence, Kind};
use crate::profile::{FrameKind, WeightUnit};
use crate::run_diff::RunDiff;
use crate::side::{SettingChange, Side};
use crate::symbol::Unnamed;
use crate::units::{Estimate, Nanos};
use serde::{Deserialize, Serialize};

/// How profile B differs from profile A.
///
/// All amounts are comparable even though the two were recorded for different times, on different
/// numbers of CPUs and at different rates: see [`Measure`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProfileDiff {
    /// The first profile.
    pub a: Side<Weighed>,
    /// The second profile.
    pub b: Side<Weighed>,
    /// The event that is compared.
    pub event: String,
    /// The meaning of amounts.
    pub measure: Measure,
    /// For whole runs: the factor by which B took longer in everything, as on a busier machine. B's
    /// amounts are divided by it.
    pub slowdown: Option<f64>,
    /// Length of the blocks of time that were exchanged; zero where there are no times.
    pub block: Nanos,
    /// Blocks of A and of B.
    pub blocks: (u32, u32),
    /// How the two runs differ, where both are whole runs of a command whose faults were recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunDiff>,
    /// Functions by how much they changed in total: significant ones first, of these the ones that
    /// have a name.
    pub functions: Vec<Change>,
    /// Whole stacks by how much they changed.
    pub stacks: Vec<StackChange>,
    /// Size of change that would have been found in four of five such comparisons, for a function
    /// of median size: the limit of what "nothing significant" means here.
    pub detectable: f64,
    /// Both trees laid over each other, for a differential flame graph. Parents come first; node 0
    /// is the whole.
    pub tree: Vec<DiffNode>,
    /// Frames without a name on either side, by cause, largest share first. Where the two differ
    /// much, so do the stacks that end in such frames, regardless of what the programs did.
    pub unknown: Vec<UnknownChange>,
    /// Settings in which the hosts differ; those that affect what grew come first.
    pub settings: Vec<SettingChange>,
    /// Counters side by side, as rates.
    pub counters: Vec<CounterChange>,
}

impl ProfileDiff {
    /// What B's amounts were divided by, where that changes them by 2 % or more.
    #[must_use]
    pub fn divisor(&self) -> Option<f64> {
        self.slowdown.filter(|factor| (factor - 1.0).abs() >= 0.02)
    }
}

impl Evidence for ProfileDiff {
    const KIND: Kind = Kind::ProfileDiff;
}

/// The extent of one of the two profiles.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Weighed {
    /// Samples of the event, idle ones left out.
    pub samples: u64,
    /// Their weight.
    pub weight: u64,
    /// Unit of the weight.
    pub unit: Option<WeightUnit>,
    /// Time that it covers.
    pub span: Nanos,
    /// CPUs that it covers.
    pub cpus: u32,
}

/// The meaning of an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Measure {
    /// Share of all busy samples' weight (0 to 1): for profiles without times.
    ShareOfBusy,
    /// CPUs in use: CPU time by elapsed time.
    CpusInUse,
    /// Events per second.
    PerSecond,
    /// Seconds of CPU time in one run of a command, from its start to its end.
    CpuSecondsPerRun,
    /// Events in one run of a command.
    EventsPerRun,
}

impl Measure {
    /// Whether whole runs are compared.
    #[must_use]
    pub fn is_of_runs(self) -> bool {
        matches!(self, Self::CpuSecondsPerRun | Self::EventsPerRun)
    }
}

/// One function's change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change {
    /// Its name.
    pub name: String,
    /// The file that contains it.
    pub module: String,
    /// What kind of code it is.
    pub kind: FrameKind,
    /// Why it has no name, if it has none.
    pub unnamed: Option<Unnamed>,
    /// Amount in A, callees included.
    pub a: f64,
    /// Amount in B, callees included.
    pub b: f64,
    /// Its own amounts in A and B, without callees.
    pub own: (f64, f64),
    /// B minus A, with its 95 % interval (of this function alone).
    pub change: Estimate,
    /// Probability of such a large change anywhere among all functions and stacks compared, if
    /// nothing differed.
    pub p_adjusted: f64,
    /// Whether that probability is below 5 %.
    pub significant: bool,
}

/// One stack's change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackChange {
    /// Functions, outermost first.
    pub frames: Vec<String>,
    /// Amount in A of all stacks that begin with these functions.
    pub a: f64,
    /// Amount in B.
    pub b: f64,
    /// B minus A, with its 95 % interval.
    pub change: Estimate,
    /// As for a function.
    pub p_adjusted: f64,
    /// As for a function.
    pub significant: bool,
}

/// A node of both trees.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DiffNode {
    /// Its parent; the root's is itself.
    pub parent: u32,
    /// Function; `all` for the root.
    pub name: String,
    /// Module.
    pub module: String,
    /// Amount in A.
    pub a: f64,
    /// Amount in B.
    pub b: f64,
}

/// Frames without a name for one reason, in both profiles.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnknownChange {
    /// Why.
    pub reason: Unnamed,
    /// The file, where one is known.
    pub module: String,
    /// Share of A's samples whose stack has such a frame (0 to 1).
    pub a: f64,
    /// The same for B.
    pub b: f64,
    /// What it means and what to do.
    pub remedy: String,
}

/// A counter in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CounterChange {
    /// Its name, or a ratio's (`IPC`, `cache-miss ratio`).
    pub name: String,
    /// Rate per second (or ratio) in A.
    pub a: f64,
    /// The same in B.
    pub b: f64,
}
