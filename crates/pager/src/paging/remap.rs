//! `mremap`: pages change their address, and keep their contents.

use super::regions::Kind;
use super::{Pager, fatal};
use crate::page::PAGE_BYTES;
use crate::sync::{State, Word};
use crate::sys::uffd::Uffd;
use crate::sys::{self, Answer};
use core::sync::atomic::Ordering;
use pagewise_policy::{Arrival, Span};

const PAGE: u64 = PAGE_BYTES as u64;

fn is_ok(answer: Answer) -> bool {
    !(answer < 0 && answer > -4096)
}

impl Pager {
    /// Runs `call`, an `mremap` from `[from, from + old)` to `new` bytes with the given flags.
    /// `target` is the address for `MREMAP_FIXED`.
    ///
    /// The kernel drops the registration of the moved range, and with it that of a neighbour with
    /// which it has merged on arrival (`copy_vma` before `mremap_userfaultfd_prep`, Linux 6.18):
    /// the neighbour's pages would be lost. So a range is unregistered before it moves; then it
    /// cannot merge with a registered one.
    pub fn remapping(
        &self,
        from: u64,
        old: u64,
        new: u64,
        target: Option<u64>,
        flags: i32,
        call: impl Fn(i32) -> Answer,
    ) -> Answer {
        const NO_ROOM: Answer = -(libc::ENOMEM as Answer);
        let _quiet = self.quiet();
        // Since Linux 6.17 such a call leaves what lies at the hole's new place; before, it fails so.
        if target.is_some() && !sys::is_mapped(from, from + old) {
            return -(libc::EFAULT as Answer);
        }
        let stays = flags & libc::MREMAP_DONTUNMAP != 0;
        self.lock_pages(from, from + old);
        if target.is_none() && !stays {
            let answer = call(0);
            if is_ok(answer) {
                self.resized(from, old, new);
                return answer;
            }
            if flags & libc::MREMAP_MAYMOVE == 0 {
                self.unlock_pages(from, from + old);
                return answer;
            }
        }
        if !self.has_numbers(from, from + old, target, new) {
            self.unlock_pages(from, from + old);
            return NO_ROOM;
        }
        if let Some(target) = target {
            self.lock_pages(target, target + new);
        }
        self.each_managed(from, from + old, |start, end| {
            self.uffd_of(start).unregister(start, end);
        });
        let answer = call(flags);
        if !is_ok(answer) {
            self.not_moved(from, old, target, new, stays);
            return answer;
        }
        if let Some(target) = target {
            self.clear_pages(target, target + new);
            self.unlist(target, target + new);
        }
        self.moved(from, old, answer as u64, new);
        self.leave(from, old, stays);
        answer
    }

    /// Whether the pages of `[from, end)` will have numbers where they arrive. What has been evicted of them
    /// could not be followed without.
    fn has_numbers(&self, from: u64, end: u64, target: Option<u64>, bytes: u64) -> bool {
        let managed = self.regions.touches(from, end, true);
        match target {
            Some(to) => !managed || self.table.cover(to, to + bytes),
            None => !managed || self.table.has_room(bytes),
        }
    }

    /// The move failed; of several mappings the first ones may have moved (Linux 6.17).
    fn not_moved(&self, from: u64, old: u64, target: Option<u64>, new: u64, stays: bool) {
        let mut gone = 0;
        if let Some(target) = target.filter(|_| !stays) {
            let is_there = |offset| sys::is_mapped(from + offset, from + offset + PAGE);
            let offsets = (0..old.min(new)).step_by(PAGE_BYTES);
            gone = offsets.take_while(|offset| !is_there(*offset)).count() as u64 * PAGE;
            if gone > 0 {
                self.clear_pages(target, target + gone);
                self.unlist(target, target + gone);
                self.moved(from, gone, target, gone);
                self.leave(from, gone, false);
            }
        }
        self.drop_gone(from + gone, from + old);
        self.register_unmoved(from + gone, from + old);
        if let Some(target) = target {
            self.drop_gone(target + gone, target + new);
            self.unlock_pages(target + gone, target + new);
        }
    }

    fn uffd_of(&self, address: u64) -> &Uffd {
        match self.regions.find(address) {
            Some(region) => self.uffd(&region),
            None => &self.uffds.by_handler,
        }
    }

    /// Memory that stays where it is has only lost its write protection.
    fn register_unmoved(&self, from: u64, end: u64) {
        self.each_managed(from, end, |start, end| {
            if self.uffd_of(start).register(start, end) != 0 {
                fatal::memory_lost(start);
            }
        });
        self.each_page(from, end, |page, word| {
            if !word.is_busy() {
                return;
            }
            let next = match word.idle().state() {
                State::Clean => {
                    self.store().release(word.slot());
                    Word::new(State::Dirty, 0)
                }
                _ => word.idle(),
            };
            self.table.unlock(page, next);
        });
    }

    fn resized(&self, from: u64, old: u64, new: u64) {
        // One mapping may have parts that are managed and others that are not, as the kernel merges
        // neighbours: what is added is managed if any of it was.
        let managed = self.regions.managed(from, from + old).next();
        let kind = managed.or_else(|| self.regions.find(from));
        if new < old {
            self.clear_pages(from + new, from + old);
            self.unlist(from + new, from + old);
        }
        self.unlock_pages(from, from + old.min(new));
        if let Some(region) = kind.filter(|_| new > old) {
            let kind = Kind {
                guarded: false,
                ..region.kind
            };
            self.adopt_locked_quietly(from + old, from + new, kind);
        }
    }

    /// The first `old` bytes are now `new` bytes at `to`. What was not listed (files, shared memory) is not
    /// listed there.
    fn moved(&self, from: u64, old: u64, to: u64, new: u64) {
        let end = from + old.min(new);
        let mut at = from;
        while let Some(first) = self
            .regions
            .at_or_behind(at)
            .filter(|it| it.start < end && at < end)
        {
            let start = first.start.max(at);
            let stop = self.listed_up_to(start, end, first.kind.guarded);
            // One mapping may have parts that are managed and others that are not, as the kernel merges
            // neighbours: what arrives is managed if any of it was.
            let managed = self.regions.managed(start, stop).next();
            let kind = managed.unwrap_or(first).kind;
            let behind = match stop == end && !kind.guarded {
                true => to + new,
                false => to + (stop - from),
            };
            let managed = self.arrive(to + (start - from), behind, kind);
            self.carry(start, stop, to + (start - from), managed);
            at = stop;
        }
        if new < old {
            self.clear_pages(end, from + old);
        }
    }

    /// Up to where ranges are listed without a gap from `start` on, all with guards or without, at most `end`.
    fn listed_up_to(&self, start: u64, end: u64, guarded: bool) -> u64 {
        let mut stop = start;
        let listed = |stop| self.regions.find(stop).filter(|_| stop < end);
        while let Some(region) = listed(stop).filter(|it| it.kind.guarded == guarded) {
            stop = region.end.min(end);
        }
        stop
    }

    /// What has become of `[from, from + old)` after the move.
    fn leave(&self, from: u64, old: u64, stays: bool) {
        match stays {
            true => {
                // Guards have moved with all else.
                self.change_kind(from, from + old, |kind| kind.guarded = false);
                self.register_unmoved(from, from + old);
            }
            false => self.unlist(from, from + old),
        }
    }

    /// Memory of this kind has arrived at `[start, end)`. Returns whether it is managed there.
    fn arrive(&self, start: u64, end: u64, kind: Kind) -> bool {
        // The kernel dropped the registration and the write protection on the way.
        let fits = !kind.managed || self.table.cover(start, end);
        let known = Kind {
            managed: false,
            id: 0,
            ..kind
        };
        let is_managed = || self.regions.find(start).is_some_and(|it| it.kind.managed);
        self.adopt_locked_quietly(start, end, known);
        if kind.managed && !(is_managed() && fits) {
            // It may now be small, but it has pages in the store, so it stays managed.
            self.manage_anyway(start, end, known);
        }
        fits && is_managed()
    }

    fn adopt_locked_quietly(&self, start: u64, end: u64, kind: Kind) {
        // As `adopt_locked`, but the eviction lock is already held.
        if self.regions.touches(start, end, true) {
            self.empty_pages(start, end);
        }
        self.regions.remove(start, end);
        let kind = Kind {
            managed: false,
            ..kind
        };
        self.adopt_from(
            start,
            end,
            kind,
            self.taking.smallest.load(Ordering::Relaxed),
        );
    }

    fn manage_anyway(&self, start: u64, end: u64, kind: Kind) {
        self.regions.remove(start, end);
        self.adopt_from(start, end, kind, 0);
    }

    /// Transfers the locked pages of `[from, end)` to their new addresses from `to` on.
    fn carry(&self, from: u64, end: u64, to: u64, managed: bool) {
        self.each_page(from, end, |page, word| {
            if !word.is_busy() {
                return;
            }
            let word = word.idle();
            let address = self.table.address_of(page) - from + to;
            self.policy().removed(Span {
                first: page,
                count: 1,
            });
            match self.table.page_at(address).filter(|_| managed) {
                Some(heir) => self.inherit(heir, word),
                None => self.let_go(address, word),
            }
            self.table.unlock(page, Word::EMPTY);
        });
        debug_assert!(from.is_multiple_of(PAGE));
    }

    /// The page that is now at `address` is the kernel's from now on.
    fn let_go(&self, address: u64, word: Word) {
        match word.is_resident() {
            true => {}
            // Never touched: there is nothing to lose.
            false if word.state() == State::Empty => return,
            false => fatal::memory_lost(address),
        }
        if word.owns_slot() {
            self.store().release(word.slot());
        }
        self.budget.release(1);
    }

    fn inherit(&self, heir: u32, word: Word) {
        let next = match word.state() {
            State::Clean => {
                self.store().release(word.slot());
                Word::new(State::Dirty, 0)
            }
            _ => word,
        };
        // Registering the new range may have found the page and counted it once more.
        let found = self.table.lock(heir);
        if found.is_resident() {
            self.budget.release(1);
        } else if next.is_resident() {
            self.policy().mapped(heir, Arrival::Ahead);
        }
        self.table.unlock(heir, next);
    }
}
