//! What simulated huge pages showed: as JSON and for the report.

use crate::huge_map::HugeMap;
use serde::{Deserialize, Serialize};

/// The result of `pagewise huge simulate`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugeSimulation {
    /// The machine's name.
    pub machine: String,
    /// The programs, in order.
    pub workloads: Vec<String>,
    /// Page sizes compared, without a controller.
    pub configurations: Vec<Configuration>,
    /// Runs with controllers, a run for each program.
    pub controlled: Vec<Controlled>,
    /// Cost by number of huge pages, if requested.
    pub sweep: Vec<SweepPoint>,
    /// Misses of fully associative LRU TLBs of all sizes.
    pub reuse: Vec<ReuseCurve>,
    /// Reach of each machine's TLBs, for the curves.
    pub reaches: Vec<Reach>,
}

/// A program under fixed page sizes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Configuration {
    /// Page sizes in words.
    pub name: String,
    /// The program.
    pub workload: String,
    /// Nanoseconds per access, everything included.
    pub ns_per_access: f64,
    /// Speed relative to the first configuration of the program.
    pub speed: f64,
    /// Refills of small pages per 1000 accesses.
    pub small_per_1000: f64,
    /// Refills of huge pages per 1000 accesses.
    pub huge_per_1000: f64,
    /// Share of time in refills.
    pub refill_share: f64,
}

/// A program with a controller.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Controlled {
    /// The program.
    pub workload: String,
    /// The controller.
    pub controller: String,
    /// Speed at the end relative to the same page sizes without a controller.
    pub gain: f64,
    /// The same over the whole run.
    pub gain_whole: f64,
    /// Speed at the end relative to running alone, where several programs share the TLB.
    pub against_alone: Option<f64>,
    /// Nanoseconds per access at the end.
    pub ns_per_access: f64,
    /// Huge pages at the end.
    pub huge: u64,
    /// Largest possible number in its memory.
    pub possible: u64,
    /// Huge pages split.
    pub split: u64,
    /// Huge pages built.
    pub built: u64,
    /// What the controller decided last, in words.
    pub reason: Option<String>,
    /// Over time.
    pub timeline: Vec<Moment>,
    /// Which memory was huge, over time.
    pub map: HugeMap,
}

/// A point of a timeline: means since the last point.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Moment {
    /// Simulated seconds.
    pub at_s: f64,
    /// Refills of huge pages per second.
    pub huge_per_s: f64,
    /// Refills of small pages per second.
    pub small_per_s: f64,
    /// Huge pages (N_h).
    pub huge: u64,
    /// Loaded intervals in a row, less quiet ones (C_L).
    pub load: u32,
    /// Imbalance when last computed (y).
    pub imbalance: Option<f64>,
    /// Nanoseconds per access.
    pub ns_per_access: f64,
}

/// Cost at a fixed number of huge pages.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SweepPoint {
    /// Huge pages.
    pub huge: u64,
    /// Nanoseconds per access.
    pub ns_per_access: f64,
    /// Refills of small pages per 1000 accesses.
    pub small_per_1000: f64,
    /// Refills of huge pages per 1000 accesses.
    pub huge_per_1000: f64,
}

/// Miss ratio by number of entries, at one page size.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ReuseCurve {
    /// The program.
    pub workload: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Share of pages that were sampled.
    pub sampled: f64,
    /// Number of entries, and the share of accesses that miss with that many.
    pub points: Vec<(u64, f64)>,
    /// Largest expected error from sampling (95 %), in miss ratio.
    pub error: f64,
}

/// How much memory a machine's last TLB level maps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Reach {
    /// The machine.
    pub machine: String,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Entries for pages of that size.
    pub entries: u64,
}
