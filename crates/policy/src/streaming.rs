//! `prefetch`: two queues, with what streams bring in passing through beside them. Reads streams and
//! strides ahead, as [`crate::prefetch`] does over any policy; and a stream that comes again over
//! more than fits into memory finds a part of it in place.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Fault, FaultKind, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_to};
use crate::prefetch::max_window;
use crate::queue::Past;
use crate::roles::Roles;
use crate::stream::{Step, Streams, plan_step};
use crate::sweep::Sweep;

/// Places for pages that streams wait for: more than threads that fault at a time.
const AWAITED: usize = 64;

/// Streams pass, the rest stays.
pub struct Streaming {
    sweep: Sweep,
    streams: Streams,
    roles: Roles,
    /// Pages that were missed as the next step of a stream, until they are there. They pass as their
    /// neighbours do: one that stayed would cut each later read of them in two.
    awaited: [AtomicU32; AWAITED],
}

impl Streaming {
    /// Over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        Streaming {
            sweep: Sweep::new(pages, budget),
            streams: Streams::new(max_window(budget)),
            roles: Roles::default(),
            awaited: std::array::from_fn(|_| AtomicU32::new(Page::MAX)),
        }
    }

    fn place(&self, page: Page) -> &AtomicU32 {
        &self.awaited[page as usize % AWAITED]
    }

    /// Whether a stream waited for `page`.
    fn was_awaited(&self, page: Page) -> bool {
        let place = self.place(page);
        place.load(Ordering::Relaxed) == page && {
            place.store(Page::MAX, Ordering::Relaxed);
            true
        }
    }

    /// Whether a page with this past passes through. Memory is filled in order once by nearly every
    /// program; only what is read again in order shows that it is swept over.
    fn passes(&self, page: Page, past: Past, how: Arrival) -> bool {
        match self.roles.of(page) {
            Role::Hot | Role::Random | Role::CsrOffsets => false,
            Role::Stream | Role::CsrEdges => true,
            Role::Normal => {
                let swept = how == Arrival::Ahead || self.was_awaited(page);
                swept && matches!(past, Past::Evicted(_))
            }
        }
    }
}

impl Policy for Streaming {
    fn name(&self) -> &'static str {
        "prefetch"
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        if self.roles.of(fault.page) != Role::Random {
            let step = self.streams.step(fault);
            if step != Step::Alone && fault.kind == FaultKind::Refault {
                self.place(fault.page).store(fault.page, Ordering::Relaxed);
            }
            plan_step(fault, step, plan);
        }
    }

    fn mapped(&self, page: Page, how: Arrival) {
        let past = self.sweep.arrive(page, how);
        match self.passes(page, past, how) {
            true => self.sweep.pass(page, past),
            false => self.sweep.keep(page, past, how),
        }
    }

    leave_to!(sweep);

    fn hint(&self, pages: Span, role: Role) {
        self.roles.declare(pages, role);
    }

    fn forked(&self) {
        self.streams.forget();
        self.sweep.forked();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Span;

    const PAGES: u32 = 16_384;
    const BUDGET: usize = 8192;
    const REGION: Span = Span {
        first: 0,
        count: PAGES,
    };

    /// A little pager: which pages are resident, and which were ever.
    struct Memory {
        policy: Streaming,
        resident: Vec<bool>,
        known: Vec<bool>,
        count: usize,
    }

    impl Memory {
        fn touch(&mut self, page: Page) {
            if self.resident[page as usize] {
                return;
            }
            let kind = match self.known[page as usize] {
                true => FaultKind::Refault,
                false => FaultKind::FirstTouch,
            };
            let fault = Fault {
                page,
                region: REGION,
                region_id: 0,
                thread: 1,
                kind,
                write: false,
            };
            let mut plan = Plan::only(page);
            self.policy.faulted(&fault, &mut plan);
            self.bring(page, Arrival::Demand);
            for span in [&plan.along].into_iter().chain(plan.ahead()) {
                for page in span.first..span.end() {
                    if self.known[page as usize] && !self.resident[page as usize] {
                        self.bring(page, Arrival::Ahead);
                    }
                }
            }
        }

        fn bring(&mut self, page: Page, how: Arrival) {
            if self.count == BUDGET {
                let mut batch = [0; 128];
                let count = self.policy.victims(&mut batch);
                for page in &batch[..count] {
                    self.resident[*page as usize] = false;
                }
                self.count -= count;
            }
            self.resident[page as usize] = true;
            self.known[page as usize] = true;
            self.count += 1;
            self.policy.mapped(page, how);
        }
    }

    #[test]
    fn what_sweeps_leave_missing_lies_in_long_runs() {
        let mut memory = Memory {
            policy: Streaming::new(PAGES, 8192),
            resident: vec![false; PAGES as usize],
            known: vec![false; PAGES as usize],
            count: 0,
        };
        for _ in 0..40 {
            (0..PAGES).for_each(|page| memory.touch(page));
        }
        let missing = memory.resident.iter().filter(|there| !**there).count();
        let pairs = memory.resident.windows(2);
        let runs = pairs.filter(|pair| pair[0] && !pair[1]).count();
        assert!(missing > BUDGET / 2, "{missing}");
        assert!(missing > runs * 48, "{missing} pages in {runs} runs");
    }
}
