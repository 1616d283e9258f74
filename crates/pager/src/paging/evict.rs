//! How pages are evicted: in batches, chosen by the policy, written from the tray.
//!
//! ```text
//!   dirty ──move──▶ tray ──write──▶ store         clean ──drop
//!     ▲              │ touched meanwhile              (its slot has it)
//!     └──────────────┘
//! ```
//!
//! Pages that cannot be moved (memory that may not be written, pages shared with the child of a
//! fork, old kernels) are written in place: [`super::in_place`].

use super::discard::discard;
use super::regions::Region;
use super::tray::{EXECUTABLE, Return, TRAY_PAGES};
use super::{Pager, fatal, in_place, move_down, probation, scan};
use crate::page::{PAGE_BYTES, Page};
use crate::settings::WhenFull;
use crate::store::{IN_MEMORY, Slot, StoreError};
use crate::sync::{Attempt, State, Word};
use crate::sys;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering};
use pagewise_wire::shared::capability;
use pagewise_wire::trace::Event;

/// Largest number of pages in a batch.
pub const BATCH: usize = 128;

/// The result of a batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Batch {
    /// Pages that the policy chose.
    pub chosen: usize,
    /// Pages that were evicted.
    pub evicted: usize,
    /// Why the store took none.
    pub error: Option<StoreError>,
}

/// Pages with their words, locked.
pub(super) struct List {
    pages: [(Page, Word); BATCH],
    count: usize,
}

impl List {
    pub(super) const fn new() -> Self {
        Self {
            pages: [(0, Word::EMPTY); BATCH],
            count: 0,
        }
    }

    pub(super) fn push(&mut self, page: Page, word: Word) {
        self.pages[self.count] = (page, word);
        self.count += 1;
    }

    pub(super) fn all(&self) -> &[(Page, Word)] {
        &self.pages[..self.count]
    }
}

/// Evicts up to a batch of pages. The caller holds the eviction lock and blocks signals.
pub fn evict(pager: &Pager) -> Batch {
    let mut chosen = [0; BATCH];
    let most = pager.budget.batch() as usize;
    let count = pager.policy().victims(&mut chosen[..most]);
    evict_these(pager, &mut chosen[..count])
}

/// Evicts `victims`, which have left the policy. Those that cannot be evicted are returned to it.
pub fn evict_these(pager: &Pager, victims: &mut [Page]) -> Batch {
    victims.sort_unstable();
    let count = victims.len();
    let mut clean = List::new();
    let mut dirty = List::new();
    let mut written = List::new();
    for &page in victims.iter() {
        classify(pager, page, [&mut clean, &mut dirty, &mut written]);
    }
    probation::drop_written(pager, written.all());
    for &(page, _) in written.all() {
        pager.happened(page, Event::Evicted);
    }
    let mut shared = in_place::count_shared(pager, &clean);
    let mut batch = Batch {
        chosen: count,
        evicted: drop_clean(pager, &clean) + written.all().len(),
        error: None,
    };
    let mut unmoved = List::new();
    match pager.can(capability::MOVE) {
        true => batch.evicted += move_out(pager, &dirty, 0, &mut unmoved, &mut batch.error),
        false => dirty.all().iter().for_each(|&(p, w)| unmoved.push(p, w)),
    }
    batch.evicted += in_place::evict(pager, &unmoved, &mut shared, &mut batch.error);
    let counters = &pager.counters;
    counters.add(|all| &all.evictions, 1);
    counters.add(|all| &all.pages_evicted, batch.evicted as u64);
    if batch.evicted > 0 {
        pager.shared_left(shared.min(batch.evicted) as u64);
        pager.budget.release(batch.evicted as u64);
    }
    batch
}

fn classify(pager: &Pager, page: Page, [clean, dirty, written]: [&mut List; 3]) {
    if !pager.table.is_page(page) {
        return;
    }
    let word = pager.table.word(page);
    if !word.is_resident() {
        return;
    }
    let locked = !word.is_busy() && pager.table.attempt(page, word) == Attempt::Locked(word);
    if !locked {
        pager.policy().kept(page);
        return;
    }
    let region = region_of(pager, page);
    let pinned = pager.pins.holds(pager.table.address_of(page));
    if pinned || region.is_none_or(|region| region.kind.locked) {
        keep(pager, page, word);
        return;
    }
    match word.state() {
        State::Clean | State::File => clean.push(page, word),
        State::Parked if probation::slot_of(pager, word) != 0 => written.push(page, word),
        _ => dirty.push(page, word),
    }
}

fn region_of(pager: &Pager, page: Page) -> Option<Region> {
    pager.regions.find(pager.table.address_of(page))
}

pub(super) fn keep(pager: &Pager, page: Page, word: Word) {
    pager.policy().kept(page);
    pager.table.unlock(page, word);
}

/// Drops pages that are unchanged in the store, or in the file that is mapped there.
fn drop_clean(pager: &Pager, clean: &List) -> usize {
    let all = clean.all();
    let mut dropped = 0;
    let mut lifted: [Slot; BATCH] = [0; BATCH];
    lift(pager, all, &mut lifted);
    let refused = discard(pager, all);
    for (place, &(page, word)) in all.iter().enumerate() {
        let is_refused = refused >> place & 1 == 1;
        if lifted[place] != 0 {
            let unused = if is_refused {
                lifted[place]
            } else {
                word.slot()
            };
            pager.store().release(unused);
        }
        if is_refused {
            keep(pager, page, word);
            continue;
        }
        let next = match (word.state(), lifted[place]) {
            (State::File, _) => Word::new(State::Left, 0),
            (_, 0) => Word::new(State::Evicted, word.slot()),
            (_, lifted) => Word::new(State::Evicted, lifted),
        };
        pager.table.unlock(page, next);
        pager.happened(page, Event::Dropped);
        dropped += 1;
    }
    pager
        .counters
        .add(|counters| &counters.pages_dropped, dropped as u64);
    dropped
}

/// Takes clean pages, which cannot change, to where they return from sooner, as far as there is room.
fn lift(pager: &Pager, all: &[(Page, Word)], lifted: &mut [Slot; BATCH]) {
    let mut buffer = None;
    for (&(page, word), place) in all.iter().zip(lifted) {
        let is_below = word.state() == State::Clean && word.slot() & IN_MEMORY == 0;
        if !is_below || pager.policy().is_swept(page) || !pager.store().lifts() {
            continue;
        }
        let buffer = buffer.get_or_insert_with(|| pager.scratch.take());
        let bytes = buffer.bytes(1).first_chunk_mut::<PAGE_BYTES>();
        if let Some(bytes) = bytes
            && scan::copy(pager.table.address_of(page), bytes)
        {
            *place = pager.store().lift(bytes).unwrap_or(0);
        }
    }
}

/// Moves dirty pages out by the tray, with its places from `base` on, and writes them. Returns how many
/// were evicted. Pages that cannot be moved are added to `unmoved`.
pub(super) fn move_out(
    pager: &Pager,
    dirty: &List,
    base: usize,
    unmoved: &mut List,
    error: &mut Option<StoreError>,
) -> usize {
    let mut unlike = List::new();
    let mut out = through(pager, dirty, base, unmoved, &mut unlike, error);
    if pager.tray.takes_executable() && !unlike.all().is_empty() {
        let again = core::mem::replace(&mut unlike, List::new());
        let base = EXECUTABLE + base;
        out += through(pager, &again, base, unmoved, &mut unlike, error);
    }
    unlike.all().iter().for_each(|&(p, w)| unmoved.push(p, w));
    out
}

/// [`move_out`], with those pages apart whose memory is `unlike` the tray's.
fn through(
    pager: &Pager,
    dirty: &List,
    base: usize,
    unmoved: &mut List,
    unlike: &mut List,
    error: &mut Option<StoreError>,
) -> usize {
    let places = park(pager, dirty, base, unmoved, unlike);
    write_parked(pager, dirty, base, places, error)
}

/// Moves dirty pages to the tray, each to the place of its index in the list, starting at `base`.
/// Returns how many places are in use. Pages that cannot be moved are added to `unmoved` or `unlike`.
fn park(pager: &Pager, dirty: &List, base: usize, unmoved: &mut List, unlike: &mut List) -> usize {
    const _: () = assert!(2 * BATCH <= TRAY_PAGES);
    let all = dirty.all();
    let mut place = 0;
    while place < all.len() {
        let first = source(pager, all[place]);
        let run = (place..all.len())
            .zip((first..).step_by(PAGE_BYTES))
            .take_while(|&(at, address)| source(pager, all[at]) == address)
            .count();
        place += park_run(pager, all, base, place..place + run, [unmoved, unlike]);
    }
    all.len()
}

/// Where the bytes of a page are: at its address, or where it is on probation.
fn source(pager: &Pager, (page, word): (Page, Word)) -> u64 {
    match probation::holds(word) {
        true => pager.tray.address(word.slot() as usize),
        false => pager.table.address_of(page),
    }
}

/// Moves the pages of `run`. Returns how many it handled.
fn park_run(
    pager: &Pager,
    all: &[(Page, Word)],
    base: usize,
    run: Range<usize>,
    [unmoved, unlike]: [&mut List; 2],
) -> usize {
    let (first, word) = all[run.start];
    let from = source(pager, all[run.start]);
    let moved = pager
        .tray
        .take_in(&pager.for_tray, base + run.start, from, run.len());
    let pages = moved.bytes as usize / PAGE_BYTES;
    for (at, &(page, word)) in all.iter().enumerate().skip(run.start).take(pages) {
        if probation::holds(word) {
            pager.probation.leave(word.slot() as usize);
        }
        let parked = Word::new(State::Parked, (base + at) as u32);
        pager.table.unlock(page, parked);
    }
    if pages == run.len() {
        return pages;
    }
    match moved.errno {
        libc::EAGAIN | 0 if pages > 0 => pages,
        libc::EAGAIN => 0,
        _ if pages > 0 => pages,
        _ if probation::holds(word) => {
            keep(pager, first, word);
            1
        }
        libc::EINVAL => {
            pager.tray.consider_executable(from);
            unlike.push(first, word);
            1
        }
        _ => {
            unmoved.push(first, word);
            1
        }
    }
}

/// Writes the contents of `places` places of the tray from `base` on, and drops them.
fn write_parked(
    pager: &Pager,
    dirty: &List,
    base: usize,
    places: usize,
    error: &mut Option<StoreError>,
) -> usize {
    let all = dirty.all();
    let mut slots: [Slot; BATCH] = [0; BATCH];
    let mut fate = [Fate::Gone; BATCH];
    for place in 0..places {
        fate[place] = look(pager, all[place].0, base + place);
    }
    let mut place = 0;
    while place < places {
        let kind = fate[place];
        let run = fate[place..places].iter().take_while(|f| **f == kind);
        let end = place + run.count();
        if matches!(kind, Fate::Full | Fate::Swept) {
            let bytes = pager.tray.bytes(base + place, base + end);
            let slots = &mut slots[place..end];
            let written = match kind {
                Fate::Swept => pager.store().write_below(bytes, slots),
                _ => pager.store().write(bytes, slots),
            };
            if let Err(why) = written {
                *error = Some(why);
                pager.counters.add(|counters| &counters.store_errors, 1);
                fate[place..end].fill(Fate::Stuck);
            } else {
                pager
                    .counters
                    .add(|counters| &counters.pages_written, (end - place) as u64);
            }
        }
        place = end;
    }
    let mut evicted = 0;
    for place in 0..places {
        evicted += usize::from(settle(
            pager,
            all[place].0,
            base + place,
            fate[place],
            slots[place],
        ));
    }
    pager.tray.clear(base, base + places);
    evicted
}

/// The fate of a page in the tray.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// It is not in the tray, or no longer.
    Gone,
    /// All zeros: needs no slot.
    Zero,
    /// To be written.
    Full,
    /// To be written, and part of a sweep.
    Swept,
    /// Could not be written.
    Stuck,
}

fn look(pager: &Pager, page: Page, place: usize) -> Fate {
    let parked = Word::new(State::Parked, place as u32);
    if pager.table.word(page).idle() != parked {
        return Fate::Gone;
    }
    let bytes = pager.tray.bytes(place, place + 1);
    match is_zero(bytes) {
        true => Fate::Zero,
        false if pager.policy().is_swept(page) && !pager.store().packs_swept() => Fate::Swept,
        false => Fate::Full,
    }
}

/// Whether all bytes (a multiple of 64) are zero.
pub(super) fn is_zero(bytes: &[u8]) -> bool {
    bytes
        .chunks_exact(64)
        .all(|line| line.iter().fold(0, |sum, byte| sum | byte) == 0)
}

/// Ends the stay of `page` in the tray. Returns whether it left memory.
fn settle(pager: &Pager, page: Page, place: usize, fate: Fate, slot: Slot) -> bool {
    let parked = Word::new(State::Parked, place as u32);
    let next = match fate {
        Fate::Gone => {
            pager.table.outlast(page, parked);
            return false;
        }
        Fate::Stuck => return unpark(pager, page, parked),
        Fate::Zero => Word::EMPTY,
        Fate::Full | Fate::Swept => Word::new(State::Evicted, slot),
    };
    if pager.table.exchange(page, parked, next) {
        pager.happened(page, Event::Evicted);
        return true;
    }
    if matches!(fate, Fate::Full | Fate::Swept) {
        pager.store().release(slot);
    }
    if pager.table.outlast(page, parked) {
        // The thread that wanted it back gave up: the page is still ours.
        return settle_again(pager, page, parked);
    }
    false
}

/// A page that could be neither fetched back nor written in time. It is put back with another
/// attempt.
fn settle_again(pager: &Pager, page: Page, parked: Word) -> bool {
    unpark(pager, page, parked);
    false
}

/// Moves a page back from the tray, because it could not be written. Never counts as evicted.
fn unpark(pager: &Pager, page: Page, parked: Word) -> bool {
    if pager.table.attempt(page, parked) != Attempt::Locked(parked) {
        pager.table.outlast(page, parked);
        return false;
    }
    let address = pager.table.address_of(page);
    if let Some(region) = region_of(pager, page) {
        let uffd = pager.uffd(&region);
        match pager.tray.put_back(uffd, address, parked.slot() as usize) {
            // The program has removed the memory with a call that was not seen: the page is not
            // needed.
            Return::Refused(libc::ENOENT) => {}
            Return::Refused(errno) => fatal::page_lost(address, StoreError::Io(errno)),
            Return::Moved | Return::Copied | Return::Occupied => {}
        }
        uffd.wake(address, address + PAGE_BYTES as u64);
    }
    pager.policy().kept(page);
    pager.table.unlock(page, Word::new(State::Dirty, 0));
    false
}

/// The store accepts no page, and faults wait for room: applies the user's choice for that case.
/// Returns whether to try again.
fn full(pager: &Pager, error: StoreError) -> bool {
    /// Nanoseconds between two attempts to write.
    const PAUSE_NS: u64 = 100_000_000;
    static NEVER: AtomicU32 = AtomicU32::new(0);
    let choice = pager.when_full.load(Ordering::Relaxed);
    let exceeds = choice == WhenFull::Exceed as u32;
    if !fatal::is_full(error) || choice == WhenFull::End as u32 {
        fatal::store_failed(error);
    }
    fatal::store_full(
        error,
        match exceeds {
            true => "the program continues beyond its memory budget",
            false => "the program waits until there is room",
        },
    );
    if exceeds {
        pager.budget.set_overdraft(true);
    }
    sys::futex_wait(&NEVER, 0, Some(PAUSE_NS));
    let _evictions = pager.evictions.hold();
    pager.store().reclaim();
    !exceeds
}

/// Evicts until there is slack again. Returns whether that succeeded. The work of the evictor each
/// time it is woken.
pub fn make_room(pager: &Pager) -> bool {
    let mut fruitless = 0;
    while pager.budget.excess() > 0 && fruitless < 3 {
        pager.evictions.acquire();
        let batch = evict(pager);
        if batch.evicted > 0 && !pager.budget.is_short() {
            probation::look_ahead(pager);
        }
        move_down::surplus(pager);
        pager.evictions.release();
        pager.follow_store();
        pager.follow_copies();
        if pager.is_outdated() {
            pager.refresh_limit();
        }
        if batch.evicted > 0 {
            fruitless = 0;
            pager.budget.set_overdraft(false);
            continue;
        }
        fruitless += 1;
        if let Some(error) = batch.error
            && fruitless == 3
            && pager.budget.is_short()
            && full(pager, error)
        {
            return true;
        }
    }
    if fruitless == 3 && pager.budget.resident() >= pager.budget.limit() {
        pager.budget.set_overdraft(true);
    }
    fruitless < 3
}
