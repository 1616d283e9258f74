//! Memory that the program gives back, or uses for something else: whole ranges at a time.

use super::pins::Undisturbed;
use super::{Pager, probation};
use crate::page::{PAGE_BYTES, Page};
use crate::sync::LockGuard;
use crate::sync::Word;
use crate::sys::{self, Answer};
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

    /// Empties `[start, end)` in the kernel, so that no fault sees only half of the change: its managed
    /// parts by `managed`, what lies between them by `others`. A call that fails may have done its work
    /// up to the memory that it refuses, or around a hole (ENOMEM, with which the kernel goes on behind it).
    pub fn emptying(
        &self,
        start: u64,
        end: u64,
        managed: impl Fn(u64, u64) -> Answer,
        others: impl Fn(u64, u64) -> Answer,
    ) -> Answer {
        const HOLE: Answer = -(libc::ENOMEM as Answer);
        let _quiet = self.quiet();
        self.lock_pages(start, end);
        let (mut at, mut answer) = (start, 0);
        while at < end && (answer == 0 || answer == HOLE) {
            let next = self.regions.managed(at, end).next();
            let part = match next {
                Some(region) if region.start <= at => {
                    let to = region.end.min(end);
                    at = to;
                    self.empty_part(region.start, to, &managed)
                }
                _ => {
                    let from = at;
                    at = next.map_or(end, |region| region.start);
                    others(from, at)
                }
            };
            answer = if part == 0 { answer } else { part };
        }
        self.unlock_pages(at, end);
        answer
    }

    /// Empties the locked pages of a managed part, and unlocks them; page by page where the kernel refuses it as a whole.
    fn empty_part(&self, start: u64, end: u64, call: impl Fn(u64, u64) -> Answer) -> Answer {
        let answer = call(start, end);
        if answer == 0 {
            self.clear_pages(start, end);
            return answer;
        }
        self.each_page(start, end, |page, word| {
            let (at, behind) = self.bounds_of(page);
            match word.is_busy() && call(at, behind) == 0 {
                true => self.clear_pages(at, behind),
                false => self.unlock_pages(at, behind),
            }
        });
        answer
    }

    fn bounds_of(&self, page: Page) -> (u64, u64) {
        let start = self.table.address_of(page);
        (start, start + PAGE_BYTES as u64)
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
                self.drop_gone(start, end);
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

    /// After a call that failed: it may have removed memory of `[start, end)`, whose pages are locked, all
    /// the same (`mremap` and, before Linux 6.12, `mmap` remove what is there before they look further).
    pub(super) fn drop_gone(&self, start: u64, end: u64) {
        let mut at = start;
        while let Some(region) = self.regions.at_or_behind(at).filter(|it| it.start < end) {
            let (from, to) = (region.start.max(at), region.end.min(end));
            at = region.end;
            if sys::is_mapped(from, to) {
                continue;
            }
            for page in (from..to).step_by(PAGE_BYTES) {
                let behind = page + PAGE_BYTES as u64;
                if !sys::is_mapped(page, behind) {
                    self.clear_pages(page, behind);
                    self.unlist(page, behind);
                }
            }
        }
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
