//! The shared memory of a run: created by the command, mapped by every process of the run.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// First eight bytes of the shared memory.
pub const MAGIC: u64 = u64::from_le_bytes(*b"PWPAGER\x01");
/// Number of processes of one run that are distinguished at a time. A further one takes the place
/// of one that has ended.
pub const PROCESSES: usize = 64;
/// Number of unmanaged programs that are distinguished.
pub const UNMANAGED_PLACES: usize = 16;
/// Words in the name of one.
pub const UNMANAGED_WORDS: usize = 4;
/// Number of regions of a process that are distinguished.
pub const REGIONS: usize = 64;
/// Buckets of a latency histogram: bucket `n` counts durations in `[2^(n/2), 2^((n+1)/2))` ns.
pub const LATENCY_BUCKETS: usize = 64;

/// Buckets of a histogram of refault distances: as those of latencies, in pages.
pub const DISTANCE_BUCKETS: usize = 64;

/// Head of the shared memory.
#[derive(Debug)]
#[repr(C)]
pub struct Run {
    /// [`MAGIC`].
    pub magic: AtomicU64,
    /// [`crate::VERSION`].
    pub version: AtomicU32,
    /// Number of programs that started to manage memory: each fork, and each exec.
    pub taken: AtomicU32,
    /// Bytes that all processes may keep resident together; 0 if each has its own budget.
    pub tree_bytes: AtomicU64,
    /// Bytes that processes started since the command's last check have taken at first, beyond the
    /// shares that it has assigned.
    pub newcomers_bytes: AtomicU64,
    /// One entry for each process that manages memory.
    pub processes: [Process; PROCESSES],
    /// The counters of all processes without a place: counts from places that were reused, and
    /// counts of processes that found none. No other field in it is meaningful.
    pub others: Process,
    /// Of [`Run::taken`], processes whose place was reused after their end.
    pub displaced: AtomicU32,
    /// Of [`Run::taken`], processes that found no place, because too many were alive at the time.
    pub unplaced: AtomicU32,
    /// Programs that the run's processes started and that are not managed, by reason and name.
    pub unmanaged: [UnmanagedPlace; UNMANAGED_PLACES],
    /// Number of those that found no place there.
    pub more_unmanaged: AtomicU32,
    /// Whether several processes share [`Run::tree_bytes`].
    pub several: AtomicU32,
    /// Whether the kernel evicts from now on: the pager brings back what it has evicted, and evicts no
    /// more.
    pub by_kernel: AtomicU32,
}

/// A program that runs outside the budget.
#[derive(Debug)]
#[repr(C)]
pub struct UnmanagedPlace {
    /// [`Unmanaged`]; zero while the place is free.
    pub reason: AtomicU32,
    /// How often it was started.
    pub count: AtomicU32,
    /// The last part of its path, up to its first zero.
    pub name: [AtomicU64; UNMANAGED_WORDS],
}

/// Why a program is not managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Unmanaged {
    /// Linked statically.
    Static = 1,
    /// Built for another word size than the library.
    WordSize = 2,
    /// Another dynamic linker than glibc's.
    OtherLibc = 3,
    /// Runs with its owner's rights, so that the dynamic linker preloads nothing.
    Privileged = 4,
    /// Started without the run's environment.
    Cleared = 5,
    /// The pager could not start in it.
    Failed = 6,
    /// A Go program, whose runtime maps memory without any library.
    Go = 7,
}

/// Figures of one process. All counters only grow unless stated otherwise.
#[derive(Debug)]
#[repr(C)]
pub struct Process {
    /// Process id; zero while the place was never taken.
    pub pid: AtomicU32,
    /// 1 once the process has exited normally.
    pub ended: AtomicU32,
    /// Command name, as in `/proc/PID/comm`.
    pub name: [AtomicU64; 2],
    /// Bytes that the process may keep resident.
    pub budget_bytes: AtomicU64,
    /// Its share of [`Run::tree_bytes`], assigned by the command, plus what it shares with others.
    /// Rises and falls.
    pub share_bytes: AtomicU64,
    /// Pages that may be resident now: the budget minus metadata, page tables and memory that is
    /// not managed. Rises and falls.
    pub limit_pages: AtomicU64,
    /// Managed pages that are resident. Rises and falls.
    pub resident_pages: AtomicU64,
    /// Peak number of resident pages.
    pub peak_pages: AtomicU64,
    /// Bytes resident that are not managed, as last measured. Rises and falls.
    pub unmanaged_bytes: AtomicU64,
    /// Size from which memory is managed, bytes. Falls while much memory is in smaller pieces.
    pub smallest_bytes: AtomicU64,
    /// Bytes of address space that are managed. Rises and falls.
    pub managed_bytes: AtomicU64,
    /// First touches: pages that had no contents yet.
    pub first_touches: AtomicU64,
    /// Faults on pages that had been evicted.
    pub refaults: AtomicU64,
    /// First writes to clean pages.
    pub dirtied: AtomicU64,
    /// Faults on pages that were already resident.
    pub spurious: AtomicU64,
    /// Faults that waited for another thread working on the same page.
    pub collisions: AtomicU64,
    /// Pages read from the store.
    pub pages_read: AtomicU64,
    /// Of these, pages that were not needed yet.
    pub pages_prefetched: AtomicU64,
    /// Pages written to the store.
    pub pages_written: AtomicU64,
    /// Pages evicted without writing: clean, or zero.
    pub pages_dropped: AtomicU64,
    /// Pages evicted.
    pub pages_evicted: AtomicU64,
    /// Batches of evictions.
    pub evictions: AtomicU64,
    /// Pages written ahead of need.
    pub pages_cleaned: AtomicU64,
    /// How often a faulting thread had to wait for room.
    pub throttled: AtomicU64,
    /// Nanoseconds of these waits.
    pub throttled_ns: AtomicU64,
    /// Pages given back by the program.
    pub pages_removed: AtomicU64,
    /// Bytes of memory that the store takes in this process. Rises and falls.
    pub store_memory_bytes: AtomicU64,
    /// Errors of the store.
    pub store_errors: AtomicU64,
    /// Pages for which the kernel refused a request, mostly pinned ones.
    pub refused: AtomicU64,
    /// Faults resolved in the faulting thread.
    pub by_signal: AtomicU64,
    /// Faults resolved by the handler threads.
    pub by_handler: AtomicU64,
    /// Latency from the entry into the pager to the resolution, without I/O.
    pub latency_fast: [AtomicU64; LATENCY_BUCKETS],
    /// The same for faults that read the store.
    pub latency_read: [AtomicU64; LATENCY_BUCKETS],
    /// Capabilities found at start: bits of [`capability`].
    pub capabilities: AtomicU64,
    /// Regions in [`Process::regions`] (largest first when there are more).
    pub region_count: AtomicU32,
    /// Total number of regions.
    pub region_total: AtomicU32,
    /// The regions.
    pub regions: [Region; REGIONS],
    /// Pages watched for their next use.
    pub pages_watched: AtomicU64,
    /// Uses of these pages that were seen.
    pub pages_seen_used: AtomicU64,
    /// 1 if the process holds a lock (of an open file description) on the byte of the shared file
    /// with the number of this place: while it is held, the process is alive.
    pub marked: AtomicU32,
    /// Number of the program ([`Run::taken`] at its start) that opened the store. Forks share it.
    pub family: AtomicU32,
    /// Bytes on disk in that store, of the whole family. Rises and falls.
    pub store_disk_bytes: AtomicU64,
    /// Refaults of the followed pages, by the number of pages evicted since their eviction; each
    /// stands for as many refaults as one followed page represents.
    pub distance_waited: [AtomicU64; DISTANCE_BUCKETS],
    /// The same for pages that were read back before they were needed.
    pub distance_ahead: [AtomicU64; DISTANCE_BUCKETS],
    /// Refaults in [`Process::distance_waited`], each counted once.
    pub distance_samples: AtomicU64,
    /// Sum of the squares of the numbers that they stand for.
    pub distance_squares: AtomicU64,
    /// Followed pages that came back at least once. Rises and falls.
    pub distance_pages: AtomicU64,
    /// Nanoseconds that surveys of the regions took.
    pub survey_ns: AtomicU64,
    /// Resident pages, chosen at random, that were watched for a second for their next use.
    pub heat_soon_of: AtomicU64,
    /// Of these, those that were used.
    pub heat_soon: AtomicU64,
    /// Of these, those seen written: by their first use, or by a later one if they were clean.
    pub heat_written: AtomicU64,
    /// Pages that were watched for eight seconds for their next use.
    pub heat_later_of: AtomicU64,
    /// Of these, those that were used.
    pub heat_later: AtomicU64,
    /// Id of the process that wants all pages in memory while it is alive, whatever the budget;
    /// [`RELEASED`] after its end until the pages have been evicted; zero for none.
    pub hold: AtomicU32,
    /// The last process for which all pages were in memory.
    pub filled_for: AtomicU32,
    /// Of [`Process::managed_bytes`], bytes of mapped files. Rises and falls.
    pub file_bytes: AtomicU64,
    /// Pages read from mapped files.
    pub file_pages_read: AtomicU64,
    /// Faults on pages of mapped files that had been evicted.
    pub file_refaults: AtomicU64,
    /// Mappings that the kernel took over while they were in use, because somebody opened their file
    /// for writing or truncated it, or it could not be read.
    pub files_changed: AtomicU64,
    /// Mappings of files that stayed the kernel's although they were large enough.
    pub files_left: AtomicU64,
    /// Pages of files, mapped but not managed, that were paged out, or unmapped, because they were in
    /// the way.
    pub file_pages_out: AtomicU64,
    /// Of these, pages that came back soon, as far as was seen.
    pub file_pages_back: AtomicU64,
    /// Pages of such files that stayed when all were last asked to go. Rises and falls.
    pub file_pages_kept: AtomicU64,
}

/// In [`Process::hold`]: no process wants the pages any more.
pub const RELEASED: u32 = u32::MAX;

impl Process {
    /// All counters that only grow, and thus add up over processes.
    pub fn counters(&self) -> impl Iterator<Item = &AtomicU64> {
        let single = [
            &self.first_touches,
            &self.refaults,
            &self.dirtied,
            &self.spurious,
            &self.collisions,
            &self.pages_read,
            &self.pages_prefetched,
            &self.pages_written,
            &self.pages_dropped,
            &self.pages_evicted,
            &self.evictions,
            &self.pages_cleaned,
            &self.throttled,
            &self.throttled_ns,
            &self.pages_removed,
            &self.store_errors,
            &self.refused,
            &self.by_signal,
            &self.by_handler,
            &self.pages_watched,
            &self.pages_seen_used,
            &self.distance_samples,
            &self.distance_squares,
            &self.survey_ns,
            &self.heat_soon_of,
            &self.heat_soon,
            &self.heat_written,
            &self.heat_later_of,
            &self.heat_later,
            &self.file_pages_read,
            &self.file_refaults,
            &self.files_changed,
            &self.files_left,
            &self.file_pages_out,
            &self.file_pages_back,
        ];
        let latencies = self.latency_fast.iter().chain(&self.latency_read);
        let distances = self.distance_waited.iter().chain(&self.distance_ahead);
        single.into_iter().chain(latencies).chain(distances)
    }

    /// Adds the counts of this process to `other`, and leaves only the process id. First adds
    /// there, then subtracts here: a concurrent reader sees too much rather than too little.
    pub fn hand_over(&self, other: &Self) {
        for (own, sum) in self.counters().zip(other.counters()) {
            let counted = own.load(Ordering::Relaxed);
            sum.fetch_add(counted, Ordering::Relaxed);
            own.fetch_sub(counted, Ordering::Relaxed);
        }
        let halves = [
            &self.ended,
            &self.region_count,
            &self.region_total,
            &self.marked,
            &self.family,
            &self.hold,
            &self.filled_for,
        ];
        halves
            .into_iter()
            .for_each(|one| one.store(0, Ordering::Relaxed));
        let words = [
            &self.budget_bytes,
            &self.share_bytes,
            &self.limit_pages,
            &self.resident_pages,
            &self.peak_pages,
            &self.unmanaged_bytes,
            &self.smallest_bytes,
            &self.managed_bytes,
            &self.file_bytes,
            &self.file_pages_kept,
            &self.store_memory_bytes,
            &self.store_disk_bytes,
            &self.distance_pages,
            &self.capabilities,
        ];
        let words = words.into_iter().chain(&self.name);
        words.for_each(|one| one.store(0, Ordering::Relaxed));
    }
}

/// Figures of one region. Written by the pager now and then, and when it ends.
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// First address.
    pub start: AtomicU64,
    /// First address past it.
    pub end: AtomicU64,
    /// [`Delivery`] in bits 0 to 7, [`Why`] in bits 8 to 15, role in bits 16 to 23, and in bits 32
    /// to 47 the number of its mapping.
    pub delivery: AtomicU64,
    /// Faults in all parts of the mapping.
    pub faults: AtomicU64,
    /// Of these, on evicted pages.
    pub refaults: AtomicU64,
    /// Resident pages.
    pub resident: AtomicU64,
    /// Resident pages that differ from the store.
    pub dirty: AtomicU64,
    /// Evicted pages.
    pub evicted: AtomicU64,
    /// Counts for this region among the last watched pages: the same five counts as
    /// [`Process::heat_soon_of`] and the fields after it for all pages.
    pub heat: [AtomicU32; 5],
    /// Zero.
    pub reserved: AtomicU32,
}

/// How faults of a region reach the pager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Delivery {
    /// Handler threads read them from the userfaultfd.
    Handler = 0,
    /// A SIGBUS in the faulting thread.
    Signal = 1,
}

/// Why a region's faults are delivered as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Why {
    /// The default: system calls on missing pages simply work.
    Transparent = 0,
    /// Requested on the command line.
    CommandLine = 1,
    /// Requested by the program's hint.
    Hint = 2,
    /// The kernel does not let an unprivileged process handle faults taken inside the kernel.
    Unprivileged = 3,
    /// Memory that an allocator cuts into pieces: it contains buffers and locks of libc itself,
    /// which libc passes to the kernel where no shim sees them.
    Allocator = 4,
}

/// Features of the kernel.
pub mod capability {
    /// Faults taken in the kernel can be handled.
    pub const KERNEL_FAULTS: u64 = 1 << 0;
    /// Missing pages can raise SIGBUS.
    pub const SIGBUS: u64 = 1 << 1;
    /// Pages can be write-protected.
    pub const WRITE_PROTECT: u64 = 1 << 2;
    /// Also pages that are missing.
    pub const WRITE_PROTECT_UNPOPULATED: u64 = 1 << 3;
    /// Pages can be moved.
    pub const MOVE: u64 = 1 << 4;
    /// Scattered pages can be dropped in one call.
    pub const PROCESS_MADVISE: u64 = 1 << 5;
    /// Written and present pages can be found in one call.
    pub const PAGEMAP_SCAN: u64 = 1 << 6;
    /// Write protection may be resolved by the kernel.
    pub const WRITE_PROTECT_ASYNC: u64 = 1 << 7;
    /// Calls inside libc are seen.
    pub const LIBC_DETOUR: u64 = 1 << 8;
    /// Shared memory can be filled through a second mapping (CONTINUE).
    pub const CONTINUE: u64 = 1 << 9;
    /// The pager has io_uring for its store.
    pub const IO_URING: u64 = 1 << 10;
    /// The program may use io_uring and kernel AIO: nothing that they do can be lost.
    pub const ASYNCHRONOUS_IO: u64 = 1 << 11;
}

const _: () = assert!(size_of::<Region>() == 88);
const _: () = assert!(size_of::<Process>().is_multiple_of(8));
const _: () = assert!(
    size_of::<Run>()
        == 32
            + (PROCESSES + 1) * size_of::<Process>()
            + 24
            + UNMANAGED_PLACES * size_of::<UnmanagedPlace>()
);
