//! How memory comes under management.

use super::limit::of_run;
use super::numbers::MOST_PAGES;
use super::regions::{Kind, Region};
use super::{Pager, fatal, scan};
use crate::sync::{Attempt, State, Word};
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use pagewise_policy::Arrival;
use pagewise_wire::shared::{Delivery, Why};

/// The part of the budget that unmanaged memory may take before smaller pieces are managed.
const MOST_LEFT_OUT: u64 = 8;
/// Bytes that may be left out in any case: managing a shell's heap would take more than it has.
const LEAST_LEFT_OUT: u64 = 1 << 20;
/// The part of the budget that a process may make accessible of what it has reserved before that is
/// managed. Many reserve gigabytes and use next to nothing, and some of those must stay without threads of
/// the pager, as the processes from which Chromium forks.
const MOST_OPENED: u64 = 16;
/// Bytes of a reservation that are managed at once.
const OPENED_AT_ONCE: u64 = 64 << 20;
/// The part of the budget by which that memory must change before the limit is measured again.
const LOOK_EACH: u64 = 64;

/// What new memory is for, as far as the call that creates it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// One large piece, readable and writable at once: an array.
    Array,
    /// Anything else: heaps, arenas and chunks, which allocators cut into pieces.
    Allocator,
}

/// Which new memory is managed. Changed with the regions' lock held, after start; a look without it may
/// be a moment late. `smallest` falls only, as far as `smallest_ever`.
#[derive(Debug)]
pub struct Taking {
    /// Smallest region to manage, bytes.
    pub smallest: AtomicU64,
    /// The lower limit of `smallest`, bytes.
    pub smallest_ever: AtomicU64,
    /// Smallest region that may count as an array, bytes. Set by start alone.
    pub smallest_array: AtomicU64,
    /// Whether the program has ever reserved address space.
    has_reserved: AtomicBool,
    /// Bytes of reservations that it has made accessible before they were managed.
    opened: AtomicU64,
}

impl Taking {
    /// As before start.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            smallest: AtomicU64::new(64 << 20),
            smallest_ever: AtomicU64::new(64 << 20),
            smallest_array: AtomicU64::new(64 << 20),
            has_reserved: AtomicBool::new(false),
            opened: AtomicU64::new(0),
        }
    }
}

impl Default for Taking {
    fn default() -> Self {
        Self::new()
    }
}

impl Pager {
    /// How a new region of this purpose is treated. SIGBUS is for arrays, wherever there is a choice.
    #[must_use]
    pub fn kind_for(&self, purpose: Purpose) -> Kind {
        let kind = self.new_kind();
        match (purpose, kind.delivery) {
            (Purpose::Allocator, Delivery::Signal) if self.uffds.by_handler.is_open() => Kind {
                delivery: Delivery::Handler,
                why: Why::Allocator,
                ..kind
            },
            _ => kind,
        }
    }

    /// How a new region is treated by default.
    #[must_use]
    pub fn new_kind(&self) -> Kind {
        let choice = self.choices.delivery.load(Ordering::Relaxed);
        Kind {
            managed: false,
            delivery: match choice & 0xff {
                1 => Delivery::Signal,
                _ => Delivery::Handler,
            },
            why: match choice >> 8 {
                1 => Why::CommandLine,
                3 => Why::Unprivileged,
                _ => Why::Transparent,
            },
            role: 0,
            id: 0,
            locked: false,
            wiped_on_fork: false,
            not_forked: false,
            ceded: false,
            reserved: false,
            guarded: false,
            file: 0,
        }
    }

    /// The program has new anonymous private memory at `[start, end)`. It is managed at once if it
    /// is large enough together with adjacent memory.
    pub fn adopt(&self, start: u64, end: u64, purpose: Purpose) {
        let _quiet = self.undisturbed();
        let _regions = self.regions.lock.hold();
        self.adopt_locked(start, end, self.kind_for(purpose));
    }

    /// The program has reserved `[start, end)`: private address space without access, no memory so far.
    pub fn reserve(&self, start: u64, end: u64) {
        let _quiet = self.undisturbed();
        let _regions = self.regions.lock.hold();
        let kind = Kind {
            reserved: true,
            ..self.kind_for(Purpose::Allocator)
        };
        self.taking.has_reserved.store(true, Ordering::Relaxed);
        self.adopt_locked(start, end, kind);
    }

    /// The program may access `[start, end)` from now on, parts of which may be reserved.
    pub fn open_up(&self, start: u64, end: u64) {
        if !self.taking.has_reserved.load(Ordering::Relaxed)
            || !self.regions.touches(start, end, false)
        {
            return;
        }
        let _quiet = self.undisturbed();
        let _regions = self.regions.lock.hold();
        let most = of_run(self.measured.total_bytes.load(Ordering::Relaxed)) / MOST_OPENED;
        let mut at = start;
        while let Some(region) = self.regions.at_or_behind(at) {
            if region.start >= end {
                break;
            }
            at = region.end;
            if !region.kind.reserved {
                continue;
            }
            let (from, to) = (region.start.max(start), region.end.min(end));
            if self.taking.opened.fetch_add(to - from, Ordering::Relaxed) + to - from <= most {
                continue;
            }
            let from = (from / OPENED_AT_ONCE * OPENED_AT_ONCE).max(region.start);
            let to = to.next_multiple_of(OPENED_AT_ONCE).min(region.end);
            self.regions.remove(from, to);
            let kind = Kind {
                reserved: false,
                id: 0,
                ..region.kind
            };
            // Cut from a larger reservation, it may be somewhat smaller than what is managed otherwise: V8 cuts off
            // what it does not need.
            let smallest = self.taking.smallest.load(Ordering::Relaxed) / 2;
            self.adopt_from(from, to, kind, smallest);
            self.take_in_small_ones();
        }
    }

    /// [`Pager::adopt`] for callers that hold the regions' lock.
    pub fn adopt_locked(&self, start: u64, end: u64, kind: Kind) {
        self.adopt_from(
            start,
            end,
            kind,
            self.taking.smallest.load(Ordering::Relaxed),
        );
        self.take_in_small_ones();
    }

    /// As [`Pager::adopt_locked`], with `smallest` bytes as the smallest size.
    pub fn adopt_from(&self, start: u64, end: u64, kind: Kind, smallest: u64) {
        // Anything listed there is gone, through a call that was not seen.
        self.forget_stale(start, end);
        let mut region = Region { start, end, kind };
        self.join_neighbours(&mut region);
        if region.kind.id == 0 {
            region.kind.id = self.new_number();
        }
        let large =
            region.end - region.start >= smallest && !(region.kind.ceded || region.kind.reserved);
        if (large || region.kind.managed) && self.take_over(&region) {
            region.kind.managed = true;
            self.regions.replace(region);
            // The program may have grown elsewhere since the last measurement.
            self.refresh_limit();
            return;
        }
        if region.kind.managed {
            // The neighbours stay managed; the new part is left out.
            let kind = Kind {
                managed: false,
                id: self.new_number(),
                ..kind
            };
            self.regions.replace(Region { start, end, kind });
            return;
        }
        self.regions.replace(region);
    }

    /// A number for a new region, with counts at zero.
    fn new_number(&self) -> u16 {
        let number = self.regions.free_number();
        self.region_counts.reset(number);
        number
    }

    /// Reduces the size from which memory is managed while unmanaged memory could take much of the
    /// budget: many adjacent mappings that are each too small.
    fn take_in_small_ones(&self) {
        let budget = self.measured.total_bytes.load(Ordering::Relaxed);
        // Unmanaged memory has been touched since, and is not measured elsewhere before a batch is
        // evicted.
        let seen = self.measured.left_out_seen.load(Ordering::Relaxed);
        if self.regions.left_out().abs_diff(seen) > budget / LOOK_EACH {
            self.refresh_limit();
        }
        let most = (budget / MOST_LEFT_OUT).max(LEAST_LEFT_OUT);
        loop {
            let smallest = self.taking.smallest.load(Ordering::Relaxed);
            let next = (smallest / 2).max(self.taking.smallest_ever.load(Ordering::Relaxed));
            if next >= smallest || self.regions.left_out() <= most {
                return;
            }
            self.taking.smallest.store(next, Ordering::Relaxed);
            self.take_in_from(next);
            self.refresh_limit();
        }
    }

    /// Manages listed ranges of `smallest` bytes or more.
    fn take_in_from(&self, smallest: u64) {
        for index in 0..self.regions.len() {
            let mut region = self.regions.get(index);
            let large = region.end - region.start >= smallest;
            // Memory that must not be evicted gains nothing.
            let wanted = large && region.kind.is_left_out() && !region.kind.locked;
            if wanted && self.take_over(&region) {
                region.kind.managed = true;
                self.regions.replace(region);
            }
        }
    }

    pub(super) fn forget_stale(&self, start: u64, end: u64) {
        if !self.regions.touches(start, end, false) {
            return;
        }
        if self.regions.touches(start, end, true) {
            let _evictions = self.evictions.hold();
            self.retire_files(start, end);
            self.empty_pages(start, end);
        }
        self.regions.remove(start, end);
        self.close_unused_files();
    }

    /// Extends `region` by the adjacent listed ranges of the same kind. Managed if one of them is.
    fn join_neighbours(&self, region: &mut Region) {
        let before = region
            .start
            .checked_sub(1)
            .and_then(|last| self.regions.find(last));
        let behind = self.regions.find(region.end);
        for other in [before, behind].into_iter().flatten() {
            if !other.kind.joins(region.kind) {
                continue;
            }
            region.start = region.start.min(other.start);
            region.end = region.end.max(other.end);
            if other.kind.managed || region.kind.id == 0 {
                region.kind.id = other.kind.id;
            }
            region.kind.managed |= other.kind.managed;
        }
    }

    /// Registers the parts of `region` that are not managed yet, and lists the pages that are
    /// present.
    fn take_over(&self, region: &Region) -> bool {
        let mut start = region.start;
        let mut well = true;
        while start < region.end {
            let known = self.regions.find(start);
            match known {
                Some(known) if known.kind.managed => start = known.end,
                _ => {
                    let end = self.next_managed(start, region.end);
                    well &= self.register(start, end, region);
                    start = end;
                }
            }
        }
        well
    }

    fn next_managed(&self, start: u64, limit: u64) -> u64 {
        let mut index = self.regions.first_behind(start);
        while index < self.regions.len() {
            let region = self.regions.get(index);
            if region.kind.managed {
                return region.start.min(limit);
            }
            index += 1;
        }
        limit
    }

    fn register(&self, start: u64, end: u64, region: &Region) -> bool {
        // The first managed memory starts the pager's threads.
        if !super::PAGER.start_own_threads() {
            return false;
        }
        if !self.table.cover(start, end) {
            tell_once_of_no_numbers();
            return false;
        }
        // SAFETY: huge pages would let a fault bring in more than the budget counts; the advice
        // changes nothing else.
        unsafe { sys::advise(start, end, libc::MADV_NOHUGEPAGE) };
        keep_apart(start, end);
        if self.uffd(region).register(start, end) != 0 {
            self.counters.add(|all| &all.refused, 1);
            return false;
        }
        if region.kind.delivery == Delivery::Signal {
            self.choices.signals_used.store(true, Ordering::SeqCst);
        }
        self.counters.add(|all| &all.managed_bytes, end - start);
        if region.kind.file != 0 {
            // Nothing could be accessed there yet.
            self.counters.add(|all| &all.file_bytes, end - start);
            return true;
        }
        self.list_present(start, end);
        true
    }

    /// The kernel is to merge pages that are alike from now on: not managed ones.
    pub fn keep_apart(&self) {
        let _quiet = self.quiet();
        self.each_managed(0, u64::MAX, keep_apart);
    }

    /// Lists pages that the kernel filled before the range was registered.
    pub fn list_present(&self, start: u64, end: u64) {
        scan::present(start, end, |address| {
            let Some(page) = self.table.page_at(address) else {
                return;
            };
            let found = self.table.attempt(page, Word::EMPTY) == Attempt::Locked(Word::EMPTY);
            if found {
                self.budget.take(1);
                self.policy().mapped(page, Arrival::Ahead);
                self.table.unlock(page, Word::new(State::Dirty, 0));
            }
        });
    }
}

/// Merged pages would lose their write protection (`replace_page`, mm/ksm.c, Linux 6.18).
fn keep_apart(start: u64, end: u64) {
    // SAFETY: merged pages become the process's own, with the same bytes.
    unsafe { sys::advise(start, end, libc::MADV_UNMERGEABLE) };
}

/// Reports once that memory is scattered over more address space than can be numbered.
fn tell_once_of_no_numbers() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        fatal::say(format_args!(
            "this program's memory is spread over too many places ({MOST_PAGES} pages are numbered): what it maps elsewhere from now on is not managed"
        ));
    }
}
