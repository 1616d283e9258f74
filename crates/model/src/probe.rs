//! The behaviour of a machine's TLB, measured by timed pointer chasing.

use crate::units::{Bytes, Estimate, Nanos};
use serde::{Deserialize, Serialize};

/// One point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CurvePoint {
    /// Distinct stretches that are visited in turn.
    pub pages: u64,
    /// Nanoseconds that a step takes beyond what the same number of cache lines takes when they are
    /// close together.
    pub extra_ns: Estimate,
}

/// Cost of a step by the number of stretches that are visited.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Curve {
    /// Size of the pages that the kernel maps.
    pub page: Bytes,
    /// Distance between the stretches.
    pub stride: Bytes,
    /// By number of stretches.
    pub points: Vec<CurvePoint>,
}

/// One level of the TLB as measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TlbLevel {
    /// 1 for the first.
    pub level: u32,
    /// Size of the pages that the kernel maps.
    pub page: Bytes,
    /// Pages that can be visited in turn before a step costs more.
    pub entries: Estimate,
    /// Nanoseconds that a miss in this level adds to a step, just beyond it.
    pub miss_ns: Estimate,
}

/// Whether the host of a virtual machine maps its memory with huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HostPages {
    /// The guest's huge pages are huge in the TLB.
    Huge,
    /// The guest's huge pages take as many TLB entries as base pages.
    Small,
    /// Some of them take as many.
    Mixed,
    /// Could not be determined.
    Unknown,
}

/// What was found about the host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostFinding {
    /// The finding in one word.
    pub pages: HostPages,
    /// Whether this is a virtual machine at all.
    pub is_guest: bool,
    /// Share of the TLB misses of base pages that the same chase has over huge pages, 0 to 1.
    pub missed_share: Option<Estimate>,
    /// The same in a sentence.
    pub sentence: String,
}

/// A random chase with some of its memory in huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EffectPoint {
    /// Share of the memory that huge pages map, 0 to 1.
    pub huge_share: f64,
    /// Nanoseconds per step.
    pub step_ns: Estimate,
    /// Change compared with no huge pages: −0.3 is 30 % less.
    pub change: Estimate,
    /// Page walks per step, to base and to huge pages, where the machine counts them.
    pub walks: Option<[f64; 2]>,
}

/// Changing page sizes of another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActuatorFinding {
    /// `collapse` or `split`.
    pub change: String,
    /// How it is done.
    pub call: String,
    /// Median time of a call; `None` where it does not work here.
    pub median: Option<Nanos>,
}

/// Everything that was found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probe {
    /// CPU model.
    pub cpu: String,
    /// How long it took.
    pub elapsed: Nanos,
    /// How often each point was measured, in shuffled rounds.
    pub rounds: u32,
    /// Levels by page size, first level first.
    pub levels: Vec<TlbLevel>,
    /// Nanoseconds that a step takes when every translation misses, beyond the data itself.
    pub walk_ns: Option<Estimate>,
    /// The host.
    pub host: HostFinding,
    /// Memory in the chase of [`Probe::effect`].
    pub effect_memory: Bytes,
    /// Effect of huge pages on a chase.
    pub effect: Vec<EffectPoint>,
    /// The cost of changing page sizes.
    pub actuators: Vec<ActuatorFinding>,
    /// Table of events in use, where the machine counts page walks.
    pub walk_events: Option<String>,
    /// Why hardware counters were not used.
    pub no_counters: Option<String>,
    /// The underlying curves.
    pub curves: Vec<Curve>,
}
