//! The host's settings, so that two recordings can be compared and a report can be understood later.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Settings of the machine that recorded, each under a stable dotted name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HostSnapshot {
    /// Host name.
    pub hostname: String,
    /// Kernel release, as `uname -r`.
    pub kernel: String,
    /// Architecture, as `uname -m`.
    pub architecture: String,
    /// CPU model name.
    pub cpu: String,
    /// CPUs online.
    pub cpus: u32,
    /// Physical memory in bytes.
    pub memory_bytes: u64,
    /// Base page size in bytes.
    pub page_size: u64,
    /// Everything else: `vm.swappiness`, `thp.enabled`, `mitigations.meltdown`,
    /// `block.vda.scheduler`, `cgroup.memory.limit`…; for the observed program,
    /// `environment.GLIBC_TUNABLES`, `limit.stack`… Absent where unreadable.
    pub settings: BTreeMap<String, String>,
    /// Counters and current amounts of the machine, next to its settings: `ksm.pages_shared`,
    /// `hugetlb.2048kB.free`… They differ between any two moments and are no sign of a change.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counters: BTreeMap<String, String>,
}

impl HostSnapshot {
    /// Whether nothing is known about the machine.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}
