//! Memory that the program gives back, or uses for something else: whole ranges at a time.

use super::pins::Undisturbed;
use super::{Pager, probation};
use crate::page::{PAGE_BYTES, Page};
use crate::sync::LockGuard;
use crate::sync::Word;
use crate::sys::Answer;
use pagewise_policy::Span;

/// Keeps everything else away from ranges: signals, other changes, evictions.
#[derive(Debug)]
pub struct Quiet<'a> {
    // In the order in which they are dropped.
    _evictions: LockGuard<'a>,
    _regions: LockGuard<'a>,
    _undisturbed: Undisturbed<'a>,
}

impl Pager {
    /// Waits until nothing else changes ranges or evicts.
    #[must_use]
    pub fn quiet(&self) -> Quiet<'_> {
        let undisturbed = self.undisturbed();
        let regions = self.regions.lock.hold();
        let evictions = self.evictions.hold();
        Quiet {
            _evictions: evictions,
            _regions: regions,
            _undisturbed: undisturbed,
        }
    }

    /// Runs `call`, which empties the pages of `[start, end)` in the kernel, so that no fault sees
    /// only half of the change.
    pub fn emptying(&self, start: u64, end: u64, call: impl FnOnce() -> Answer) -> Answer {
        let _quiet = self.quiet();
        self.lock_pages(start, end);
        let answer = call();
        match answer < 0 {
            true => self.unlock_pages(start, end),
            false => self.clear_pages(start, end),
        }
        answer
    }

    /// Runs `call`, which takes `[start, end)` out of the address space or puts something else
    /// there. The ranges are then no longer listed.
    pub fn vacating(&self, start: u64, end: u64, call: impl FnOnce() -> Answer) -> Answer {
        let _quiet = self.quiet();
        self.retire_files(start, end);
        self.lock_pages(start, end);
        let answer = call();
        let failed = answer < 0 && answer > -4096;
        match failed {
            true => {
                self.unlock_pages(start, end);
                self.reinstate_files(start, end);
            }
            false => {
                self.clear_pages(start, end);
                self.unlist(start, end);
            }
        }
        answer
    }

    /// Takes `[start, end)` out of the list. Under the regions' lock.
    pub fn unlist(&self, start: u64, end: u64) {
        self.forget_managed(start, end);
        let files = self.has_file(start, end);
        self.regions.remove(start, end);
        if files {
            self.close_unused_files();
        }
    }

    /// Empties the pages of `[start, end)`, which the kernel has emptied already. Under the
    /// eviction lock.
    pub fn empty_pages(&self, start: u64, end: u64) {
        self.lock_pages(start, end);
        self.clear_pages(start, end);
    }

    /// Calls `body` for the managed parts of `[start, end)`, in order. Under the regions' lock.
    pub fn each_managed(&self, start: u64, end: u64, mut body: impl FnMut(u64, u64)) {
        let mut index = self.regions.first_behind(start);
        while index < self.regions.len() {
            let region = self.regions.get(index);
            if region.start >= end {
                return;
            }
            if region.kind.managed {
                body(region.start.max(start), region.end.min(end));
            }
            index += 1;
        }
    }

    /// Calls `body` for the pages of the managed parts of `[start, end)` that have a word.
    pub fn each_page(&self, start: u64, end: u64, mut body: impl FnMut(Page, Word)) {
        self.each_managed(start, end, |from, to| {
            let mut address = from;
            while address < to {
                if let Some(page) = self.table.page_at(address) {
                    let word = self.table.word(page);
                    if word != Word::EMPTY {
                        body(page, word);
                    }
                }
                address += PAGE_BYTES as u64;
            }
        });
    }

    /// Locks all pages that have contents, in ascending order.
    pub fn lock_pages(&self, start: u64, end: u64) {
        self.each_page(start, end, |page, _| {
            let word = self.table.lock(page);
            if probation::holds(word) {
                self.table.set(page, self.unpark(page, word).busy());
            }
        });
    }

    /// Unlocks what [`Pager::lock_pages`] locked.
    pub fn unlock_pages(&self, start: u64, end: u64) {
        self.each_page(start, end, |page, word| {
            if word.is_busy() {
                self.table.unlock(page, word);
            }
        });
    }

    /// Marks pages locked before as having no contents.
    pub fn clear_pages(&self, start: u64, end: u64) {
        let mut resident = 0;
        let mut count = 0;
        self.each_page(start, end, |page, word| {
            if !word.is_busy() {
                return;
            }
            let word = word.idle();
            if word.owns_slot() {
                self.store().release(word.slot());
            }
            if probation::holds(word) {
                let place = word.slot() as usize;
                self.tray.clear(place, place + 1);
                self.give_up_place(place);
            }
            resident += u64::from(word.is_resident());
            count += 1;
            self.distances.forget(page);
            self.policy().removed(Span {
                first: page,
                count: 1,
            });
            self.table.unlock(page, Word::EMPTY);
        });
        if resident > 0 {
            self.budget.release(resident);
        }
        self.counters.add(|all| &all.pages_removed, count);
    }
}
