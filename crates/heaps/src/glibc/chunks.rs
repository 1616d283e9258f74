//! The blocks ("chunks") of a heap, one after the other.
//!
//! ```text
//!  +0   size of the block before, if that is free
//!  +8   size of this block | 1 block before is in use | 2 mapped on its own | 4 not of the main arena
//!  +16  the program's bytes; in a free block, links
//! ```

use super::super::{Hole, Image};
use pagewise_model::memory::{Tile, TileState, Unread};

/// Bits of the word with the size.
const BEFORE_IN_USE: u64 = 1;
pub(super) const IS_MAPPED: u64 = 2;
pub(super) const FLAGS: u64 = 7;
/// Smallest block, and what all sizes are a multiple of (`MINSIZE`, `MALLOC_ALIGNMENT`).
pub(super) const SMALLEST: u64 = 0x20;
pub(super) const ALIGNMENT: u64 = 0x10;
/// A header of links in a free block, which `malloc_trim` keeps (`sizeof (struct malloc_chunk)`).
const FREE_HEADER: u64 = 0x30;
/// Freed blocks of this size were mapped on their own before the threshold rose
/// (`DEFAULT_MMAP_THRESHOLD`).
const LARGE: u64 = 128 << 10;
/// Sizes of blocks that hold a thread's cache: `sizeof (tcache_perthread_struct)` of 2.26, 2.30 and
/// 2.42, with a header.
pub(super) const CACHE_SIZES: [u64; 3] = [0x250, 0x290, 0x300];
/// Most such blocks that are noted.
const MOST_CANDIDATES: usize = 1 << 16;

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Walk {
    /// Bytes and number of blocks in use.
    pub in_use: u64,
    pub blocks: u64,
    /// Bytes and number of free blocks, without the last. Those in fastbins are among them, joined
    /// with their neighbours.
    pub free: u64,
    pub free_blocks: u64,
    /// Bytes in large free blocks.
    pub large_free: u64,
    /// Bytes of blocks in fastbins, and lists that could not be followed to their end.
    pub fast: u64,
    pub broken_lists: u64,
    /// The last block, from which new ones are cut.
    pub top: u64,
    pub reserve: u64,
    /// Bytes where blocks could not be found, because they changed meanwhile.
    pub changed: u64,
    /// Blocks in use that may hold a thread's cache.
    pub cache_candidates: Vec<u64>,
    /// How the heap ends.
    pub ending: Ending,
}

impl Walk {
    /// Notes a block in use that may hold a thread's cache.
    pub fn may_be_cache(&mut self, start: u64) {
        if self.cache_candidates.len() < MOST_CANDIDATES {
            self.cache_candidates.push(start);
        }
    }

    /// Counts a block in use.
    pub fn used(&mut self, start: u64, length: u64) -> Tile {
        self.in_use += length;
        self.blocks += 1;
        Tile {
            start,
            length,
            state: TileState::Live { block: length },
        }
    }

    /// Counts a free block.
    pub fn freed(&mut self, start: u64, length: u64) -> Tile {
        self.free += length;
        self.free_blocks += 1;
        self.large_free += if length >= LARGE { length } else { 0 };
        Tile {
            start,
            length,
            state: TileState::Free { kept: FREE_HEADER },
        }
    }

    /// Counts the end of the heap, in which the last block is at `top`.
    pub fn ended(&mut self, start: u64, top: u64, end: u64) -> Tile {
        self.top = top;
        self.reserve = end - start;
        Tile {
            start,
            length: self.reserve,
            state: TileState::Reserve { kept: SMALLEST },
        }
    }

    /// Whether all blocks up to the end were found.
    pub fn is_whole(&self) -> bool {
        self.changed == 0 && matches!(self.ending, Ending::Top | Ending::Fence)
    }

    pub fn add(&mut self, other: Self) {
        self.in_use += other.in_use;
        self.blocks += other.blocks;
        self.free += other.free;
        self.free_blocks += other.free_blocks;
        self.large_free += other.large_free;
        self.fast += other.fast;
        self.broken_lists += other.broken_lists;
        self.reserve += other.reserve;
        self.changed += other.changed;
        self.cache_candidates.extend(other.cache_candidates);
    }
}

/// How a heap ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Ending {
    /// With the block from which new ones are cut.
    #[default]
    Top,
    /// With a header that no block follows: a full heap of a thread's arena.
    Fence,
    /// With a block that goes on behind the end that was known: the heap grew meanwhile.
    Grown,
    /// With a part that changed meanwhile.
    Changed,
}

/// The blocks in an arena's fastbins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FastBlocks {
    /// Where they start, by address.
    pub blocks: Vec<u64>,
    /// Lists that do not end as they should.
    pub broken_lists: u64,
}

/// Why a walk did not reach the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Broken {
    /// Headers contradict each other.
    Layout,
    /// A header is on an absent page.
    Absent,
    Swapped,
    Refused,
}

impl From<Hole> for Broken {
    fn from(hole: Hole) -> Self {
        match hole {
            Hole::Absent => Self::Absent,
            Hole::Swapped => Self::Swapped,
            Hole::Refused => Self::Refused,
        }
    }
}

impl From<Broken> for Unread {
    fn from(broken: Broken) -> Self {
        match broken {
            Broken::Layout | Broken::Absent => Self::Changed,
            Broken::Swapped => Self::Swapped,
            Broken::Refused => Self::NotAllowed,
        }
    }
}

/// Where blocks are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Area {
    /// The first block, and the end of the heap as it was when the look began.
    pub first: u64,
    pub end: u64,
    /// The word that says which block is the arena's last, if that is known and in this heap.
    pub top: Option<u64>,
}

/// A block, or the end of the heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Block {
        size: u64,
        is_free: bool,
    },
    Top,
    Fence,
    /// It goes on behind the end.
    Grown,
}

/// The block at `at`.
pub(super) fn step(image: &mut Image<'_>, at: u64, area: &Area) -> Result<Step, Broken> {
    let end = area.end;
    let word = image.word(at + 8)?;
    let size = word & !FLAGS;
    if word & IS_MAPPED != 0 || !size.is_multiple_of(ALIGNMENT) {
        return Err(Broken::Layout);
    }
    if size < SMALLEST {
        return match end - at <= SMALLEST {
            true => Ok(Step::Fence),
            false => Err(Broken::Layout),
        };
    }
    if size >= end - at {
        return last(image, at, word, area);
    }
    let next = at + size;
    if end - next < ALIGNMENT {
        return Err(Broken::Layout);
    }
    let next_word = image.word(next + 8)?;
    if next_word & BEFORE_IN_USE != 0 {
        return Ok(Step::Block {
            size,
            is_free: false,
        });
    }
    // A free block's size is also at its end, and two free blocks are never next to each other.
    if word & BEFORE_IN_USE == 0 || image.word(next)? != size {
        return Err(Broken::Layout);
    }
    Ok(Step::Block {
        size,
        is_free: true,
    })
}

/// The block at `at`, which reaches the end or goes on behind it.
fn last(image: &mut Image<'_>, at: u64, word: u64, area: &Area) -> Result<Step, Broken> {
    let size = word & !FLAGS;
    // Blocks before the last are joined with it when they are freed.
    let is_behind_used = word & BEFORE_IN_USE != 0;
    match top(image, area) {
        Some(top) if top == at && is_behind_used => Ok(Step::Top),
        Some(top) if top > at && size <= top - at => Ok(Step::Grown),
        None if is_behind_used && size == area.end - at => Ok(Step::Top),
        _ => Err(Broken::Layout),
    }
}

/// The last block of the arena at this moment.
pub(super) fn top(image: &mut Image<'_>, area: &Area) -> Option<u64> {
    image.now(area.top?).ok()
}
