//! Waits for locks and who caused them; charges to the memory cgroup.

use super::{Latencies, Latency};
use serde::{Deserialize, Serialize};

/// Waits for locks around and inside faults.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockWaits {
    /// By lock and function.
    pub locks: Vec<LockWait>,
    /// The tasks that held the mmap lock, or queued for it earlier, while others waited for it; the
    /// longest waits first.
    pub holders: Vec<Holder>,
    /// Waits of 0.1 ms and more for the mmap lock, for reading or writing, that are attributed to a
    /// task, and all such waits.
    pub attributed: (u64, u64),
    /// The time of both, ns.
    pub attributed_ns: (u64, u64),
}

/// Getting a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LockWait {
    /// The lock.
    pub lock: Lock,
    /// The function that gets it; `mmap_lock events` where those events show the wait.
    pub function: String,
    /// Whether it is inside faults, not before them.
    pub inside_fault: bool,
    /// Of these, calls that reached the slow path or slept.
    pub slow: u64,
    /// Time in it, waits included, as traced.
    pub latency: Latency,
    /// Share of the whole time of all faults, as traced.
    pub share: f64,
}

/// A lock of memory management.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Lock {
    /// The mmap lock of the process (`mmap_sem` up to 5.7).
    Mmap,
    /// The lock of one area (since 6.4).
    Vma,
    /// A reader-writer semaphore.
    Rwsem,
    /// A reader-writer semaphore with counters per CPU.
    PercpuRwsem,
    /// A folio or page.
    Folio,
    /// A mutex.
    Mutex,
}

/// A task's relation to a lock that others waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Hold {
    /// It held the lock for writing.
    Writing,
    /// It held the lock for reading.
    Reading,
    /// It was itself waiting to write: later readers queue behind it.
    Queued,
}

/// A task that kept others waiting for the mmap lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Holder {
    /// The task.
    pub pid: u32,
    /// Its name, as far as the trace prints it.
    pub task: String,
    /// Its relation to the lock.
    pub how: Hold,
    /// What it ran meanwhile, as far as it was traced.
    pub doing: Option<String>,
    /// Waits in which it was involved.
    pub waits: u64,
    /// Their time attributed to it, ns.
    pub wait_ns: u64,
    /// The longest time that it held the lock, or was queued for it, while another task waited, ns.
    pub longest_hold_ns: u64,
}

/// Charges to the memory cgroup by path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ChargePath {
    /// The path.
    pub way: ChargeWay,
    /// Faults.
    pub faults: u64,
    /// Share of the faults that charge.
    pub share: f64,
    /// Time in the charge.
    pub latency: Latencies,
}

/// How a page was charged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum ChargeWay {
    /// Neither the stock nor the counters were seen: the root cgroup, which is not limited, or a
    /// kernel with all of these functions inlined.
    Untold,
    /// From the CPU's stock (`consume_stock`).
    StockHit,
    /// From the counters, and the stock filled again (`page_counter_try_charge`,
    /// `refill_stock`).
    Refill,
    /// The counters' limit was reached: memory was reclaimed first.
    Reclaim,
}
