//! Kinds of faults, and layers of their work, with the same meaning on every kernel.

use serde::{Deserialize, Serialize};

/// The kind of a fault, with the same meaning on every kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// First touch of anonymous memory.
    Anonymous,
    /// First read of anonymous memory: the shared zero page.
    ZeroPage,
    /// First touch of anonymous memory, a huge page.
    AnonymousHuge,
    /// Pages of a file, already in the page cache, mapped around the fault.
    MapAround,
    /// A page of a file, already in the page cache.
    FileRead,
    /// A page of a file, read from its device.
    FileReadMajor,
    /// A write to a private mapping of a file.
    FileCow,
    /// A write to a shared mapping of a file.
    FileShared,
    /// A write to a page shared after fork, which had become private again.
    WriteReuse,
    /// A write to a page shared after fork: copied.
    WriteCopy,
    /// A write to the zero page.
    WriteZeroPage,
    /// A write to a huge page shared after fork.
    WriteHuge,
    /// Back from swap.
    SwapIn,
    /// Moved, or checked, for NUMA balancing.
    NumaHint,
    /// Served by user space.
    Userfault,
    /// A page of hugetlbfs.
    Hugetlb,
    /// The stack grew.
    StackGrowth,
    /// Another task was faster, or the TLB had an old entry.
    Spurious,
    /// Gave up the mmap lock to wait, and is tried again.
    Retry,
    /// Could not be handled: a signal was raised.
    Error,
    /// The trace shows too few functions to decide.
    Unclassified,
}

impl Class {
    /// All kinds.
    pub const ALL: [Self; 21] = [
        Self::Anonymous,
        Self::ZeroPage,
        Self::AnonymousHuge,
        Self::MapAround,
        Self::FileRead,
        Self::FileReadMajor,
        Self::FileCow,
        Self::FileShared,
        Self::WriteReuse,
        Self::WriteCopy,
        Self::WriteZeroPage,
        Self::WriteHuge,
        Self::SwapIn,
        Self::NumaHint,
        Self::Userfault,
        Self::Hugetlb,
        Self::StackGrowth,
        Self::Spurious,
        Self::Retry,
        Self::Error,
        Self::Unclassified,
    ];

    /// Display name.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Anonymous => "anonymous, first touch",
            Self::ZeroPage => "anonymous, read of the zero page",
            Self::AnonymousHuge => "anonymous, huge page",
            Self::MapAround => "file, mapped around",
            Self::FileRead => "file, read from the page cache",
            Self::FileReadMajor => "file, read from the device",
            Self::FileCow => "file, copied for a private write",
            Self::FileShared => "file, shared write",
            Self::WriteReuse => "write protection, page reused",
            Self::WriteCopy => "write protection, page copied",
            Self::WriteZeroPage => "write protection, from the zero page",
            Self::WriteHuge => "write protection, huge page",
            Self::SwapIn => "swap-in",
            Self::NumaHint => "NUMA hint",
            Self::Userfault => "userfault",
            Self::Hugetlb => "hugetlbfs",
            Self::StackGrowth => "stack growth",
            Self::Spurious => "spurious",
            Self::Retry => "retry",
            Self::Error => "error",
            Self::Unclassified => "unclassified (trace too shallow)",
        }
    }
}

/// A part of the work of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The whole fault.
    Fault,
    /// `handle_mm_fault`.
    MmFault,
    /// The handler of the kind: `do_anonymous_page`, `do_wp_page`, `do_fault`, …
    Handler,
    /// Getting the mmap lock or the per-VMA lock.
    Lock,
    /// Allocating the page.
    Allocation,
    /// Clearing it.
    Zeroing,
    /// Copying it.
    Copying,
    /// Charging it to the memory cgroup.
    Charge,
    /// Putting it on the list of pages for reclaim.
    Lru,
    /// Recording the reverse mapping.
    Rmap,
    /// Mapping pages around it.
    MapAround,
    /// Fetching it from its file.
    FileFetch,
    /// Reading it from swap.
    SwapIn,
    /// TLB flushes on other processors.
    TlbFlush,
    /// Allocating page tables.
    PageTable,
    /// Waiting.
    Wait,
}

impl Layer {
    /// All layers in the order of reports.
    pub const ALL: [Self; 16] = [
        Self::Fault,
        Self::MmFault,
        Self::Handler,
        Self::Lock,
        Self::Allocation,
        Self::Zeroing,
        Self::Copying,
        Self::Charge,
        Self::Lru,
        Self::Rmap,
        Self::MapAround,
        Self::FileFetch,
        Self::SwapIn,
        Self::TlbFlush,
        Self::PageTable,
        Self::Wait,
    ];

    /// Display name.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::Fault => "whole fault",
            Self::MmFault => "handle_mm_fault",
            Self::Handler => "handler",
            Self::Lock => "mmap or VMA lock",
            Self::Allocation => "allocation",
            Self::Zeroing => "zeroing",
            Self::Copying => "copying",
            Self::Charge => "memcg charge",
            Self::Lru => "LRU lists",
            Self::Rmap => "reverse mapping",
            Self::MapAround => "map-around",
            Self::FileFetch => "file fetch",
            Self::SwapIn => "swap-in",
            Self::TlbFlush => "TLB flush",
            Self::PageTable => "page tables",
            Self::Wait => "wait",
        }
    }
}
