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
    /// Blocks in use that may hold a thread's cache.
    pub cache_candidates: Vec<u64>,
    /// How the heap ends.
    pub ending: Ending,
}

impl Walk {
    /// Counts a free block.
    fn freed(&mut self, start: u64, length: u64) -> Tile {
        self.free += length;
        self.free_blocks += 1;
        self.large_free += if length >= LARGE { length } else { 0 };
        Tile {
            start,
            length,
            state: TileState::Free { kept: FREE_HEADER },
        }
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

/// A block, or the end of the heap.
enum Step {
    Block { size: u64, is_free: bool },
    Top { size: u64 },
    Fence,
}

/// Walks from the block at `first` to `end`. The blocks in `fast` are free.
pub(super) fn walk(
    image: &mut Image<'_>,
    first: u64,
    end: u64,
    fast: &FastBlocks,
    each: &mut dyn FnMut(Tile),
) -> Result<Walk, Broken> {
    let mut walk = Walk::default();
    let begin = fast.blocks.partition_point(|block| *block < first);
    let mut fast = fast.blocks.get(begin..).unwrap_or_default();
    let mut at = first;
    // Where the free blocks that end at `at` start.
    let mut free_from = None;
    loop {
        let step = looked_at(image, at, end)?;
        while fast.first().is_some_and(|block| *block < at) {
            fast = &fast[1..];
        }
        let is_fast = fast.first() == Some(&at);
        match step {
            Step::Block { size, is_free } if is_free || is_fast => {
                walk.fast += if is_free { 0 } else { size };
                free_from.get_or_insert(at);
                at += size;
                continue;
            }
            // The last block takes in the free ones before it.
            Step::Top { size } => {
                walk.top = at;
                let start = free_from.unwrap_or(at);
                walk.reserve = at + size - start;
                each(Tile {
                    start,
                    length: walk.reserve,
                    state: TileState::Reserve { kept: SMALLEST },
                });
                return Ok(walk);
            }
            Step::Block { .. } | Step::Fence => {}
        }
        if let Some(start) = free_from.take() {
            each(walk.freed(start, at - start));
        }
        let (length, state) = match step {
            Step::Block { size, .. } => {
                walk.in_use += size;
                walk.blocks += 1;
                if CACHE_SIZES.contains(&size) && walk.cache_candidates.len() < MOST_CANDIDATES {
                    walk.cache_candidates.push(at);
                }
                (size, TileState::Live { block: size })
            }
            Step::Top { .. } | Step::Fence => (end - at, TileState::Bookkeeping),
        };
        each(Tile {
            start: at,
            length,
            state,
        });
        if matches!(step, Step::Fence) {
            walk.ending = Ending::Fence;
            return Ok(walk);
        }
        at += length;
    }
}

/// Calls `each` with address and size of all blocks that look in use.
pub(super) fn each_in_use(
    image: &mut Image<'_>,
    first: u64,
    end: u64,
    each: &mut dyn FnMut(&mut Image<'_>, u64, u64),
) -> Result<(), Broken> {
    let mut at = first;
    loop {
        match looked_at(image, at, end)? {
            Step::Block { size, is_free } => {
                if !is_free {
                    each(image, at, size);
                }
                at += size;
            }
            Step::Top { .. } | Step::Fence => return Ok(()),
        }
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
