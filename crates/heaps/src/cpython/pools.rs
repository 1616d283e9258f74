//! An arena's pools.

use super::super::{Hole, Image};
use super::array::{Entry, again};
use pagewise_model::memory::{Tile, TileSink, TileState, Unread};

/// `sizeof (struct pool_header)`.
pub(super) const HEADER: u64 = 48;
/// Size classes, and the difference from one to the next.
const CLASSES: u64 = 32;
const UNIT: u64 = 16;
/// How often an arena, and a pool of it, is read again if it changed meanwhile.
const ATTEMPTS: usize = 3;
/// The part of an arena (1 in so many) that may have changed.
const MAY_CHANGE: u64 = 2;

/// What one arena holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ArenaRead {
    pub in_use: u64,
    pub blocks: u64,
    pub free: u64,
    pub free_blocks: u64,
    pub reserve: u64,
    pub changed: u64,
    /// Whether its count of free pools is what the pools show.
    pub is_counted: bool,
}

/// Reads an arena, whose array's entry may change meanwhile, too.
pub(super) fn read_arena(
    mut arena: Entry,
    layout: (u64, u64),
    image: &mut Image<'_>,
    sink: &mut dyn TileSink,
) -> Result<ArenaRead, Unread> {
    let mut outcome = Err(Unread::Changed);
    for _ in 0..ATTEMPTS {
        sink.start(arena.address);
        outcome = pools(&arena, layout, image, sink);
        match outcome {
            Ok(read) if !read.is_counted => {}
            Err(Unread::Changed) => {}
            _ => break,
        }
        image.forget();
        arena = again(&arena, layout, image);
    }
    sink.finish(outcome.is_ok());
    outcome
}

/// Why a pool was not read.
enum Broken {
    Hole(Hole),
    /// Counts contradict each other.
    Counts,
}

impl From<Hole> for Broken {
    fn from(hole: Hole) -> Self {
        Self::Hole(hole)
    }
}

fn pools(
    arena: &Entry,
    (size, pool): (u64, u64),
    image: &mut Image<'_>,
    sink: &mut dyn TileSink,
) -> Result<ArenaRead, Unread> {
    let first = arena.address.next_multiple_of(pool);
    let end = arena.address + size;
    let mut tile = |start: u64, length: u64, state: TileState| {
        sink.tile(Tile {
            start,
            length,
            state,
        });
    };
    tile(arena.address, first - arena.address, TileState::Bookkeeping);
    let mut read = ArenaRead::default();
    let mut empty = 0;
    for at in (first..arena.fresh).step_by(usize::try_from(pool).unwrap_or(usize::MAX)) {
        match read_pool(arena, at, pool, image)? {
            Pool::Changing => {
                read.changed += pool;
                tile(at, pool, TileState::Changed);
            }
            Pool::Empty => {
                empty += 1;
                read.free += pool;
                read.free_blocks += 1;
                tile(at, pool, TileState::Free { kept: HEADER });
            }
            Pool::Used { block, free } => {
                let blocks = (pool - HEADER) / block;
                let count = blocks - free.count();
                tile(at, HEADER, TileState::Bookkeeping);
                free.tiles(at + HEADER, block, blocks, &mut tile);
                let used = HEADER + blocks * block;
                tile(at + used, pool - used, TileState::Bookkeeping);
                read.in_use += count * block;
                read.blocks += count;
                read.free += (blocks - count) * block;
                read.free_blocks += blocks - count;
            }
        }
    }
    if read.changed > size / MAY_CHANGE {
        return Err(Unread::Changed);
    }
    let fresh = (first + arena.pools * pool - arena.fresh) / pool;
    read.is_counted = read.changed == 0 && empty + fresh == arena.free_pools;
    read.reserve = fresh * pool;
    tile(
        arena.fresh,
        end - arena.fresh,
        TileState::Reserve { kept: 0 },
    );
    Ok(read)
}

/// What a pool holds.
enum Pool {
    /// It changes all the time.
    Changing,
    /// No block is in use.
    Empty,
    Used {
        block: u64,
        free: FreeBlocks,
    },
}

fn read_pool(arena: &Entry, at: u64, pool: u64, image: &mut Image<'_>) -> Result<Pool, Unread> {
    for _ in 0..ATTEMPTS {
        match pool_at(arena, at, pool, image) {
            Ok(found) => return Ok(found),
            Err(Broken::Hole(Hole::Swapped)) => return Err(Unread::Swapped),
            Err(Broken::Hole(Hole::Refused)) => return Err(Unread::NotAllowed),
            Err(Broken::Hole(Hole::Absent) | Broken::Counts) => image.forget(),
        }
    }
    Ok(Pool::Changing)
}

fn pool_at(arena: &Entry, at: u64, pool: u64, image: &mut Image<'_>) -> Result<Pool, Broken> {
    let count = image.word(at)? & 0xffff_ffff;
    if count == 0 {
        return Ok(Pool::Empty);
    }
    let place = image.word(at + 32)?;
    let (index, class) = (place & 0xffff_ffff, place >> 32);
    if index != arena.index || class >= CLASSES {
        return Err(Broken::Counts);
    }
    let block = (class + 1) * UNIT;
    image.load(at, pool);
    let free = free_blocks(image, at, pool, block)?;
    match count + free.count() == (pool - HEADER) / block {
        true => Ok(Pool::Used { block, free }),
        false => Err(Broken::Counts),
    }
}

/// The free blocks of a pool, by number: one bit each.
struct FreeBlocks(Vec<bool>);

impl FreeBlocks {
    fn count(&self) -> u64 {
        self.0.iter().filter(|is_free| **is_free).count() as u64
    }

    /// Blocks of one state next to each other become one tile.
    fn tiles(
        &self,
        start: u64,
        block: u64,
        blocks: u64,
        tile: &mut dyn FnMut(u64, u64, TileState),
    ) {
        let mut at = start;
        let mut left = blocks;
        for run in self.0.chunk_by(|one, other| one == other) {
            let length = (run.len() as u64).min(left);
            let state = match run[0] {
                true => TileState::Free { kept: 0 },
                false => TileState::Live { block },
            };
            tile(at, length * block, state);
            at += length * block;
            left -= length;
        }
    }
}

/// Follows the pool's list of free blocks; those that were never used are behind the last.
fn free_blocks(
    image: &mut Image<'_>,
    pool: u64,
    size: u64,
    block: u64,
) -> Result<FreeBlocks, Broken> {
    let blocks = usize::try_from((size - HEADER) / block).map_err(|_| Broken::Counts)?;
    let offsets = image.word(pool + 40)?;
    let next = offsets & 0xffff_ffff;
    let mut free = vec![false; blocks];
    let number = |address: u64| -> Result<usize, Broken> {
        let offset = address.checked_sub(pool + HEADER).ok_or(Broken::Counts)?;
        let number = usize::try_from(offset / block).map_err(|_| Broken::Counts)?;
        match offset.is_multiple_of(block) && number < blocks {
            true => Ok(number),
            false => Err(Broken::Counts),
        }
    };
    // `nextoffset` may point behind the last block; blocks from there on are fresh.
    let fresh = next.checked_sub(HEADER).ok_or(Broken::Counts)? / block;
    let fresh = usize::try_from(fresh).unwrap_or(blocks).min(blocks);
    free[fresh..].fill(true);
    let mut at = image.word(pool + 8)?;
    while at != 0 {
        let place = &mut free[number(at)?];
        // A circle, or a block that cannot be free yet.
        if std::mem::replace(place, true) {
            return Err(Broken::Counts);
        }
        at = image.word(at)?;
    }
    Ok(FreeBlocks(free))
}
