//! The page table: four bytes per page, which are also the page's lock.

use super::numbers::{MOST_PAGES, Numbers};
use crate::page::{PAGE_BYTES, PAGE_SHIFT, Page};
use crate::sync::{AtomicU32, Attempt, Gate, PageLock, Word};
use crate::sys;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, Ordering};
use pagewise_policy::Span;

/// Bytes in a page.
const PAGE: u64 = PAGE_BYTES as u64;
/// Number of chunks on either side in which contiguous pages are searched: read-ahead goes no
/// further at a time.
const MOST_CHUNKS: usize = 64;
/// Counters of sleepers, shared by the pages whose number has the same remainder.
const SLEEPERS: usize = 256;

/// The words of all pages.
#[derive(Debug)]
pub struct Table {
    words: AtomicPtr<AtomicU32>,
    numbers: Numbers,
    sleepers: [AtomicU32; SLEEPERS],
}

impl Table {
    /// A table without memory.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            words: AtomicPtr::new(core::ptr::null_mut()),
            numbers: Numbers::new(),
            sleepers: [const { AtomicU32::new(0) }; SLEEPERS],
        }
    }

    /// Reserves address space for all words; they become memory as pages are touched.
    pub fn prepare(&self) -> bool {
        let Some(place) = sys::map(MOST_PAGES as usize * size_of::<AtomicU32>()) else {
            return false;
        };
        self.words.store(place.cast(), Ordering::Release);
        self.numbers.prepare()
    }

    /// Gives the pages of `[start, end)` words; `false` if there are too many. One caller at a
    /// time.
    pub fn cover(&self, start: u64, end: u64) -> bool {
        self.numbers.cover(start, end)
    }

    /// Whether `bytes` bytes can be given words wherever they lie.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.numbers.has_room(bytes)
    }

    /// The page at `address`, if it has a word.
    #[must_use]
    pub fn page_at(&self, address: u64) -> Option<Page> {
        self.numbers.page_at(address)
    }

    /// The address of `page`.
    #[must_use]
    pub fn address_of(&self, page: Page) -> u64 {
        self.numbers.address_of(page)
    }

    /// The pages of `[start, end)` around `page`, which is in it, as far as their numbers are
    /// contiguous like their addresses.
    #[must_use]
    pub fn unbroken(&self, page: Page, start: u64, end: u64) -> Span {
        let Range {
            start: mut first,
            end: mut last,
        } = self.numbers.chunk_of(page);
        let (mut low, mut high) = (self.address_of(first), self.address_of(last - 1) + PAGE);
        for _ in 0..MOST_CHUNKS {
            let before = low.checked_sub(PAGE).filter(|_| low > start);
            match before.and_then(|before| self.page_at(before)) {
                Some(before) if before + 1 == first => {
                    first = self.numbers.chunk_of(before).start;
                    low = self.address_of(first);
                }
                _ => break,
            }
        }
        for _ in 0..MOST_CHUNKS {
            let behind = Some(high).filter(|_| high < end);
            match behind.and_then(|behind| self.page_at(behind)) {
                Some(behind) if behind == last => {
                    last = self.numbers.chunk_of(behind).end;
                    high = self.address_of(last - 1) + PAGE;
                }
                _ => break,
            }
        }
        first += (start.saturating_sub(low) >> PAGE_SHIFT) as Page;
        last -= (high.saturating_sub(end) >> PAGE_SHIFT) as Page;
        Span {
            first,
            count: last - first,
        }
    }

    fn cell(&self, page: Page) -> &AtomicU32 {
        let words = self.words.load(Ordering::Relaxed);
        debug_assert!(!words.is_null() && page < MOST_PAGES);
        // SAFETY: reserved: `prepare` made a word for each possible page and never gives them back;
        // numbers come from `page_at` or from a policy, which the callers check with `is_page`.
        unsafe { &*words.add(page as usize) }
    }

    /// The lock of `page`.
    #[inline]
    fn at(&self, page: Page) -> PageLock<'_> {
        let sleepers = &self.sleepers[page as usize % SLEEPERS];
        PageLock::new(self.cell(page), sleepers)
    }

    /// The words of the pages from `address` on that are in one chunk, at most up to `end`; empty
    /// if it has none.
    #[must_use]
    pub fn words(&self, address: u64, end: u64) -> &[AtomicU32] {
        let Some(page) = self.page_at(address) else {
            return &[];
        };
        let rest = u64::from(self.numbers.chunk_of(page).end - page);
        let count = rest.min((end - address) >> PAGE_SHIFT);
        // SAFETY: as in `cell`: the words of a whole chunk are contiguous.
        unsafe { core::slice::from_raw_parts(core::ptr::from_ref(self.cell(page)), count as usize) }
    }

    /// Whether `page` is an assigned number.
    #[must_use]
    pub fn is_page(&self, page: Page) -> bool {
        self.numbers.is_page(page)
    }

    /// The current word of `page`.
    #[must_use]
    pub fn word(&self, page: Page) -> Word {
        self.at(page).word()
    }

    /// Locks `page` if its word is still `expected`, which is not busy.
    pub fn attempt(&self, page: Page, expected: Word) -> Attempt {
        self.at(page).attempt(expected)
    }

    /// Locks `page` if its word is still `expected` and `gate` is open.
    pub fn enter(&self, page: Page, expected: Word, gate: &Gate) -> bool {
        self.at(page).enter(expected, gate)
    }

    /// Waits for the lock of `page`. Returns its word.
    pub fn lock(&self, page: Page) -> Word {
        self.at(page).lock()
    }

    /// Changes `page` from `expected` to `next` without locking it.
    pub fn exchange(&self, page: Page, expected: Word, next: Word) -> bool {
        self.at(page).exchange(expected, next)
    }

    /// Unlocks `page`, which is now `word`, and wakes waiting threads.
    pub fn unlock(&self, page: Page, word: Word) {
        self.at(page).unlock(word);
    }

    /// Sleeps until `page` is no longer `word`, which is busy. Returns its word then.
    pub fn sleep(&self, page: Page, word: Word) -> Word {
        self.at(page).sleep(word)
    }

    /// Sleeps while the thread that has locked `page` as `word` works on it. Returns whether it is
    /// `word` again.
    pub fn outlast(&self, page: Page, word: Word) -> bool {
        self.at(page).outlast(word)
    }

    /// In the child of a fork no thread sleeps.
    pub fn forked(&self) {
        for count in &self.sleepers {
            count.store(0, Ordering::Relaxed);
        }
    }

    /// Sets the word of `page` while nothing else uses it: in the child of a fork, or under its
    /// lock.
    pub fn set(&self, page: Page, word: Word) {
        self.at(page).set(word);
    }
}

impl Default for Table {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn table() -> &'static Table {
        // Too large for a test's stack. SAFETY: it consists of atomics, for which zero is valid.
        let table = unsafe { Box::<Table>::new_zeroed().assume_init() };
        assert!(table.prepare());
        Box::leak(table)
    }

    fn unbroken(table: &Table, at: u64, start: u64, end: u64) -> (u64, u64) {
        let span = table.unbroken(table.page_at(at).unwrap(), start, end);
        let (first, last) = (span.first, span.end() - 1);
        (table.address_of(first), table.address_of(last) + PAGE)
    }

    #[test]
    fn what_grew_upwards_is_unbroken() {
        let table = table();
        assert!(table.cover(GIB, 3 * GIB) && table.cover(3 * GIB, 4 * GIB));
        let (start, end) = (GIB + 5 * PAGE, 4 * GIB - 7 * PAGE);
        for at in [start, 2 * GIB, 3 * GIB + PAGE, end - PAGE] {
            assert_eq!(unbroken(table, at, start, end), (start, end));
        }
    }

    #[test]
    fn what_grew_downwards_is_unbroken() {
        let table = table();
        assert!(table.cover(3 * GIB, 4 * GIB) && table.cover(GIB, 3 * GIB));
        let (start, end) = (GIB + 5 * PAGE, 4 * GIB);
        for at in [start, start + GIB, 3 * GIB, end - PAGE] {
            assert_eq!(unbroken(table, at, start, end), (start, end));
        }
        // Across a boundary: the upper part has numbers, the lower one has none yet.
        let (start, end) = (19 * GIB + GIB / 2, 20 * GIB + GIB / 2);
        assert!(table.cover(20 * GIB + GIB / 4, 21 * GIB) && table.cover(start, end));
        assert_eq!(unbroken(table, start, start, end), (start, end));
    }

    #[test]
    fn what_another_one_s_numbers_lie_between_is_not_unbroken() {
        let table = table();
        // The first and the third GiB are as far apart in numbers as in memory.
        for gib in [1, 9, 3, 2] {
            assert!(table.cover(gib * GIB, (gib + 1) * GIB));
        }
        assert_eq!(unbroken(table, 3 * GIB, GIB, 4 * GIB), (3 * GIB, 4 * GIB));
    }
}
