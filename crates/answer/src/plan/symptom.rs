//! The kinds of problems that can be found, with the names used in rules, words and answers.

use pagewise_model::findings::{Cause, RegionKind};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error, StrDeserializer};

macro_rules! symptoms {
    ($($(#[$doc:meta])* $name:ident = $id:literal,)*) => {
        /// A kind of problem.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
        pub enum Symptom {
            $($(#[$doc])* #[serde(rename = $id)] $name,)*
        }

        impl Symptom {
            /// All of them.
            pub(super) const ALL: &[Self] = &[$(Self::$name),*];

            /// Its stable name.
            #[must_use]
            pub fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }
        }
    };
}

symptoms! {
    /// The top of the heap shrinks and grows repeatedly.
    ChurnBrk = "churn.brk",
    /// Mappings are created and removed repeatedly.
    ChurnMmap = "churn.mmap",
    /// Pages are released by `madvise` and touched again.
    ChurnMadvise = "churn.madvise",
    /// Heaps of threads shrink and grow repeatedly.
    ChurnThreadArena = "churn.thread_arena",
    /// Memory is returned and requested again, and populated each time.
    ChurnPopulated = "churn.populated",
    /// Churn inferred from totals alone.
    ChurnProbable = "churn.probable",
    /// Memory is touched for the first time.
    FirstTouch = "first_touch",
    /// Memory is read before it is written for the first time.
    ReadFirst = "read_first",
    /// Faults that allocated fresh memory, either first touches or churn.
    FreshMemory = "fresh_memory",
    /// Huge pages are zeroed for a few bytes in each.
    HugeSparse = "huge.sparse",
    /// Huge pages are zeroed.
    HugeZeroing = "huge.zeroing",
    /// Huge pages were requested and not available.
    HugeFallback = "thp_fallback",
    /// Pages are copied after fork.
    ForkCopies = "cow.fork",
    /// Forks copy page tables.
    ForkTables = "fork.tables",
    /// Forks copy page tables for processes that execute another program at once.
    ForkSpawn = "fork.spawn",
    /// Processes are forked for a little work each.
    ForkEach = "fork.each",
    /// Programs are started for a little work each.
    StartEach = "start.each",
    /// Threads are started for a little work each.
    ThreadEach = "thread.each",
    /// Pages of mapped files fault.
    File = "file",
    /// Pages of private file mappings are copied at their first write.
    FileCopies = "file.copy",
    /// Pages of shared memory fault.
    Shared = "shared",
    /// Files are mapped repeatedly.
    FileRemap = "file.remap",
    /// Threads wait for pages of mapped files.
    FileReads = "file.read",
    /// The program and its libraries are read from disk.
    FirstRun = "file.first_run",
    /// Pages are read back from swap.
    Swap = "swap",
    /// Pages fault, and what shows why was not recorded.
    UnknownFaults = "faults.unknown",
    /// Pages fault because they are write-protected.
    WriteProtect = "write_protect",
    /// The allocator's own code takes time.
    HotAllocator = "allocator.hot",
    /// A runtime's garbage collector takes time.
    HotCollector = "collector.hot",
    /// Threads queue for a lock of the program.
    LockQueue = "lock.threads",
    /// Memory that the allocator kept is zeroed for calloc.
    CallocZeroing = "calloc.zeroing",
    /// A program runs on a language runtime: not a problem by itself, but a stripped runtime hides
    /// its collector, so that only runs can show the effect of its heap settings.
    Runtime = "runtime",
    /// A cgroup's limit leaves too little memory.
    Limit = "limit",
    /// The kernel killed the program at its limit.
    Killed = "limit.killed",
    /// Pages are evicted while they are needed.
    Thrashing = "thrashing",
    /// The kernel reclaims memory.
    Reclaim = "reclaim",
    /// Threads sleep for the lock of the address space.
    LockWait = "lock",
    /// Threads spin for it.
    LockSpin = "lock.spin",
    /// TLBs of other CPUs are flushed.
    TlbFlush = "tlb.flush",
    /// A thread of the program serves page faults of others.
    ServedFaults = "faults.served",
    /// Buffers are registered for each request.
    Registering = "pin.each",
    /// The program has its mappings populated when it makes them.
    Populating = "populate.each",
    /// NUMA balancing takes time.
    NumaBalancing = "numa.balancing",
    /// Memory is on other nodes than the one whose CPUs use it.
    NumaRemote = "numa.remote",
    /// Memory is on one node, and CPUs of several use it.
    NumaOneNode = "numa.one_node",
    /// The kernel's own threads manage memory on the same CPUs.
    KernelThreads = "kernel.threads",
    /// The kernel works apart from page faults.
    KernelWork = "kernel.work",
    /// The kernel's time is not explained.
    KernelUnexplained = "kernel.unexplained",
    /// Nothing is costly, and nothing is unresolved.
    Healthy = "healthy",
    /// Nothing is costly, but too much time is unresolved to report "healthy".
    Open = "open",
    /// A program ends too soon for a result.
    Short = "short",
    /// The program's own code takes time.
    Computing = "computing",
}

impl Symptom {
    /// The symptom of this name.
    pub(super) fn named(id: &str) -> Option<Self> {
        let name: StrDeserializer<'_, Error> = id.into_deserializer();
        Self::deserialize(name).ok()
    }

    /// Whether its faults allocate fresh pages, so that huge pages would need fewer.
    pub(super) fn is_fresh_memory(self) -> bool {
        self.is_churn() || [Self::FirstTouch, Self::ReadFirst, Self::FreshMemory].contains(&self)
    }

    /// The kind of churn of memory of this kind that was released this way.
    pub(super) fn of_churn(cause: Cause, region: RegionKind) -> Self {
        match (cause, region) {
            (_, RegionKind::ThreadArena) => Self::ChurnThreadArena,
            (Cause::RefaultAfterBrk, _) | (_, RegionKind::Heap) => Self::ChurnBrk,
            (Cause::RefaultAfterMunmap, _) => Self::ChurnMmap,
            _ => Self::ChurnMadvise,
        }
    }

    /// Whether memory is freed and touched again.
    pub(super) fn is_churn(self) -> bool {
        use Symptom::*;
        match self {
            ChurnBrk | ChurnMmap | ChurnMadvise | ChurnThreadArena | ChurnPopulated
            | ChurnProbable => true,
            FirstTouch | ReadFirst | FreshMemory | HugeSparse | HugeZeroing | HugeFallback
            | ForkCopies | ForkTables | ForkSpawn | ForkEach | StartEach | ThreadEach | File
            | FileCopies | Shared | FileRemap | FileReads | FirstRun | Swap | UnknownFaults
            | WriteProtect | HotAllocator | HotCollector | LockQueue | CallocZeroing | Runtime
            | Limit | Killed | Thrashing | Reclaim | LockWait | LockSpin | TlbFlush
            | ServedFaults | Registering | Populating | NumaBalancing | NumaRemote
            | NumaOneNode | KernelThreads | KernelWork | KernelUnexplained | Healthy | Open
            | Short | Computing => false,
        }
    }

    /// Whether it is about memory or calls that no runtime's heap changes: files, memory that processes share,
    /// forks, calls that the program alone makes.
    pub(super) fn is_outside_heaps(self) -> bool {
        use Symptom::*;
        matches!(
            self,
            ServedFaults
                | Registering
                | Populating
                | LockQueue
                | Shared
                | File
                | FileCopies
                | FileRemap
                | FileReads
                | ForkTables
                | ForkSpawn
                | ForkEach
                | StartEach
                | ThreadEach
        )
    }

    /// Whether nothing that was recorded shows what it costs.
    pub(super) fn has_unknown_cost(self) -> bool {
        [Self::NumaRemote, Self::NumaOneNode, Self::Killed].contains(&self)
    }

    /// Whether its cost is a share of the CPU time although it has no faults.
    pub(super) fn is_of_cpu(self) -> bool {
        use Symptom::*;
        match self {
            ChurnPopulated | HotAllocator | HotCollector | LockQueue | CallocZeroing
            | ForkTables | ForkSpawn | ForkEach | StartEach | ThreadEach | LockSpin | TlbFlush
            | ServedFaults | Registering | Populating | NumaBalancing | NumaRemote
            | NumaOneNode | KernelWork | KernelUnexplained | Healthy | Open | Short | Computing => {
                true
            }
            ChurnBrk | ChurnMmap | ChurnMadvise | ChurnThreadArena | ChurnProbable | FirstTouch
            | ReadFirst | FreshMemory | HugeSparse | HugeZeroing | HugeFallback | ForkCopies
            | File | FileCopies | Shared | FileRemap | FileReads | FirstRun | Swap
            | UnknownFaults | WriteProtect | Runtime | Limit | Killed | Thrashing | Reclaim
            | LockWait | KernelThreads => false,
        }
    }
}
