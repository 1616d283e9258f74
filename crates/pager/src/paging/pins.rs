//! Memory that a system call is about to use, and a missing page would make the call fail: the
//! memory is brought in and pinned until the call is over.

use super::Pager;
use super::resolve::{self, Fault};
use crate::page::{PAGE_BYTES, page_ceil, page_floor};
use crate::sync::State;
use crate::sys::{self, signals::Blocked};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use pagewise_wire::shared::{Delivery, capability};

/// Largest number of ranges pinned at a time. A call that finds no free entry runs without, and is
/// repeated by its caller if it fails.
const PLACES: usize = 128;

/// Largest number of stack bytes used by the pager itself and by libc around a fork.
const STACK_BYTES: u64 = 64 << 10;
/// Bytes above the stack pointer that a function of the pager returns to.
const FRAME_BYTES: u64 = 2 * PAGE_BYTES as u64;
/// Prefault, writable (Linux 5.14).
const MADV_POPULATE_WRITE: i32 = 23;

/// Pinned ranges.
#[derive(Debug)]
pub struct Pins {
    ranges: [[AtomicU64; 2]; PLACES],
    used: AtomicU32,
}

/// A range that is pinned while this lives.
#[derive(Debug)]
pub struct Pin<'a> {
    pins: &'a Pins,
    place: Option<usize>,
}

/// While this lives, no signal arrives and the thread's current stack stays in memory: a fault that
/// raises SIGBUS ends a thread in which it is blocked.
#[derive(Debug)]
pub struct Undisturbed<'a> {
    // In the order in which they are dropped.
    _signals: Blocked,
    _stack: Option<Pin<'a>>,
}

impl Pins {
    /// No range.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            ranges: [const { [AtomicU64::new(0), AtomicU64::new(0)] }; PLACES],
            used: AtomicU32::new(0),
        }
    }

    /// Whether the page at `address` is pinned.
    #[must_use]
    pub fn holds(&self, address: u64) -> bool {
        // First the page's lock, then the pins; a thread that pins a page does the reverse. So one
        // sees the other.
        fence(Ordering::SeqCst);
        self.used.load(Ordering::SeqCst) != 0
            && self.ranges.iter().any(|[start, end]| {
                let end = end.load(Ordering::SeqCst);
                end > address && start.load(Ordering::SeqCst) <= address
            })
    }

    fn keep(&self, start: u64, end: u64) -> Pin<'_> {
        self.used.fetch_add(1, Ordering::SeqCst);
        let place = self.ranges.iter().position(|[_, place]| {
            // 1, which is not the end of a page, while the start is not set yet.
            place
                .compare_exchange(0, 1, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
        });
        if let Some(place) = place {
            self.ranges[place][0].store(start, Ordering::SeqCst);
            self.ranges[place][1].store(end, Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
        Pin { pins: self, place }
    }

    /// In the child of a fork only the forking thread is left, which is not in another call.
    pub fn forked(&self) {
        for [_, end] in &self.ranges {
            end.store(0, Ordering::SeqCst);
        }
        self.used.store(0, Ordering::SeqCst);
    }
}

impl Default for Pins {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.pins.ranges[place][1].store(0, Ordering::SeqCst);
        }
        self.pins.used.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Pager {
    /// Largest number of bytes that one call may pin: beyond that, calls that may be partial are
    /// made partial.
    #[must_use]
    pub fn most_pinned(&self) -> u64 {
        (self.budget.limit() / 16).clamp(4, 1024) * PAGE_BYTES as u64
    }

    /// Whether `[start, end)` has memory that must be pinned for a system call: its faults raise
    /// SIGBUS, or (without `UFFDIO_MOVE`) a page that the call writes to could not be distinguished
    /// from others.
    #[must_use]
    pub fn raises(&self, start: u64, end: u64) -> bool {
        if !self.regions.touches(start, end, true) {
            return false;
        }
        if !self.can(capability::MOVE) {
            return true;
        }
        let mut managed = self.regions.managed(start, end);
        managed.any(|region| region.kind.delivery == Delivery::Signal)
    }

    /// Brings `[start, start + bytes)` in and pins it; `None` if that is not needed.
    pub fn pin(&self, start: u64, bytes: u64, write: bool) -> Option<Pin<'_>> {
        match bytes != 0 && self.raises(start, start.saturating_add(bytes)) {
            true => self.keep(start, bytes, write),
            false => None,
        }
    }

    /// The same for memory of every kind: `None` if none of it is managed.
    pub fn keep(&self, start: u64, bytes: u64, write: bool) -> Option<Pin<'_>> {
        let end = start.saturating_add(bytes);
        if !self.regions.touches(start, end, true) {
            return None;
        }
        let (first, behind) = (page_floor(start), page_ceil(end));
        let _quiet = self.undisturbed();
        // Pinned first, so that pages brought in are not evicted again.
        let pin = self.pins.keep(first, behind);
        for region in self.regions.managed(first, behind) {
            let pages = (region.start..region.end).step_by(PAGE_BYTES);
            pages.for_each(|address| self.touch(address, write));
        }
        Some(pin)
    }

    /// Pins the end of a child's new stack.
    pub fn keep_stack_of_child(&self, stack: u64) -> Option<Pin<'_>> {
        self.keep(stack.saturating_sub(STACK_BYTES), STACK_BYTES, true)
    }

    /// Blocks signals in this thread, and keeps its stack in memory. The thread holds no lock yet.
    #[must_use]
    pub fn undisturbed(&self) -> Undisturbed<'_> {
        let stack = self.keep_stack();
        Undisturbed {
            _signals: Blocked::new(),
            _stack: stack,
        }
    }

    /// Pins the stack that this thread is using, in case that is managed memory (a coroutine's), so
    /// that the thread can take locks. Signals are not blocked yet.
    pub fn keep_stack(&self) -> Option<Pin<'_>> {
        let frame = 0_u8;
        let here = core::ptr::from_ref(&frame) as u64;
        let top = page_floor(here) + FRAME_BYTES;
        let bottom = page_floor(here.saturating_sub(STACK_BYTES));
        if !self.regions.touches(bottom, top, true) {
            return None;
        }
        let pin = self.pins.keep(bottom, top);
        let count = (top - bottom) / PAGE_BYTES as u64;
        // From the top down: the stack ends below the first page that cannot be written.
        let pages = (0..count)
            .rev()
            .map(|page| bottom + page * PAGE_BYTES as u64);
        for address in pages {
            if !self.settle_on_stack(address) && address < here {
                break;
            }
        }
        Some(pin)
    }

    /// Brings in the page of a pinned stack at `address`. Returns whether it can be written. A
    /// thread that has already locked the page may have checked for pins before this one was set,
    /// and may still evict the page.
    fn settle_on_stack(&self, address: u64) -> bool {
        loop {
            if !touch_as_program(address) {
                return false;
            }
            let Some(page) = self.table.page_at(address) else {
                return true;
            };
            let word = self.table.word(page);
            if word.is_busy() {
                self.table.sleep(page, word);
            } else if !matches!(word.state(), State::Evicted | State::Parked) {
                return true;
            }
        }
    }

    /// Does what an access by the program would do.
    pub(super) fn touch(&self, address: u64, write: bool) {
        // A file's pages are never written.
        let write = write && !self.is_of_file(address);
        let Some(page) = self.table.page_at(address) else {
            return;
        };
        if self.regions.has_guards(address, address + 1) {
            return;
        }
        loop {
            let word = self.table.word(page);
            let there = word.is_resident() && !word.is_busy() && word.state() != State::Parked;
            let clean = word.state() == State::Clean;
            if there && !(clean && write) {
                return;
            }
            let fault = Fault {
                address,
                write,
                protected: there && clean,
                thread: 0,
            };
            if resolve::resolve(self, fault) == resolve::Outcome::Foreign {
                return;
            }
        }
    }
}

/// Touches the page at `address` as a write would, holding no lock, so that another thread or the
/// SIGBUS handler can handle the fault on its own stack. Returns whether it can be written.
fn touch_as_program(address: u64) -> bool {
    let end = address + PAGE_BYTES as u64;
    // SAFETY: prefaulting changes no contents.
    match unsafe { sys::advise(address, end, MADV_POPULATE_WRITE) } {
        0 => true,
        // A page that raises SIGBUS. Writability has been checked before.
        answer if answer == -(libc::EFAULT as isize) => {
            // In assembly: the compiler reduces an atomic `or` with zero, which changes nothing, to
            // a fence. SAFETY: the kernel reported that the mapping exists and is writable; nothing
            // is changed.
            unsafe {
                core::arch::asm!("lock or byte ptr [{}], 0", in(reg) address, options(nostack));
            }
            true
        }
        _ => false,
    }
}
