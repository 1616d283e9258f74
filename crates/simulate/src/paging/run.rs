//! The simulated core.

use crate::paging::{Memory, Outcome};
use pagewise_policy::page::{Arrival, Fault, FaultKind, Page, Plan, Span, Use};
use pagewise_policy::policy::Policy;
use pagewise_policy::trace::{Reference, ReferenceKind, Trace};

const RESIDENT: u8 = 1;
/// Has content in the store (also while it is resident and clean).
const STORED: u8 = 2;
const DIRTY: u8 = 4;
const WATCHED: u8 = 8;
/// Read ahead and not used yet.
const EARLY: u8 = 16;

struct Core<'a> {
    policy: &'a dyn Policy,
    trace: &'a Trace,
    memory: Memory,
    pages: Vec<u8>,
    resident: u32,
    outcome: Outcome,
    /// Uses of watched pages that have been replaced by newly watched ones.
    replaced: u64,
}

/// Runs `policy`, made for this many pages, on `trace`.
#[must_use]
pub fn run(trace: &Trace, policy: &dyn Policy, memory: Memory) -> Outcome {
    let pages = vec![0; trace.pages() as usize];
    let mut core = Core {
        policy,
        trace,
        memory,
        pages,
        resident: 0,
        outcome: Outcome::default(),
        replaced: 0,
    };
    for reference in &trace.references {
        match reference.kind {
            ReferenceKind::Remove => core.remove(reference.page),
            ReferenceKind::Read => core.access(reference, false),
            ReferenceKind::Write => core.access(reference, true),
        }
    }
    core.outcome
}

impl Core<'_> {
    fn state(&mut self, page: Page) -> &mut u8 {
        &mut self.pages[page as usize]
    }

    fn access(&mut self, reference: &Reference, write: bool) {
        self.outcome.uses += 1;
        let page = reference.page;
        if *self.state(page) & RESIDENT == 0 {
            self.fault(reference, write);
        } else if *self.state(page) & WATCHED != 0 {
            self.outcome.soft_faults += 1;
            self.policy.used(page, Use::Touch);
        } else if write && *self.state(page) & (STORED | DIRTY) == STORED {
            self.policy.used(page, Use::Write);
        }
        let state = self.state(page);
        *state &= !(WATCHED | EARLY);
        if write {
            *state |= DIRTY;
        }
    }

    fn fault(&mut self, reference: &Reference, write: bool) {
        let page = reference.page;
        let region = self.trace.regions.get(&reference.region).copied();
        let region = region.unwrap_or_default();
        let in_file = self.trace.is_of_file(reference);
        if in_file {
            // The file is the store: its pages are there before their first touch.
            *self.state(page) |= STORED;
        }
        let stored = *self.state(page) & STORED != 0;
        let kind = if stored {
            FaultKind::Refault
        } else {
            FaultKind::FirstTouch
        };
        match kind {
            FaultKind::Refault => self.outcome.refaults += 1,
            FaultKind::FirstTouch => self.outcome.first_touches += 1,
        }
        let mut plan = Plan::only(page);
        let fault = Fault {
            page,
            region,
            region_id: reference.region,
            thread: u32::from(reference.thread),
            kind,
            write,
            in_file,
        };
        self.policy.faulted(&fault, &mut plan);
        self.make_resident(page, Arrival::Demand);
        for span in [plan.along].iter().chain(plan.ahead()) {
            if in_file {
                self.store(span.clipped(region));
            }
            self.read_ahead(*span);
        }
    }

    /// These pages, of a file, can be read.
    fn store(&mut self, span: Span) {
        for page in span.first..span.end().min(self.count()) {
            *self.state(page) |= STORED;
        }
    }

    /// Number of pages in the trace.
    fn count(&self) -> u32 {
        u32::try_from(self.pages.len()).unwrap_or(u32::MAX)
    }

    fn read_ahead(&mut self, span: Span) {
        for page in span.first..span.end().min(self.count()) {
            if *self.state(page) & (RESIDENT | STORED) == STORED {
                self.make_resident(page, Arrival::Ahead);
                *self.state(page) |= EARLY;
                self.outcome.read_early += 1;
            }
        }
    }

    fn make_resident(&mut self, page: Page, how: Arrival) {
        if self.resident >= self.memory.pages {
            self.evict();
        }
        let stored = *self.state(page) & STORED != 0;
        self.outcome.pages_read += u64::from(stored);
        *self.state(page) = RESIDENT | if stored { STORED } else { DIRTY };
        self.resident += 1;
        self.policy.mapped(page, how);
    }

    fn evict(&mut self) {
        let mut batch = [0; 64];
        let wanted = (self.memory.batch as usize).min(batch.len());
        let count = self.policy.victims(&mut batch[..wanted]);
        assert!(
            count > 0,
            "{} names no victim among {} resident pages",
            self.policy.name(),
            self.resident
        );
        for page in &batch[..count] {
            self.drop_page(*page);
        }
        // As in the pager: one for each eviction, and one for each watched page used since.
        let seen = self.outcome.soft_faults - self.replaced;
        let mut left = wanted + usize::try_from(seen).unwrap_or(usize::MAX);
        let most = left;
        while left > 0 {
            let watched = self.policy.watch(&mut batch[..wanted.min(left)]);
            for page in &batch[..watched] {
                *self.state(*page) |= WATCHED;
            }
            let all = watched == wanted.min(left);
            left -= watched;
            if !all {
                break;
            }
        }
        self.replaced += (most - left).saturating_sub(wanted) as u64;
    }

    fn drop_page(&mut self, page: Page) {
        let state = *self.state(page);
        if state & RESIDENT == 0 {
            return;
        }
        self.outcome.evictions += 1;
        self.outcome.pages_written += u64::from(state & DIRTY != 0);
        self.outcome.read_in_vain += u64::from(state & EARLY != 0);
        *self.state(page) = STORED;
        self.resident -= 1;
    }

    fn remove(&mut self, page: Page) {
        let state = *self.state(page);
        self.resident -= u32::from(state & RESIDENT != 0);
        self.outcome.read_in_vain += u64::from(state & EARLY != 0);
        *self.state(page) = 0;
        self.policy.removed(Span {
            first: page,
            count: 1,
        });
    }
}
