//! What balancing huge pages of a live process did.

use crate::answer::{Evidence, Kind};
use crate::huge_map::HugeMap;
use crate::units::{Bytes, Estimate, Nanos};
use serde::{Deserialize, Serialize};

/// Whether huge pages pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Effect {
    /// Less CPU time for the same work.
    Help,
    /// More CPU time for the same work.
    Hurt,
    /// No difference beyond the noise.
    NoMeasurableEffect,
    /// Nothing here could decide it.
    Unknown,
}

/// Where a verdict comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Basis {
    /// The process itself, huge and base pages in turn.
    Interleaved,
    /// The process itself, at different times.
    Measured,
    /// Share of cycles with page walks under way: a bound on what can be gained.
    Walks,
    /// What pointer chasing through as much memory shows on this machine: a bound, not this
    /// program.
    Probe,
    /// Nothing.
    None,
}

/// The answer in figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HugeVerdict {
    /// The verdict in one word.
    pub effect: Effect,
    /// Where it comes from.
    pub basis: Basis,
    /// Change of CPU time for a unit of work from base to huge pages: −0.3 is 30 % less.
    pub cpu_change: Option<Estimate>,
    /// Resident memory that huge pages add.
    pub rss_growth: Bytes,
}

/// Page sizes and memory at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PageState {
    /// Huge pages.
    pub huge: u64,
    /// Slots of base pages that could be huge.
    pub small: u64,
    /// Populated slots left unchanged (locked, `MADV_NOHUGEPAGE`, userfaultfd, files…).
    pub blocked: u64,
    /// Memory that making all of them huge would add.
    pub growth: Bytes,
    /// Resident memory.
    pub rss: Bytes,
}

/// Changes of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Changes {
    /// How many.
    pub count: u64,
    /// Median time of the call; `None` if there were none.
    pub median: Option<Nanos>,
    /// Time that 95 % of the calls stayed below.
    pub p95: Option<Nanos>,
}

/// Slots that were left as they were.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Refused {
    /// Why.
    pub reason: String,
    /// How many attempts.
    pub count: u64,
}

/// One interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BalancePoint {
    /// Since the start.
    pub time: Nanos,
    /// Huge pages at its end.
    pub huge: u64,
    /// Largest possible number of them within the memory limit.
    pub possible: u64,
    /// Slots that were changed in this interval, which disturbs its figures.
    pub changes: u64,
    /// Resident memory.
    pub rss: Bytes,
    /// CPU time of the processes.
    pub cpu: Nanos,
    /// CPU nanoseconds per unit of work; `None` where no work was seen.
    pub cost_ns: Option<f64>,
    /// Share of cycles with a page walk under way.
    pub walk_share: Option<f64>,
    /// Page walks of huge pages per second, where they are counted by size.
    pub huge_walks_per_s: Option<f64>,
    /// Page walks of base pages per second, where they are counted by size.
    pub small_walks_per_s: Option<f64>,
    /// For how many intervals walks have been taking much time (C_L).
    pub load: u32,
    /// Factor by which one kind of TLB entry is under more load, when last computed (y).
    pub imbalance: Option<f64>,
    /// Why the controller did what it did.
    pub reason: String,
}

/// One process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BalancedProcess {
    /// Process id.
    pub pid: i32,
    /// Name.
    pub comm: String,
    /// Memory of the guest that it runs, where it is a virtual machine monitor.
    pub guest_memory: Vec<GuestRange>,
    /// Which of its memory was huge, in equal steps of the time watched.
    pub map: HugeMap,
}

/// Guest memory in a monitor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GuestRange {
    /// First address, hexadecimal.
    pub start: String,
    /// Length.
    pub length: Bytes,
    /// Offset within a huge page; anything but 0 keeps the guest's huge pages from being huge on
    /// the host.
    pub misaligned_by: Bytes,
}

/// Everything about one run of the controller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Balance {
    /// Processes at the start.
    pub processes: Vec<BalancedProcess>,
    /// Whether page sizes were changed; false for a dry run.
    pub applied: bool,
    /// How long it watched.
    pub elapsed: Nanos,
    /// Bytes in a huge page.
    pub huge_page: Bytes,
    /// What the cost of work was measured by.
    pub signal: String,
    /// Table of events in use, where the machine counts page walks.
    pub walk_events: Option<String>,
    /// Why hardware counters were not used.
    pub no_counters: Option<String>,
    /// Controller.
    pub controller: String,
    /// Limit that was set on resident memory.
    pub max_rss: Option<Bytes>,
    /// At the start.
    pub before: PageState,
    /// At the end.
    pub after: PageState,
    /// Highest resident memory seen.
    pub peak_rss: Bytes,
    /// Huge pages built.
    pub built: Changes,
    /// Huge pages split.
    pub split: Changes,
    /// What was left as it was.
    pub refused: Vec<Refused>,
    /// Slots that the kernel or the program changed back.
    pub fights: u64,
    /// CPU time that the controller used, the kernel's work for it included.
    pub controller_cpu: Nanos,
    /// The answer.
    pub verdict: HugeVerdict,
    /// Journals by which `--undo` takes the changes back.
    pub journals: Vec<String>,
    /// Intervals.
    pub points: Vec<BalancePoint>,
}

impl Evidence for Balance {
    const KIND: Kind = Kind::HugeBalance;
}
