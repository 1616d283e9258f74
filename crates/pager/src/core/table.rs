//! The page table: four bytes for each page, found from its address without a search, each its own
//! lock.

use super::word::Word;
use crate::page::{CHUNK_BYTES_SHIFT, CHUNK_PAGES, CHUNK_SHIFT, MAX_CHUNKS, PAGE_SHIFT, Page};
use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// GiB of address space that a user can have (47 bits).
const DIRECTORY: usize = 1 << (47 - CHUNK_BYTES_SHIFT);
/// Counters of sleepers, shared by the pages whose number has the same remainder.
const SLEEPERS: usize = 256;

/// Where every page's word is.
#[derive(Debug)]
pub struct Table {
    words: AtomicPtr<AtomicU32>,
    chunks: AtomicU32,
    /// Number of the chunk plus one for each GiB of address space.
    directory: [AtomicU32; DIRECTORY],
    /// The GiB for each chunk.
    homes: [AtomicU32; MAX_CHUNKS as usize],
    sleepers: [AtomicU32; SLEEPERS],
}

/// What came of the attempt to lock a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// It is locked; this is what it was.
    Locked(Word),
    /// It changed meanwhile; this is what it is.
    Changed(Word),
}

impl Table {
    /// A table without room.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: AtomicPtr::new(core::ptr::null_mut()),
            chunks: AtomicU32::new(0),
            directory: [const { AtomicU32::new(0) }; DIRECTORY],
            homes: [const { AtomicU32::new(0) }; MAX_CHUNKS as usize],
            sleepers: [const { AtomicU32::new(0) }; SLEEPERS],
        }
    }

    /// Reserves address space for all words; they become memory as pages are touched.
    pub fn prepare(&self) -> bool {
        let bytes = (MAX_CHUNKS as usize) << CHUNK_SHIFT << 2;
        match sys::map(bytes) {
            Some(place) => {
                self.words.store(place.cast(), Ordering::Release);
                true
            }
            None => false,
        }
    }

    /// Numbers the chunks that `[start, end)` touches; `false` when there are too many. One caller
    /// at a time.
    pub fn cover(&self, start: u64, end: u64) -> bool {
        let first = start >> CHUNK_BYTES_SHIFT;
        let last = (end - 1) >> CHUNK_BYTES_SHIFT;
        (first..=last).all(|home| self.number(home))
    }

    fn number(&self, home: u64) -> bool {
        let Some(entry) = self.directory.get(home as usize) else {
            return false;
        };
        if entry.load(Ordering::Relaxed) != 0 {
            return true;
        }
        let chunk = self.chunks.load(Ordering::Relaxed);
        let Some(place) = self.homes.get(chunk as usize) else {
            return false;
        };
        place.store(home as u32, Ordering::Relaxed);
        self.chunks.store(chunk + 1, Ordering::Release);
        entry.store(chunk + 1, Ordering::Release);
        true
    }

    /// Chunks in use.
    #[must_use]
    pub fn chunks(&self) -> u32 {
        self.chunks.load(Ordering::Acquire)
    }

    /// The page at `address`, if its chunk is in use.
    #[must_use]
    pub fn page_at(&self, address: u64) -> Option<Page> {
        let entry = self
            .directory
            .get((address >> CHUNK_BYTES_SHIFT) as usize)?;
        let chunk = entry.load(Ordering::Acquire).checked_sub(1)?;
        let offset = (address >> PAGE_SHIFT) as u32 & (CHUNK_PAGES - 1);
        Some(chunk << CHUNK_SHIFT | offset)
    }

    /// The address of `page`.
    #[must_use]
    pub fn address_of(&self, page: Page) -> u64 {
        let home = self
            .homes
            .get((page >> CHUNK_SHIFT) as usize)
            .map_or(0, |home| home.load(Ordering::Relaxed));
        u64::from(home) << CHUNK_BYTES_SHIFT | u64::from(page & (CHUNK_PAGES - 1)) << PAGE_SHIFT
    }

    fn cell(&self, page: Page) -> &AtomicU32 {
        let words = self.words.load(Ordering::Relaxed);
        debug_assert!(!words.is_null() && page < MAX_CHUNKS << CHUNK_SHIFT);
        // SAFETY: `prepare` reserved a word for each possible page and never gives them back;
        // numbers come from `page_at` or from a policy, which the callers hold to `is_page`.
        unsafe { &*words.add(page as usize) }
    }

    /// The words of the pages from `address` on that are in one chunk, at most up to `end`; none
    /// if that is not in use.
    #[must_use]
    pub fn words(&self, address: u64, end: u64) -> &[AtomicU32] {
        let chunk_end = ((address >> CHUNK_BYTES_SHIFT) + 1) << CHUNK_BYTES_SHIFT;
        let count = (chunk_end.min(end) - address) >> PAGE_SHIFT;
        match self.page_at(address) {
            // SAFETY: as in `cell`: the words of a whole chunk lie side by side.
            Some(page) => unsafe {
                core::slice::from_raw_parts(core::ptr::from_ref(self.cell(page)), count as usize)
            },
            None => &[],
        }
    }

    /// Whether `page` is a number that was given out.
    #[must_use]
    pub fn is_page(&self, page: Page) -> bool {
        page >> CHUNK_SHIFT < self.chunks()
    }

    /// What `page` is at the moment.
    #[must_use]
    pub fn word(&self, page: Page) -> Word {
        Word(self.cell(page).load(Ordering::Acquire))
    }

    /// Locks `page` if it is still `expected`, which is not busy.
    pub fn attempt(&self, page: Page, expected: Word) -> Attempt {
        let cell = self.cell(page);
        match cell.compare_exchange(
            expected.0,
            expected.busy().0,
            Ordering::SeqCst,
            Ordering::Acquire,
        ) {
            Ok(_) => Attempt::Locked(expected),
            Err(now) => Attempt::Changed(Word(now)),
        }
    }

    /// Waits for the lock of `page`; what the page is.
    pub fn lock(&self, page: Page) -> Word {
        let mut word = self.word(page);
        loop {
            if word.is_busy() {
                word = self.sleep(page, word);
                continue;
            }
            match self.attempt(page, word) {
                Attempt::Locked(word) => return word,
                Attempt::Changed(now) => word = now,
            }
        }
    }

    /// Changes `page` from `expected` to `next` without locking it.
    pub fn exchange(&self, page: Page, expected: Word, next: Word) -> bool {
        self.cell(page)
            .compare_exchange(expected.0, next.0, Ordering::SeqCst, Ordering::Relaxed)
            .is_ok()
    }

    /// Unlocks `page`, which is now `word`, and wakes who waits for it.
    pub fn unlock(&self, page: Page, word: Word) {
        let cell = self.cell(page);
        cell.store(word.idle().0, Ordering::SeqCst);
        if self.sleepers(page).load(Ordering::SeqCst) != 0 {
            sys::futex_wake(cell, i32::MAX);
        }
    }

    /// Sleeps until `page` is no longer `word`, which is busy; what it is then.
    pub fn sleep(&self, page: Page, word: Word) -> Word {
        let sleepers = self.sleepers(page);
        sleepers.fetch_add(1, Ordering::SeqCst);
        sys::futex_wait(self.cell(page), word.0, None);
        sleepers.fetch_sub(1, Ordering::SeqCst);
        self.word(page)
    }

    fn sleepers(&self, page: Page) -> &AtomicU32 {
        &self.sleepers[page as usize % SLEEPERS]
    }

    /// In the child of a fork nobody sleeps.
    pub fn forked(&self) {
        for count in &self.sleepers {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Sets the word of `page` in the child of a fork, where nothing else runs.
    pub fn set(&self, page: Page, word: Word) {
        self.cell(page).store(word.0, Ordering::Release);
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}
