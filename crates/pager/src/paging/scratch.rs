//! Buffers into which pages are read before they are mapped. The pool is small: threads beyond the
//! number of buffers wait, but the disk would make them wait anyway.

use crate::page::PAGE_BYTES;
use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Largest number of pages read at once.
pub const BUFFER_PAGES: usize = 64;
/// Number of buffers.
const BUFFERS: u32 = 32;
/// Pages of a buffer that stay memory while it is idle: enough for a page and its neighbours.
const KEPT_PAGES: usize = 4;

/// The pool.
#[derive(Debug)]
pub struct Scratch {
    place: AtomicPtr<u8>,
    /// Zeros of a buffer's length, which are never written to.
    zeros: AtomicU64,
    /// One bit per free buffer.
    free: AtomicU32,
    waiting: AtomicU32,
    /// One bit per buffer of which more than [`KEPT_PAGES`] were used since the last look.
    wide: AtomicU32,
    /// One bit per buffer that may have that much memory.
    held: AtomicU32,
}

/// A buffer, until it is dropped.
#[derive(Debug)]
pub struct Buffer<'a> {
    pool: &'a Scratch,
    index: u32,
}

impl Scratch {
    /// A pool without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            place: AtomicPtr::new(core::ptr::null_mut()),
            zeros: AtomicU64::new(0),
            free: AtomicU32::new(u32::MAX),
            waiting: AtomicU32::new(0),
            wide: AtomicU32::new(0),
            held: AtomicU32::new(0),
        }
    }

    /// Reserves address space for the buffers; they become memory as far as they are used.
    pub fn prepare(&self) -> bool {
        let bytes = BUFFER_PAGES * PAGE_BYTES;
        let maps = (sys::map(BUFFERS as usize * bytes), sys::map(bytes));
        let (Some(place), Some(zeros)) = maps else {
            return false;
        };
        self.place.store(place, Ordering::Release);
        self.zeros.store(zeros as u64, Ordering::Release);
        true
    }

    /// Address of [`BUFFER_PAGES`] pages of zeros. Never written, so all of them are the kernel's
    /// shared zero page.
    #[must_use]
    pub fn zeros(&self) -> u64 {
        self.zeros.load(Ordering::Relaxed)
    }

    /// Waits for a buffer.
    pub fn take(&self) -> Buffer<'_> {
        loop {
            let free = self.free.load(Ordering::SeqCst);
            if free == 0 {
                self.waiting.fetch_add(1, Ordering::SeqCst);
                sys::futex_wait(&self.free, 0, None);
                self.waiting.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            // The lowest first, since buffers used before already have memory.
            let index = free.trailing_zeros();
            let next = free & !(1 << index);
            let taken = self
                .free
                .compare_exchange(free, next, Ordering::SeqCst, Ordering::Relaxed);
            if taken.is_ok() {
                return Buffer { pool: self, index };
            }
        }
    }

    /// Gives memory of buffers back to the kernel that have not been used since the last call. A few
    /// long reads would otherwise keep a quarter of a mebibyte each for the rest of the run, and
    /// that is missing for the program's pages.
    pub fn give_back(&self) {
        let recent = self.wide.swap(0, Ordering::Relaxed);
        let mut idle = self.held.fetch_or(recent, Ordering::Relaxed) & !recent;
        while idle != 0 {
            let index = idle.trailing_zeros();
            idle &= idle - 1;
            let bit = 1 << index;
            if self.free.fetch_and(!bit, Ordering::SeqCst) & bit == 0 {
                // In use: next time.
                continue;
            }
            let buffer = Buffer { pool: self, index };
            let start = buffer.address();
            let from = start + (KEPT_PAGES * PAGE_BYTES) as u64;
            let end = start + (BUFFER_PAGES * PAGE_BYTES) as u64;
            // SAFETY: buffer: it is taken, so nothing refers to its bytes, and those that it will
            // have are written before they are read.
            unsafe { sys::advise(from, end, libc::MADV_DONTNEED) };
            self.held.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    /// In the child of a fork all buffers are free.
    pub fn forked(&self) {
        self.free.store(u32::MAX, Ordering::Relaxed);
        self.waiting.store(0, Ordering::Relaxed);
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Buffer<'_> {
    fn address(&self) -> u64 {
        let start = self.index as usize * BUFFER_PAGES * PAGE_BYTES;
        self.pool.place.load(Ordering::Relaxed) as u64 + start as u64
    }

    /// The memory for `pages` pages.
    pub fn bytes(&mut self, pages: usize) -> &mut [u8] {
        if pages > KEPT_PAGES {
            self.pool.wide.fetch_or(1 << self.index, Ordering::Relaxed);
        }
        let bytes = pages.min(BUFFER_PAGES) * PAGE_BYTES;
        // SAFETY: buffer: `prepare` reserved the pool; the bit of this buffer is taken, so nothing
        // else has a reference to it, and `&mut self` excludes a second one from this buffer.
        unsafe { core::slice::from_raw_parts_mut(self.address() as *mut u8, bytes) }
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        let pool = self.pool;
        pool.free.fetch_or(1 << self.index, Ordering::SeqCst);
        if pool.waiting.load(Ordering::SeqCst) != 0 {
            sys::futex_wake(&pool.free, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paging::scan::{self, Look};

    #[test]
    fn memory_of_idle_buffers_goes_and_that_of_busy_ones_stays() {
        static POOL: Scratch = Scratch::new();
        assert!(POOL.prepare());
        let present = |index: u64| {
            let start = POOL.place.load(Ordering::Relaxed) as u64;
            let mut looks = [Look::Unknown; BUFFER_PAGES];
            scan::look(
                start + index * (BUFFER_PAGES * PAGE_BYTES) as u64,
                &mut looks,
            );
            looks.iter().filter(|look| **look != Look::Absent).count()
        };
        let mut first = POOL.take();
        let mut second = POOL.take();
        first.bytes(BUFFER_PAGES).fill(1);
        second.bytes(BUFFER_PAGES).fill(2);
        drop(second);
        POOL.give_back();
        assert_eq!((present(0), present(1)), (BUFFER_PAGES, BUFFER_PAGES));
        POOL.give_back();
        assert_eq!((present(0), present(1)), (BUFFER_PAGES, KEPT_PAGES));
        assert!(first.bytes(2).iter().all(|byte| *byte == 1), "it is in use");
        drop(first);
        POOL.give_back();
        assert_eq!((present(0), present(1)), (KEPT_PAGES, KEPT_PAGES));
        let mut again = POOL.take();
        assert_eq!(again.index, 0);
        again.bytes(BUFFER_PAGES).fill(3);
        drop(again);
        assert_eq!(POOL.free.load(Ordering::Relaxed), u32::MAX);
    }
}
