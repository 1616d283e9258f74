//! What an analysis of a run found: one structure for the terminal text, the JSON and the HTML.

use crate::account::Account;
use crate::advice::Settings;
use crate::allocator::Allocator;
use crate::answer::{Document, Evidence, Kind};
use crate::histogram::Histogram;
use crate::kernel_threads::KernelThread;
use crate::memory::Memory;
use crate::numa::MemoryNodes;
use crate::profile_findings::ProfileSummary;
use crate::recording::{Collection, HugePageUse};
use crate::run::{Ending, RunCost};
use crate::timeline::Timeline;
use crate::units::{Bytes, Estimate, Nanos};
use serde::{Deserialize, Serialize};

pub use crate::diagnosis::{Diagnosis, Severity};

/// Kind of memory that a fault touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum RegionKind {
    /// The `brk` heap.
    Heap,
    /// A block that the allocator mapped on its own (anonymous, short-lived or large).
    MmappedChunk,
    /// A thread arena of the allocator.
    ThreadArena,
    /// The main stack or a thread's stack.
    Stack,
    /// A private mapping of a file: code, data, relocations.
    FilePrivate,
    /// A shared mapping of a file.
    FileShared,
    /// Shared anonymous memory (`memfd`, `/dev/shm`, `MAP_SHARED`).
    SharedAnonymous,
    /// Anonymous private memory that no allocator is known to own.
    Anonymous,
    /// `MAP_HUGETLB` memory.
    Hugetlb,
    /// A kernel address, or an address in no known mapping.
    Unknown,
}

impl RegionKind {
    /// Display name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::Heap => "heap (brk)",
            Self::MmappedChunk => "mmapped block",
            Self::ThreadArena => "thread arena",
            Self::Stack => "stack",
            Self::FilePrivate => "file, private",
            Self::FileShared => "file, shared",
            Self::SharedAnonymous => "shared memory",
            Self::Anonymous => "anonymous",
            Self::Hugetlb => "hugetlb",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a fault happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The page was never touched before.
    FirstTouch,
    /// The page was touched before, given back by `munmap`, mapped and touched again.
    RefaultAfterMunmap,
    /// The page was touched before and given back by shrinking the heap (`brk`).
    RefaultAfterBrk,
    /// The page was touched before and given back by `madvise(MADV_DONTNEED)`.
    RefaultAfterDontneed,
    /// The page was touched before and given back by `madvise(MADV_FREE)`.
    RefaultAfterFree,
    /// First write to a page that `fork(2)` shares.
    CopyOnWrite,
    /// First write to a page that was mapped for reading only: the shared zero page, or a page of a
    /// private file mapping.
    WriteAfterRead,
    /// A file page that was in the page cache.
    FileMinor,
    /// A file page that had to be read.
    FileMajor,
    /// First write to a page of a private file mapping that was not mapped: the file's page is copied.
    FileCopy,
    /// Shared memory.
    Shared,
    /// A page that had been swapped out.
    SwapIn,
    /// A protection fault on a page that was present (soft-dirty, userfaultfd-wp, NUMA hint,
    /// `mprotect`).
    WriteProtect,
    /// The stack grew.
    StackGrowth,
    /// One fault gave a huge page.
    HugePage,
    /// Could not be determined from what was recorded.
    Unknown,
}

impl Cause {
    /// Display name.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::FirstTouch => "first touch",
            Self::RefaultAfterMunmap => "touched again after munmap",
            Self::RefaultAfterBrk => "touched again after the heap shrank",
            Self::RefaultAfterDontneed => "touched again after MADV_DONTNEED",
            Self::RefaultAfterFree => "touched again after MADV_FREE",
            Self::CopyOnWrite => "copy on write after fork",
            Self::WriteAfterRead => "first write after read",
            Self::FileMinor => "file page, cached",
            Self::FileMajor => "file page, read from disk",
            Self::FileCopy => "file page, copied",
            Self::Shared => "shared memory",
            Self::SwapIn => "swapped in",
            Self::WriteProtect => "write protection",
            Self::StackGrowth => "stack growth",
            Self::HugePage => "huge page",
            Self::Unknown => "unknown",
        }
    }

    /// Whether the page had been touched, given back to the kernel, and touched again.
    #[must_use]
    pub fn is_churn(self) -> bool {
        matches!(
            self,
            Self::RefaultAfterMunmap
                | Self::RefaultAfterBrk
                | Self::RefaultAfterDontneed
                | Self::RefaultAfterFree
        )
    }
}

/// One line of a breakdown: how many faults, with what confidence, how much time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "{K}Share"))]
pub struct Share<K> {
    /// What the line is about.
    pub key: K,
    /// Faults, scaled to the exact total.
    pub faults: Estimate,
    /// Kernel time of these faults, where latencies were measured or modelled.
    pub time: Option<Nanos>,
}

/// A function with its faults.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Site {
    /// Call stack, outermost function first, as readable names.
    pub stack: Vec<String>,
    /// The frame that a reader should look at: the innermost one outside libc and the allocator.
    pub culprit: String,
    /// Faults, scaled to the exact total.
    pub faults: f64,
    /// Cause of most of them.
    pub main_cause: Cause,
}

impl Site {
    /// Sites listed in a report.
    pub const MOST: usize = 20;
}

/// Node of a flame graph, weights including the children's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FlameNode {
    /// Function name.
    pub name: String,
    /// Module, empty where unknown.
    pub module: String,
    /// Weight of this frame and everything it called.
    pub total: f64,
    /// Callees, heaviest first.
    pub children: Vec<FlameNode>,
}

/// Faults by address and time, binned for drawing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultMap {
    /// Width of a time bin.
    pub time_step: Nanos,
    /// Number of time bins.
    pub columns: u32,
    /// Address rows, lowest first: only stretches that were touched are kept, so rows are not
    /// evenly spaced.
    pub rows: Vec<FaultMapRow>,
    /// Filled cells.
    pub cells: Vec<FaultMapCell>,
}

/// One row of a [`FaultMap`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultMapRow {
    /// First address, as hexadecimal text (JSON numbers have only 53 bits).
    pub start: String,
    /// Bytes that the row spans.
    pub length: Bytes,
    /// Kind of memory.
    pub region: RegionKind,
}

/// One cell of a [`FaultMap`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultMapCell {
    /// Index of the row.
    pub row: u32,
    /// Index of the time bin.
    pub column: u32,
    /// Faults.
    pub faults: f64,
    /// Share of them that is churn.
    pub churn: f64,
}

/// One system call that changes the address space, summed up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MmCallCost {
    /// `mmap`, `munmap`, `brk`, `madvise`, `mremap`, `mprotect`; `fork`, which covers no bytes.
    pub call: String,
    /// How often.
    pub calls: u64,
    /// Bytes that the calls covered.
    pub bytes: Bytes,
    /// Time inside the call, where entry and exit were recorded.
    pub time: Option<Nanos>,
}

/// One route by which memory is given back and faulted in again: how it is released, and what kind
/// of memory it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChurnRoute {
    /// How it was released: one of the causes with [`Cause::is_churn`].
    pub cause: Cause,
    /// The kind of memory.
    pub region: RegionKind,
    /// Faults, scaled to the exact total.
    pub faults: f64,
    /// Sizes of the stretches given back (bytes); of the stretches mapped where returns could not
    /// be seen.
    pub released_sizes: Histogram,
}

/// Memory that is given back to the kernel and faulted in again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Churn {
    /// 1 − distinct pages / faults over anonymous memory: 0 is none, 0.99 means each page
    /// faulted a hundred times.
    pub refault_ratio: Option<Estimate>,
    /// Faults by churn, all routes together.
    pub faults: Option<Estimate>,
    /// Bytes released and faulted again.
    pub bytes: Bytes,
    /// Sizes of the released stretches (bytes).
    pub released_sizes: Histogram,
    /// Single routes, most faults first.
    pub routes: Vec<ChurnRoute>,
    /// Share (0 to 1) of the separately mapped blocks that an allocator maps, by the code that calls
    /// `mmap(2)` or writes the first bytes, where that was seen: 0 means that the program maps them
    /// itself.
    pub allocator_blocks: Option<f64>,
    /// Where memory was given back (`systrim` ← `free` ← caller), heaviest first.
    pub release_sites: Vec<Site>,
    /// Where it was obtained again (`sysmalloc` ← `malloc` ← caller).
    pub regrow_sites: Vec<Site>,
    /// Where it was touched again.
    pub refault_sites: Vec<Site>,
}

/// Time that faults cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultTime {
    /// Latencies measured from begin and end events (nanoseconds), the recorder's own cost
    /// subtracted.
    pub measured: Option<Histogram>,
    /// The same by cause.
    pub by_cause: Vec<(Cause, Histogram)>,
    /// All faults together, in nanoseconds, entry and exit of the exception included.
    pub total_ns: Option<Estimate>,
    /// How `total_ns` was found: `measured` by single faults, `modelled`, `sampled` by CPU time.
    pub method: String,
    /// Share of CPU time (0 to 1).
    pub share_of_cpu: Option<Estimate>,
    /// Share of wall time of the busiest thread (0 to 1).
    pub share_of_wall: Option<Estimate>,
    /// System calls on memory.
    pub mm_calls: Vec<MmCallCost>,
    /// Bytes that calls of mmap asked to be populated (`MAP_POPULATE`).
    #[serde(default)]
    pub populate_requested: Bytes,
    /// Processes that the program forked.
    #[serde(default)]
    pub forks: u64,
    /// Those of them that executed another program.
    #[serde(default)]
    pub spawned: u64,
    /// Time that threads waited for `mmap_lock`, where it could be seen.
    pub lock_wait: Option<Nanos>,
    /// Number of those waits.
    pub lock_waits: u64,
}

/// Reads of one mapped file that threads waited for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FileReads {
    /// Its path.
    pub path: String,
    /// Whether it was mapped to be executed: a program or a library.
    pub is_code: bool,
    /// Furthest extent of the file that was mapped.
    pub mapped: Bytes,
    /// Major faults on it.
    pub reads: u64,
    /// Share of the reads that continue from the thread's last one: forward by at most 32 MiB and
    /// an eighth of the file. `None` for a single read.
    pub in_order: Option<f64>,
}

/// One thread's part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ThreadShare {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Name.
    pub comm: String,
    /// Faults, scaled.
    pub faults: f64,
}

/// What an analysis of one observed run found.
pub type Findings = Document<Run>;

/// The evidence of one observed run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// Unix time in milliseconds when observation began.
    pub started_unix_ms: u64,
    /// Resources used while observed.
    pub cost: RunCost,
    /// How the program ended.
    pub ending: Ending,
    /// Allocators in use.
    pub allocators: Vec<Allocator>,
    /// Faults by cause, most first.
    pub by_cause: Vec<Share<Cause>>,
    /// Faults by kind of memory, most first.
    pub by_region: Vec<Share<RegionKind>>,
    /// Faults by thread, most first.
    pub by_thread: Vec<ThreadShare>,
    /// Fault samples seen.
    pub samples: u64,
    /// Time.
    pub time: FaultTime,
    /// What the CPU time was spent on.
    pub account: Account,
    /// Huge pages seen in the program's memory.
    pub huge_pages: Option<HugePageUse>,
    /// Mapped files whose pages threads waited for, most waits first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub file_reads: Vec<FileReads>,
    /// Churn.
    pub churn: Churn,
    /// Heaviest stacks.
    pub sites: Vec<Site>,
    /// Page-fault flame graph, weights in faults.
    pub flame: FlameNode,
    /// Address by time.
    pub fault_map: FaultMap,
    /// Process tree and pressure over time.
    pub timeline: Timeline,
    /// Kernel threads of the machine that managed memory meanwhile.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernel_threads: Vec<KernelThread>,
    /// Memory nodes, the program's memory on them and where it ran; `None` where at most one node
    /// has memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numa: Option<MemoryNodes>,
    /// Where the memory of the tree was at the peak; `None` if nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// How events were collected.
    pub collection: Collection,
    /// What its samples show, if it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<ProfileSummary>,
}

impl Evidence for Run {
    const KIND: Kind = Kind::Run;
}

impl Run {
    /// Settings as they have to be exported: with the user's own in the same variables, which were in
    /// force when they were proved.
    #[must_use]
    pub fn exported(&self, settings: &Settings) -> Settings {
        let own = self.allocators.iter().flat_map(|one| one.settings.clone());
        settings.beside_own(&own.collect())
    }

    /// Whether its samples are more informative than its faults: in recordings of a whole machine,
    /// and in files of other tools, which contain no CPU times.
    #[must_use]
    pub fn is_mostly_samples(&self) -> bool {
        self.profile.is_some() && (self.collection.whole_machine || self.cost.cpu().0 == 0)
    }
}
