//! A run inside a memory budget, paged by Pagewise: its processes and their regions.

use crate::answer::{Evidence, Kind};
use crate::paging::{Heat, RefaultDistances};
use crate::run::{Ending, RunCost};
use serde::{Deserialize, Serialize};

/// Mappings of at least so many bytes are managed: the first while much lies in smaller pieces, the
/// second in programs whose large mappings are most of their memory.
pub const MIN_REGION: (u64, u64) = (256 << 10, 64 << 20);

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagedRun {
    /// How the program ended.
    pub ending: Ending,
    /// What it used, by wait4(2).
    pub cost: RunCost,
    /// The budget in bytes.
    pub memory_bytes: u64,
    /// Whether each process had a budget of its own.
    pub memory_is_each: bool,
    /// Most that all processes were seen to have resident at a time, shared pages counted once.
    pub together_peak_bytes: Option<u64>,
    /// Name of the policy.
    pub policy: String,
    /// Kind of the store.
    pub store: String,
    /// Programs that managed memory: each fork, and each exec.
    pub processes_total: u32,
    /// Those that have figures of their own.
    pub processes: Vec<PagedProcess>,
    /// The rest.
    pub others: OtherProcesses,
    /// Refault distances of all processes together.
    pub refault_distances: RefaultDistances,
}

impl Evidence for PagedRun {
    const KIND: Kind = Kind::PagedRun;
}

/// Processes without figures of their own: with those above they add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherProcesses {
    /// Ended, and a later one needed their place.
    pub ended: u32,
    /// Never had one, as too many others lived.
    pub unplaced: u32,
    /// Their faults.
    pub faults: PagingFaults,
    /// Their pages.
    pub pages: PagesMoved,
    /// How long their faults took.
    pub latency: FaultLatency,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagedProcess {
    /// Process id.
    pub pid: u32,
    /// Name of its program.
    pub name: String,
    /// Whether it lives.
    pub living: bool,
    /// Of one that does not: whether it ended by itself. Else it was killed, or became another
    /// program by exec.
    pub ended_in_order: bool,
    /// Bytes that it may have resident; the last share where processes share a budget.
    pub budget_bytes: u64,
    /// Bytes of managed pages that it may have resident.
    pub limit_bytes: u64,
    /// Managed bytes that are resident.
    pub resident_bytes: u64,
    /// Most managed bytes that were resident.
    pub peak_managed_bytes: u64,
    /// Resident bytes that are not managed: code, stacks, small mappings.
    pub unmanaged_bytes: u64,
    /// Managed address space in bytes.
    pub managed_bytes: u64,
    /// Size from which memory is managed now: `--min-region`, or less while much lies in smaller pieces.
    pub min_region_bytes: u64,
    /// Number of its store: forks share their parent's.
    pub store_number: u32,
    /// What that store holds on disk, in bytes, for all who share it.
    pub store_disk_bytes: u64,
    /// Memory that it takes in this process, in bytes.
    pub store_memory_bytes: u64,
    /// Its faults.
    pub faults: PagingFaults,
    /// Its pages.
    pub pages: PagesMoved,
    /// How long its faults took.
    pub latency: FaultLatency,
    /// How long its pages stayed away.
    pub refault_distances: RefaultDistances,
    /// How soon its pages are used again, over the whole run.
    pub heat: Option<Heat>,
    /// What the surveys of the regions have taken, in nanoseconds.
    pub survey_ns: u64,
    /// What the kernel let the pager do.
    pub capabilities: Vec<String>,
    /// Regions that it has; not all have figures.
    pub regions_total: u32,
    /// Managed mappings, the largest first.
    pub regions: Vec<PagedRegion>,
}

/// Faults by kind and by how they arrived.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagingFaults {
    /// On pages that were never touched.
    pub first_touches: u64,
    /// On pages in the store.
    pub refaults: u64,
    /// First writes to pages that came back.
    pub first_writes: u64,
    /// On pages that were there.
    pub spurious: u64,
    /// On pages that another fault was bringing.
    pub collisions: u64,
    /// Served by SIGBUS in the faulting thread.
    pub by_signal: u64,
    /// Served by handler threads.
    pub by_handler: u64,
    /// That waited for room.
    pub throttled: u64,
    /// What these waited, in nanoseconds.
    pub throttled_ns: u64,
}

/// Pages moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagesMoved {
    /// From the store.
    pub read: u64,
    /// Of these, before anyone asked.
    pub prefetched: u64,
    /// To the store.
    pub written: u64,
    /// Of these, before they had to leave.
    pub written_early: u64,
    /// Dropped, as the store had them already.
    pub dropped_clean: u64,
    /// Evicted in all.
    pub evicted: u64,
    /// In so many batches.
    pub eviction_batches: u64,
    /// Given back by the program.
    pub removed: u64,
    /// Pages whose next use was to be seen.
    pub watched: u64,
    /// Of these, pages that were used.
    pub seen_used: u64,
    /// That the kernel refused to let go: pinned, or going.
    pub refused: u64,
    /// Reads and writes of the store that failed.
    pub store_errors: u64,
}

/// Time inside the pager.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultLatency {
    /// Of faults that needed no store.
    pub without_io: Quantiles,
    /// Of faults that did.
    pub with_io: Quantiles,
}

/// Quantiles of a latency, exact to a bucket (a half power of two).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Quantiles {
    /// Faults.
    pub count: u64,
    /// Median in nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile in nanoseconds.
    pub p99_ns: u64,
}

/// A managed mapping: the parts of it that are managed alike, added up.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagedRegion {
    /// Address of its first part.
    pub start: String,
    /// Size of its parts.
    pub bytes: u64,
    /// Parts that do not adjoin.
    pub parts: u32,
    /// How faults arrive: `fd` or `sigbus`.
    pub delivery: String,
    /// Why so.
    pub why: String,
    /// The number that the program's hint gave it; 0 without one.
    pub role: u8,
    /// Number of the mapping.
    pub number: u16,
    /// Faults on all its parts.
    pub faults: u64,
    /// Of these, on pages in the store.
    pub refaults: u64,
    /// Pages that are resident.
    pub resident_pages: u64,
    /// Of these, changed since they came.
    pub dirty_pages: u64,
    /// Pages in the store.
    pub evicted_pages: u64,
    /// How soon pages are used again, by the last ones that were watched.
    pub heat: Option<Heat>,
}
