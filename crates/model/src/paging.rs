//! How a run under user-level paging went, point by point.

use serde::{Deserialize, Serialize};

/// What the document says of itself; how a reader tells it from other JSON.
pub const KIND: &str = "paging timeline";
/// Version of docs/schema/run-timeline.json.
pub const VERSION: u32 = 1;

/// The course of one run of `pagewise run`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PagingTimeline {
    /// [`KIND`].
    pub pagewise: String,
    /// [`VERSION`].
    pub schema_version: u32,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// How it ended.
    pub ending: String,
    /// Bytes that each process may keep resident.
    pub memory_bytes: u64,
    /// The policy's name.
    pub policy: String,
    /// The store's kind.
    pub store: String,
    /// Seconds between points; doubled as often as the points became too many.
    pub interval_s: f64,
    /// Readings, oldest first; the last one is that of the end.
    pub points: Vec<PagingPoint>,
}

/// One reading, summed over the processes of the run. Counters are cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PagingPoint {
    /// Seconds since the program was started.
    pub time_s: f64,
    /// Processes that have managed memory so far.
    pub processes: u32,
    /// Managed memory that is resident.
    pub resident_bytes: u64,
    /// How much of it may be.
    pub limit_bytes: u64,
    /// Resident memory that is not managed.
    pub unmanaged_bytes: u64,
    /// What the stores hold, on disk and packed in memory.
    pub store_bytes: u64,
    /// Faults on pages without contents.
    pub first_touches: u64,
    /// Faults that waited for the store.
    pub refaults: u64,
    /// Uses of watched pages that were seen.
    pub seen_used: u64,
    /// Pages read from the store.
    pub pages_read: u64,
    /// Of these, before anyone asked for them.
    pub pages_read_ahead: u64,
    /// Pages written to the store.
    pub pages_written: u64,
    /// Pages that left memory.
    pub pages_evicted: u64,
    /// Nanoseconds that faults waited for room.
    pub throttled_ns: u64,
}
