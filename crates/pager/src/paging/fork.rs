//! Fork: parent and child both keep all their pages.
//!
//! The kernel copies the page table and, with the pager's own memory, the pager's entire state. Two
//! things it does not do: count references to slots, and register the child's memory. The parent
//! does the first before the fork, while no thread works on any page; the child does the second
//! before it returns to the program.

use super::range::Quiet;
use super::regions::{Kind, Region};
use super::scan::{self, Look};
use super::{Pager, discard};
use crate::figures::places;
use crate::page::{PAGE_BYTES, Page};
use crate::store::IN_MEMORY;
use crate::sync::{Attempt, State, Word};
use crate::sys::{self, signals, thread};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use pagewise_wire::shared::{Delivery, Why};

/// Largest number of clean pages checked together.
const RUN_PAGES: usize = 128;

/// Neighbouring pages.
#[derive(Default)]
struct Run {
    first: Page,
    count: usize,
}

impl Run {
    /// Whether `page` follows in memory and in number: neighbours in memory may lie in chunks that were
    /// numbered in another order.
    fn goes_on_with(&self, page: Page, address_of: impl Fn(Page) -> u64) -> bool {
        let behind = address_of(self.first) + (self.count * PAGE_BYTES) as u64;
        page == self.first + self.count as Page && address_of(page) == behind
    }
}

/// The mask that the forking thread had.
static MASK: AtomicU64 = AtomicU64::new(0);
/// Whether this process was forked, or has forked.
static FORKED: AtomicBool = AtomicBool::new(false);
/// The thread that has given up the pages in the store because this process ends, or becomes another
/// program; 0 for none.
static LEAVING: AtomicU32 = AtomicU32::new(0);

impl Pager {
    /// Before a fork: stops everything, and adds a reference to each slot. The child has descriptors
    /// of its own if it `inherits` them.
    pub fn before_fork(&self, inherits: bool) {
        let mask = signals::set_mask(libc::SIG_SETMASK, signals::ALL);
        self.regions.lock.acquire();
        self.evictions.acquire();
        self.own_threads.starting.acquire();
        MASK.store(mask, Ordering::Relaxed);
        FORKED.store(true, Ordering::Relaxed);
        self.gate.close();
        self.end_probation();
        self.store().expect_child(inherits);
        self.copies.begin_sample(self.budget.resident());
        let mut owned = 0;
        self.each_page(0, u64::MAX, |page, _| {
            owned += u64::from(self.settle_for_fork(page));
        });
        debug_assert!(
            self.store().noted().is_none_or(|noted| noted == owned),
            "{:?} slots are noted for this process, whose pages own {owned}",
            self.store().noted()
        );
        self.store().before_fork();
    }

    /// Waits until nobody works on `page`, and adds a reference to its slot. Returns whether that is one
    /// which processes share.
    fn settle_for_fork(&self, page: Page) -> bool {
        let mut word = self.table.word(page);
        while word.is_busy() {
            word = self.table.sleep(page, word);
        }
        if word.is_resident() {
            self.copies.sample(page);
        }
        if !word.owns_slot() {
            return false;
        }
        if let Err(error) = self.store().retain(word.slot()) {
            let address = self.table.address_of(page);
            super::fatal::page_not_shared(address, word.slot(), error);
        }
        word.slot() & IN_MEMORY == 0
    }

    /// After a fork, in the parent. `failed` means that there is no child.
    pub fn after_fork_parent(&self, failed: bool) {
        if failed {
            self.store().forget_child();
            self.each_page(0, u64::MAX, |_, word| {
                if word.owns_slot() {
                    self.store().release_of_child(word.slot());
                }
            });
        }
        self.store().after_fork_parent();
        if !failed && places::share().is_some() {
            self.copies
                .forked(self.budget.resident(), sys::minor_faults());
            places::expect_others();
            // From now on the evictor has to check what is copied, and whether its share has become
            // smaller.
            self.budget.rouse();
        }
        self.thaw();
    }

    fn thaw(&self) {
        let mask = MASK.load(Ordering::Relaxed);
        self.gate.open();
        self.own_threads.starting.release();
        self.evictions.release();
        self.regions.lock.release();
        signals::set_mask(libc::SIG_SETMASK, mask);
    }

    /// After a fork, in the child: its own descriptors, registrations, threads and counters.
    pub fn after_fork_child(&'static self) {
        self.store().after_fork_child();
        self.table.forked();
        self.scratch.forked();
        self.pins.forked();
        self.changes.forked();
        self.own_threads.forked();
        self.ahead.forked();
        thread::forked();
        scan::forked();
        discard::forked();
        LEAVING.store(0, Ordering::Relaxed);
        self.count_as_child();
        let mut resident = 0;
        // Memory locks are not inherited (mlock(2)).
        self.change_kind(0, u64::MAX, |kind| kind.locked = false);
        self.measured.holding.store(false, Ordering::Relaxed);
        self.measured.is_read.store(false, Ordering::Relaxed);
        self.each_page(0, u64::MAX, |page, word| {
            resident += u64::from(self.own_after_fork(page, word.idle()));
        });
        self.budget.forked(resident);
        self.copies.forked(resident, sys::minor_faults());
        if self.is_outdated() {
            self.refresh_limit();
        }
        self.policy().forked();
        self.leave_files_to_kernel();
        let regions = self.regions.managed(0, u64::MAX);
        let managed: u64 = regions.map(|region| region.end - region.start).sum();
        self.counters.set(|all| &all.managed_bytes, managed);
        self.counters.set(|all| &all.file_bytes, 0);
        self.outdate_uffds();
        if managed > 0 && !self.serve_again() {
            let why = match sys::has_no_descriptor() {
                true => {
                    "all descriptors that it may have are in use (ulimit -n), and it needs three"
                }
                false => "the kernel gives it no userfaultfd, or no thread",
            };
            super::fatal::say(format_args!(
                "the child of a fork cannot manage its memory: {why}. It ends with SIGBUS"
            ));
            signals::die_by(libc::SIGBUS);
        }
        self.thaw();
    }

    /// The thread that had locked it does not exist here.
    fn own_after_fork(&self, page: Page, word: Word) -> bool {
        self.table.set(page, word);
        word.is_resident()
    }

    /// Makes the child's first fault arrive; everything else starts with that fault.
    fn serve_again(&'static self) -> bool {
        self.renew_uffds() && self.register_again() && self.own_threads.start_first(self)
    }

    fn register_again(&self) -> bool {
        let mut index = 0;
        while index < self.regions.len() {
            let region = self.regions.get(index);
            if region.kind.not_forked {
                self.abandon(region);
                continue;
            }
            index += 1;
            if !region.kind.managed {
                continue;
            }
            let region = self.deliver_as_permitted(region);
            if region.kind.wiped_on_fork {
                self.lock_pages(region.start, region.end);
                self.clear_pages(region.start, region.end);
                self.change_kind(region.start, region.end, |kind| kind.guarded = false);
            }
            if self.uffd(&region).register(region.start, region.end) != 0 {
                return false;
            }
            self.protect_again(&region);
        }
        true
    }

    /// A process that has dropped privileges since it started may not be allowed to handle faults
    /// of the kernel: from then on faults raise SIGBUS, as they do without these privileges.
    fn deliver_as_permitted(&self, region: Region) -> Region {
        if self.uffds.by_handler.is_open() || region.kind.delivery == Delivery::Signal {
            return region;
        }
        let kind = Kind {
            delivery: Delivery::Signal,
            why: Why::Unprivileged,
            ..region.kind
        };
        let changed = Region { kind, ..region };
        self.regions.replace(changed);
        self.choices.signals_used.store(true, Ordering::SeqCst);
        let choice = Delivery::Signal as u32 | (Why::Unprivileged as u32) << 8;
        self.choices.delivery.store(choice, Ordering::Relaxed);
        changed
    }

    /// The kernel's copy has no write protection: clean pages get it again, run by run.
    fn protect_again(&self, region: &Region) {
        let mut run = Run::default();
        self.each_page(region.start, region.end, |page, word| {
            if word.state() != State::Clean {
                return;
            }
            if run.count == RUN_PAGES || !run.goes_on_with(page, |page| self.table.address_of(page))
            {
                self.protect_run(region, &run);
                run = Run {
                    first: page,
                    count: 0,
                };
            }
            run.count += 1;
        });
        self.protect_run(region, &run);
    }

    /// Pages still shared with the parent have not been written to since (except by the kernel,
    /// which writes the thread's id before the child runs), and thus match the store. All others
    /// are dirty.
    fn protect_run(&self, region: &Region, run: &Run) {
        let mut looks = [Look::Unknown; RUN_PAGES];
        let looks = &mut looks[..run.count];
        let start = self.table.address_of(run.first);
        scan::look(start, looks);
        let mut place = 0;
        for alike in looks.chunk_by(|one, next| one == next) {
            let first = run.first + place as Page;
            let from = start + (place * PAGE_BYTES) as u64;
            let end = from + (alike.len() * PAGE_BYTES) as u64;
            place += alike.len();
            let uffd = self.uffd(region);
            if alike[0] == Look::Shared {
                if uffd.protect(from, end) == 0 {
                    continue;
                }
                uffd.unprotect(from, end);
            }
            (first..)
                .take(alike.len())
                .for_each(|page| self.dirty_after_fork(page));
        }
    }

    fn dirty_after_fork(&self, page: Page) {
        self.store().release(self.table.word(page).slot());
        self.table.set(page, Word::new(State::Dirty, 0));
    }

    /// Removes memory that the child does not have.
    fn abandon(&self, region: Region) {
        self.lock_pages(region.start, region.end);
        self.clear_pages(region.start, region.end);
        self.unlist(region.start, region.end);
    }

    /// This process ends now: its references to slots are released, so that surviving forks do not
    /// pay for them. Other threads of the program still run until the kernel ends them; those that
    /// change memory or fork wait here for that.
    pub fn release_at_end(&self) {
        if FORKED.load(Ordering::Relaxed) {
            core::mem::forget(self.release_all());
        }
    }

    /// This process becomes another program: as at its end, but signals must not stay blocked,
    /// because their mask outlives exec.
    pub fn release_for_exec(&self) {
        drop(self.release_all());
    }

    /// The process survives: exec failed. Its evicted pages are lost, and the first touch of one
    /// ends it with a message.
    pub fn stay(&self) {
        LEAVING.store(0, Ordering::Release);
        sys::futex_wake(&LEAVING, i32::MAX);
    }

    /// Marks evicted pages as lost. A page that a thread works on keeps its slot, which the store
    /// reclaims once the process has gone: that thread may wait in [`outlast_leaving`].
    fn release_all(&self) -> Quiet<'_> {
        let quiet = self.quiet();
        LEAVING.store(sys::thread_id(), Ordering::Release);
        self.each_page(0, u64::MAX, |page, seen| {
            if seen.is_busy() || !seen.owns_slot() {
                return;
            }
            let Attempt::Locked(word) = self.table.attempt(page, seen) else {
                return;
            };
            let next = match word.state() {
                State::Clean => Word::new(State::Dirty, 0),
                State::Evicted => Word::new(State::Evicted, 0),
                _ => word,
            };
            if next != word {
                self.store().release(word.slot());
            }
            self.table.unlock(page, next);
        });
        quiet
    }

    /// Whether this process, with memory of its own (a child of `vfork` has none), may share slots
    /// with others.
    #[must_use]
    pub fn shares_slots(&self) -> bool {
        FORKED.load(Ordering::Relaxed) && self.is_own_process()
    }

    /// Whether these slots would stay taken once it is gone.
    #[must_use]
    pub fn leaves_slots(&self) -> bool {
        self.shares_slots() && !self.store().is_outlived()
    }

    /// Whether this memory is that of another process, and this one shares it (`CLONE_VM`, `vfork`).
    #[must_use]
    pub fn is_of_relative(&self) -> bool {
        let owner = self.equipment.process.load(Ordering::Relaxed);
        owner != 0 && owner != sys::process_id()
    }

    /// Whether this is not a child of `vfork`, which has its parent's memory.
    #[must_use]
    pub fn is_own_process(&self) -> bool {
        self.equipment.process.load(Ordering::Relaxed) == sys::process_id()
    }
}

/// `thread`, or this one, has touched a lost page: where another thread has given it up, sleeps until
/// that one has ended the process. Returns where nobody will.
pub(super) fn outlast_leaving(thread: u32) {
    loop {
        let leaving = LEAVING.load(Ordering::Acquire);
        if leaving == 0 || leaving == thread || leaving == sys::thread_id() {
            return;
        }
        sys::futex_wait(&LEAVING, leaving, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_ends_where_neighbours_in_memory_have_distant_numbers() {
        // Pages 8 to 15 lie before pages 0 to 7.
        let address_of = |page: Page| u64::from((page + 8) % 16) * PAGE_BYTES as u64;
        let run = |first, count| Run { first, count };
        assert!(run(9, 3).goes_on_with(12, address_of));
        assert!(
            !run(14, 2).goes_on_with(0, address_of),
            "it follows in memory alone"
        );
        assert!(
            !run(6, 2).goes_on_with(8, address_of),
            "it follows in number alone"
        );
    }
}
