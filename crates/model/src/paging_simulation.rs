//! Policies of paging on a recorded run, next to Belady's bound.

use crate::answer::{Evidence, Kind};
use serde::{Deserialize, Serialize};

/// What each policy would have done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PagingSimulation {
    /// The recorded run.
    pub trace: UsesOfPages,
    /// Memory, in pages.
    pub memory_pages: u32,
    /// No policy without prefetching reads fewer pages.
    pub bound: PolicyOutcome,
    /// In the order in which they were asked for.
    pub policies: Vec<PolicyOutcome>,
}

impl Evidence for PagingSimulation {
    const KIND: Kind = Kind::PagingSimulation;
}

/// What a trace of a paged run holds.
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
    /// Pages read early in the recorded run, taken for uses.
    pub presumed_uses: u64,
    /// Records of kinds that this version does not know.
    pub unknown_records: u64,
    /// Bytes at the end that are no whole record.
    pub cut_bytes: usize,
}

/// One policy's figures, in pages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PolicyOutcome {
    /// Its name.
    pub policy: String,
    /// Threads held up by the store.
    pub refaults: u64,
    /// Read from the store.
    pub pages_read: u64,
    /// Of these, before they were asked for.
    pub read_early: u64,
    /// Read early and never used.
    pub read_in_vain: u64,
    /// Faults on pages that were in memory.
    pub soft_faults: u64,
    /// Pages that had to leave.
    pub evictions: u64,
    /// Written to the store.
    pub pages_written: u64,
}
