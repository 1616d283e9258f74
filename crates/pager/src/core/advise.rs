//! What the program says about ranges that are managed: locked, not for children, its role.

use super::Pager;
use super::evict::{self, BATCH};
use super::regions::{Kind, Region};
use super::resolve::{self, Fault};
use crate::page::{PAGE_BYTES, Page};
use crate::sys::{Answer, signals::Blocked};
use pagewise_policy::Span;

impl Pager {
    /// Changes the kind of the managed parts of `[start, end)`.
    fn change_kind(&self, start: u64, end: u64, change: impl Fn(&mut Kind)) {
        let mut index = self.regions.first_behind(start);
        while index < self.regions.len() {
            let region = self.regions.get(index);
            if region.start >= end {
                return;
            }
            if region.kind.managed {
                let mut part = Region {
                    start: region.start.max(start),
                    end: region.end.min(end),
                    kind: region.kind,
                };
                change(&mut part.kind);
                if part.kind != region.kind {
                    self.regions.replace(part);
                }
            }
            index = self.regions.first_behind(region.end.min(end));
            if region.end >= end {
                return;
            }
        }
    }

    /// Pages of `[start, end)` must not leave, or may again.
    pub fn set_locked(&self, start: u64, end: u64, locked: bool) {
        let _quiet = self.quiet();
        self.change_kind(start, end, |kind| kind.locked = locked);
    }

    /// Bytes of managed memory that are locked.
    #[must_use]
    pub fn locked_bytes(&self) -> u64 {
        let _quiet = Blocked::new();
        let _regions = self.regions.lock.hold();
        let all = (0..self.regions.len()).map(|index| self.regions.get(index));
        all.filter(|region| region.kind.managed && region.kind.locked)
            .map(|region| region.end - region.start)
            .sum()
    }

    /// Makes all pages of `[start, end)` resident, each as a write would.
    pub fn bring_in(&self, start: u64, end: u64) {
        let _quiet = Blocked::new();
        let mut address = start;
        while address < end {
            let fault = Fault {
                address,
                write: true,
                protected: false,
                thread: 0,
            };
            let present = self.table.page_at(address).is_some_and(|page| {
                let word = self.table.word(page);
                word.is_resident() && !word.is_busy()
            });
            if !present {
                resolve::resolve(self, fault);
            }
            address += PAGE_BYTES as u64;
        }
    }

    /// Evicts what is resident of `[start, end)` now: the program does not need it for long.
    pub fn page_out(&self, start: u64, end: u64) {
        let _quiet = self.quiet();
        let mut batch = [0; BATCH];
        let mut count = 0;
        let flush = |pages: &mut [Page]| {
            evict::evict_these(self, pages);
        };
        self.each_page(start, end, |page, word| {
            if !word.is_resident() {
                return;
            }
            self.policy().removed(Span {
                first: page,
                count: 1,
            });
            batch[count] = page;
            count += 1;
            if count == BATCH {
                flush(&mut batch);
                count = 0;
            }
        });
        flush(&mut batch[..count]);
    }

    /// Runs `call`, an `madvise` that says what becomes of `[start, end)` in children.
    pub fn advising_fork(
        &self,
        start: u64,
        end: u64,
        advice: i32,
        call: impl FnOnce() -> Answer,
    ) -> Answer {
        let _quiet = self.quiet();
        let answer = call();
        if answer == 0 {
            self.change_kind(start, end, |kind| match advice {
                libc::MADV_DONTFORK => kind.not_forked = true,
                libc::MADV_DOFORK => kind.not_forked = false,
                libc::MADV_WIPEONFORK => kind.wiped_on_fork = true,
                _ => kind.wiped_on_fork = false,
            });
        }
        answer
    }
}
