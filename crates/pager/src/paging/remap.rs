//! `mremap`: pages change their address, and keep their contents.

use super::Pager;
use super::regions::Kind;
use crate::page::PAGE_BYTES;
use crate::sync::{State, Word};
use crate::sys::Answer;
use crate::sys::uffd::Uffd;
use core::sync::atomic::Ordering;
use pagewise_policy::{Arrival, Span};

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
        let _quiet = self.quiet();
        // One mapping may have parts that are managed and others that are not, as the kernel merges
        // neighbours: what arrives is managed if any of it was.
        let managed = self.regions.managed(from, from + old).next();
        let kind = managed
            .or_else(|| self.regions.find(from))
            .map_or(self.new_kind(), |region| region.kind);
        let stays = flags & libc::MREMAP_DONTUNMAP != 0;
        self.lock_pages(from, from + old);
        if target.is_none() && !stays {
            let answer = call(0);
            if is_ok(answer) {
                self.resized(from, old, new, kind);
                return answer;
            }
            if flags & libc::MREMAP_MAYMOVE == 0 {
                self.unlock_pages(from, from + old);
                return answer;
            }
        }
        if let Some(target) = target {
            self.lock_pages(target, target + new);
        }
        self.each_managed(from, from + old, |start, end| {
            self.uffd_of(start).unregister(start, end);
        });
        let answer = call(flags);
        if !is_ok(answer) {
            self.register_unmoved(from, from + old);
            if let Some(target) = target {
                self.unlock_pages(target, target + new);
            }
            return answer;
        }
        if let Some(target) = target {
            self.clear_pages(target, target + new);
            self.unlist(target, target + new);
        }
        self.moved(from, old, answer as u64, new, kind, stays);
        answer
    }

    fn uffd_of(&self, address: u64) -> &Uffd {
        match self.regions.find(address) {
            Some(region) => self.uffd(&region),
            None => &self.by_handler,
        }
    }

    /// The move failed: everything is as before, except the write protection, which is lost.
    fn register_unmoved(&self, from: u64, end: u64) {
        self.each_managed(from, end, |start, end| {
            self.uffd_of(start).register(start, end);
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

    fn resized(&self, from: u64, old: u64, new: u64, kind: Kind) {
        if new < old {
            self.clear_pages(from + new, from + old);
            self.unlist(from + new, from + old);
        }
        self.unlock_pages(from, from + old.min(new));
        if new > old {
            self.adopt_locked_quietly(from + old, from + new, kind);
        }
    }

    fn moved(&self, from: u64, old: u64, to: u64, new: u64, kind: Kind, stays: bool) {
        // The kernel dropped the registration and the write protection on the way.
        let fits = !kind.managed || self.table.cover(to, to + new);
        let kind = Kind { id: 0, ..kind };
        let known = Kind {
            managed: false,
            ..kind
        };
        self.adopt_locked_quietly(to, to + new, known);
        let managed = self.regions.find(to).is_some_and(|r| r.kind.managed);
        if kind.managed && !(managed && fits) {
            // It may now be small, but it has pages in the store, so it stays managed.
            self.manage_anyway(to, to + new, known);
        }
        self.carry(from, from + old.min(new), to);
        if new < old {
            self.clear_pages(from + new, from + old);
        }
        match stays {
            true => self.register_unmoved(from, from + old),
            false => self.unlist(from, from + old),
        }
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
        self.adopt_from(start, end, kind, self.smallest.load(Ordering::Relaxed));
    }

    fn manage_anyway(&self, start: u64, end: u64, kind: Kind) {
        self.regions.remove(start, end);
        self.adopt_from(start, end, kind, 0);
    }

    /// Transfers the locked pages of `[from, end)` to their new addresses from `to` on.
    fn carry(&self, from: u64, end: u64, to: u64) {
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
            if let Some(heir) = self.table.page_at(address) {
                self.inherit(heir, word);
            }
            self.table.unlock(page, Word::EMPTY);
        });
        debug_assert!(from.is_multiple_of(PAGE_BYTES as u64));
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
