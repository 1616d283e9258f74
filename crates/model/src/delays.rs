//! Time that each task waited for memory, disks and CPUs, as counted by the kernel: delay
//! accounting.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Waits of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delay {
    /// How many.
    pub count: u64,
    /// How long they took, added up over all tasks.
    pub time: Nanos,
}

impl Delay {
    /// Sum with another task's.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            count: self.count + other.count,
            time: self.time + other.time,
        }
    }
}

/// Waits of all tasks of a program that ended while it was observed, as counted by the kernel
/// (Documentation/accounting/delay-accounting.rst). A kind that the kernel does not count, or
/// counted wrongly for one of the tasks, is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Delays {
    /// Tasks (threads) that were counted.
    pub tasks: u64,
    /// Ready to run, and no CPU free.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<Delay>,
    /// For disk I/O.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<Delay>,
    /// For pages read from swap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub swap: Option<Delay>,
    /// In direct reclaim: CPU time, sleep, and waiting for a CPU.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim: Option<Delay>,
    /// For pages that had been evicted shortly before (refaults).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thrashing: Option<Delay>,
    /// In compaction, which moves pages to make room for huge ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compaction: Option<Delay>,
    /// In copying pages that a process shares and writes to (since Linux 6.1).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copying: Option<Delay>,
}

impl Delays {
    /// Sum of both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let both = |one: Option<Delay>, two: Option<Delay>| Some(one?.and(two?));
        Self {
            tasks: self.tasks + other.tasks,
            ready: both(self.ready, other.ready),
            disk: both(self.disk, other.disk),
            swap: both(self.swap, other.swap),
            reclaim: both(self.reclaim, other.reclaim),
            thrashing: both(self.thrashing, other.thrashing),
            compaction: both(self.compaction, other.compaction),
            copying: both(self.copying, other.copying),
        }
    }
}
