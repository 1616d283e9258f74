//! Pages move from the store's memory to its disk, where they have not been used for long.

use super::Pager;
use super::batch::List;
use super::scratch::BUFFER_PAGES;
use crate::page::{PAGE_BYTES, Page};
use crate::store::{IN_MEMORY, Slot};
use crate::sync::{Attempt, State, Word};
use core::sync::atomic::Ordering;

/// Largest number of words to look at in one go: some 20 µs.
const MOST_LOOKED: usize = 32_768;

/// Moves some of the pages that the store wants to be rid of. The caller holds the eviction lock and
/// blocks signals.
pub(super) fn surplus(pager: &Pager) {
    let wanted = pager.store().surplus().min(BUFFER_PAGES);
    if wanted == 0 {
        return;
    }
    let list = find(pager, wanted);
    if !list.all().is_empty() {
        write(pager, list.all());
    }
}

/// Locks up to `wanted` packed pages, in the order of their addresses, from where the last search
/// ended.
fn find(pager: &Pager, wanted: usize) -> List {
    let mut list = List::new();
    let mut address = pager.moving_from.load(Ordering::Relaxed);
    let mut left = MOST_LOOKED;
    let mut turned = false;
    while left > 0 && list.all().len() < wanted {
        let Some(region) = pager.regions.managed(address, u64::MAX).next() else {
            if turned {
                break;
            }
            (address, turned) = (0, true);
            continue;
        };
        let start = region.start.max(address);
        let words = pager.table.words(start, region.end);
        let Some(first) = pager.table.page_at(start).filter(|_| !words.is_empty()) else {
            address = region.end;
            continue;
        };
        let mut looked = 0;
        for (word, page) in words.iter().take(left).zip(first..) {
            if list.all().len() == wanted {
                break;
            }
            looked += 1;
            take(pager, page, Word(word.load(Ordering::Relaxed)), &mut list);
        }
        left -= looked;
        address = start + (looked * PAGE_BYTES) as u64;
    }
    pager.moving_from.store(address, Ordering::Relaxed);
    list
}

/// Locks `page` if it is to move.
fn take(pager: &Pager, page: Page, word: Word, list: &mut List) {
    let is_packed = word.state() == State::Evicted && word.slot() & IN_MEMORY != 0;
    if word.is_busy() || !is_packed || pager.table.attempt(page, word) != Attempt::Locked(word) {
        return;
    }
    match pager.store().is_stale(word.slot()) {
        true => list.push(page, word),
        false => pager.table.unlock(page, word),
    }
}

/// Writes the locked pages. What cannot be moved stays where it is.
fn write(pager: &Pager, all: &[(Page, Word)]) {
    let store = pager.store();
    let mut buffer = pager.scratch.take();
    let bytes = buffer.bytes(all.len());
    let mut old: [Slot; BUFFER_PAGES] = [0; BUFFER_PAGES];
    let mut new: [Slot; BUFFER_PAGES] = [0; BUFFER_PAGES];
    for (slot, (_, word)) in old.iter_mut().zip(all) {
        *slot = word.slot();
    }
    let new = &mut new[..all.len()];
    let moved = store.move_down(&old[..all.len()], bytes, new).is_ok();
    for (&(page, word), &slot) in all.iter().zip(&*new) {
        if !moved {
            pager.table.unlock(page, word);
            continue;
        }
        store.release(word.slot());
        pager.table.unlock(page, Word::new(State::Evicted, slot));
    }
    if moved {
        pager
            .counters
            .add(|all| &all.pages_written, new.len() as u64);
    }
}
