//! How missing pages get their contents: zeros, or the contents from the store.

use super::cluster::{Cluster, Reach};
use super::fatal;
use super::resolve::Work;
use super::scratch::BUFFER_PAGES;
use crate::page::{PAGE_BYTES, Page};
use crate::store::{Slot, StoreError};
use crate::sync::{State, Word};
use crate::sys::progress::Progress;
use crate::sys::{self, uffd};
use pagewise_policy::{FaultKind, Span};

impl Work<'_> {
    /// Takes room for the pages of `along` in addition to the missing one, as much as there is:
    /// pages that are read ahead do not wait for room.
    pub(super) fn room_along(&self, along: Span) -> u64 {
        let wanted = u64::from(along.count).min(BUFFER_PAGES as u64);
        self.pager.budget.attempt_some(wanted.saturating_sub(1))
    }

    /// A page without contents: zeros.
    pub(super) fn touch_first(&self) {
        self.pager.counters.add(|all| &all.first_touches, 1);
        let plan = self.plan(FaultKind::FirstTouch);
        self.send_ahead(&plan);
        let room = self.room_along(plan.along);
        let cluster = self.gather(self.page, Word::EMPTY, plan.along, room, Reach::Any);
        let mut well = true;
        let mut done = 0;
        while done < cluster.count {
            let progress = self.clear(&cluster, done);
            let next = done + progress.bytes as usize / PAGE_BYTES;
            (done..next).for_each(|place| self.arrive(&cluster, place, Word::new(State::Dirty, 0)));
            done = next;
            well &= progress.errno == 0;
            done += match progress.errno {
                0 | libc::EAGAIN => 0,
                // It is present without notice: the kernel filled it before it was managed.
                libc::EEXIST => {
                    self.arrive(&cluster, done, Word::new(State::Dirty, 0));
                    1
                }
                _ => {
                    self.give_up(&cluster, done);
                    1
                }
            };
        }
        if !well {
            self.wake();
        }
    }

    /// Maps pages of zeros from page `place` of the cluster on, for a read as well: with the
    /// kernel's shared zero page, each page would cost another fault when it is written, which
    /// would not be reported, and takes no memory until then, so the budget could not count
    /// resident pages.
    fn clear(&self, cluster: &Cluster, place: usize) -> Progress {
        let start = self.pager.table.address_of(cluster.first + place as Page);
        let bytes = ((cluster.count - place) * PAGE_BYTES) as u64;
        let zeros = self.pager.scratch.zeros();
        self.uffd().copy(start, zeros, bytes, 0)
    }

    /// A page that is in the store.
    pub(super) fn read(&self, word: Word) {
        let plan = self.plan(FaultKind::Refault);
        let room = self.room_along(plan.along);
        let mut cluster = self.gather(self.page, word, plan.along, room, Reach::Near);
        self.send_ahead(&plan);
        let mut buffer = self.pager.scratch.take();
        let bytes = buffer.bytes(cluster.count);
        let began = sys::now_ns();
        self.fill(&mut cluster, bytes);
        let ns = sys::now_ns().saturating_sub(began);
        if plan.ahead().is_empty() {
            let thread = self.fault.thread;
            self.pager.store().returned(word.slot(), thread, ns);
        }
        if !self.map_all(&cluster, bytes) {
            self.wake();
        }
    }

    /// Reads the cluster; if a neighbour fails, only the page.
    fn fill(&self, cluster: &mut Cluster, bytes: &mut [u8]) {
        let store = self.pager.store();
        let mut slots: [Slot; BUFFER_PAGES] = [0; BUFFER_PAGES];
        for (slot, (_, word)) in slots.iter_mut().zip(cluster.pages()) {
            *slot = word.slot();
        }
        if word_is_lost(&cluster.words[..cluster.count]) {
            super::fork::outlast_leaving(self.fault.thread);
            fatal::page_lost(self.address(), StoreError::Damaged);
        }
        let wanted = &mut bytes[..cluster.count * PAGE_BYTES];
        let Err(error) = store.read(&slots[..cluster.count], wanted) else {
            let counters = &self.pager.counters;
            counters.add(|all| &all.pages_read, cluster.count as u64);
            counters.add(|all| &all.pages_prefetched, cluster.count as u64 - 1);
            return;
        };
        self.pager.counters.add(|all| &all.store_errors, 1);
        let own = (self.page - cluster.first) as usize;
        if cluster.count == 1 {
            fatal::page_lost(self.address(), error.why);
        }
        let word = cluster.words[own];
        for place in (0..cluster.count).filter(|place| *place != own) {
            let page = cluster.first + place as Page;
            self.pager.table.unlock(page, cluster.words[place]);
            self.pager.budget.release(1);
        }
        (cluster.first, cluster.count, cluster.words[0]) = (self.page, 1, word);
        self.fill(cluster, bytes);
    }

    /// Maps what was read: all writable where pages are written soon, else only the page that is
    /// written. Returns whether the kernel accepted everything, and thus woke a waiting thread.
    pub(super) fn map_all(&self, cluster: &Cluster, bytes: &[u8]) -> bool {
        let habits = &self.pager.habits;
        let region = self.region.kind.id;
        let all_writable = habits.expects_write(region);
        let mut well = true;
        let mut done = 0;
        while done < cluster.count {
            let (end, writable) = self.same_mode(cluster, done, all_writable);
            if !writable {
                habits.came(region, end - done);
            }
            let start = self.pager.table.address_of(cluster.first + done as Page);
            let from = bytes[done * PAGE_BYTES..].as_ptr() as u64;
            let mode = if writable { 0 } else { uffd::COPY_MODE_WP };
            let wanted = ((end - done) * PAGE_BYTES) as u64;
            let progress = self.uffd().copy(start, from, wanted, mode);
            well &= progress.errno == 0;
            let next = done + progress.bytes as usize / PAGE_BYTES;
            for place in done..next {
                self.arrive(cluster, place, self.settled(cluster.words[place], writable));
            }
            done = next;
            done += match progress.errno {
                0 | libc::EAGAIN => 0,
                // Another page was put there without notice: it is the newer one.
                libc::EEXIST => {
                    let word = self.settled(cluster.words[done], true);
                    self.arrive(cluster, done, word);
                    1
                }
                _ => {
                    self.give_up(cluster, done);
                    1
                }
            };
        }
        well
    }

    /// The end of the run from `place` on that is mapped in the same mode, and whether that is
    /// writable.
    fn same_mode(&self, cluster: &Cluster, place: usize, all_writable: bool) -> (usize, bool) {
        let writable = |place: usize| {
            let page = cluster.first + place as Page;
            let slot = cluster.words[place].slot();
            all_writable
                || (page == self.page && self.fault.write)
                || !self.pager.store().keep_copy(slot)
        };
        let first = writable(place);
        let rest = place + 1..cluster.count;
        let end = rest.into_iter().find(|place| writable(*place) != first);
        (end.unwrap_or(cluster.count), first)
    }

    /// The word of an evicted page once it is resident.
    pub(super) fn settled(&self, word: Word, writable: bool) -> Word {
        if !writable {
            return Word::new(State::Clean, word.slot());
        }
        self.pager.store().release(word.slot());
        Word::new(State::Dirty, 0)
    }
}

/// Whether a page was given up, for an exec or at the end of the process.
fn word_is_lost(words: &[Word]) -> bool {
    words.iter().any(|word| word.slot() == 0)
}
