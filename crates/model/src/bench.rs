//! What memory management costs on a machine.

use crate::advice::Settings;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What allocators cost by size of block.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AllocatorBench {
    /// Base page size.
    pub page_bytes: Bytes,
    /// Version of the system's glibc; none with another C library.
    pub glibc: Option<String>,
    /// The system's allocator first.
    pub allocators: Vec<Measured>,
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
    /// Smallest block (to the KiB) that comes fresh from the kernel in each round; absent where no
    /// block up to 64 MiB does.
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

impl AllocatorRow {
    /// Pages of this size that its bytes take.
    #[must_use]
    pub fn pages(&self, page: Bytes) -> f64 {
        self.bytes.0.div_ceil(page.0.max(1)).max(1) as f64
    }

    /// CPU time of a round.
    #[must_use]
    pub fn cpu(&self) -> Nanos {
        Nanos::from_secs_f64(self.cost.cpu_ns / 1e9)
    }
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

/// What page faults cost by what resolves them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultBench {
    /// Number of fresh processes; each figure is their median.
    pub runs: u32,
    /// By what resolves them, then by number of threads.
    pub rows: Vec<FaultRow>,
}

/// What resolves a fault.
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

/// Faults of a number of threads, resolved one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FaultRow {
    /// What resolves them.
    pub way: Way,
    /// Threads that fault at the same time.
    pub threads: u16,
    /// How long they take.
    #[serde(flatten)]
    pub times: Times,
}

/// How long first touches of pages take.
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
