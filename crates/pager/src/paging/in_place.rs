//! Pages that could not be moved out: shared with the child of a fork or its parent, pinned, or on
//! a kernel that cannot move pages. After a fork that is every page, so they are evicted in batches
//! as well.
//!
//! ```text
//!   in this process alone ──made its own by a write access──▶ tray ──▶ store
//!   in another as well    ──protected, copied──▶ store, then dropped here
//! ```

use super::batch::{BATCH, List, is_zero, keep};
use super::discard::discard;
use super::move_out::move_out;
use super::scratch::BUFFER_PAGES;
use super::{Pager, scan};
use crate::page::{PAGE_BYTES, Page};
use crate::store::{Slot, StoreError};
use crate::sync::{State, Word};
use crate::sys;
use pagewise_wire::shared::capability;
use pagewise_wire::trace::Event;

/// How many pages of `list` are shared with another process.
pub(super) fn count_shared(pager: &Pager, list: &List) -> usize {
    if !pager.shares_slots() {
        return 0;
    }
    let mut shared = 0;
    for run in runs(pager, list.all()) {
        let mut looks = [scan::Look::Absent; BATCH];
        let looks = &mut looks[..run.len()];
        scan::look(bounds(pager, run).0, looks);
        shared += looks
            .iter()
            .filter(|look| **look == scan::Look::Shared)
            .count();
    }
    shared
}

/// Evicts the locked pages of `all`; returns how many were evicted. The number of those shared with
/// another process is added to `others`.
pub(super) fn evict(
    pager: &Pager,
    all: &List,
    others: &mut usize,
    error: &mut Option<StoreError>,
) -> usize {
    let mut alone = List::new();
    let mut shared = List::new();
    let absent = sort(pager, all, &mut alone, &mut shared);
    *others += count_shared(pager, &shared);
    let own = make_own(pager, &alone, &mut shared);
    let moved = match own.all().is_empty() {
        true => 0,
        false => evict_own(pager, &own, error),
    };
    let parts = shared.all().chunks(BUFFER_PAGES);
    let copied: usize = parts.map(|part| copy_out(pager, part, error)).sum();
    absent + moved + copied
}

/// Runs of pages with consecutive addresses.
fn runs<'a>(pager: &Pager, all: &'a [(Page, Word)]) -> impl Iterator<Item = &'a [(Page, Word)]> {
    let behind = |page| pager.table.address_of(page) + PAGE_BYTES as u64;
    all.chunk_by(move |one, next| behind(one.0) == pager.table.address_of(next.0))
}

fn bounds(pager: &Pager, run: &[(Page, Word)]) -> (u64, u64) {
    let start = pager.table.address_of(run[0].0);
    (start, start + (run.len() * PAGE_BYTES) as u64)
}

/// Finds out from the kernel which pages are shared with another process. Returns how many are
/// absent.
fn sort(pager: &Pager, all: &List, alone: &mut List, shared: &mut List) -> usize {
    let movable = pager.can(capability::MOVE);
    let mut absent = 0;
    for run in runs(pager, all.all()) {
        let mut looks = [scan::Look::Absent; BATCH];
        let looks = &mut looks[..run.len()];
        scan::look(bounds(pager, run).0, looks);
        for (&(page, word), look) in run.iter().zip(looks) {
            match look {
                // Dropped without notice: nothing to keep.
                scan::Look::Absent => {
                    pager.table.unlock(page, Word::EMPTY);
                    absent += 1;
                }
                scan::Look::Alone if movable => alone.push(page, word),
                scan::Look::Alone | scan::Look::Shared | scan::Look::Unknown => {
                    shared.push(page, word);
                }
            }
        }
    }
    absent
}

/// Pages that the kernel did not move although no other process has them. They are pinned, or were
/// shared with a child that has ended: a write access makes them this process's own. Pages that no
/// program can currently write to (so neither can a device on its behalf) go to `others`.
fn make_own(pager: &Pager, alone: &List, others: &mut List) -> List {
    let mut own = List::new();
    for run in runs(pager, alone.all()) {
        if populate(pager, run) {
            run.iter().for_each(|&(page, word)| own.push(page, word));
            continue;
        }
        for one in run.chunks(1) {
            let list = match populate(pager, one) {
                true => &mut own,
                false => &mut *others,
            };
            list.push(one[0].0, one[0].1);
        }
    }
    own
}

/// A write access without a write, to pages that are present and locked.
fn populate(pager: &Pager, run: &[(Page, Word)]) -> bool {
    const POPULATE_WRITE: i32 = 23;
    let (start, end) = bounds(pager, run);
    // SAFETY: page lock: the caller has the locks of the run; and no byte changes.
    unsafe { sys::advise(start, end, POPULATE_WRITE) == 0 }
}

/// The second attempt to move pages, to the half of the tray that the first does not use.
fn evict_own(pager: &Pager, own: &List, error: &mut Option<StoreError>) -> usize {
    let mut refused = List::new();
    let moved = move_out(pager, own, BATCH, &mut refused, error);
    for &(page, word) in refused.all() {
        pager.counters.add(|all| &all.refused, 1);
        keep(pager, page, word);
    }
    moved
}

/// Protected pages with their slots, whose bytes are consecutive in a buffer.
struct Copies {
    pages: [(Page, Word); BUFFER_PAGES],
    slots: [Slot; BUFFER_PAGES],
    /// How many are to be written; those after them are all zeros.
    full: usize,
    count: usize,
}

/// Writes and drops locked pages, at most one buffer of them, in place. Returns how many were
/// evicted.
fn copy_out(pager: &Pager, part: &[(Page, Word)], error: &mut Option<StoreError>) -> usize {
    let mut buffer = pager.scratch.take();
    let bytes = buffer.bytes(part.len());
    let mut copies = gather(pager, part, bytes);
    let written = &bytes[..copies.full * PAGE_BYTES];
    if copies.full > 0
        && let Err(why) = pager
            .store()
            .write(written, &mut copies.slots[..copies.full])
    {
        *error = Some(why);
        pager.counters.add(|all| &all.store_errors, 1);
        let all = &copies.pages[..copies.count];
        all.iter().for_each(|&one| give_back(pager, one));
        return 0;
    }
    drop(buffer);
    let full = copies.full as u64;
    pager.counters.add(|all| &all.pages_written, full);
    drop_copied(pager, &copies)
}

/// Protects and copies what it can of `part`, without zero pages; the rest stays.
fn gather(pager: &Pager, part: &[(Page, Word)], bytes: &mut [u8]) -> Copies {
    let mut copies = Copies {
        pages: [(0, Word::EMPTY); BUFFER_PAGES],
        slots: [0; BUFFER_PAGES],
        full: 0,
        count: 0,
    };
    let mut zeros = List::new();
    let mut add = |run: &[(Page, Word)], bytes: &mut [u8]| {
        let from = copies.full * PAGE_BYTES;
        if !protect_and_copy(pager, run, &mut bytes[from..][..run.len() * PAGE_BYTES]) {
            return false;
        }
        for (place, &(page, word)) in run.iter().enumerate() {
            let at = from + place * PAGE_BYTES;
            if is_zero(&bytes[at..][..PAGE_BYTES]) {
                zeros.push(page, word);
                continue;
            }
            bytes.copy_within(at..at + PAGE_BYTES, copies.full * PAGE_BYTES);
            copies.pages[copies.full] = (page, word);
            copies.full += 1;
        }
        true
    };
    for run in runs(pager, part) {
        if add(run, bytes) {
            continue;
        }
        for one in run.chunks(1) {
            if !add(one, bytes) {
                pager.counters.add(|all| &all.refused, 1);
                keep(pager, one[0].0, one[0].1);
            }
        }
    }
    copies.count = copies.full + zeros.all().len();
    copies.pages[copies.full..copies.count].copy_from_slice(zeros.all());
    copies
}

/// Keeps the program from writing to the pages of `run` and copies them; otherwise nothing has
/// changed.
fn protect_and_copy(pager: &Pager, run: &[(Page, Word)], bytes: &mut [u8]) -> bool {
    let (start, end) = bounds(pager, run);
    let Some(region) = pager.regions.find(start).filter(|found| found.end >= end) else {
        return false;
    };
    let uffd = pager.uffd(&region);
    if uffd.protect(start, end) == 0 && scan::copy(start, bytes) {
        return true;
    }
    uffd.unprotect(start, end);
    false
}

/// Gives back a protected page that is not evicted.
fn give_back(pager: &Pager, (page, word): (Page, Word)) {
    let start = pager.table.address_of(page);
    if let Some(region) = pager.regions.find(start) {
        let end = start + PAGE_BYTES as u64;
        pager.uffd(&region).unprotect(start, end);
    }
    keep(pager, page, word);
}

/// Drops pages that the store has, or that are all zeros; returns how many were dropped.
fn drop_copied(pager: &Pager, copies: &Copies) -> usize {
    let all = &copies.pages[..copies.count];
    let refused = discard(pager, all);
    for (place, (&one, &slot)) in all.iter().zip(&copies.slots).enumerate() {
        if refused >> place & 1 == 1 {
            if slot != 0 {
                pager.store().release(slot);
            }
            give_back(pager, one);
            continue;
        }
        let next = match slot {
            0 => Word::EMPTY,
            slot => Word::new(State::Evicted, slot),
        };
        pager.table.unlock(one.0, next);
        pager.happened(one.0, Event::Evicted);
    }
    all.len() - refused.count_ones() as usize
}
