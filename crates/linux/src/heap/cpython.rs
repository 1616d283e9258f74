//! CPython's obmalloc (Objects/obmalloc.c of 3.8 to 3.14), read by its array of arenas.
//!
//! ```text
//!  arenas[i]  address │ next new pool │ free pools, all pools │ list of free pools │ links
//!  arena      pool pool … pool │ never used
//!  pool       blocks in use │ free block │ end of pool before │ … │ arena, size class, used up to
//!             then blocks of one size
//! ```
//!
//! The array is found in the interpreter's variables as the word that leads to entries whose arenas
//! are mapped and whose pools name their place in the array. Each arena's count of free pools must
//! be what its pools show, and each pool's count of blocks what its list of free blocks leaves.
//! Arenas that come from `malloc` instead of `mmap(2)` are left to that allocator.

use super::glibc::is_private_memory;
use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Hole, Image};
use crate::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{
    Heap, HeapCheck, HeapFacts, HeapPart, Returns, Tile, TileSink, TileState, Unread,
};
use pagewise_model::units::Bytes;

/// Reads CPython's arenas.
pub struct Cpython;

/// Sizes of arena and pool: from 3.10 on, and before.
const LAYOUTS: [(u64, u64); 2] = [(1 << 20, 16 << 10), (256 << 10, 4 << 10)];
/// `sizeof (struct arena_object)` and `sizeof (struct pool_header)`.
const ENTRY: u64 = 48;
const HEADER: u64 = 48;
/// Size classes, and the difference from one to the next.
const CLASSES: u64 = 32;
const UNIT: u64 = 16;
/// Most entries of the array: a terabyte.
const MOST_ENTRIES: u64 = 1 << 20;
/// Entries that are not in use at the array's start, at most, before one that is.
const MOST_UNUSED: u64 = 256;
/// How often an arena is read again if it changed meanwhile.
const ATTEMPTS: usize = 3;

impl AllocatorReader for Cpython {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut found = HeapsRead::default();
        let data = writable_data(maps, is_interpreter);
        let Some((arenas, layout)) = arenas(maps, image, &data) else {
            return found;
        };
        let mut sums = Sums::default();
        for arena in &arenas {
            match read_arena(arena, layout, image, sink) {
                Ok(read) => sums.add(read, arena.address),
                Err(reason) => {
                    let end = arena.address + layout.0;
                    found.unread.push((arena.address, end, reason));
                }
            }
        }
        if !sums.extents.is_empty() {
            found.heaps.push(sums.heap(layout.0));
        }
        found
    }
}

fn is_interpreter(file: &str) -> bool {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.starts_with("python") || name.starts_with("libpython")
}

/// An entry of the array in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    index: u64,
    address: u64,
    /// The first pool that was never used.
    fresh: u64,
    free_pools: u64,
    pools: u64,
}

/// The arenas, and the sizes of an arena and a pool.
fn arenas(
    maps: &[MapsEntry],
    image: &mut Image<'_>,
    data: &[(u64, u64)],
) -> Option<(Vec<Entry>, (u64, u64))> {
    let memory: Vec<(u64, u64)> = maps
        .iter()
        .filter(|entry| is_private_memory(entry))
        .map(|entry| (entry.mapping.start, entry.mapping.end))
        .collect();
    let heap = maps
        .iter()
        .map(|entry| &entry.mapping)
        .filter(|mapping| &*mapping.path == "[heap]")
        .map(|mapping| (mapping.start, mapping.end));
    let places: Vec<(u64, u64)> = heap.chain(memory.iter().copied()).collect();
    let mut pointers = pointers(image, data, &places);
    pointers.sort_unstable();
    pointers.dedup();
    for pointer in pointers {
        for layout in LAYOUTS {
            let entries = entries(image, pointer, layout, &memory);
            if !entries.is_empty() {
                return Some((entries, layout));
            }
        }
    }
    None
}

/// Variables that point into one of these ranges.
fn pointers(image: &mut Image<'_>, data: &[(u64, u64)], places: &[(u64, u64)]) -> Vec<u64> {
    let mut found = Vec::new();
    for &(start, end) in data {
        let runs: Vec<_> = image.presence().within(start, end).collect();
        for run in runs {
            for address in (run.start..run.end).step_by(8) {
                let Ok(word) = image.word(address) else {
                    break;
                };
                let leads = |place: &(u64, u64)| place.0 < word && word < place.1;
                if word.is_multiple_of(16) && places.iter().any(leads) {
                    found.push(word);
                }
            }
        }
    }
    found
}

/// The entries in use of the array at `base`; none if it is no such array.
fn entries(
    image: &mut Image<'_>,
    base: u64,
    layout: (u64, u64),
    memory: &[(u64, u64)],
) -> Vec<Entry> {
    let mut found: Vec<Entry> = Vec::new();
    for index in 0..MOST_ENTRIES {
        let place = base + ENTRY * index;
        match entry(image, place, index, layout, memory) {
            Ok(Some(entry)) => found.push(entry),
            Ok(None) if !found.is_empty() || index < MOST_UNUSED => {}
            _ => break,
        }
    }
    found
}

/// One entry: `None` if it is not in use, an error if it is none.
fn entry(
    image: &mut Image<'_>,
    place: u64,
    index: u64,
    (size, pool): (u64, u64),
    memory: &[(u64, u64)],
) -> Result<Option<Entry>, ()> {
    let mut word = |at: u64| image.word(place + at).map_err(drop);
    let address = word(0)?;
    if address == 0 {
        return Ok(None);
    }
    let (fresh, counts) = (word(8)?, word(16)?);
    let entry = Entry {
        index,
        address,
        fresh,
        free_pools: counts & 0xffff_ffff,
        pools: counts >> 32,
    };
    let first = address.checked_next_multiple_of(pool).ok_or(())?;
    let end = address.checked_add(size).ok_or(())?;
    let is_sound = address.is_multiple_of(4096)
        && memory
            .iter()
            .any(|range| range.0 <= address && end <= range.1)
        && entry.pools == (end - first) / pool
        && entry.free_pools <= entry.pools
        && fresh >= first
        && fresh <= first + entry.pools * pool
        && (fresh - first).is_multiple_of(pool);
    if !is_sound {
        return Err(());
    }
    // The first pool names the arena's place in the array, once there is one.
    if fresh > first && word_of(image, first + 32)? & 0xffff_ffff != index {
        return Err(());
    }
    Ok(Some(entry))
}

fn word_of(image: &mut Image<'_>, address: u64) -> Result<u64, ()> {
    image.word(address).map_err(drop)
}

/// What one arena holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ArenaRead {
    in_use: u64,
    blocks: u64,
    free: u64,
    free_blocks: u64,
    reserve: u64,
}

fn read_arena(
    arena: &Entry,
    layout: (u64, u64),
    image: &mut Image<'_>,
    sink: &mut dyn TileSink,
) -> Result<ArenaRead, Unread> {
    let mut reason = Unread::Changed;
    for _ in 0..ATTEMPTS {
        sink.start(arena.address);
        match pools(arena, layout, image, sink) {
            Ok(read) => {
                sink.finish(true);
                return Ok(read);
            }
            Err(Broken::Hole(Hole::Swapped)) => reason = Unread::Swapped,
            Err(Broken::Hole(Hole::Refused)) => reason = Unread::NotAllowed,
            Err(_) => reason = Unread::Changed,
        }
        if reason != Unread::Changed {
            break;
        }
        image.forget();
    }
    sink.finish(false);
    Err(reason)
}

/// Why an arena was not read.
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
) -> Result<ArenaRead, Broken> {
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
        let count = image.word(at)? & 0xffff_ffff;
        if count == 0 {
            empty += 1;
            read.free += pool;
            read.free_blocks += 1;
            tile(at, pool, TileState::Free { kept: HEADER });
            continue;
        }
        let place = image.word(at + 32)?;
        let (index, class) = (place & 0xffff_ffff, place >> 32);
        if index != arena.index || class >= CLASSES {
            return Err(Broken::Counts);
        }
        let block = (class + 1) * UNIT;
        image.load(at, pool);
        let free = free_blocks(image, at, pool, block)?;
        let blocks = (pool - HEADER) / block;
        if count + free.count() != blocks {
            return Err(Broken::Counts);
        }
        tile(at, HEADER, TileState::Bookkeeping);
        free.tiles(at + HEADER, block, blocks, &mut tile);
        let used = HEADER + blocks * block;
        tile(at + used, pool - used, TileState::Bookkeeping);
        read.in_use += count * block;
        read.blocks += count;
        read.free += (blocks - count) * block;
        read.free_blocks += blocks - count;
    }
    let fresh = (first + arena.pools * pool - arena.fresh) / pool;
    if empty + fresh != arena.free_pools {
        return Err(Broken::Counts);
    }
    read.reserve = fresh * pool;
    tile(
        arena.fresh,
        end - arena.fresh,
        TileState::Reserve { kept: 0 },
    );
    Ok(read)
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

#[derive(Default)]
struct Sums {
    read: ArenaRead,
    extents: Vec<u64>,
}

impl Sums {
    fn add(&mut self, read: ArenaRead, address: u64) {
        let sum = &mut self.read;
        sum.in_use += read.in_use;
        sum.blocks += read.blocks;
        sum.free += read.free;
        sum.free_blocks += read.free_blocks;
        sum.reserve += read.reserve;
        self.extents.push(address);
    }

    fn heap(self, arena: u64) -> HeapFacts {
        let count = self.extents.len() as u64;
        HeapFacts {
            heap: Heap {
                allocator: AllocatorKind::Cpython,
                part: HeapPart::Arenas,
                count,
                size: Bytes(count * arena),
                in_use: Bytes(self.read.in_use),
                blocks: self.read.blocks,
                cached: Bytes(0),
                in_fastbins: Bytes(0),
                broken_lists: 0,
                free: Bytes(self.read.free),
                free_blocks: self.read.free_blocks,
                large_free: Bytes(0),
                reserve: Bytes(self.read.reserve),
                returnable: Bytes(0),
                check: HeapCheck::Counter,
                raised_mmap_threshold: None,
            },
            extents: self.extents,
            returns: Returns::Nothing,
        }
    }
}

#[cfg(test)]
#[path = "cpython_tests.rs"]
mod tests;
