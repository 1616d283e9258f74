//! Buffers into which pages are read before they are mapped. The pool is small: threads beyond the
//! number of buffers wait, but the disk would make them wait anyway.

use crate::page::PAGE_BYTES;
use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

/// Largest number of pages read at once.
pub const BUFFER_PAGES: usize = 64;
/// Number of buffers.
const BUFFERS: u32 = 32;

/// The pool.
#[derive(Debug)]
pub struct Scratch {
    place: AtomicPtr<u8>,
    /// Zeros of a buffer's length, which are never written to.
    zeros: AtomicU64,
    /// One bit per free buffer.
    free: AtomicU32,
    waiting: AtomicU32,
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
    /// The memory for `pages` pages.
    pub fn bytes(&mut self, pages: usize) -> &mut [u8] {
        let start = self.index as usize * BUFFER_PAGES * PAGE_BYTES;
        let bytes = pages.min(BUFFER_PAGES) * PAGE_BYTES;
        // SAFETY: buffer: `prepare` reserved the pool; the bit of this buffer is taken, so nothing
        // else has a reference to it, and `&mut self` excludes a second one from this buffer.
        unsafe {
            let place = self.pool.place.load(Ordering::Relaxed).add(start);
            core::slice::from_raw_parts_mut(place, bytes)
        }
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
