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
/// How often the bytes around a block are read again if they contradict each other.
const LOOKS: usize = 3;

/// What a walk found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Walk {
    /// Bytes and number of blocks in use.
    pub in_use: u64,
    pub blocks: u64,
    /// Bytes and number of free blocks, without the last.
    pub free: u64,
    pub free_blocks: u64,
    /// Bytes in large free blocks.
    pub large_free: u64,
    /// The last block, from which new ones are cut.
    pub top: u64,
    pub reserve: u64,
    /// Blocks in use that may hold a thread's cache.
    pub cache_candidates: Vec<u64>,
    /// How the heap ends.
    pub ending: Ending,
}

impl Walk {
    pub fn add(&mut self, other: Self) {
        self.in_use += other.in_use;
        self.blocks += other.blocks;
        self.free += other.free;
        self.free_blocks += other.free_blocks;
        self.large_free += other.large_free;
        self.reserve += other.reserve;
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

/// A block, or the end of the heap.
enum Step {
    Block { size: u64, is_free: bool },
    Top { size: u64 },
    Fence,
}

/// Walks from the block at `first` to `end`.
pub(super) fn walk(
    image: &mut Image<'_>,
    first: u64,
    end: u64,
    each: &mut dyn FnMut(Tile),
) -> Result<Walk, Broken> {
    let mut walk = Walk::default();
    let mut at = first;
    loop {
        let (length, state) = match looked_at(image, at, end)? {
            Step::Fence => {
                each(Tile {
                    start: at,
                    length: end - at,
                    state: TileState::Bookkeeping,
                });
                walk.ending = Ending::Fence;
                return Ok(walk);
            }
            Step::Top { size } => {
                let kept = SMALLEST;
                each(Tile {
                    start: at,
                    length: size,
                    state: TileState::Reserve { kept },
                });
                (walk.top, walk.reserve) = (at, size);
                return Ok(walk);
            }
            Step::Block {
                size,
                is_free: true,
            } => {
                walk.free += size;
                walk.free_blocks += 1;
                walk.large_free += if size >= LARGE { size } else { 0 };
                (size, TileState::Free { kept: FREE_HEADER })
            }
            Step::Block { size, .. } => {
                walk.in_use += size;
                walk.blocks += 1;
                if CACHE_SIZES.contains(&size) && walk.cache_candidates.len() < MOST_CANDIDATES {
                    walk.cache_candidates.push(at);
                }
                (size, TileState::Live)
            }
        };
        each(Tile {
            start: at,
            length,
            state,
        });
        at += length;
    }
}

/// The block at `at`; if its bytes contradict each other, they are read again.
fn looked_at(image: &mut Image<'_>, at: u64, end: u64) -> Result<Step, Broken> {
    let mut step = step(image, at, end);
    for _ in 1..LOOKS {
        if !matches!(step, Err(Broken::Layout)) {
            break;
        }
        image.forget();
        step = self::step(image, at, end);
    }
    step
}

fn step(image: &mut Image<'_>, at: u64, end: u64) -> Result<Step, Broken> {
    let word = image.word(at + 8)?;
    let size = word & !FLAGS;
    if word & IS_MAPPED != 0 || !size.is_multiple_of(ALIGNMENT) || size > end - at {
        return Err(Broken::Layout);
    }
    if size < SMALLEST {
        return match end - at <= SMALLEST {
            true => Ok(Step::Fence),
            false => Err(Broken::Layout),
        };
    }
    let next = at + size;
    if next == end {
        return match word & BEFORE_IN_USE {
            // Blocks before the last are joined with it when they are freed.
            0 => Err(Broken::Layout),
            _ => Ok(Step::Top { size }),
        };
    }
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
