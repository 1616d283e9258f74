//! Dirty pages leave by the tray: they are moved there, written, and dropped unless they were touched
//! meanwhile.

use super::batch::{BATCH, List, is_zero, keep};
use super::tray::{EXECUTABLE, Return, TRAY_PAGES};
use super::{Pager, fatal, probation};
use crate::page::{PAGE_BYTES, Page};
use crate::store::{Slot, StoreError};
use crate::sync::{Attempt, State, Word};
use core::ops::Range;
use pagewise_wire::trace::Event;

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
        .take_in(&pager.uffds.for_tray, base + run.start, from, run.len());
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

/// Ends the stay of `page` in the tray. Returns whether it left memory.
fn settle(pager: &Pager, page: Page, place: usize, fate: Fate, slot: Slot) -> bool {
    let parked = Word::new(State::Parked, place as u32);
    let next = match fate {
        Fate::Gone => {
            pager.table.outlast(page, parked);
            return false;
        }
        Fate::Stuck => {
            unpark(pager, page, parked);
            return false;
        }
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
        // The thread that wanted it back gave up: the page is still ours, and is put back with another
        // attempt.
        unpark(pager, page, parked);
    }
    false
}

/// Moves a page back from the tray, because it could not be written.
fn unpark(pager: &Pager, page: Page, parked: Word) {
    while pager.table.attempt(page, parked) != Attempt::Locked(parked) {
        // Whoever wants it back may give up as well: its place is cleared after this.
        if !pager.table.outlast(page, parked) {
            return;
        }
    }
    let address = pager.table.address_of(page);
    if let Some(region) = pager.regions.find(address) {
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
}
