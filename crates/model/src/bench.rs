//! What memory management costs on a machine.

use crate::advice::Settings;
use crate::document::Kind;
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of [`AllocatorBench`] as JSON.
pub const ALLOCATOR_BENCH_VERSION: u32 = 1;
/// Version of [`FaultBench`] as JSON.
pub const FAULT_BENCH_VERSION: u32 = 2;

/// What allocators cost by size of block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocatorBench {
    /// [`Kind::AllocatorBench`].
    pub kind: Kind,
    /// [`ALLOCATOR_BENCH_VERSION`].
    pub schema_version: u32,
    /// Base page size.
    pub page_bytes: Bytes,
    /// Version of the system's glibc; none with another C library.
    pub glibc: Option<String>,
    /// The system's allocator first.
    pub allocators: Vec<Measured>,
    /// What could not be measured, and why.
    pub notes: Vec<String>,
}

/// An allocator with settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contender {
    /// Short name.
    pub name: String,
    /// How it is put in place.
    pub settings: Settings,
}

/// One allocator's figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// Name and settings.
    #[serde(flatten)]
    pub contender: Contender,
    /// Smallest block (to the KiB) that comes fresh from the kernel in each round; none up to 64 MiB
    /// when absent.
    pub threshold_bytes: Option<Bytes>,
    /// Single blocks.
    pub single: Vec<AllocatorRow>,
    /// Small blocks given back together.
    pub together: Vec<AllocatorRow>,
}

/// One size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocatorRow {
    /// Bytes taken in a round.
    pub bytes: Bytes,
    /// Bytes in one block.
    pub block_bytes: Bytes,
    /// What a round costs.
    #[serde(flatten)]
    pub cost: Cost,
}

/// Cost of one round: take, touch, give back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cost {
    /// Faults.
    pub faults: f64,
    /// CPU time in nanoseconds, touching included.
    pub cpu_ns: f64,
    /// Memory system calls by name; absent where they cannot be counted.
    pub calls: Option<BTreeMap<String, f64>>,
}

/// What page faults cost by who resolves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultBench {
    /// [`Kind::FaultBench`].
    pub kind: Kind,
    /// [`FAULT_BENCH_VERSION`].
    pub schema_version: u32,
    /// Fresh processes behind each figure, which is their median.
    pub runs: u32,
    /// By who resolves them, then by threads.
    pub rows: Vec<FaultRow>,
}

/// Who resolves a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// The kernel.
    Kernel,
    /// Handler threads.
    Fd,
    /// The thread that faults.
    Sigbus,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Kernel, Self::Fd, Self::Sigbus];
}

/// Faults of so many threads, resolved one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultRow {
    /// Who resolves them.
    pub way: Way,
    /// Threads that fault at the same time.
    pub threads: u16,
    /// What they take.
    #[serde(flatten)]
    pub times: Times,
}

/// What first touches of pages take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Times {
    /// Median of scattered pages, ns.
    pub p50_ns: u64,
    /// 99th percentile of scattered pages, ns.
    pub p99_ns: u64,
    /// Mean of pages one after the other, ns.
    pub in_order_ns: u64,
}
