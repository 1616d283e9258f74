//! Probation: resident pages are placed out of the program's reach, so that their next use is seen
//! and their bytes can be written before they have to be evicted.
//!
//! User space has no accessed bits. A page that is moved here (`UFFDIO_MOVE`, 46 ns per page in
//! batches) and touched costs a fault without I/O, and shows the policy that it is in use; an
//! untouched page is evicted without another move, and at once if its bytes have been written
//! meanwhile. These places follow the tray ([`super::tray`]), and a page there is `Parked` at a
//! place from [`ON_PROBATION`] on.
//!
//! Only the holder of the eviction lock puts pages in. The holder of a page's lock takes it out.

use super::batch::{BATCH, is_zero};
use super::discard;
use super::tray::{ON_PROBATION, Return};
use super::{Pager, scan};
use crate::page::{PAGE_BYTES, Page};
use crate::store::Slot;
use crate::sync::{Attempt, State, Word};
use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use pagewise_policy::Use;
use pagewise_wire::shared::capability;

/// A place.
#[derive(Debug)]
struct Place {
    /// The page plus one; 0 for none.
    owner: AtomicU32,
    /// The slot that has the same bytes; 0 for none.
    slot: AtomicU32,
}

/// All places.
#[derive(Debug)]
pub struct Probation {
    places: AtomicPtr<Place>,
    count: AtomicU32,
    /// Where the next search for free places starts.
    next: AtomicU32,
    /// Pages that were fetched back and have not been replaced by other watched pages yet.
    used: AtomicU32,
    /// Batches of evictions until the next look ahead.
    resting: AtomicU32,
}

impl Probation {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            places: AtomicPtr::new(core::ptr::null_mut()),
            count: AtomicU32::new(0),
            next: AtomicU32::new(0),
            used: AtomicU32::new(0),
            resting: AtomicU32::new(0),
        }
    }

    /// Number of places for a budget of this many pages: the eighth that policies watch, and a
    /// batch to be written.
    #[must_use]
    pub fn places_for(budget: u64) -> usize {
        (budget / 8) as usize + 2 * BATCH
    }

    /// Reserves its table.
    pub fn prepare(&self, places: usize) -> bool {
        let Some(place) = sys::map(places * size_of::<Place>()) else {
            return false;
        };
        self.places.store(place.cast(), Ordering::Release);
        self.count.store(places as u32, Ordering::Release);
        true
    }

    fn at(&self, index: usize) -> &Place {
        // SAFETY: reserved: `prepare` made `count` places of atomics, for which zero is valid; indices are
        // below it, because they come from `free_run` or from a page's word, which `park` set.
        unsafe { &*self.places.load(Ordering::Relaxed).add(index) }
    }

    /// The slot that has the bytes of the page at `parked`, a place from [`ON_PROBATION`] on.
    pub(super) fn slot(&self, parked: usize) -> Slot {
        self.at(parked - ON_PROBATION).slot.load(Ordering::Acquire)
    }

    /// The page at `parked` is no longer in its slot, which is returned.
    fn leave_slot(&self, parked: usize) -> Slot {
        let place = self.at(parked - ON_PROBATION);
        place.slot.swap(0, Ordering::AcqRel)
    }

    /// Frees the place. Returns its slot.
    pub fn leave(&self, parked: usize) -> Slot {
        let slot = self.leave_slot(parked);
        let place = self.at(parked - ON_PROBATION);
        place.owner.store(0, Ordering::Release);
        slot
    }

    /// A page watched for the policy was used: another one may take its place.
    pub(super) fn replace_one(&self) {
        self.used.fetch_add(1, Ordering::Relaxed);
    }

    /// A run of at most `wanted` free places.
    fn free_run(&self, wanted: usize) -> Option<(usize, usize)> {
        let count = self.count.load(Ordering::Relaxed) as usize;
        let is_free = |index: usize| self.at(index).owner.load(Ordering::Acquire) == 0;
        let next = (self.next.load(Ordering::Relaxed) as usize).min(count);
        let first = (next..count).chain(0..next).find(|&index| is_free(index))?;
        let end = count.min(first + wanted);
        let run = (first..end).take_while(|&index| is_free(index)).count();
        self.next.store((first + run) as u32, Ordering::Relaxed);
        Some((first, run))
    }
}

impl Default for Probation {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether a page in the state `word` is on probation, and not in the tray.
#[must_use]
pub fn holds(word: Word) -> bool {
    word.state() == State::Parked && word.slot() as usize >= ON_PROBATION
}

/// The slot that has the bytes of a page on probation; 0 for none, and for a page in the tray.
#[must_use]
pub fn slot_of(pager: &Pager, word: Word) -> Slot {
    match holds(word) {
        true => pager.probation.slot(word.slot() as usize),
        false => 0,
    }
}

/// After a batch of evictions: watches the pages that the policy selects, and writes some of those
/// that will be evicted next. The caller holds the eviction lock and blocks signals.
pub fn look_ahead(pager: &Pager) {
    if !pager.can(capability::MOVE) {
        return;
    }
    let resting = pager.probation.resting.load(Ordering::Relaxed);
    if resting > 0 {
        pager
            .probation
            .resting
            .store(resting - 1, Ordering::Relaxed);
        return;
    }
    let mut parked = 0;
    let mut pages = [0; BATCH];
    // As many as were evicted, plus those found in use since: otherwise the policy would soon know
    // no cold page among the watched ones, and choose blindly.
    let used = pager.probation.used.load(Ordering::Relaxed) as usize;
    let mut left = BATCH + used;
    while left > 0 {
        let wanted = left.min(BATCH);
        let count = pager.policy().watch(&mut pages[..wanted]);
        let watched = park(pager, &mut pages[..count]);
        pager.counters.add(|all| &all.pages_watched, watched as u64);
        parked += watched;
        left -= count;
        if count < wanted {
            break;
        }
    }
    let replaced = used.saturating_sub(left) as u32;
    pager.probation.used.fetch_sub(replaced, Ordering::Relaxed);
    // A copy in a compressed store in memory would take as much memory as it saves.
    if pager.budget.excess() == 0 && pager.store().name() == "disk" {
        let count = pager.policy().soon(&mut pages);
        parked += park(pager, &mut pages[..count]);
        clean(pager, &pages[..count]);
    }
    if parked == 0 {
        pager.probation.resting.store(REST, Ordering::Relaxed);
    }
}

/// Number of batches without looking ahead after one in which nothing was to be moved.
const REST: u32 = 15;

/// Smallest run of neighbours that is worth moving. A single page costs 1.1 µs, and 3.2 with
/// another busy thread (whose CPU is interrupted), which with random access pays for nothing; 16
/// cost 0.23 each.
const CHEAP: usize = 8;

/// Puts resident `pages` on probation: runs of them, and single ones that must be moved before they
/// can be written. Pages that cannot be moved count as used. Returns how many were moved.
fn park(pager: &Pager, pages: &mut [Page]) -> usize {
    pages.sort_unstable();
    let mut list = [(0, Word::EMPTY); BATCH];
    let mut count = 0;
    for &page in pages.iter() {
        if let Some(word) = lock(pager, page) {
            list[count] = (page, word);
            count += 1;
        }
    }
    let mut parked = 0;
    let mut rest = &list[..count];
    while let Some(&(first, word)) = rest.first() {
        let run = neighbours(pager, rest);
        if run < CHEAP && word.state() == State::Clean {
            pager.table.unlock(first, word);
            rest = &rest[1..];
            continue;
        }
        let done = match pager.probation.free_run(run) {
            Some((place, room)) => park_run(pager, &rest[..room], place),
            None => None,
        };
        parked += done.unwrap_or(0);
        let done = done.unwrap_or_else(|| {
            pager.policy().used(first, Use::Touch);
            pager.table.unlock(first, word);
            1
        });
        rest = &rest[done..];
    }
    parked
}

/// Moves only `page` here, just for the figures. Returns whether it is now here. The caller holds
/// the eviction lock.
pub fn watch(pager: &Pager, page: Page) -> bool {
    if !pager.can(capability::MOVE) {
        return false;
    }
    let Some(word) = lock(pager, page) else {
        return false;
    };
    let place = pager.probation.free_run(1);
    let parked = place.and_then(|(place, _)| park_run(pager, &[(page, word)], place));
    if parked.is_none() {
        pager.table.unlock(page, word);
    }
    parked.is_some()
}

/// Locks `page` if it can be put on probation.
fn lock(pager: &Pager, page: Page) -> Option<Word> {
    if !pager.table.is_page(page) {
        return None;
    }
    let word = pager.table.word(page);
    let fit = matches!(word.state(), State::Clean | State::Dirty) && !word.is_busy();
    if !fit || pager.table.attempt(page, word) != Attempt::Locked(word) {
        return None;
    }
    let address = pager.table.address_of(page);
    let region = pager.regions.find(address);
    let stays = region.is_none_or(|region| region.kind.locked) || pager.pins.holds(address);
    if stays {
        pager.policy().used(page, Use::Touch);
        pager.table.unlock(page, word);
        return None;
    }
    Some(word)
}

/// Length of the run of memory neighbours at the head of `list`.
fn neighbours(pager: &Pager, list: &[(Page, Word)]) -> usize {
    let first = pager.table.address_of(list[0].0);
    let is_next =
        |(address, entry): &(u64, &(Page, Word))| pager.table.address_of(entry.0) == *address;
    let addresses = (first..).step_by(PAGE_BYTES);
    addresses.zip(list).take_while(is_next).count()
}

/// Moves the neighbours in `list` to `place` and the places after it, which are free. Returns how
/// many were moved, or `None` if the first cannot be moved.
fn park_run(pager: &Pager, list: &[(Page, Word)], place: usize) -> Option<usize> {
    let (first, run) = (list[0].0, list.len());
    let from = pager.table.address_of(first);
    let to = ON_PROBATION + place;
    let mut cleared = false;
    let moved = loop {
        let moved = pager.tray.take_in(&pager.uffds.for_tray, to, from, run);
        match (moved.bytes, moved.errno) {
            (0, libc::EAGAIN) => {}
            // A hole: `clean_run` read the place while its page was fetched back, and the kernel has
            // put its page of zeros there.
            (0, libc::EEXIST) if !cleared && scan::is_present(from) => {
                pager.tray.clear(to, to + run);
                cleared = true;
            }
            _ => break moved,
        }
    };
    let count = moved.bytes as usize / PAGE_BYTES;
    for (offset, &(page, word)) in list[..count].iter().enumerate() {
        let entry = pager.probation.at(place + offset);
        let slot = if word.owns_slot() { word.slot() } else { 0 };
        entry.slot.store(slot, Ordering::Release);
        entry.owner.store(page + 1, Ordering::Release);
        let parked = to + offset;
        pager
            .table
            .unlock(page, Word::new(State::Parked, parked as u32));
    }
    (count > 0).then_some(count)
}

/// Writes those of `pages` that are on probation and not in the store. They stay.
fn clean(pager: &Pager, pages: &[Page]) {
    let mut list = [(0_usize, 0); BATCH];
    let mut count = 0;
    for &page in pages {
        let word = pager.table.word(page);
        if !word.is_busy() && holds(word) && slot_of(pager, word) == 0 {
            list[count] = (word.slot() as usize, page);
            count += 1;
        }
    }
    list[..count].sort_unstable();
    let mut rest = &list[..count];
    while let Some(&(first, _)) = rest.first() {
        let run = (first..).zip(rest).take_while(|(at, entry)| entry.0 == *at);
        let run = run.count();
        if !clean_run(pager, &rest[..run]) {
            return;
        }
        rest = &rest[run..];
    }
}

/// Writes pages at neighbouring places. Returns whether the store accepted them.
fn clean_run(pager: &Pager, run: &[(usize, Page)]) -> bool {
    let (first, end) = (run[0].0, run[0].0 + run.len());
    let bytes = pager.tray.bytes(first, end);
    // Zeros need no slot: they are dropped when they are evicted.
    if is_zero(bytes) {
        return true;
    }
    let mut slots: [Slot; BATCH] = [0; BATCH];
    if pager.store().write(bytes, &mut slots[..run.len()]).is_err() {
        pager.counters.add(|all| &all.store_errors, 1);
        return false;
    }
    for (&(place, page), &slot) in run.iter().zip(&slots) {
        let parked = Word::new(State::Parked, place as u32);
        // If the page was fetched back meanwhile, it may have changed, and the bytes read here may
        // be zeros.
        if pager.table.attempt(page, parked) != Attempt::Locked(parked) {
            pager.store().release(slot);
            continue;
        }
        let entry = pager.probation.at(place - ON_PROBATION);
        entry.slot.store(slot, Ordering::Release);
        pager.table.unlock(page, parked);
    }
    let count = run.len() as u64;
    pager.counters.add(|all| &all.pages_cleaned, count);
    pager.counters.add(|all| &all.pages_written, count);
    true
}

/// Frees the places of locked pages that the store has, and reports each as evicted.
pub(super) fn drop_written(pager: &Pager, pages: &[(Page, Word)]) {
    let mut ranges = [[0_usize; 2]; BATCH];
    let mut count = 0;
    for &(page, word) in pages {
        let place = word.slot() as usize;
        let slot = pager.probation.leave(place);
        pager.table.unlock(page, Word::new(State::Evicted, slot));
        let start = pager.tray.address(place) as usize;
        match ranges[..count].last_mut() {
            Some([from, bytes]) if *from + *bytes == start => *bytes += PAGE_BYTES,
            _ => {
                ranges[count] = [start, PAGE_BYTES];
                count += 1;
            }
        }
    }
    discard::discard_own(pager, &ranges[..count]);
}

impl Pager {
    /// Puts a locked page back where it was, because its range changes. Returns its new word, or
    /// the old one if the kernel no longer accepts it anywhere.
    pub(super) fn unpark(&self, page: Page, word: Word) -> Word {
        let address = self.table.address_of(page);
        let Some(region) = self.regions.find(address) else {
            return word;
        };
        let place = word.slot() as usize;
        let uffd = self.uffd(&region);
        match self.tray.put_back(uffd, address, place) {
            Return::Moved => {}
            Return::Copied | Return::Occupied => self.tray.clear(place, place + 1),
            Return::Refused(_) => return word,
        }
        self.give_up_place(place);
        uffd.wake(address, address + PAGE_BYTES as u64);
        Word::new(State::Dirty, 0)
    }

    /// Frees the place of a page that no longer has contents, or has them elsewhere.
    pub(super) fn give_up_place(&self, place: usize) {
        self.release_slot(self.probation.leave(place));
    }

    fn release_slot(&self, slot: Slot) {
        if slot != 0 {
            self.store().release(slot);
        }
    }

    /// Before a fork: puts all pages back where they belong, so that the child finds them. What the
    /// kernel does not take back leaves the store: slots are shared with a child by pages' words.
    pub(super) fn end_probation(&self) {
        let count = self.probation.count.load(Ordering::Relaxed) as usize;
        for index in 0..count {
            let owner = self.probation.at(index).owner.load(Ordering::Acquire);
            let Some(page) = owner.checked_sub(1) else {
                continue;
            };
            let parked = Word::new(State::Parked, (ON_PROBATION + index) as u32);
            let word = self.table.lock(page);
            let next = if word == parked {
                self.unpark(page, word)
            } else {
                word
            };
            if next == parked {
                self.release_slot(self.probation.leave_slot(ON_PROBATION + index));
            }
            self.table.unlock(page, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// At a fork that meets a page which the kernel does not take back.
    #[test]
    fn a_page_that_stays_leaves_its_slot_once() {
        static PROBATION: Probation = Probation::new();
        assert!(PROBATION.prepare(4));
        let place = PROBATION.at(2);
        place.slot.store(17, Ordering::Relaxed);
        place.owner.store(6, Ordering::Relaxed);
        let parked = ON_PROBATION + 2;
        assert_eq!(PROBATION.leave_slot(parked), 17);
        assert_eq!(place.owner.load(Ordering::Relaxed), 6, "it is still there");
        assert_eq!(PROBATION.leave(parked), 0);
        assert_eq!(place.owner.load(Ordering::Relaxed), 0);
    }
}
