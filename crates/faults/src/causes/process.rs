//! The state of one process's memory and of one thread while events arrive.

use super::density::Density;
use super::mappers::Mapper;
use super::pages::{PageState, PageTable};
use super::regions::{Region, Regions};
use super::remaps::Remaps;
use super::syscalls::{ErrorCode, MmCall};
use pagewise_model::address_space::AddressSpace;
use pagewise_model::findings::{Cause, RegionKind};
use pagewise_model::stack::StackId;
use pagewise_model::units::Nanos;
use rustc_hash::FxHashMap;

/// Pages of a process whose repeated sightings are counted: 32 MiB.
const MOST_SEEN_AGAIN: usize = 1 << 20;

/// The state of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct Process {
    pub(super) pages: PageTable,
    pub(super) regions: Regions,
    /// Mappings that contain code or files, for symbols.
    pub(super) space: AddressSpace,
    /// The stretch of the last fault.
    pub(super) last_region: Option<(u64, Region)>,
    /// Pages that samples of one rate saw at least twice, and how often; the rest follows from
    /// their words.
    pub(super) seen: FxHashMap<(u64, u16), u32>,
    /// Memory that was mapped again, if releases are not recorded.
    pub(super) remaps: Remaps,
    /// Sampled faults relative to freed pages of the whole process.
    pub(super) density: Density,
    /// Epoch of the newest record of the growing heap.
    pub(super) heap_epoch: u16,
    /// Whether it forked while observed: pages may be shared copy-on-write.
    pub(super) has_forked: bool,
    pub(super) threads: u32,
    /// The processes with which it shares pages since forks.
    pub(super) kin: Option<u32>,
    /// When a fork created it, if it has not executed another program since.
    pub(super) forked: Option<Nanos>,
    /// Faults since.
    pub(super) faults_since: f64,
}

impl Process {
    /// The child's copy of the process after a fork; resident private pages become shared in both.
    /// Pages that a read brought in (the zero page, a file's page) keep their state: their next
    /// write copies them regardless of the fork.
    pub(super) fn fork(&mut self, time: Nanos) -> Self {
        self.pages.map_held(0, u64::MAX, |state| match state {
            PageState::Present | PageState::Written => PageState::CowShared,
            other => other,
        });
        self.has_forked = true;
        Self {
            threads: 0,
            last_region: None,
            forked: Some(time),
            faults_since: 0.0,
            ..self.clone()
        }
    }

    /// The stretch that contains `address`.
    pub(super) fn region_at(&mut self, address: u64) -> Option<(u64, Region)> {
        if let Some((start, region)) = self.last_region
            && (start..region.end).contains(&address)
        {
            return self.last_region;
        }
        self.last_region = self.regions.kind_at(address);
        self.last_region
    }

    /// Records that a sample saw a page again; returns how often samples had seen it before.
    pub(super) fn see_again(&mut self, page: u64, rate: u16) -> u32 {
        if self.seen.len() >= MOST_SEEN_AGAIN {
            return self.seen.get(&(page, rate)).map_or(1, |seen| *seen);
        }
        let seen = self.seen.entry((page, rate)).or_insert(1);
        let before = *seen;
        *seen = seen.saturating_add(1);
        before
    }

    /// Frees the data that only classification needs, once no thread is left.
    pub(super) fn bury(&mut self) {
        self.pages = PageTable::default();
        self.seen = FxHashMap::default();
        self.remaps = Remaps::default();
        self.regions = Regions::default();
        self.last_region = None;
    }
}

/// A fault whose handling may not have ended yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    pub(super) pid: i32,
    pub(super) page: u64,
    pub(super) address: u64,
    pub(super) begun: Nanos,
    /// Sources that showed this fault, as bits.
    pub(super) sources: u64,
    /// Faults that it stands for in the totals.
    pub(super) weight: f64,
    /// Whether a source that records each begin and end saw it.
    pub(super) timed: bool,
    /// The recorder's cost between begin and end.
    pub(super) own_cost: u64,
    pub(super) stack: Option<StackId>,
    pub(super) region: RegionKind,
    pub(super) verdict: Verdict,
    /// Number of the candidate, if the fault may have allocated a huge page.
    pub(super) huge_candidate: Option<u32>,
    pub(super) inherited: bool,
    /// Whether the kernel allocates huge pages for its memory.
    pub(super) may_be_huge: bool,
    /// Known only by inference from mapping records.
    pub(super) inferred: bool,
}

/// A cause, possibly shared with another one by probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Verdict {
    pub(super) cause: Cause,
    /// Another cause and the probability that it is the right one.
    pub(super) instead: Option<(Cause, f64)>,
}

impl Verdict {
    pub(super) fn sure(cause: Cause) -> Self {
        Self {
            cause,
            instead: None,
        }
    }
}

/// A system call in progress.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallUnderWay {
    pub(super) call: MmCall,
    pub(super) args: [u64; 6],
    pub(super) begun: Nanos,
    pub(super) stack: Option<StackId>,
    pub(super) mapper: Mapper,
}

/// The state of one thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) pid: i32,
    pub(super) comm: String,
    pub(super) faults: f64,
    pub(super) pending: Option<Pending>,
    pub(super) call: Option<CallUnderWay>,
    pub(super) code: Option<(u64, ErrorCode)>,
    /// Page and instruction of the first fault in a separately mapped block.
    pub(super) block_begun: Option<(u64, u64)>,
    pub(super) lock: Option<(u64, Nanos, Option<StackId>)>,
}
