//! The program's advice on managed ranges: locked, not for children, a role.

use super::batch::BATCH;
use super::evict;
use super::regions::{Kind, Region};
use super::{Pager, rings};
use crate::page::{CHUNK_BYTES_SHIFT, PAGE_BYTES, Page};
use crate::sync::{State, Word};
use crate::sys::{Answer, seccomp};
use core::sync::atomic::Ordering;
use pagewise_policy::{Role, Span};
use pagewise_wire::shared::{Delivery, Why, capability};

impl Pager {
    /// Changes the kind of the listed parts of `[start, end)`: unmanaged ones, too, since they may
    /// be managed later.
    pub(super) fn change_kind(&self, start: u64, end: u64, change: impl Fn(&mut Kind)) {
        let mut index = self.regions.first_behind(start);
        while index < self.regions.len() {
            let region = self.regions.get(index);
            if region.start >= end {
                return;
            }
            let mut part = Region {
                start: region.start.max(start),
                end: region.end.min(end),
                kind: region.kind,
            };
            change(&mut part.kind);
            if part.kind != region.kind {
                self.regions.replace(part);
            }
            index = self.regions.first_behind(region.end.min(end));
            if region.end >= end {
                return;
            }
        }
    }

    /// Pages of `[start, end)` must not be evicted, or may be again.
    pub fn set_locked(&self, start: u64, end: u64, locked: bool) {
        let _quiet = self.quiet();
        self.change_kind(start, end, |kind| kind.locked = locked);
    }

    /// Bytes of managed memory that are locked.
    #[must_use]
    pub fn locked_bytes(&self) -> u64 {
        let _quiet = self.undisturbed();
        let _regions = self.regions.lock.hold();
        let all = (0..self.regions.len()).map(|index| self.regions.get(index));
        all.filter(|region| region.kind.managed && region.kind.locked)
            .map(|region| region.end - region.start)
            .sum()
    }

    /// Makes all pages of `[start, end)` resident, each as a write would.
    pub fn populate(&self, start: u64, end: u64) {
        let _quiet = self.undisturbed();
        let mut address = start;
        while address < end {
            self.touch(address, true);
            address += PAGE_BYTES as u64;
        }
    }

    /// Evicts the resident pages of `[start, end)` now: the program will not need them for long.
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

    /// The program declares the role of `[start, end)`. Where faults go to handler threads by
    /// default and nothing was evicted yet, memory with a declared role changes to SIGBUS: a
    /// program that declares roles computes on it.
    pub fn hint(&self, start: u64, end: u64, role: Role) {
        let _quiet = self.quiet();
        self.prefer_signals(start, end, role);
        self.change_kind(start, end, |kind| {
            if kind.managed {
                kind.role = role.code() as u8;
            }
        });
        self.each_span(start, end, |span| self.policy().hint(span, role));
    }

    fn prefer_signals(&self, start: u64, end: u64, role: Role) {
        let declared = !matches!(role, Role::Normal | Role::Random);
        let untouched = {
            let mut untouched = true;
            self.each_page(start, end, |_, word| untouched &= word.is_resident());
            untouched
        };
        if !declared || !untouched || !self.uffds.by_signal.is_open() {
            return;
        }
        // Both fail if faults raise SIGBUS; a ring that the program already has remains.
        if self.can(capability::ASYNCHRONOUS_IO) {
            if rings::any(self) || !seccomp::refuse_asynchronous() {
                return;
            }
            self.choices
                .capabilities
                .fetch_and(!capability::ASYNCHRONOUS_IO, Ordering::Relaxed);
        }
        let mut changes = [(0, 0); 16];
        let mut count = 0;
        let mut index = self.regions.first_behind(start);
        while index < self.regions.len() && count < changes.len() {
            let region = self.regions.get(index);
            if region.start >= end {
                break;
            }
            let default = region.kind.why == Why::Transparent;
            let own = region.kind.file == 0;
            if region.kind.managed && own && default && region.kind.delivery == Delivery::Handler {
                changes[count] = (region.start.max(start), region.end.min(end));
                count += 1;
            }
            index += 1;
        }
        for &(from, to) in &changes[..count] {
            self.change_delivery(from, to);
        }
    }

    /// Between the two registrations a missing page is filled with zeros by the kernel, as the
    /// pager would do, because no page of the range is in the store; it is listed afterwards.
    fn change_delivery(&self, start: u64, end: u64) {
        self.lock_pages(start, end);
        self.uffds.by_handler.unregister(start, end);
        let changed = self.uffds.by_signal.register(start, end) == 0;
        if !changed {
            self.uffds.by_handler.register(start, end);
        }
        // Unregistering removed the write protection.
        self.each_page(start, end, |page, word| {
            let word = word.idle();
            if word.owns_slot() {
                self.store().release(word.slot());
            }
            self.table.unlock(page, Word::new(State::Dirty, 0));
        });
        self.list_present(start, end);
        if changed {
            self.choices.signals_used.store(true, Ordering::SeqCst);
            self.change_kind(start, end, |kind| {
                kind.delivery = Delivery::Signal;
                kind.why = Why::Hint;
            });
        }
        self.uffds.by_handler.wake(start, end);
    }

    /// Reads `[start, end)` ahead of its use.
    pub fn prefetch(&self, start: u64, end: u64) {
        let _quiet = self.undisturbed();
        let _regions = self.regions.lock.hold();
        self.each_span(start, end, |span| self.ahead.push(span));
    }

    /// Calls `body` for the managed parts of `[start, end)`, split at chunk boundaries.
    fn each_span(&self, start: u64, end: u64, mut body: impl FnMut(Span)) {
        self.each_managed(start, end, |from, to| {
            let mut address = from;
            while address < to {
                let chunk_end = ((address >> CHUNK_BYTES_SHIFT) + 1) << CHUNK_BYTES_SHIFT;
                let stop = to.min(chunk_end);
                if let Some(first) = self.table.page_at(address) {
                    let count = ((stop - address) / PAGE_BYTES as u64) as u32;
                    body(Span { first, count });
                }
                address = stop;
            }
        });
    }

    /// Runs `call`, which puts guards into `[start, end)`, whose pages are dropped. They are known before that, so
    /// that no thread brings a page in beside its own; where the call fails, some may be there.
    pub fn guarding(&self, start: u64, end: u64, call: impl FnOnce() -> Answer) -> Answer {
        if !self.regions.may_be_cut() {
            return -(libc::ENOMEM as Answer);
        }
        {
            let _quiet = self.quiet();
            self.change_kind(start, end, |kind| kind.guarded = true);
        }
        call()
    }

    /// Runs `call`, which takes the guards of `[start, end)` away.
    pub fn unguarding(&self, start: u64, end: u64, call: impl FnOnce() -> Answer) -> Answer {
        let answer = call();
        if answer == 0 {
            let _quiet = self.quiet();
            self.change_kind(start, end, |kind| kind.guarded = false);
        }
        answer
    }

    /// Runs `call`, an `madvise` that determines how `[start, end)` is treated in children.
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
