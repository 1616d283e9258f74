//! What happens at a fault.

use super::regions::Region;
use super::scratch::BUFFER_PAGES;
use super::table::Attempt;
use super::word::{State, Word};
use super::{Pager, fatal};
use crate::handler::ahead;
use crate::observe::{histogram, recorder};
use crate::page::{CHUNK_PAGES, PAGE_BYTES, Page};
use crate::store::{Slot, StoreError};
use crate::sys::{self, uffd};
use core::sync::atomic::{AtomicU64, Ordering};
use pagewise_policy as policy;
use pagewise_policy::{Arrival, FaultKind, Plan, Span, Use};
use pagewise_wire::shared::{Delivery, Process};
use pagewise_wire::trace::Event;

/// A fault as it arrived.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// Where.
    pub address: u64,
    /// Whether it was a write.
    pub write: bool,
    /// Whether the page was there, but write-protected.
    pub protected: bool,
    /// Any number that tells threads apart.
    pub thread: u32,
}

/// What became of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The access can be repeated.
    Resolved,
    /// The address is none of the pager's.
    Foreign,
}

/// Pages that are brought in together: an unbroken run, locked by this thread.
struct Cluster {
    first: Page,
    words: [Word; BUFFER_PAGES],
    count: usize,
}

impl Cluster {
    fn pages(&self) -> impl Iterator<Item = (Page, Word)> + '_ {
        (self.first..).zip(self.words[..self.count].iter().copied())
    }
}

/// Resolves `fault`. All signals are blocked, and the caller holds nothing.
pub fn resolve(pager: &Pager, fault: Fault) -> Outcome {
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
    let read = work.run();
    work.count(began, read);
    Outcome::Resolved
}

/// Whether a quick look says that `fault` needs the store, so that it may take long.
#[must_use]
pub fn is_slow(pager: &Pager, address: u64) -> bool {
    let page = pager.table.page_at(address);
    page.is_none_or(|page| {
        let word = pager.table.word(page);
        word.is_busy() || word.state() == State::Evicted || pager.budget.is_short()
    })
}

struct Work<'a> {
    pager: &'a Pager,
    region: Region,
    page: Page,
    fault: Fault,
}

/// Whether the store was read.
type DidRead = bool;

impl Work<'_> {
    fn run(&self) -> DidRead {
        let table = &self.pager.table;
        loop {
            let word = table.word(self.page);
            if word.is_busy() {
                // Whoever works at it resolves it; if that was not enough, the access faults again.
                self.pager.counters.add(|all| &all.collisions, 1);
                table.sleep(self.page, word);
                self.wake();
                return false;
            }
            let missing = matches!(word.state(), State::Empty | State::Evicted);
            // Room first, page second: who waits for room must not hold what the evictor wants.
            if missing {
                self.reserve();
            }
            let locked = table.attempt(self.page, word) == Attempt::Locked(word);
            if locked && !self.is_frozen() {
                return self.work_at(word);
            }
            if locked {
                table.unlock(self.page, word);
            }
            if missing {
                self.pager.budget.release(1);
            }
            self.await_thaw();
        }
    }

    fn work_at(&self, word: Word) -> DidRead {
        match word.state() {
            State::Empty => {
                self.touch_first();
            }
            State::Evicted => {
                self.read(word);
                return true;
            }
            State::Parked => self.fetch_back(word),
            State::Clean | State::Dirty if self.fault.protected => self.allow_writing(word),
            State::Clean | State::Dirty => self.heal(word),
        }
        false
    }

    fn is_frozen(&self) -> bool {
        self.pager.frozen.load(Ordering::SeqCst) != 0
    }

    fn await_thaw(&self) {
        while self.is_frozen() {
            sys::futex_wait(&self.pager.frozen, 1, None);
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

    fn address(&self) -> u64 {
        self.pager.table.address_of(self.page)
    }

    fn uffd(&self) -> &uffd::Uffd {
        self.pager.uffd(&self.region)
    }

    /// Lets the faulting thread try again where the kernel did not by itself.
    fn wake(&self) {
        if self.region.kind.delivery == Delivery::Handler {
            let address = self.address();
            self.uffd().wake(address, address + PAGE_BYTES as u64);
        }
    }

    fn plan(&self, kind: FaultKind) -> Plan {
        let mut plan = Plan::only(self.page);
        let fault = policy::Fault {
            page: self.page,
            region: self.span(),
            region_id: self.region.kind.id,
            thread: self.fault.thread,
            kind,
            write: self.fault.write,
        };
        recorder::fault(&fault);
        self.pager.policy().faulted(&fault, &mut plan);
        plan
    }

    /// The region's pages, as far as their numbers are unbroken around the faulting page.
    fn span(&self) -> Span {
        let table = &self.pager.table;
        let number = |address: u64, whence: u64| {
            let page = table.page_at(address)?;
            let pages = address.abs_diff(whence) / PAGE_BYTES as u64;
            (u64::from(page.abs_diff(self.page)) == pages).then_some(page)
        };
        let address = self.address();
        let chunk = self.page & !(CHUNK_PAGES - 1);
        let first = number(self.region.start, address).unwrap_or(chunk);
        let last = self.region.end - PAGE_BYTES as u64;
        let last = number(last, address).unwrap_or(chunk + CHUNK_PAGES - 1);
        Span {
            first,
            count: last - first + 1,
        }
    }

    /// Locks the neighbours that `along` names and that are in the same state as this page, as far
    /// as they follow without a gap and there is room.
    fn gather(&self, word: Word, along: Span) -> Cluster {
        let along = along.clipped(self.span());
        let mut below = [Word::EMPTY; BUFFER_PAGES];
        let mut cluster = Cluster {
            first: self.page,
            words: [Word::EMPTY; BUFFER_PAGES],
            count: 1,
        };
        cluster.words[0] = word;
        let mut last = word;
        let mut page = self.page + 1;
        while page < along.end() && cluster.count < BUFFER_PAGES {
            let Some(next) = self.join(page, last) else {
                break;
            };
            cluster.words[cluster.count] = next;
            cluster.count += 1;
            (last, page) = (next, page + 1);
        }
        last = word;
        let mut before = 0;
        while cluster.first > along.first && cluster.count + before < BUFFER_PAGES {
            let Some(next) = self.join(cluster.first - 1, last) else {
                break;
            };
            below[before] = next;
            before += 1;
            cluster.first -= 1;
            last = next;
        }
        cluster.words.copy_within(..cluster.count, before);
        for (place, word) in (0..before).rev().zip(below) {
            cluster.words[place] = word;
        }
        cluster.count += before;
        cluster
    }

    /// Locks `page`, neighbour of one that is `last`, if it can come along.
    fn join(&self, page: Page, last: Word) -> Option<Word> {
        let table = &self.pager.table;
        let word = table.word(page);
        if word.is_busy() || word.state() != last.state() {
            return None;
        }
        let evicted = word.state() == State::Evicted;
        if evicted && !self.pager.store().together(last.slot(), word.slot()) {
            return None;
        }
        // A page that no one asked for waits for no room.
        if !self.pager.budget.attempt(1) {
            return None;
        }
        if table.attempt(page, word) == Attempt::Locked(word) {
            return Some(word);
        }
        self.pager.budget.release(1);
        None
    }

    /// A page without contents: zeros.
    fn touch_first(&self) {
        self.pager.counters.add(|all| &all.first_touches, 1);
        let plan = self.plan(FaultKind::FirstTouch);
        let cluster = self.gather(Word::EMPTY, plan.along);
        let table = &self.pager.table;
        let mut well = true;
        let mut done = 0;
        while done < cluster.count {
            let start = table.address_of(cluster.first + done as Page);
            let bytes = ((cluster.count - done) * PAGE_BYTES) as u64;
            let progress = self.uffd().zero(start, bytes);
            let next = done + progress.bytes as usize / PAGE_BYTES;
            (done..next).for_each(|place| self.arrive(&cluster, place, Word::new(State::Dirty, 0)));
            done = next;
            well &= progress.errno == 0;
            done += match progress.errno {
                0 | libc::EAGAIN => 0,
                // It is there, though nobody told: the kernel filled it before it was managed.
                libc::EEXIST => {
                    self.arrive(&cluster, done, Word::new(State::Dirty, 0));
                    1
                }
                _ => {
                    self.give_up(&cluster, done);
                    1
                }
            };
        }
        if !well {
            self.wake();
        }
        self.send_ahead(&plan);
    }

    /// Page `place` of the cluster is resident now.
    fn arrive(&self, cluster: &Cluster, place: usize, word: Word) {
        let page = cluster.first + place as Page;
        let (how, demanded) = match page == self.page {
            true => (Arrival::Demand, true),
            false => (Arrival::Ahead, false),
        };
        self.pager.policy().mapped(page, how);
        self.pager.table.unlock(page, word);
        if !demanded {
            recorder::record(self.pager, page, Event::Prefetched);
        }
    }

    /// The kernel does not take page `place` of the cluster: its memory goes away just now, or is
    /// no longer registered. It stays what it was.
    fn give_up(&self, cluster: &Cluster, place: usize) {
        let page = cluster.first + place as Page;
        self.pager.budget.release(1);
        self.pager.counters.add(|all| &all.refused, 1);
        self.pager.table.unlock(page, cluster.words[place]);
    }

    /// A page that is in the store.
    fn read(&self, word: Word) {
        let plan = self.plan(FaultKind::Refault);
        let mut cluster = self.gather(word, plan.along);
        let mut buffer = self.pager.scratch.take();
        self.fill(&mut cluster, buffer.bytes(BUFFER_PAGES));
        if !self.map_all(&cluster, buffer.bytes(BUFFER_PAGES)) {
            self.wake();
        }
        drop(buffer);
        self.send_ahead(&plan);
    }

    /// Reads the cluster; where a neighbour fails, the page alone.
    fn fill(&self, cluster: &mut Cluster, bytes: &mut [u8]) {
        let store = self.pager.store();
        let mut slots: [Slot; BUFFER_PAGES] = [0; BUFFER_PAGES];
        for (slot, (_, word)) in slots.iter_mut().zip(cluster.pages()) {
            *slot = word.slot();
        }
        if word_is_lost(&cluster.words[..cluster.count]) {
            fatal::page_lost(self.address(), StoreError::Damaged);
        }
        let wanted = &mut bytes[..cluster.count * PAGE_BYTES];
        let Err(error) = store.read(&slots[..cluster.count], wanted) else {
            let counters = &self.pager.counters;
            counters.add(|all| &all.pages_read, cluster.count as u64);
            counters.add(|all| &all.pages_prefetched, cluster.count as u64 - 1);
            return;
        };
        self.pager.counters.add(|all| &all.store_errors, 1);
        let own = (self.page - cluster.first) as usize;
        if cluster.count == 1 {
            fatal::page_lost(self.address(), error.why);
        }
        let word = cluster.words[own];
        for place in (0..cluster.count).filter(|place| *place != own) {
            let page = cluster.first + place as Page;
            self.pager.table.unlock(page, cluster.words[place]);
            self.pager.budget.release(1);
        }
        (cluster.first, cluster.count, cluster.words[0]) = (self.page, 1, word);
        self.fill(cluster, bytes);
    }

    /// Maps what was read: the written page writable, the others protected. Whether the kernel took
    /// all, and so woke whoever waits.
    fn map_all(&self, cluster: &Cluster, bytes: &[u8]) -> bool {
        let mut well = true;
        let mut done = 0;
        while done < cluster.count {
            let (end, writable) = self.same_mode(cluster, done);
            let start = self.pager.table.address_of(cluster.first + done as Page);
            let from = bytes[done * PAGE_BYTES..].as_ptr() as u64;
            let mode = if writable { 0 } else { uffd::COPY_MODE_WP };
            let wanted = ((end - done) * PAGE_BYTES) as u64;
            let progress = self.uffd().copy(start, from, wanted, mode);
            well &= progress.errno == 0;
            let next = done + progress.bytes as usize / PAGE_BYTES;
            for place in done..next {
                self.arrive(cluster, place, self.settled(cluster.words[place], writable));
            }
            done = next;
            done += match progress.errno {
                0 | libc::EAGAIN => 0,
                // Someone put another page there behind our back: it is the newer one.
                libc::EEXIST => {
                    let word = self.settled(cluster.words[done], true);
                    self.arrive(cluster, done, word);
                    1
                }
                _ => {
                    self.give_up(cluster, done);
                    1
                }
            };
        }
        well
    }

    /// The end of the run from `place` on that is mapped alike, and whether that is writable.
    fn same_mode(&self, cluster: &Cluster, place: usize) -> (usize, bool) {
        let writable = |place: usize| {
            let page = cluster.first + place as Page;
            let slot = cluster.words[place].slot();
            (page == self.page && self.fault.write) || !self.pager.store().keep_copy(slot)
        };
        let first = writable(place);
        let rest = place + 1..cluster.count;
        let end = rest.into_iter().find(|place| writable(*place) != first);
        (end.unwrap_or(cluster.count), first)
    }

    /// What an evicted page is once it is resident.
    fn settled(&self, word: Word, writable: bool) -> Word {
        if !writable {
            return Word::new(State::Clean, word.slot());
        }
        self.pager.store().release(word.slot());
        Word::new(State::Dirty, 0)
    }

    fn send_ahead(&self, plan: &Plan) {
        let span = self.span();
        for wanted in plan.ahead() {
            ahead::push(self.pager, wanted.clipped(span), self.region.kind.delivery);
        }
    }

    /// A page in the tray: back where it was.
    fn fetch_back(&self, word: Word) {
        let address = self.address();
        let place = word.slot() as usize;
        let from = self.pager.tray.address(place);
        loop {
            let moved = self.uffd().relocate(address, from, PAGE_BYTES as u64);
            match moved.errno {
                0 => break,
                libc::EAGAIN => continue,
                _ => {}
            }
            // The disk reads it at this moment (EBUSY), so it cannot be moved; but copied it can be.
            let copied = self.uffd().copy(address, from, PAGE_BYTES as u64, 0);
            match copied.errno {
                libc::EAGAIN => continue,
                0 => break,
                libc::EEXIST => break,
                _ => {
                    // Its memory goes away just now. The tray keeps it until that is done.
                    self.pager.table.unlock(self.page, word);
                    self.wake();
                    return;
                }
            }
        }
        self.pager.policy().kept(self.page);
        self.pager.policy().used(self.page, Use::Touch);
        self.pager
            .table
            .unlock(self.page, Word::new(State::Dirty, 0));
        recorder::record(self.pager, self.page, Event::Sampled);
        self.wake();
    }

    /// The first write to a clean page.
    fn allow_writing(&self, word: Word) {
        let address = self.address();
        let clean = word.state() == State::Clean;
        self.uffd().unprotect(address, address + PAGE_BYTES as u64);
        if clean {
            self.pager.store().release(word.slot());
            self.pager.policy().used(self.page, Use::Write);
        }
        self.pager
            .table
            .unlock(self.page, Word::new(State::Dirty, 0));
        self.pager.counters.add(|all| &all.dirtied, 1);
        recorder::record(self.pager, self.page, Event::Dirtied);
    }

    /// A page that should be there. Nearly always it is: two threads faulted together. Otherwise
    /// the program dropped it behind our back, and zeros are what it asked for.
    fn heal(&self, word: Word) {
        let dropped = loop {
            match self.uffd().zero(self.address(), PAGE_BYTES as u64).errno {
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

    fn count(&self, began: u64, read: DidRead) {
        let Some(all) = self.pager.counters.place() else {
            return;
        };
        let nanoseconds = sys::now_ns().saturating_sub(began);
        let histogram = match read {
            true => &all.latency_read,
            false => &all.latency_fast,
        };
        add(&histogram[histogram::bucket(nanoseconds)]);
        add(self.way(all));
        if read {
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

/// Whether a page was given up by a call of exec that then failed.
fn word_is_lost(words: &[Word]) -> bool {
    words.iter().any(|word| word.slot() == 0)
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Brings in the evicted pages of `span` that can come cheaply, for nobody in particular.
pub fn bring(pager: &Pager, span: Span) {
    let mut page = span.first;
    while page < span.end() {
        page += bring_run(pager, page, span).max(1);
    }
}

/// Brings in the run that begins at `page`; its length.
fn bring_run(pager: &Pager, page: Page, span: Span) -> u32 {
    let word = pager.table.word(page);
    if word.is_busy() || word.state() != State::Evicted {
        return 1;
    }
    let address = pager.table.address_of(page);
    let Some(region) = pager
        .regions
        .find(address)
        .filter(|region| region.kind.managed)
    else {
        return 1;
    };
    if pager.budget.is_short() || !pager.budget.attempt(1) {
        return span.end() - page;
    }
    let locked = pager.table.attempt(page, word) == Attempt::Locked(word);
    if !locked || pager.frozen.load(Ordering::SeqCst) != 0 {
        if locked {
            pager.table.unlock(page, word);
        }
        pager.budget.release(1);
        return 1;
    }
    let fault = Fault {
        address,
        write: false,
        protected: false,
        thread: 0,
    };
    let work = Work {
        pager,
        region,
        page,
        fault,
    };
    let rest = Span {
        first: page,
        count: span.end() - page,
    };
    let mut cluster = work.gather(word, rest);
    let count = cluster.count as u32;
    let mut buffer = pager.scratch.take();
    work.fill_ahead(&mut cluster, buffer.bytes(BUFFER_PAGES));
    count
}

impl Work<'_> {
    /// As [`Work::read`], but nobody waits and nothing is demanded: an error leaves the pages be.
    fn fill_ahead(&self, cluster: &mut Cluster, bytes: &mut [u8]) {
        let mut slots: [Slot; BUFFER_PAGES] = [0; BUFFER_PAGES];
        for (slot, (_, word)) in slots.iter_mut().zip(cluster.pages()) {
            *slot = word.slot();
        }
        let wanted = &mut bytes[..cluster.count * PAGE_BYTES];
        if self
            .pager
            .store()
            .read(&slots[..cluster.count], wanted)
            .is_err()
        {
            (0..cluster.count).for_each(|place| self.give_up(cluster, place));
            return;
        }
        let counters = &self.pager.counters;
        counters.add(|all| &all.pages_read, cluster.count as u64);
        counters.add(|all| &all.pages_prefetched, cluster.count as u64);
        // No page is the demanded one.
        let nobody = Work {
            page: Page::MAX,
            ..*self
        };
        nobody.map_all(cluster, bytes);
    }
}
