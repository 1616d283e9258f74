//! What happens at a fault.

use super::Pager;
use super::regions::Region;
use crate::page::{PAGE_BYTES, Page};
use crate::store::IN_MEMORY;
use crate::sync::{State, Word};
use crate::sys::{self, uffd};
use core::sync::atomic::{AtomicU64, Ordering};
use pagewise_policy as policy;
use pagewise_policy::{FaultKind, Plan, Span, Use};
use pagewise_wire::histogram;
use pagewise_wire::shared::{Delivery, Process};
use pagewise_wire::trace::Event;

/// A fault as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The address.
    pub address: u64,
    /// Whether it was a write.
    pub write: bool,
    /// Whether the page was present but write-protected.
    pub protected: bool,
    /// Any number that distinguishes threads.
    pub thread: u32,
}

/// Number of consecutive written pages after which the next ones are expected to be written as
/// well. Random writes rarely leave such a run among clean pages.
const WRITTEN_RUN: usize = 8;
/// Largest number of pages that become writable together.
const MOST_WRITTEN: usize = 64;

/// The outcome of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The access can be repeated.
    Resolved,
    /// The address does not belong to the pager.
    Foreign,
}

/// Resolves `fault`. All signals are blocked, and the caller holds no lock.
pub fn resolve(pager: &Pager, fault: Fault) -> Outcome {
    pager.ensure_own_threads();
    let Some(region) = pager.regions.find(fault.address) else {
        return Outcome::Foreign;
    };
    let Some(page) = pager
        .table
        .page_at(fault.address)
        .filter(|_| region.kind.managed)
    else {
        return Outcome::Foreign;
    };
    let began = sys::now_ns();
    let work = Work {
        pager,
        region,
        page,
        fault,
    };
    let did = work.run();
    work.count(began, did);
    Outcome::Resolved
}

/// Whether, at a quick check, the fault at `address` needs the store, so that it may take long.
#[must_use]
pub fn is_slow(pager: &Pager, address: u64) -> bool {
    let page = pager.table.page_at(address);
    page.is_none_or(|page| {
        let word = pager.table.word(page);
        word.is_busy()
            || is_on_disk(word)
            || pager.is_in_file(word, address)
            || pager.budget.is_short()
    })
}

/// Whether, at a quick check, the fault at `address` waits only for the store, not for another
/// thread.
#[must_use]
pub fn only_reads(pager: &Pager, address: u64) -> bool {
    let word = pager
        .table
        .page_at(address)
        .map(|page| pager.table.word(page));
    let reads = |word: Word| word.state() == State::Evicted || pager.is_in_file(word, address);
    word.is_some_and(|word| !word.is_busy() && reads(word)) && !pager.budget.is_short()
}

fn is_on_disk(word: Word) -> bool {
    word.state() == State::Evicted && word.slot() & IN_MEMORY == 0
}

/// A fault that is being resolved.
pub(super) struct Work<'a> {
    pub(super) pager: &'a Pager,
    pub(super) region: Region,
    /// The page that is missing; [`Page::MAX`] if no thread waits for the pages.
    pub(super) page: Page,
    pub(super) fault: Fault,
}

/// What a fault took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Did {
    /// No read.
    Nothing,
    /// A read, of a page that was never here.
    Read,
    /// A read, of a page that had been evicted.
    ReadAgain,
}

impl<'a> Work<'a> {
    /// Work on `page` of `region` for which no thread waits.
    pub(super) fn unasked(pager: &'a Pager, region: Region, page: Page) -> Self {
        let fault = Fault {
            address: pager.table.address_of(page),
            write: false,
            protected: false,
            thread: 0,
        };
        Work {
            pager,
            region,
            page,
            fault,
        }
    }
}

impl Work<'_> {
    fn run(&self) -> Did {
        let table = &self.pager.table;
        loop {
            let word = table.word(self.page);
            if word.is_busy() {
                // The thread working on the page resolves it; if that is not enough, the access
                // faults again.
                self.pager.counters.add(|all| &all.collisions, 1);
                self.go_on(word);
                table.sleep(self.page, word);
                self.wake();
                return Did::Nothing;
            }
            let missing = matches!(word.state(), State::Empty | State::Evicted | State::Left);
            // First room, then the page: a thread that waits for room must not hold what the
            // evictor needs.
            if missing {
                self.reserve();
            }
            let entered = table.enter(self.page, word, &self.pager.gate);
            let current = !entered || self.is_current();
            if entered && current {
                return self.work_at(word);
            }
            if entered {
                table.unlock(self.page, word);
            }
            if missing {
                self.pager.budget.release(1);
            }
            if !current {
                // The access is retried, and finds what is there now.
                sys::give_way();
                self.wake();
                return Did::Nothing;
            }
            self.pager.gate.pass();
        }
    }

    fn work_at(&self, word: Word) -> Did {
        let file = self.region.kind.file != 0;
        match word.state() {
            State::Left => return self.read_file(word),
            State::Empty if file => return self.read_file(word),
            State::Empty => self.touch_first(),
            State::Evicted => {
                self.read(word);
                return Did::ReadAgain;
            }
            State::Parked => self.fetch_back(word),
            State::File if self.fault.protected => self.refuse_writing(),
            State::File => self.heal_file(word),
            State::Clean | State::Dirty if self.fault.protected => self.allow_writing(word),
            State::Clean | State::Dirty => self.heal(word),
        }
        Did::Nothing
    }

    /// A thread that waits for a page that is being read has caught up with read-ahead: its next
    /// pages are requested now, or the disk would have nothing to do after the current ones.
    fn go_on(&self, word: Word) {
        if word.state() != State::Evicted && !self.pager.is_in_file(word, self.address()) {
            return;
        }
        let mut plan = Plan::only(self.page);
        let fault = self.for_policy(FaultKind::Refault);
        self.pager.policy().faulted(&fault, &mut plan);
        if !plan.ahead().is_empty() {
            // This thread reads nothing itself.
            self.pager.ahead.push(plan.along.clipped(fault.region));
            self.send_ahead(&plan);
        }
    }

    fn reserve(&self) {
        if self.pager.budget.attempt(1) {
            return;
        }
        let began = sys::now_ns();
        if self.pager.budget.reserve(1) {
            let counters = &self.pager.counters;
            counters.add(|all| &all.throttled, 1);
            counters.add(|all| &all.throttled_ns, sys::now_ns() - began);
        }
    }

    pub(super) fn address(&self) -> u64 {
        self.pager.table.address_of(self.page)
    }

    pub(super) fn uffd(&self) -> &uffd::Uffd {
        self.pager.uffd(&self.region)
    }

    /// Lets the faulting thread try again if the kernel did not do so by itself.
    pub(super) fn wake(&self) {
        if self.region.kind.delivery == Delivery::Handler {
            let address = self.address();
            self.uffd().wake(address, address + PAGE_BYTES as u64);
        }
    }

    pub(super) fn plan(&self, kind: FaultKind) -> Plan {
        let mut plan = Plan::only(self.page);
        let fault = self.for_policy(kind);
        self.pager.faulted(&fault);
        self.pager.policy().faulted(&fault, &mut plan);
        plan
    }

    pub(super) fn for_policy(&self, kind: FaultKind) -> policy::Fault {
        policy::Fault {
            page: self.page,
            region: self.span(),
            region_id: self.region.kind.id,
            thread: self.fault.thread,
            kind,
            write: self.fault.write,
            in_file: self.region.kind.file != 0,
        }
    }

    /// The region's pages, as far as their numbers are contiguous around the faulting page.
    pub(super) fn span(&self) -> Span {
        let Region { start, end, .. } = self.region;
        self.pager.table.unbroken(self.page, start, end)
    }

    /// Passes the plan's spans to the read-ahead threads.
    pub(super) fn send_ahead(&self, plan: &Plan) {
        if plan.ahead().is_empty() {
            return;
        }
        let span = self.span();
        for wanted in plan.ahead() {
            self.pager.ahead.push(wanted.clipped(span));
        }
    }

    /// The first write to a clean page. If a run of pages was written just before it, as many pages
    /// after it will be written, and the fault of each would cost more than writing them out.
    fn allow_writing(&self, word: Word) {
        let mut words = [word; MOST_WRITTEN];
        let count = match word.state() {
            State::Clean => self.lock_clean(&mut words),
            _ => 1,
        };
        if word.state() == State::Clean {
            self.pager.habits.written(self.region.kind.id, count);
        }
        let address = self.address();
        let bytes = (count * PAGE_BYTES) as u64;
        self.uffd().unprotect(address, address + bytes);
        for (page, word) in (self.page..).zip(&words[..count]) {
            if word.state() == State::Clean {
                self.pager.store().release(word.slot());
                self.pager.policy().used(page, Use::Write);
            }
            self.pager.table.unlock(page, Word::new(State::Dirty, 0));
            self.pager.happened(page, Event::Dirtied);
        }
        self.pager.counters.add(|all| &all.dirtied, 1);
    }

    /// Locks the clean pages after this one that will probably be written next. Returns their
    /// number, including this one.
    fn lock_clean(&self, words: &mut [Word; MOST_WRITTEN]) -> usize {
        let table = &self.pager.table;
        let most = match self.written_before() {
            run if run >= WRITTEN_RUN => run.min(MOST_WRITTEN),
            _ => 1,
        };
        let end = self.span().end();
        let mut count = 1;
        for (page, place) in (self.page + 1..end).zip(&mut words[1..most]) {
            let word = table.word(page);
            let clean = !word.is_busy() && word.state() == State::Clean;
            if !clean || !table.enter(page, word, &self.pager.gate) {
                break;
            }
            *place = word;
            count += 1;
        }
        count
    }

    /// Length of the run of written pages that ends before this one, up to the length that matters.
    pub(super) fn written_before(&self) -> usize {
        let first = self.span().first;
        let before = (first..self.page).rev().take(MOST_WRITTEN);
        before
            .take_while(|&page| self.pager.table.word(page).idle().state() == State::Dirty)
            .count()
    }

    /// A page that should be present. It nearly always is: two threads faulted at the same time.
    /// Otherwise the program dropped it without our notice, and expects zeros.
    fn heal(&self, word: Word) {
        let zeros = self.pager.scratch.zeros();
        let dropped = loop {
            let copied = self
                .uffd()
                .copy(self.address(), zeros, PAGE_BYTES as u64, 0);
            match copied.errno {
                libc::EAGAIN => {}
                errno => break errno == 0,
            }
        };
        let next = match dropped && word.state() == State::Clean {
            true => self.settled(word, true),
            false => word,
        };
        self.pager.table.unlock(self.page, next);
        self.pager.counters.add(|all| &all.spurious, 1);
        self.wake();
    }

    fn count(&self, began: u64, did: Did) {
        let id = self.region.kind.id;
        self.pager.region_counts.add(id, did == Did::ReadAgain);
        let Some(all) = self.pager.counters.place() else {
            return;
        };
        let nanoseconds = sys::now_ns().saturating_sub(began);
        let histogram = match did {
            Did::Nothing => &all.latency_fast,
            Did::Read | Did::ReadAgain => &all.latency_read,
        };
        add(&histogram[histogram::bucket(nanoseconds)]);
        add(self.way(all));
        if did == Did::ReadAgain {
            add(&all.refaults);
        }
    }

    fn way<'b>(&self, all: &'b Process) -> &'b AtomicU64 {
        match self.region.kind.delivery {
            Delivery::Handler => &all.by_handler,
            Delivery::Signal => &all.by_signal,
        }
    }
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}
