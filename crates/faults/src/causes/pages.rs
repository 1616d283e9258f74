//! The state of each page of one process, two bytes per page in chunks of 512.
//!
//! A page word contains a [`PageState`] in its low four bits and a mark in its upper twelve. With
//! recorded releases (`munmap`, `brk`, `madvise` tracepoints) the mark counts how often the page's
//! range was freed. Without them it contains the epoch of the mapping record that was newest when
//! the page was last touched, so that a later record over the page shows that it was mapped again.

use super::density::Density;
use rustc_hash::FxHashMap;

/// Pages in a chunk: one huge page's worth where base pages are 4 KiB.
pub(super) const CHUNK_PAGES: u64 = 512;
const CHUNK_SHIFT: u32 = CHUNK_PAGES.trailing_zeros();
const PAGES: usize = 512;
const STATE_BITS: u32 = 4;
const STATE_MASK: u16 = (1 << STATE_BITS) - 1;
/// Largest mark: 12 bits.
pub(super) const MARK_MAX: u16 = u16::MAX >> STATE_BITS;
/// A release of more pages than this (4 GiB of base pages) marks only chunks that already have
/// data: so large a stretch is a reservation, almost all of it never touched.
const MARKED_AT_ONCE: u64 = 1 << 20;

/// How memory was returned to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    /// `munmap(2)`, or `mmap(2)` with `MAP_FIXED` over it.
    Munmap,
    /// `brk(2)` downwards.
    Brk,
    /// `madvise(MADV_DONTNEED)`.
    Dontneed,
    /// `madvise(MADV_FREE)`.
    Free,
}

/// The state after the last event of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageState {
    /// Nothing was seen yet.
    Untouched,
    /// Faulted in, by a read or a write (unknown which).
    Present,
    /// Faulted in by a write, or at least twice.
    Written,
    /// Faulted in by a read.
    ReadOnly,
    /// Shared with a forked process until written.
    CowShared,
    /// Written to swap on request (`MADV_PAGEOUT`).
    Swapped,
    /// Freed by this route.
    Released(Route),
}

impl PageState {
    fn bits(self) -> u16 {
        match self {
            Self::Untouched => 0,
            Self::Present => 1,
            Self::Written => 2,
            Self::ReadOnly => 3,
            Self::CowShared => 4,
            Self::Swapped => 5,
            Self::Released(Route::Munmap) => 6,
            Self::Released(Route::Brk) => 7,
            Self::Released(Route::Dontneed) => 8,
            Self::Released(Route::Free) => 9,
        }
    }

    fn of_bits(bits: u16) -> Self {
        match bits & STATE_MASK {
            1 => Self::Present,
            2 => Self::Written,
            3 => Self::ReadOnly,
            4 => Self::CowShared,
            5 => Self::Swapped,
            6 => Self::Released(Route::Munmap),
            7 => Self::Released(Route::Brk),
            8 => Self::Released(Route::Dontneed),
            9 => Self::Released(Route::Free),
            _ => Self::Untouched,
        }
    }

    /// Whether the page may have content, so that freeing it loses something. A page freed by
    /// `MADV_FREE` may: it remains until memory runs short, and a write makes it live again without
    /// a fault.
    pub(super) fn is_held(self) -> bool {
        match self {
            Self::Untouched => false,
            Self::Released(route) => route == Route::Free,
            _ => true,
        }
    }
}

/// State and mark of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageWord(u16);

impl PageWord {
    pub(super) fn new(state: PageState, mark: u16) -> Self {
        Self(state.bits() | (mark.min(MARK_MAX) << STATE_BITS))
    }

    pub(super) fn state(self) -> PageState {
        PageState::of_bits(self.0)
    }

    pub(super) fn mark(self) -> u16 {
        self.0 >> STATE_BITS
    }
}

/// A fault that may have allocated a whole huge page, until a second fault in its range shows that
/// it did not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Huge {
    /// No candidate.
    No,
    /// The fault with this ordinal number is the only one in the range so far.
    Candidate(u32),
    /// A second fault came: base pages.
    Refuted,
}

/// 512 pages.
#[derive(Clone, Debug)]
pub(super) struct Chunk {
    words: [u16; PAGES],
    /// Pages in a resident state.
    held: u16,
    /// Epoch of the newest mapping record over this chunk.
    pub(super) epoch: u16,
    /// Sampled faults relative to freed pages in this chunk.
    pub(super) density: Density,
    /// Whether the first fault allocated a huge page.
    pub(super) huge: Huge,
}

impl Default for Chunk {
    fn default() -> Self {
        Self {
            words: [0; PAGES],
            held: 0,
            epoch: 0,
            density: Density::default(),
            huge: Huge::No,
        }
    }
}

impl Chunk {
    pub(super) fn get(&self, page: u64) -> PageWord {
        PageWord(self.words[index_in_chunk(page)])
    }

    pub(super) fn set(&mut self, page: u64, word: PageWord) {
        let slot = &mut self.words[index_in_chunk(page)];
        let was = PageWord(*slot).state().is_held();
        let is = word.state().is_held();
        self.held = self.held - u16::from(was) + u16::from(is);
        *slot = word.0;
    }

    /// Whether no page of the chunk is resident.
    pub(super) fn is_idle(&self) -> bool {
        self.held == 0
    }
}

#[allow(
    clippy::cast_possible_truncation,
    reason = "masked to nine bits, which any usize holds"
)]
fn index_in_chunk(page: u64) -> usize {
    (page & (CHUNK_PAGES - 1)) as usize
}

/// The effect of freeing a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReleaseTally {
    /// Pages that were resident and are not any more.
    pub(super) held_pages: u64,
}

/// All known pages of one process.
#[derive(Clone, Debug, Default)]
pub(super) struct PageTable {
    chunks: FxHashMap<u64, Box<Chunk>>,
}

impl PageTable {
    /// The chunk that contains `page`, created if missing.
    pub(super) fn chunk_mut(&mut self, page: u64) -> &mut Chunk {
        self.chunks.entry(page >> CHUNK_SHIFT).or_default()
    }

    /// The word of `page`.
    #[cfg(test)]
    pub(super) fn get(&self, page: u64) -> PageWord {
        self.chunks
            .get(&(page >> CHUNK_SHIFT))
            .map_or(PageWord(0), |chunk| chunk.get(page))
    }

    /// Applies `change` to each known chunk that overlaps the pages `first..end`, with the part of
    /// the range inside it. Missing chunks are created first if `make` requires it and the range is
    /// not a mere reservation.
    pub(super) fn for_each_chunk(
        &mut self,
        first: u64,
        end: u64,
        make: Make,
        mut change: impl FnMut(u64, u64, &mut Chunk),
    ) {
        if first >= end {
            return;
        }
        let (low, high) = (first >> CHUNK_SHIFT, (end - 1) >> CHUNK_SHIFT);
        let mut visit = |number: u64, chunk: &mut Chunk| {
            let base = number << CHUNK_SHIFT;
            change(first.max(base), end.min(base + CHUNK_PAGES), chunk);
        };
        if make == Make::Missing && end - first <= MARKED_AT_ONCE {
            for number in low..=high {
                visit(number, self.chunks.entry(number).or_default());
            }
        } else if high - low < self.chunks.len() as u64 {
            for number in low..=high {
                if let Some(chunk) = self.chunks.get_mut(&number) {
                    visit(number, chunk);
                }
            }
        } else {
            for (&number, chunk) in &mut self.chunks {
                if (low..=high).contains(&number) {
                    visit(number, chunk);
                }
            }
        }
    }

    /// Marks the resident pages of a range as freed by `route`.
    pub(super) fn release_held(&mut self, first: u64, end: u64, route: Route) -> ReleaseTally {
        let mut tally = ReleaseTally::default();
        self.for_each_chunk(first, end, Make::Nothing, |from, to, chunk| {
            let was_huge = matches!(chunk.huge, Huge::Candidate(_));
            chunk.huge = Huge::No;
            if chunk.is_idle() {
                return;
            }
            for page in from..to {
                let word = chunk.get(page);
                if was_huge || word.state().is_held() {
                    chunk.set(page, PageWord::new(PageState::Released(route), word.mark()));
                    let is_first = !matches!(word.state(), PageState::Released(_));
                    tally.held_pages += u64::from(is_first);
                }
            }
        });
        tally
    }

    /// Marks every page of a range as freed once more, touched or not: with sampled faults only few
    /// touches are seen. A page that was seen touched gets the highest mark: it certainly was used
    /// before.
    pub(super) fn release_all(&mut self, first: u64, end: u64, route: Route) {
        self.for_each_chunk(first, end, Make::Missing, |from, to, chunk| {
            chunk.density.released(to - from);
            for page in from..to {
                let word = chunk.get(page);
                let mark = if word.state().is_held() {
                    MARK_MAX
                } else {
                    word.mark() + 1
                };
                chunk.set(page, PageWord::new(PageState::Released(route), mark));
            }
        });
    }

    /// Sets every page of a range to `state` and forgets its marks.
    pub(super) fn overwrite(&mut self, first: u64, end: u64, state: PageState) {
        let make = if state == PageState::Untouched {
            Make::Nothing
        } else {
            Make::Missing
        };
        self.for_each_chunk(first, end, make, |from, to, chunk| {
            chunk.huge = Huge::No;
            for page in from..to {
                chunk.set(page, PageWord::new(state, 0));
            }
        });
    }

    /// Changes resident pages of a range by `change`.
    pub(super) fn map_held(
        &mut self,
        first: u64,
        end: u64,
        change: impl Fn(PageState) -> PageState,
    ) {
        self.for_each_chunk(first, end, Make::Nothing, |from, to, chunk| {
            for page in from..to {
                let word = chunk.get(page);
                if word.state().is_held() {
                    chunk.set(page, PageWord::new(change(word.state()), word.mark()));
                }
            }
        });
    }

    /// Moves the state of a range to another place, as `mremap(2)` moves its page tables.
    pub(super) fn relocate(&mut self, first: u64, end: u64, to: u64) {
        let mut moved = Vec::new();
        self.for_each_chunk(first, end, Make::Nothing, |from, until, chunk| {
            for page in from..until {
                let word = chunk.get(page);
                if word.state().is_held() {
                    moved.push((page - first, word));
                    chunk.set(page, PageWord::new(PageState::Untouched, 0));
                }
            }
        });
        for (offset, word) in moved {
            self.chunk_mut(to + offset).set(to + offset, word);
        }
    }

    /// Sampled faults, scaled, on the chunks that overlap a range.
    pub(super) fn sampled_faults(&mut self, first: u64, end: u64) -> f64 {
        let mut faults = 0.0;
        self.for_each_chunk(first, end, Make::Nothing, |_, _, chunk| {
            faults += chunk.density.outstanding();
        });
        faults
    }

    /// A mapping record covers the pages `first..end`: later touches belong to a new life.
    pub(super) fn renew(&mut self, first: u64, end: u64) {
        self.for_each_chunk(first, end, Make::Nothing, |_, _, chunk| {
            chunk.epoch = (chunk.epoch + 1) & MARK_MAX;
        });
    }
}

/// Whether a walk over a range creates missing chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Make {
    /// Visit only existing ones.
    Nothing,
    /// Create missing ones, unless the range is a mere reservation.
    Missing,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(table: &mut PageTable, page: u64) {
        table
            .chunk_mut(page)
            .set(page, PageWord::new(PageState::Present, 0));
    }

    #[test]
    fn only_held_pages_count_as_given_back() {
        let mut table = PageTable::default();
        touch(&mut table, 510);
        touch(&mut table, 513);
        let tally = table.release_held(500, 513, Route::Munmap);
        assert_eq!(tally.held_pages, 1);
        assert_eq!(table.get(510).state(), PageState::Released(Route::Munmap));
        assert_eq!(table.get(513).state(), PageState::Present);
        assert_eq!(table.get(511).state(), PageState::Untouched);
    }

    #[test]
    fn a_reservation_of_a_terabyte_makes_no_chunks() {
        let mut table = PageTable::default();
        touch(&mut table, 5);
        table.release_all(0, 1 << 28, Route::Munmap);
        assert_eq!(table.chunks.len(), 1);
        assert_eq!(table.get(5).mark(), MARK_MAX, "it was seen touched");
    }

    #[test]
    fn marks_saturate_and_leave_the_state_alone() {
        let word = PageWord::new(PageState::Released(Route::Free), u16::MAX);
        assert_eq!(word.mark(), MARK_MAX);
        assert_eq!(word.state(), PageState::Released(Route::Free));
    }

    #[test]
    fn moved_pages_keep_their_state_at_the_new_place() {
        let mut table = PageTable::default();
        touch(&mut table, 700);
        table.relocate(600, 800, 5000);
        assert_eq!(table.get(5100).state(), PageState::Present);
        assert_eq!(table.get(700).state(), PageState::Untouched);
    }
}
