//! Policies of paging on a recorded run, compared with Belady's bound.

use serde::{Deserialize, Serialize};

/// What each policy would have done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagingSimulation {
    /// The recorded run.
    pub trace: UsesOfPages,
    /// Memory, in pages.
    pub memory_pages: u32,
    /// The lower bound: no policy without prefetching reads fewer pages.
    pub bound: PolicyOutcome,
    /// In the requested order.
    pub policies: Vec<PolicyOutcome>,
}

/// The contents of a trace of a paged run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UsesOfPages {
    /// Uses.
    pub uses: usize,
    /// Different pages.
    pub footprint_pages: u64,
    /// Size of a page.
    pub page_bytes: u32,
    /// Memory of the recorded run, in pages.
    pub recorded_with_pages: u64,
    /// Pages read early in the recorded run, counted as uses.
    pub presumed_uses: u64,
    /// Records of kinds that this version does not know.
    pub unknown_records: u64,
    /// Bytes at the end that do not form a complete record.
    pub cut_bytes: usize,
}

/// One policy's figures, in pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyOutcome {
    /// Its name.
    pub policy: String,
    /// Faults that waited for the store.
    pub refaults: u64,
    /// Read from the store.
    pub pages_read: u64,
    /// Of these, before they were needed.
    pub read_early: u64,
    /// Read early and never used.
    pub read_in_vain: u64,
    /// Faults on pages that were in memory.
    pub soft_faults: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Written to the store.
    pub pages_written: u64,
    /// Whether it replayed the very run that is simulated, and so knew what comes: no other run has that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub knew_the_run: bool,
}
