//! The result after all events.

use super::heat::HeatMap;
use super::roles::Coverage;
use super::{Attributor, Tally};
use crate::account::Lives;
use crate::touched::{Shared, Touches};
use pagewise_model::address_space::AddressSpace;
use pagewise_model::findings::{Cause, FileReads};
use pagewise_model::loss::Losses;
use pagewise_model::stack::{FrameKey, StackId, StackTable};
use pagewise_model::units::Nanos;
use rustc_hash::FxHashSet;
use std::collections::HashMap;

/// No shorter fault can have zeroed two mebibytes: that takes 17 µs even at 120 GB/s.
const FASTEST_HUGE: u64 = 15_000;

/// Faults of one thread.
#[derive(Clone, Debug, PartialEq)]
pub struct ThreadFaults {
    /// Process id.
    pub pid: i32,
    /// Thread id.
    pub tid: i32,
    /// Name.
    pub comm: String,
    /// Faults.
    pub faults: f64,
}

/// The input of all findings.
#[derive(Clone, Debug)]
pub struct Attribution {
    /// Sums over faults and calls.
    pub tally: Tally,
    /// Threads that faulted or have a name.
    pub threads: Vec<ThreadFaults>,
    /// Events lost or dropped.
    pub losses: Losses,
    /// Whether each fault is recorded, rather than a sample.
    pub sees_every_fault: bool,
    /// Whether releases of memory are recorded.
    pub sees_releases: bool,
    /// Whether faults raised inside the kernel are missing.
    pub user_only: bool,
    /// Bytes of a base page.
    pub page_size: u64,
    /// Time between the first and the last event.
    pub span: Nanos,
    /// Files that were waited for.
    pub file_reads: Vec<FileReads>,
    pub(crate) heat: HeatMap,
    pub(crate) lives: Lives,
    touches: Touches,
    stacks: StackTable,
    unwound: FxHashSet<StackId>,
    unwound_faults: u64,
    spaces: HashMap<i32, AddressSpace>,
}

/// From this number of unwound faults on, only those are used to show where faults happen.
const ENOUGH_UNWOUND: u64 = 40;

impl Attribution {
    /// Whether this stack can show where faults happen. Frame-pointer walks end early in libraries
    /// built without frame pointers, so that a fault in `memset` hides its caller; once enough
    /// stacks were unwound from copies, only those count.
    #[must_use]
    pub fn shows_callers(&self, stack: StackId) -> bool {
        self.unwound_faults < ENOUGH_UNWOUND || self.unwound.contains(&stack)
    }

    /// Resident memory by the stacks that touched it first, by process.
    pub(crate) fn touched(&self) -> Vec<Shared> {
        let touches = self.touches.clone();
        touches.shared(|stack| self.shows_callers(stack))
    }

    /// Unique call stacks.
    #[must_use]
    pub fn stacks(&self) -> &StackTable {
        &self.stacks
    }

    /// Mappings of code and files, by process.
    #[must_use]
    pub fn address_spaces(&self) -> &HashMap<i32, AddressSpace> {
        &self.spaces
    }

    /// Each code address that needs a name, once.
    #[must_use]
    pub fn frame_keys(&self) -> Vec<FrameKey> {
        let mut keys = self.stacks.keys().to_vec();
        keys.sort_unstable();
        keys
    }
}

impl Attributor {
    /// Ends the pass.
    #[must_use]
    pub fn finish(mut self) -> Attribution {
        for thread in 0..self.threads.len() {
            self.settle(thread, false);
        }
        self.confirm_huge_pages();
        self.tally.cause_variation.finish(&self.window_weights);
        self.tally.region_variation.finish(&self.window_weights);
        let threads = self.thread_faults();
        let spaces = self
            .process_of
            .iter()
            .map(|(&pid, &index)| (pid, std::mem::take(&mut self.processes[index].space)))
            .collect();
        let (first, last) = self.span.unwrap_or_default();
        Attribution {
            tally: self.tally,
            threads,
            losses: self.losses,
            sees_every_fault: self.roles.coverage == Coverage::Every,
            sees_releases: self.roles.sees_releases,
            user_only: self.roles.user_only,
            page_size: 1 << self.page_shift,
            span: Nanos(last - first),
            file_reads: self.reads.most_waited_for(),
            heat: self.heat,
            lives: self.lives,
            touches: self.touches,
            stacks: self.stacks,
            unwound: self.unwound,
            unwound_faults: self.unwound_faults,
            spaces,
        }
    }

    /// A first touch allocated a huge page if no other fault hit its aligned stretch until it was
    /// freed, and its latency, where measured, is long enough to zero that much.
    fn confirm_huge_pages(&mut self) {
        for candidate in std::mem::take(&mut self.huge) {
            let Some(cell) = candidate.cell else {
                continue;
            };
            let slow_enough = candidate.latency.is_none_or(|ns| ns >= FASTEST_HUGE);
            let cause = if !candidate.refuted && slow_enough {
                self.tally.recause(cell, Cause::HugePage, 1.0);
                Cause::HugePage
            } else {
                self.tally.huge_refused += u64::from(candidate.refuted);
                cell.cause
            };
            if let Some(latency) = candidate.latency {
                self.tally.latency.entry(cause).or_default().record(latency);
            }
        }
    }

    fn thread_faults(&mut self) -> Vec<ThreadFaults> {
        self.threads
            .iter_mut()
            .zip(&self.tids)
            .map(|(thread, &tid)| ThreadFaults {
                pid: thread.pid,
                tid,
                comm: std::mem::take(&mut thread.comm),
                faults: thread.faults,
            })
            .collect()
    }
}
