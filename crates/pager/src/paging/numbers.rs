//! The number of a page of memory, without a search.
//!
//! ```text
//!   address ─▶ directory, by GiB ─▶ chunk ──────────────────────────▶ page number
//!                       └─▶ its pieces, by 2 MiB ─▶ small chunk ────▶
//! ```
//!
//! The first GiBs of address space that contain managed memory get as many numbers as they have
//! pages: however memory grows there, neighbours remain neighbours. Adjacent GiBs get adjacent
//! numbers, in whatever order they come, as long as there is room: a policy then sees a region as
//! contiguous, and a recording of faults matches the next run. Programs that scatter small mappings
//! over the whole address space (V8 does, 256 KiB at a time) would run out of numbers after a few
//! hundred of them, so later GiBs get numbers in pieces of 2 MiB.

use crate::page::{CHUNK_BYTES_SHIFT, CHUNK_PAGES, CHUNK_SHIFT, PAGE_SHIFT, Page};
use crate::sys;
use core::ops::Range;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

/// GiB of user address space (47 bits).
const DIRECTORY: usize = 1 << (47 - CHUNK_BYTES_SHIFT);
/// Number of GiBs that get numbers as a whole.
const WHOLE: u32 = 383;
/// Chunks that are left free on either side of new ones that are not next to others.
const MARGIN: usize = 8;
/// Base-2 logarithm of the pages in a small chunk.
const SMALL_SHIFT: u32 = 9;
const SMALL_BYTES_SHIFT: u32 = PAGE_SHIFT + SMALL_SHIFT;
/// Small chunks: they share the numbers of 128 whole ones.
const SMALL: u32 = 128 << (CHUNK_SHIFT - SMALL_SHIFT);
/// Small chunks in a GiB.
const PIECES: usize = 1 << (CHUNK_SHIFT - SMALL_SHIFT);
/// In the directory: the GiB is numbered by pieces.
const BY_PIECES: u32 = 1 << 31;
/// The first number in a small chunk.
const FIRST_SMALL: Page = WHOLE << CHUNK_SHIFT;

/// One more than the largest number.
pub const MOST_PAGES: u32 = FIRST_SMALL + (SMALL << SMALL_SHIFT);

/// Numbers by address, and back.
#[derive(Debug)]
pub struct Numbers {
    /// For each GiB of address space the number of its chunk plus one, or with [`BY_PIECES`] the
    /// index of its pieces.
    directory: [AtomicU32; DIRECTORY],
    /// The position of each small chunk, in units of its size, plus one; after that, for each piece
    /// of a divided GiB, the number of its small chunk plus one, [`PIECES`] per GiB.
    pieces: AtomicPtr<AtomicU32>,
    /// Number of GiBs with pieces.
    divided: AtomicU32,
    /// The GiB of each chunk plus one; 0 where it is free.
    homes: [AtomicU32; WHOLE as usize],
    small: AtomicU32,
}

impl Numbers {
    /// No numbers assigned, and no memory for any.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            directory: [const { AtomicU32::new(0) }; DIRECTORY],
            pieces: AtomicPtr::new(core::ptr::null_mut()),
            divided: AtomicU32::new(0),
            homes: [const { AtomicU32::new(0) }; WHOLE as usize],
            small: AtomicU32::new(0),
        }
    }

    /// Reserves address space, which becomes memory as it is used.
    pub fn prepare(&self) -> bool {
        let bytes = SMALL as usize * (1 + PIECES) * size_of::<AtomicU32>();
        sys::map(bytes).is_some_and(|place| {
            self.pieces.store(place.cast(), Ordering::Release);
            true
        })
    }

    /// Numbers all pages of `[start, end)`; `false` if there are not enough numbers. One caller at
    /// a time.
    pub fn cover(&self, start: u64, end: u64) -> bool {
        let first = start >> CHUNK_BYTES_SHIFT;
        let last = (end - 1) >> CHUNK_BYTES_SHIFT;
        if last >= DIRECTORY as u64 {
            return false;
        }
        let has_numbers = |home: u64| self.directory[home as usize].load(Ordering::Relaxed) != 0;
        (first..=last).all(|home| {
            let run = (home..=last).take_while(|&home| !has_numbers(home)).count();
            let chunk = (run > 0)
                .then(|| self.place_for(home as usize, run))
                .flatten();
            let from = start.max(home << CHUNK_BYTES_SHIFT);
            let to = end.min((home + 1) << CHUNK_BYTES_SHIFT);
            self.cover_home(home as usize, chunk, from, to)
        })
    }

    /// Whether `bytes` bytes can be numbered wherever they lie.
    pub fn has_room(&self, bytes: u64) -> bool {
        // What is not aligned touches one more at either end.
        let wholes = (bytes >> CHUNK_BYTES_SHIFT) as usize + 2;
        let pieces = (bytes >> SMALL_BYTES_SHIFT) as u32 + 2;
        let left = |used: &AtomicU32| SMALL - used.load(Ordering::Relaxed);
        let mut free = self.homes.iter().filter(|home| is_free(home));
        free.nth(wholes - 1).is_some()
            || (left(&self.divided) as usize >= wholes && left(&self.small) >= pieces)
    }

    /// The best start for the chunks of `count` GiBs from `first` on: next to those of their
    /// neighbours, or with room on either side.
    fn place_for(&self, first: usize, count: usize) -> Option<usize> {
        let whole = |home: Option<usize>| {
            let entry = self.directory.get(home?)?.load(Ordering::Relaxed);
            (entry & BY_PIECES == 0).then(|| (entry as usize).checked_sub(1))?
        };
        let behind_lower = whole(first.checked_sub(1)).map(|chunk| chunk + 1);
        let before_upper = whole(Some(first + count)).and_then(|chunk| chunk.checked_sub(count));
        let apart = |margin: usize| {
            let room = count + 2 * margin;
            (0..WHOLE as usize)
                .find(|&start| self.are_free(start, room))
                .map(|start| start + margin)
        };
        let mut beside = [behind_lower, before_upper].into_iter().flatten();
        beside
            .find(|&start| self.are_free(start, count))
            .or_else(|| apart(MARGIN))
            .or_else(|| apart(0))
    }

    /// Whether `count` chunks from `start` on have no home.
    fn are_free(&self, start: usize, count: usize) -> bool {
        let homes = self.homes.get(start..start + count);
        homes.is_some_and(|homes| homes.iter().all(is_free))
    }

    /// Numbers `[start, end)` in the GiB `home`: if it has no numbers yet, with `chunk` if that is
    /// free, or any other free chunk; in pieces if there is none.
    fn cover_home(&self, home: usize, chunk: Option<usize>, start: u64, end: u64) -> bool {
        let entry = &self.directory[home];
        if entry.load(Ordering::Relaxed) == 0 {
            let best = chunk.filter(|&chunk| self.are_free(chunk, 1));
            let chunk = best.or_else(|| self.homes.iter().position(is_free));
            if let Some(chunk) = chunk {
                self.homes[chunk].store(home as u32 + 1, Ordering::Release);
                entry.store(chunk as u32 + 1, Ordering::Release);
                return true;
            }
            let place = self.divided.load(Ordering::Relaxed);
            if place == SMALL {
                return false;
            }
            self.divided.store(place + 1, Ordering::Relaxed);
            entry.store(BY_PIECES | place, Ordering::Release);
        }
        match entry.load(Ordering::Relaxed) {
            entry if entry & BY_PIECES == 0 => true,
            entry => self.cover_pieces(entry, start, end),
        }
    }

    fn cover_pieces(&self, entry: u32, start: u64, end: u64) -> bool {
        let (first, last) = (start >> SMALL_BYTES_SHIFT, (end - 1) >> SMALL_BYTES_SHIFT);
        (first..=last).all(|home| {
            let piece = self.piece(entry, home);
            if piece.load(Ordering::Relaxed) != 0 {
                return true;
            }
            let small = self.small.load(Ordering::Relaxed);
            let Some(place) = self.small_homes().get(small as usize) else {
                return false;
            };
            place.store(home as u32 + 1, Ordering::Relaxed);
            self.small.store(small + 1, Ordering::Release);
            piece.store(small + 1, Ordering::Release);
            true
        })
    }

    fn small_homes(&self) -> &[AtomicU32] {
        let all = self.pieces.load(Ordering::Acquire);
        if all.is_null() {
            return &[];
        }
        // SAFETY: reserved: `prepare` made them, permanently.
        unsafe { core::slice::from_raw_parts(all, SMALL as usize) }
    }

    /// The entry of the 2 MiB at `home` in the GiB with the directory entry `entry`.
    fn piece(&self, entry: u32, home: u64) -> &AtomicU32 {
        let all = self.pieces.load(Ordering::Acquire);
        let place = (entry & !BY_PIECES) as usize * PIECES + home as usize % PIECES;
        debug_assert!(!all.is_null() && place < SMALL as usize * PIECES);
        // SAFETY: reserved: `prepare` made PIECES entries for each index that `cover_home` assigns,
        // after those of `small_homes`.
        unsafe { &*all.add(SMALL as usize + place) }
    }

    /// The page at `address`, if it has a number.
    #[must_use]
    pub fn page_at(&self, address: u64) -> Option<Page> {
        let entry = self
            .directory
            .get((address >> CHUNK_BYTES_SHIFT) as usize)?
            .load(Ordering::Acquire);
        let page = (address >> PAGE_SHIFT) as u32;
        if entry & BY_PIECES == 0 {
            let chunk = entry.checked_sub(1)?;
            return Some(chunk << CHUNK_SHIFT | page & (CHUNK_PAGES - 1));
        }
        let small = self
            .piece(entry, address >> SMALL_BYTES_SHIFT)
            .load(Ordering::Acquire)
            .checked_sub(1)?;
        let offset = page & ((1 << SMALL_SHIFT) - 1);
        Some(FIRST_SMALL + (small << SMALL_SHIFT) + offset)
    }

    /// The address of `page`; that of another page if the number was not assigned.
    #[must_use]
    pub fn address_of(&self, page: Page) -> u64 {
        let at = |homes: &[AtomicU32], number: u32, shift: u32| {
            let home = homes.get((number >> shift) as usize);
            let home = home.map_or(0, |home| home.load(Ordering::Relaxed));
            let home = home.saturating_sub(1);
            let offset = number & ((1 << shift) - 1);
            (u64::from(home) << shift | u64::from(offset)) << PAGE_SHIFT
        };
        match page.checked_sub(FIRST_SMALL) {
            None => at(&self.homes, page, CHUNK_SHIFT),
            Some(number) => at(self.small_homes(), number, SMALL_SHIFT),
        }
    }

    /// Whether `page` is an assigned number.
    #[must_use]
    pub fn is_page(&self, page: Page) -> bool {
        match page.checked_sub(FIRST_SMALL) {
            None => !is_free(&self.homes[(page >> CHUNK_SHIFT) as usize]),
            Some(number) => number >> SMALL_SHIFT < self.small.load(Ordering::Acquire),
        }
    }

    /// The numbers around `page` that are certainly neighbours in memory.
    #[must_use]
    pub fn chunk_of(&self, page: Page) -> Range<Page> {
        let count = match page < FIRST_SMALL {
            true => CHUNK_PAGES,
            false => 1 << SMALL_SHIFT,
        };
        let first = page & !(count - 1);
        first..first + count
    }
}

fn is_free(home: &AtomicU32) -> bool {
    home.load(Ordering::Acquire) == 0
}

impl Default for Numbers {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    fn numbers() -> &'static Numbers {
        // Too large for a test's stack. SAFETY: it consists of atomics, for which zero is valid.
        let numbers = unsafe { Box::<Numbers>::new_zeroed().assume_init() };
        assert!(numbers.prepare());
        Box::leak(numbers)
    }

    fn there_and_back(numbers: &Numbers, start: u64, end: u64) {
        for address in (start..end).step_by(1 << PAGE_SHIFT) {
            let page = numbers.page_at(address).expect("it was covered");
            assert!(numbers.is_page(page) && page < MOST_PAGES);
            assert_eq!(numbers.address_of(page), address);
            let chunk = numbers.chunk_of(page);
            assert!(chunk.contains(&page));
            let behind = u64::from(page - chunk.start) << PAGE_SHIFT;
            assert_eq!(numbers.address_of(chunk.start), address - behind);
        }
    }

    #[test]
    fn the_first_gibs_get_numbers_as_a_whole() {
        let numbers = numbers();
        assert_eq!(numbers.page_at(5 * GIB), None);
        assert!(numbers.has_room(381 * GIB) && !numbers.has_room(382 * GIB));
        assert!(numbers.cover(5 * GIB - 4096, 5 * GIB + 4096));
        there_and_back(numbers, 5 * GIB - 8192, 5 * GIB + 8192);
        let given = (0..WHOLE).filter(|chunk| numbers.is_page(chunk << CHUNK_SHIFT));
        assert_eq!(given.count(), 2);
    }

    #[test]
    fn scattered_memory_gets_numbers_by_pieces() {
        let numbers = numbers();
        for gib in 0..100_000_u64 {
            let start = gib * GIB + ((gib % 4096) << 18);
            let covered = numbers.cover(start, start + (1 << 18));
            assert_eq!(covered, gib < u64::from(WHOLE + SMALL), "{gib}");
            if covered && gib % 97 == 0 {
                there_and_back(numbers, start, start + (1 << 18));
            }
        }
        assert!(!numbers.has_room(1 << 12), "all are used up");
        let far = u64::from(WHOLE + 5) * GIB;
        assert_eq!(
            numbers.page_at(far + (9 << 21)),
            None,
            "no number was given out"
        );
    }

    #[test]
    fn pieces_are_numbered_once_each() {
        let numbers = numbers();
        (0..u64::from(WHOLE)).for_each(|gib| assert!(numbers.cover(gib * GIB, gib * GIB + 1)));
        let start = 1000 * GIB - (3 << 20);
        assert!(numbers.cover(start, start + (7 << 20)));
        assert!(numbers.cover(start - (2 << 20), start + (8 << 20)));
        there_and_back(numbers, start - (2 << 20), start + (8 << 20));
        // From 6 MiB before 1000 GiB to 6 MiB after it, 2 MiB each.
        assert_eq!(numbers.small.load(Ordering::Relaxed), 6);
    }
}
