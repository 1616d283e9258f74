//! Runs policies on recorded traces, with Belady's MIN as the bound.
//!
//! The simulated core behaves like the real one where it matters to policies: it evicts in batches,
//! sees uses only of watched pages, reads what plans request if it is in the store, and keeps a
//! clean copy there. Time is not modelled: pages read ahead arrive at once.

mod another_order;
mod min;
mod run;

pub use another_order::in_another_order;
pub use min::min;
pub use run::run;

use pagewise_policy::trace::Trace;

/// The result of running a policy on a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Uses in the trace.
    pub uses: u64,
    /// Pages touched for the first time (since they were last freed).
    pub first_touches: u64,
    /// Faults on evicted pages: each is a wait for the store.
    pub refaults: u64,
    /// Soft faults on watched pages.
    pub soft_faults: u64,
    /// Pages read from the store.
    pub pages_read: u64,
    /// Of these, read ahead.
    pub read_early: u64,
    /// Of those read ahead, evicted or freed without a use.
    pub read_in_vain: u64,
    /// Pages evicted.
    pub evictions: u64,
    /// Pages written to the store.
    pub pages_written: u64,
}

/// Parameters of the simulated core.
#[derive(Debug, Clone, Copy)]
pub struct Memory {
    /// Pages that may be resident.
    pub pages: u32,
    /// Pages evicted at a time.
    pub batch: u32,
}

impl Memory {
    /// The batches of the real core: 64 pages, fewer in small memories.
    #[must_use]
    pub fn new(pages: u32) -> Self {
        Memory {
            pages,
            batch: 64.min(pages / 16).max(1),
        }
    }
}

/// Smallest number of pages that can contain everything the trace uses.
#[must_use]
pub fn footprint(trace: &Trace) -> u64 {
    let mut seen = vec![false; trace.pages() as usize];
    trace
        .references
        .iter()
        .for_each(|one| seen[one.page as usize] = true);
    seen.iter().filter(|seen| **seen).count() as u64
}

#[cfg(test)]
mod tests;
