//! A run inside a memory budget, paged by Pagewise: its processes and their regions.

use crate::paging::{Heat, RefaultDistances};
use crate::run::{Ending, RunCost};
use serde::{Deserialize, Serialize};

/// Mappings of at least this many bytes are managed: the first size while much memory is in smaller
/// pieces, the second in programs whose large mappings are most of their memory.
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
    /// Peak of the resident memory of all processes together, shared pages counted once.
    pub together_peak_bytes: Option<u64>,
    /// Name of the policy.
    pub policy: String,
    /// Kind of the store.
    pub store: String,
    /// Programs that managed memory: each fork, and each exec.
    pub processes_total: u32,
    /// Processes with figures of their own.
    pub processes: Vec<PagedProcess>,
    /// The rest.
    pub others: OtherProcesses,
    /// Refault distances of all processes together.
    pub refault_distances: RefaultDistances,
    /// What the kernel counted, where it paged the run. The figures above are the pager's: empty, or up to
    /// when the kernel took over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<KernelPaging>,
}

/// A run that the kernel paged, in a memory cgroup of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct KernelPaging {
    /// Version of the cgroup, 1 or 2.
    pub cgroup_version: u32,
    /// When the kernel took over from the pager (`--engine auto`), in nanoseconds from the start; absent
    /// where it paged the run from the start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub took_over_ns: Option<u64>,
    /// Peak of the memory charged to the group, page cache included.
    pub peak_bytes: Option<u64>,
    /// The most that was seen in swap at a time, read every tenth of a second.
    pub swap_peak_bytes: Option<u64>,
    /// Faults that waited for a disk.
    pub major_faults: Option<u64>,
    /// Anonymous pages that came back soon after they had left, read ahead or missed
    /// (`workingset_refault_anon`).
    pub refaults: Option<u64>,
    /// Pages of files that did.
    pub file_refaults: Option<u64>,
    /// Times that the group met its limit.
    pub limit_hits: Option<u64>,
    /// Processes that the kernel killed, as neither memory nor swap had room.
    pub killed: Option<u64>,
}

/// Processes without figures of their own: together with the others they add up to the whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OtherProcesses {
    /// Processes that ended and whose slot was needed by a later one.
    pub ended: u32,
    /// Processes that never had a slot, because too many others were alive.
    pub unplaced: u32,
    /// Their faults.
    pub faults: PagingFaults,
    /// Their pages.
    pub pages: PagesMoved,
    /// How long their faults took.
    pub latency: FaultLatency,
    /// Their mapped files.
    #[serde(default)]
    pub files: FilesPaged,
}

/// One process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagedProcess {
    /// Process id.
    pub pid: u32,
    /// Name of its program.
    pub name: String,
    /// Whether it is still alive.
    pub living: bool,
    /// If it is not alive: whether it exited by itself. Otherwise it was killed, or became another
    /// program through exec.
    pub ended_in_order: bool,
    /// Its limit on resident bytes; its last share if processes share a budget.
    pub budget_bytes: u64,
    /// Its limit on resident bytes of managed pages.
    pub limit_bytes: u64,
    /// Managed bytes that are resident.
    pub resident_bytes: u64,
    /// Peak of the resident managed bytes.
    pub peak_managed_bytes: u64,
    /// Resident bytes that are not managed: code, stacks, small mappings.
    pub unmanaged_bytes: u64,
    /// Managed address space in bytes.
    pub managed_bytes: u64,
    /// Smallest size that is managed now: `--min-region`, or less while much memory is in smaller
    /// pieces.
    pub min_region_bytes: u64,
    /// Number of its store: forks share their parent's.
    pub store_number: u32,
    /// Bytes of that store on disk, for all processes that share it.
    pub store_disk_bytes: u64,
    /// Memory that the store takes in this process, in bytes.
    pub store_memory_bytes: u64,
    /// Its faults.
    pub faults: PagingFaults,
    /// Its pages.
    pub pages: PagesMoved,
    /// How long its faults took.
    pub latency: FaultLatency,
    /// Its mapped files.
    #[serde(default)]
    pub files: FilesPaged,
    /// How long its pages stayed away.
    pub refault_distances: RefaultDistances,
    /// How soon its pages are used again, over the whole run.
    pub heat: Option<Heat>,
    /// Time that surveys of the regions have taken, in nanoseconds.
    pub survey_ns: u64,
    /// Features that the kernel allowed the pager to use.
    pub capabilities: Vec<String>,
    /// Number of its regions; not all have figures.
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
    /// First writes to pages that were read back.
    pub first_writes: u64,
    /// On pages that were resident.
    pub spurious: u64,
    /// On pages that another fault was already bringing in.
    pub collisions: u64,
    /// Served by SIGBUS in the faulting thread.
    pub by_signal: u64,
    /// Served by handler threads.
    pub by_handler: u64,
    /// That waited for room.
    pub throttled: u64,
    /// How long these waited, in nanoseconds.
    pub throttled_ns: u64,
}

/// Pages moved.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagesMoved {
    /// From the store.
    pub read: u64,
    /// Of these, before they were needed.
    pub prefetched: u64,
    /// To the store.
    pub written: u64,
    /// Of these, before they had to be evicted.
    pub written_early: u64,
    /// Dropped, because the store already had them.
    pub dropped_clean: u64,
    /// Evicted in all.
    pub evicted: u64,
    /// Number of eviction batches.
    pub eviction_batches: u64,
    /// Given back by the program.
    pub removed: u64,
    /// Pages watched for their next use.
    pub watched: u64,
    /// Of these, pages that were used.
    pub seen_used: u64,
    /// That the kernel refused to evict: pinned, or being removed.
    pub refused: u64,
    /// Reads and writes of the store that failed.
    pub store_errors: u64,
}

/// Mapped files. Pages of those that are managed (`--files`) are read from the files themselves, and
/// are not counted among those of the store. Of the others, the kernel is asked to page out what is
/// in the way of the budget.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FilesPaged {
    /// Bytes of files that are mapped and managed: part of `managed_bytes`.
    pub managed_bytes: u64,
    /// Pages read from files.
    pub pages_read: u64,
    /// Faults on pages that had been evicted.
    pub refaults: u64,
    /// Mappings that the kernel took over while they were in use: somebody opened their file for
    /// writing or truncated it, or it could not be read.
    pub changed: u64,
    /// Mappings that are large enough, and stayed the kernel's.
    pub left: u64,
    /// Pages of files that are not managed, which were paged out, or unmapped, because they were in the way.
    #[serde(default)]
    pub paged_out: u64,
    /// Of these, pages that came back within the time for which they were followed.
    #[serde(default)]
    pub came_back: u64,
    /// Pages that stayed when all were last asked to go: in private mappings that may be written, of
    /// files that other processes map or that belong to another user.
    #[serde(default)]
    pub kept: u64,
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

/// Quantiles of a latency, accurate to one bucket (half a power of two).
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

/// A managed mapping: the sum of its parts that are managed in the same way.
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
    /// Why.
    pub why: String,
    /// The number from the program's hint; 0 without one.
    pub role: u8,
    /// Number of the mapping.
    pub number: u16,
    /// Faults on all its parts.
    pub faults: u64,
    /// Of these, on pages in the store.
    pub refaults: u64,
    /// Pages that are resident.
    pub resident_pages: u64,
    /// Of these, changed since they were read.
    pub dirty_pages: u64,
    /// Pages in the store.
    pub evicted_pages: u64,
    /// How soon pages are used again, from the last ones that were watched.
    pub heat: Option<Heat>,
}
