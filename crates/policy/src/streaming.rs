//! `prefetch`: two queues for normal pages, and a separate path for pages of streams, which pass
//! through. Reads streams and strides ahead, as [`crate::prefetch`] does over any policy. A stream
//! that repeatedly reads more than fits into memory finds a part of it resident.
//!
//! A missed page outside any stream is read with its neighbours if some of these were missed as
//! well: the working set is soon in memory even while a stream keeps the disk busy. User space
//! cannot see whether the neighbours are used, so this is done only where it takes no room from
//! pages in use.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::page::{Arrival, Fault, FaultKind, Page, Plan, Role, Span};
use crate::policy::{Policy, leave_to};
use crate::prefetch::max_window;
use crate::queue::Past;
use crate::roles::Roles;
use crate::stream::{Step, Streams, plan_step};
use crate::sweep::Sweep;

/// Places for pages that streams wait for: more than the threads that fault at a time.
const AWAITED: usize = 64;

/// Size of the block within which missed pages are counted.
const BLOCK: u32 = 64;
/// From this many missed pages on, a part of the block is read: it costs twice as much as a page.
const SOME: usize = 2;
const PART: u32 = 16;
/// From this many on, the whole block is read: it costs six times as much as a page.
const MANY: usize = 4;
/// Places for blocks of which more is being read than was missed.
const BLOCKS: usize = 64;

/// Lets streams pass through and keeps the other pages.
pub struct Streaming {
    sweep: Sweep,
    streams: Streams,
    roles: Roles,
    /// Pages that were missed as the next step of a stream and have not arrived yet. They pass
    /// through like their neighbours: one that stayed would split each later read of that range in
    /// two.
    awaited: [AtomicU32; AWAITED],
    /// Blocks read around a missed page outside any stream: their pages stay, as that page does.
    around: [AtomicU32; BLOCKS],
}

impl Streaming {
    /// Over `pages` managed pages, `budget` of them resident.
    #[must_use]
    pub fn new(pages: u32, budget: u32) -> Self {
        Streaming {
            sweep: Sweep::new(pages, budget),
            streams: Streams::new(max_window(budget)),
            roles: Roles::default(),
            awaited: core::array::from_fn(|_| AtomicU32::new(Page::MAX)),
            around: core::array::from_fn(|_| AtomicU32::new(Page::MAX)),
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

    /// Reads more than the missed page when others of its block were missed as well.
    fn read_around(&self, fault: &Fault, plan: &mut Plan) {
        if !self.sweep.has_room_beside(fault.page) {
            return;
        }
        let aligned = |count| Span {
            first: fault.page / count * count,
            count,
        };
        let wanted = match self.sweep.missed(aligned(BLOCK)) {
            MANY.. => aligned(BLOCK),
            SOME.. => aligned(PART),
            _ => return,
        };
        let number = fault.page / BLOCK;
        self.around[number as usize % BLOCKS].store(number, Ordering::Relaxed);
        plan.along = wanted.clipped(fault.region);
    }

    fn was_around(&self, page: Page) -> bool {
        let number = page / BLOCK;
        self.around[number as usize % BLOCKS].load(Ordering::Relaxed) == number
    }

    /// Whether a page that arrives passes through. Nearly every program fills its memory in order
    /// once; only pages read in order again are being swept.
    fn passes(&self, page: Page, how: Arrival) -> bool {
        match self.roles.role(page) {
            Role::Hot | Role::Random | Role::CsrOffsets => false,
            Role::Stream | Role::CsrEdges => true,
            Role::Normal => {
                let swept = match how {
                    Arrival::Ahead => !self.was_around(page),
                    Arrival::Demand => self.was_awaited(page),
                };
                swept && matches!(self.sweep.past(page), Past::Evicted(_))
            }
        }
    }
}

impl Policy for Streaming {
    fn name(&self) -> &'static str {
        "prefetch"
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        if self.roles.role(fault.page) != Role::Random {
            let step = self.streams.step(fault);
            if let Some(in_flight) = self.streams.under_way() {
                self.sweep.leave_window(in_flight);
            }
            match (step, fault.kind) {
                (Step::Alone, FaultKind::Refault) => self.read_around(fault, plan),
                (Step::Next { .. }, FaultKind::Refault) => {
                    self.place(fault.page).store(fault.page, Ordering::Relaxed);
                }
                (Step::Nearby, FaultKind::Refault) | (_, FaultKind::FirstTouch) => {}
            }
            plan_step(fault, step, plan);
        }
    }

    fn mapped(&self, page: Page, how: Arrival) {
        let passes = self.passes(page, how);
        let missed = !passes && how == Arrival::Demand;
        let past = self.sweep.arrive(page, missed);
        match passes {
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
    const BUDGET: u32 = 8192;

    /// A small pager: which pages are resident, and which ever were.
    struct Memory {
        policy: Streaming,
        resident: Vec<bool>,
        known: Vec<bool>,
        count: u32,
        budget: u32,
        read: u32,
        /// The thread that touches.
        thread: u32,
    }

    impl Memory {
        fn new(pages: u32, budget: u32) -> Self {
            Memory {
                policy: Streaming::new(pages, budget),
                resident: vec![false; pages as usize],
                known: vec![false; pages as usize],
                count: 0,
                budget,
                read: 0,
                thread: 1,
            }
        }

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
                region: Span {
                    first: 0,
                    count: u32::try_from(self.resident.len()).unwrap(),
                },
                region_id: 0,
                thread: self.thread,
                kind,
                write: false,
                in_file: false,
            };
            let mut plan = Plan::only(page);
            self.policy.faulted(&fault, &mut plan);
            self.make_resident(page, Arrival::Demand);
            for span in [&plan.along].into_iter().chain(plan.ahead()) {
                for page in span.first..span.end() {
                    if self.known[page as usize] && !self.resident[page as usize] {
                        self.make_resident(page, Arrival::Ahead);
                    }
                }
            }
        }

        fn make_resident(&mut self, page: Page, how: Arrival) {
            if self.count == self.budget {
                let mut batch = [0; 128];
                let count = self.policy.victims(&mut batch);
                for page in &batch[..count] {
                    self.resident[*page as usize] = false;
                }
                self.count -= u32::try_from(count).unwrap();
            }
            self.read += u32::from(self.known[page as usize]);
            self.resident[page as usize] = true;
            self.known[page as usize] = true;
            self.count += 1;
            self.policy.mapped(page, how);
        }
    }

    #[test]
    fn what_sweeps_leave_missing_lies_in_long_runs() {
        let mut memory = Memory::new(PAGES, BUDGET);
        for _ in 0..40 {
            (0..PAGES).for_each(|page| memory.touch(page));
        }
        let missing = memory.resident.iter().filter(|there| !**there).count();
        let pairs = memory.resident.windows(2);
        let runs = pairs.filter(|pair| pair[0] && !pair[1]).count();
        assert!(missing > BUDGET as usize / 2, "{missing}");
        assert!(missing > runs * 48, "{missing} pages in {runs} runs");
    }

    #[test]
    fn a_loop_that_nearly_fits_reads_little_more_than_does_not_fit() {
        let (pages, budget) = (41_000, 36_000);
        let mut memory = Memory::new(pages, budget);
        for _ in 0..8 {
            (0..pages).for_each(|page| memory.touch(page));
        }
        let before = memory.read;
        for _ in 0..10 {
            (0..pages).for_each(|page| memory.touch(page));
        }
        // At least 5,000; the windows of the stream, which pass, are the rest.
        let each = (memory.read - before) / 10;
        assert!(each < 10_000, "{each} pages read a round");
    }

    #[test]
    fn a_sweep_beside_random_uses_takes_no_eighth_of_memory() {
        // As a hash table is read out: its buckets in order, and for each some entries in no order.
        let entries = BUDGET + BUDGET / 32;
        let mut memory = Memory::new(entries + BUDGET, BUDGET);
        (0..entries + BUDGET).for_each(|page| memory.touch(page));
        let before = memory.read;
        let mut at = 1_u32;
        for bucket in entries..entries + BUDGET {
            memory.thread = 2;
            memory.touch(bucket);
            memory.thread = 1;
            for _ in 0..64 {
                at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                memory.touch((at >> 8) % entries);
            }
        }
        // Of 524,288 uses at least one in 33 misses, 15,888; with the eighth it was one in 6.
        let read = memory.read - before;
        assert!(read < 50_000, "{read} pages read");
    }

    #[test]
    fn what_was_swept_goes_once_no_stream_is_under_way() {
        let mut memory = Memory::new(PAGES, BUDGET);
        (0..PAGES).for_each(|page| memory.touch(page));
        (0..PAGES / 2).for_each(|page| memory.touch(page));
        let before = memory.policy.sweep.in_window();
        assert!(before > 500, "{before}");
        // In no order, far longer than any stream pauses.
        let mut at = 1_u32;
        for _ in 0..400_000 {
            at = at.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            memory.touch((at >> 8) % PAGES);
        }
        assert_eq!(memory.policy.sweep.in_window(), 0);
    }
}
