//! What a sampler reads, and how often.

use super::ProcRoot;
use std::path::PathBuf;
use std::time::Duration;

/// Shortest interval; one reading costs some 20 µs, and CPU time comes in steps of 10 ms anyway.
pub const SHORTEST_INTERVAL: Duration = Duration::from_millis(10);

/// What a sampler reads.
#[derive(Clone, Debug)]
pub struct SamplerOptions {
    /// Time between readings, at least [`SHORTEST_INTERVAL`].
    pub interval: Duration,
    /// Whether counters run from the start of the root process instead of the first reading, as
    /// suits a program started for this purpose: the totals then equal those of `wait4(2)`.
    pub from_birth: bool,
    /// Further processes that are read with the root and its descendants, as if they were its own;
    /// none if counters run from its start.
    pub also: Vec<i32>,
    /// Whether the proportional set size is read when the budget allows.
    pub pss: bool,
    /// Whether pressure of the machine and the cgroup is read.
    pub pressure: bool,
    /// procfs.
    pub proc: ProcRoot,
    /// Where cgroups are mounted.
    pub cgroups: PathBuf,
}

impl SamplerOptions {
    /// Everything, each `interval`, from this machine.
    #[must_use]
    pub fn every(interval: Duration) -> Self {
        Self {
            interval: interval.max(SHORTEST_INTERVAL),
            from_birth: false,
            also: Vec::new(),
            pss: true,
            pressure: true,
            proc: ProcRoot::default(),
            cgroups: PathBuf::from("/sys/fs/cgroup"),
        }
    }
}
