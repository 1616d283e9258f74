//! Where the memory of running processes went: an account that adds up to what the kernel counts.

mod blocks;
mod course;
mod growth;
mod holders;
mod holders_profile;
mod leaks;
mod pages;
mod present;
mod stack_growth;
mod tiles;
mod touched;

pub use blocks::{BlockGroup, size_class};
pub use course::{MemoryLayer, MemoryPoint};
pub use growth::{BlockChange, Growth, RowChange};
pub use holders::{Held, HeldStack, HolderFunction, Holders, ProcessHolders, holder};
pub use holders_profile::{IN_USE, profile_of_touched};
pub use leaks::{LeakCheck, LeaksUnknown};
pub use pages::{PageRun, PageState, Presence};
pub use present::{PresentPages, PresentRun};
pub use stack_growth::{StackChange, stack_changes};
pub use tiles::{HeapFacts, Returns, Tile, TileSink, TileState};
pub use touched::{TouchedMemory, TouchedStack};

use crate::allocator::AllocatorKind;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};

/// The account of one or more processes, at one or more moments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Memory {
    /// What is said about one of the moments.
    pub finding: MemoryFinding,
    /// In order of time.
    pub moments: Vec<MemoryMoment>,
    /// The sums of all looks at a run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub course: Vec<MemoryPoint>,
    /// What grew from the first look to the second, where two were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Who holds it, where allocations were sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holders: Option<Holders>,
    /// Who touched it first, by process, where page faults were recorded; the process with the most first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub touched: Vec<TouchedMemory>,
}

impl Memory {
    /// The moment that the finding is about.
    #[must_use]
    pub fn judged(&self) -> Option<&MemoryMoment> {
        let is_meant = |moment: &&MemoryMoment| moment.when == self.finding.when;
        self.moments.iter().find(is_meant).or(self.moments.last())
    }
}

/// When it was looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryWhen {
    /// The first of two looks at processes that ran already.
    Before,
    /// The processes ran already.
    #[default]
    Now,
    /// The look that found the most resident memory.
    Peak,
    /// The same, where somewhat more was resident at the end.
    Running,
    /// When the program ended, before its memory was gone.
    End,
}

/// One look at all processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryMoment {
    /// When.
    pub when: MemoryWhen,
    /// Time since the program started, where Pagewise started it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ns: Option<u64>,
    /// When the look began, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_unix_ms: Option<u64>,
    /// The processes, parents before children.
    pub processes: Vec<ProcessMemory>,
    /// The memory cgroup of the first process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cgroup: Option<CgroupMemory>,
    /// Processes that could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<RefusedProcess>,
    /// How long the look took.
    pub look_ns: u64,
}

impl MemoryMoment {
    /// Rows of all processes, each page divided among the processes that map it; of a single
    /// process, its resident memory.
    #[must_use]
    pub fn rows(&self) -> Vec<MemoryRow> {
        let alone = self.processes.len() == 1;
        let mut sums: Vec<MemoryRow> = Vec::new();
        for row in self.processes.iter().flat_map(|one| &one.rows) {
            match sums.iter_mut().find(|sum| sum.is_like(row)) {
                Some(sum) => sum.add(row),
                None => sums.push(row.clone()),
            }
        }
        if !alone {
            for row in &mut sums {
                row.resident = row.proportional;
            }
        }
        sums.sort_by_key(|row| (row.kind, std::cmp::Reverse(row.resident)));
        sums
    }

    /// Groups of blocks of all processes: pages that processes share are divided among them.
    #[must_use]
    pub fn groups(&self, of: fn(&ProcessMemory) -> &[BlockGroup]) -> Vec<BlockGroup> {
        let mut sums: Vec<BlockGroup> = Vec::new();
        for process in &self.processes {
            let part = match self.processes.len() {
                1 => 1.0,
                _ => process.proportional.0 as f64 / process.resident.0.max(1) as f64,
            };
            for group in of(process) {
                let group = group.scaled(part);
                match sums.iter_mut().find(|sum| sum.is_like(&group)) {
                    Some(sum) => sum.add(&group),
                    None => sums.push(group),
                }
            }
        }
        sums.sort_by(|one, other| other.bytes.value.total_cmp(&one.bytes.value));
        sums
    }

    /// What the rows add up to by the kernel's count.
    #[must_use]
    pub fn total(&self) -> Bytes {
        match self.processes.as_slice() {
            [one] => one.resident,
            all => all.iter().map(|one| one.proportional).sum(),
        }
    }
}

/// A process of the tree that could not be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RefusedProcess {
    /// Process id.
    pub pid: i32,
    /// Why.
    pub reason: String,
}

/// The account of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProcessMemory {
    /// Process id.
    pub pid: i32,
    /// Its name.
    pub name: String,
    /// Resident memory, by `/proc/PID/smaps`.
    pub resident: Bytes,
    /// The same, each page divided by the number of processes that map it.
    pub proportional: Bytes,
    /// Swapped out.
    pub swapped: Bytes,
    /// Largest resident set so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak_resident: Option<Bytes>,
    /// Page tables, which are not in the resident set.
    pub page_tables: Bytes,
    /// Memory in huge pages that was not searched for zeros: the row of zeros is a lower bound.
    #[serde(default, skip_serializing_if = "is_no_bytes")]
    pub huge_unsearched: Bytes,
    /// For how long it was stopped, because its heaps changed too fast to be read while it ran.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stopped_ns: u64,
    /// What the resident memory is. The rows add up to `resident`, but for `residue`.
    pub rows: Vec<MemoryRow>,
    /// Resident memory by smaps, less the sum of the rows: what changed between the two readings.
    pub residue: i64,
    /// The heaps that were read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub heaps: Vec<Heap>,
    /// Resident blocks in use (those in caches, too) by what they hold, or by size where that cannot be
    /// seen, the largest group first. Groups of less than a thousandth of them are left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<BlockGroup>,
    /// The blocks that hold pages with free space: each page counts for the smallest block in use on it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pins: Vec<BlockGroup>,
    /// Blocks to which no pointer leads, where they were searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaks: Option<LeakCheck>,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_no_bytes(bytes: &Bytes) -> bool {
    bytes.0 == 0
}

/// What a part of the resident memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Blocks in use.
    Live,
    /// Freed blocks that the allocator caches per thread or size; they look in use in the heap.
    Cached,
    /// Whole pages inside freed blocks.
    FreedKept,
    /// Free space on pages that also hold a block in use, or the allocator's own data.
    Pinned,
    /// Present pages at the end of a heap, from which no block is cut at present.
    Reserve,
    /// Base pages of zeros in huge pages.
    HugeBloat,
    /// The allocator's own data.
    Bookkeeping,
    /// Stacks of threads.
    Stacks,
    /// Code and data of the program and its libraries.
    Program,
    /// Other mapped files.
    Files,
    /// Shared memory and tmpfs.
    Shared,
    /// The kernel's mappings, such as the vdso.
    Special,
    /// Memory about which nothing more is known.
    NotReadable,
}

/// Part of the resident memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryRow {
    /// What it is.
    pub kind: MemoryKind,
    /// The allocator that holds it, for the parts of heaps; of memory that is not readable, the
    /// allocator of the process that cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<AllocatorKind>,
    /// The part of the allocator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub part: Option<HeapPart>,
    /// Why it could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unread: Option<Unread>,
    /// In memory.
    pub resident: Bytes,
    /// In memory, each page divided by the number of processes that map it.
    pub proportional: Bytes,
    /// Swapped out.
    pub swapped: Bytes,
}

impl MemoryRow {
    /// A row without bytes.
    #[must_use]
    pub fn new(kind: MemoryKind) -> Self {
        Self {
            kind,
            allocator: None,
            part: None,
            unread: None,
            resident: Bytes(0),
            proportional: Bytes(0),
            swapped: Bytes(0),
        }
    }

    /// Whether the other row is the same part, perhaps of another process.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        (self.kind, self.allocator, self.part, self.unread)
            == (other.kind, other.allocator, other.part, other.unread)
    }

    /// Adds the bytes of another row.
    pub fn add(&mut self, other: &Self) {
        self.resident += other.resident;
        self.proportional += other.proportional;
        self.swapped += other.swapped;
    }
}

/// A part of an allocator with rows of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeapPart {
    /// The heap that grows by `brk(2)`.
    Main,
    /// Arenas of threads.
    Threads,
    /// Blocks with mappings of their own.
    Mapped,
    /// The runtime's arenas.
    Arenas,
}

/// Why memory could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unread {
    /// Anonymous memory that belongs to no allocator that Pagewise reads.
    NoKnownAllocator,
    /// The kernel does not allow this user to read the process's memory.
    NotAllowed,
    /// It changed while it was read.
    Changed,
    /// Parts that must be read are swapped out.
    Swapped,
    /// The heap does not have the layout that this version of Pagewise knows.
    OtherLayout,
}

/// A heap that was read, in the allocator's own terms: sizes are address space, resident or not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Heap {
    /// Its allocator.
    pub allocator: AllocatorKind,
    /// Which part of it.
    pub part: HeapPart,
    /// Arenas, or for blocks with mappings of their own, these blocks.
    pub count: u64,
    /// Address space that the allocator has for it.
    pub size: Bytes,
    /// Blocks in use, with their headers; cached blocks are not in it.
    pub in_use: Bytes,
    /// Number of these blocks.
    pub blocks: u64,
    /// Freed blocks in the caches of threads and sizes (tcache).
    pub cached: Bytes,
    /// Freed blocks in the heap's own lists of small blocks (fastbins). They count as free or, next to
    /// the end of the heap, as reserve, because a trim joins them with their neighbours.
    pub in_fastbins: Bytes,
    /// Fastbins that could not be followed to their end: the rest of their blocks counts as in use.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub broken_lists: u64,
    /// Freed blocks, without the end of the heap that is in reserve.
    pub free: Bytes,
    /// Number of these blocks.
    pub free_blocks: u64,
    /// Bytes in freed blocks of at least 128 KiB.
    pub large_free: Bytes,
    /// Parts in which blocks could not be found, because they changed during the look.
    #[serde(default, skip_serializing_if = "is_no_bytes")]
    pub changed: Bytes,
    /// The end of the heap.
    pub reserve: Bytes,
    /// Resident bytes that the allocator returns when it is asked to (`malloc_trim(3)`).
    pub returnable: Bytes,
    /// What shows that the reading is right.
    pub check: HeapCheck,
    /// The size from which blocks get mappings of their own, if the allocator has raised it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raised_mmap_threshold: Option<Bytes>,
}

impl Heap {
    /// One of `allocator` in which nothing was found yet.
    #[must_use]
    pub const fn new(allocator: AllocatorKind, part: HeapPart, check: HeapCheck) -> Self {
        Self {
            allocator,
            part,
            count: 0,
            size: Bytes(0),
            in_use: Bytes(0),
            blocks: 0,
            cached: Bytes(0),
            in_fastbins: Bytes(0),
            broken_lists: 0,
            free: Bytes(0),
            free_blocks: 0,
            large_free: Bytes(0),
            changed: Bytes(0),
            reserve: Bytes(0),
            returnable: Bytes(0),
            check,
            raised_mmap_threshold: None,
        }
    }
}

/// What shows that a heap was read right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeapCheck {
    /// Its blocks fill it without a gap, and their sum is the allocator's own counter.
    Counter,
    /// Its blocks fill it without a gap, but for what changed during the look.
    Filled,
}

/// A memory cgroup, as the kernel counts it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CgroupMemory {
    /// Memory charged to it.
    pub charged: Bytes,
    /// The effective limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bytes>,
    /// Anonymous memory.
    pub anonymous: Bytes,
    /// Page cache, without shared memory.
    pub page_cache: Bytes,
    /// Page cache when the program began, where that was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub page_cache_before: Option<Bytes>,
    /// Shared memory and tmpfs.
    pub shared: Bytes,
    /// Kernel memory; absent in version 1, where it is not counted in `memory.stat`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<Bytes>,
    /// Swapped out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swapped: Option<Bytes>,
    /// Share of the last 10 seconds in which at least one of its tasks waited for memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<f64>,
}

/// What the account says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryFinding {
    /// In a word.
    pub verdict: MemoryVerdict,
    /// The moment that it is about.
    #[serde(default)]
    pub when: MemoryWhen,
    /// Bytes that the verdict is about: the row or rows that decided it.
    pub bytes: Bytes,
    /// The allocator that holds most of these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocator: Option<AllocatorKind>,
    /// What would come back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returnable: Option<ByteRange>,
    /// Resident bytes that could not be read.
    pub not_readable: Bytes,
    /// What would help.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<MemoryFix>,
}

/// Bytes between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ByteRange {
    /// At least.
    pub low: Bytes,
    /// At most.
    pub high: Bytes,
}

/// What the largest part of the memory that could be saved is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryVerdict {
    /// Nearly all of it is in use.
    AllInUse,
    /// Blocks in use grew from one look to the next.
    Growth,
    /// Blocks in use to which no pointer leads.
    Leak,
    /// Freed memory that the allocator keeps.
    Retention,
    /// Free space on pages that blocks in use hold.
    Fragmentation,
    /// Zeros in huge pages.
    Bloat,
    /// Most of it was freed only to end, and no look saw it before.
    FreedToEnd,
    /// Page cache, which the kernel gives back when memory is needed.
    Cache,
    /// The limit of the memory cgroup makes the program wait for memory.
    LimitTooSmall,
    /// Too much could not be read.
    #[default]
    CannotTell,
}

/// What would help.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum MemoryFix {
    /// Call `malloc_trim(3)` from time to time.
    Trim,
    /// Return the end of the heap earlier.
    TrimThreshold,
    /// Give large blocks mappings of their own, and keep that size from rising.
    FixedMmapThreshold,
    /// Fewer arenas.
    FewerArenas,
    /// An allocator that packs blocks of one size together and returns pages.
    OtherAllocator,
    /// No huge pages for this program.
    NoHugePages,
    /// Let jemalloc purge freed pages soon, and in threads of its own.
    JemallocDecay,
    /// Let mimalloc return freed pages at once.
    MimallocPurge,
    /// Let tcmalloc return freed spans at once.
    TcmallocDecommit,
    /// A limit from which Go collects garbage and returns freed pages.
    GoMemoryLimit,
    /// A larger limit for the memory cgroup.
    LargerLimit,
}
