//! Memory and faults of a process tree, point by point: the table of findfault.sh.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// One reading of a process tree. Counters are cumulative since observation began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimelinePoint {
    /// Time since observation began.
    pub time: Nanos,
    /// Virtual size, summed over the tree.
    pub vsize: Bytes,
    /// Resident memory, summed over the tree (shared pages count once per process).
    pub rss: Bytes,
    /// Proportional set size, where it was read (it is costly, so not at every point).
    pub pss: Option<Bytes>,
    /// Swapped out.
    pub swap: Bytes,
    /// Minor faults in total.
    pub minor_faults: u64,
    /// Major faults in total.
    pub major_faults: u64,
    /// User CPU time so far.
    pub user: Nanos,
    /// System CPU time so far.
    pub system: Nanos,
    /// Processes alive.
    pub processes: u32,
    /// Threads alive.
    pub threads: u32,
    /// Processes whose main thread was running, or waiting only for a CPU or a disk, at that
    /// moment; `None` if this was not checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
}

/// One reading of the machine's or the cgroup's memory pressure. Counters are cumulative since
/// observation began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PressurePoint {
    /// Time since observation began.
    pub time: Nanos,
    /// Time in which some task was stalled on memory (PSI `some`), where PSI is on.
    pub stall_some: Option<Nanos>,
    /// Time in which all tasks were stalled on memory (PSI `full`), where PSI is on.
    pub stall_full: Option<Nanos>,
    /// Pages swapped in (`pswpin`).
    pub swap_in: u64,
    /// Pages swapped out (`pswpout`).
    pub swap_out: u64,
    /// Pages that direct reclaim scanned (`pgscan_direct*`).
    pub direct_scanned: u64,
    /// Pages that kswapd scanned (`pgscan_kswapd*`).
    pub kswapd_scanned: u64,
    /// Direct compaction stalls (`compact_stall`).
    pub compact_stalls: u64,
    /// Huge pages allocated at fault time (`thp_fault_alloc`).
    pub thp_fault_alloc: u64,
    /// Huge pages requested at fault time but not available (`thp_fault_fallback`).
    pub thp_fault_fallback: u64,
    /// Huge pages built by khugepaged (`thp_collapse_alloc`).
    pub thp_collapse: u64,
    /// Huge pages split (`thp_split_page`).
    pub thp_split: u64,
    /// File pages refaulted soon after eviction (`workingset_refault_file`).
    pub refaults_file: u64,
    /// Anonymous pages refaulted soon after eviction (`workingset_refault_anon`).
    pub refaults_anon: u64,
    /// Memory of the cgroup, where it could be read.
    pub cgroup_usage: Option<Bytes>,
    /// How often the cgroup hit its limit (`memory.failcnt` or `memory.events` `max`).
    pub cgroup_limit_hits: Option<u64>,
}

/// Readings in time order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Timeline {
    /// Requested interval; actual points may be later under load.
    pub interval: Nanos,
    /// Of the process tree.
    pub points: Vec<TimelinePoint>,
    /// Of the machine and cgroup.
    pub pressure: Vec<PressurePoint>,
    /// Points that are missing because a reading failed or came after the next was due.
    #[serde(default)]
    pub gaps: u64,
    /// What the sampler changed or could not read, in words for the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}
