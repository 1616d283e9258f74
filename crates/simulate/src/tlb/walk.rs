//! Page walks: references to page tables, the caches that save them, and page-table pages.
//!
//! A walk's data on a chunk (tags of the tables that cover it, their places) is looked up once for
//! each chunk and stored by the chunk's dense number.

use super::array::{Array, Block, parts};
use super::chunks::{Chunk, Chunks, HUGE, SECOND};
use super::machine::{Array as Description, Index, Machine};
use super::{PageSize, Replacement, SpaceId};
use rustc_hash::FxHashMap;

/// A page of a guest's page tables. Their guest physical addresses are assumed to be consecutive,
/// in the order in which walks first read them.
#[derive(Clone, Copy, Debug)]
struct Table {
    space: SpaceId,
    /// Number within its guest.
    number: u32,
    /// Place of the first table in the same huge page of tables.
    first: u32,
}

/// Most levels of a page table.
const LEVELS: usize = 5;

const NONE: u32 = u32::MAX;

/// Virtual chunk numbers of a guest's page tables start here, where no program has memory.
pub const TABLE_CHUNKS: u64 = 1 << 44;

/// A fully associative walk cache, described like an array of TLB entries.
pub fn description(entries: u32) -> Description {
    Description {
        holds: Vec::new(),
        entries,
        ways: entries,
        replacement: Replacement::Lru,
        pages_per_entry: 1,
        index: Index::Linear,
    }
}

/// Levels of the table that a walk for a page of this size reads.
pub fn levels(machine: &Machine, size: PageSize) -> u32 {
    match size {
        PageSize::Small => machine.walk.levels,
        PageSize::Huge => machine.walk.levels - 1,
    }
}

/// The lowest table that a walk for this size reads: level 1 contains the entries of small pages.
pub fn lowest(size: PageSize) -> u32 {
    match size {
        PageSize::Small => 1,
        PageSize::Huge => 2,
    }
}

/// The address prefix that a table of `level` covers; `chunk` is the number of its huge page.
pub fn prefix(machine: &Machine, level: u32, chunk: u64) -> u64 {
    let bits = machine.huge_shift() - machine.small_shift();
    chunk >> (bits * (level - 1)).min(63)
}

/// A walk in a guest.
#[derive(Clone, Copy, Debug)]
pub struct GuestWalk {
    /// Dense number of the address's huge page.
    pub dense: u32,
    /// Number of its small page in the huge one.
    pub in_chunk: u32,
    /// Page size of the host's tables for the guest's page tables.
    pub tables: PageSize,
}

/// The walker's caches of one machine.
#[derive(Clone, Debug)]
pub struct Walker {
    /// Caches with the lowest table that a hit leads to; those that save most first.
    caches: Vec<(u32, Array)>,
    nested: Option<Array>,
    /// By level of the table (the first contains the entries of small pages), then dense number of
    /// the chunk: tags of walk-cache entries, [`NONE`] for chunks without a walk.
    chunks_prefixes: [Vec<u32>; LEVELS],
    /// The same for places of tables, [`NONE`] until a walk first reads one.
    chunks_tables: [Vec<u32>; LEVELS],
    tables: Vec<Table>,
    /// Places of tables by the range they cover, and of the first in each huge page of tables.
    places: FxHashMap<(SpaceId, u32, u64), u32>,
    firsts: FxHashMap<(SpaceId, u32), u32>,
    tables_of: FxHashMap<SpaceId, u32>,
    prefixes: FxHashMap<(SpaceId, u32, u64), u32>,
    /// Space of each prefix, by its tag.
    prefix_spaces: Vec<SpaceId>,
    page_bits: u32,
}

impl Walker {
    pub fn new(machine: &Machine) -> Self {
        let mut caches = machine.walk.caches.clone();
        caches.sort_by_key(|cache| cache.remaining);
        let nested = machine.walk.nested_entries;
        Self {
            caches: caches
                .iter()
                .map(|cache| (cache.remaining, Array::new(&description(cache.entries))))
                .collect(),
            nested: (nested > 0).then(|| Array::new(&description(nested))),
            chunks_prefixes: std::array::from_fn(|_| Vec::new()),
            chunks_tables: std::array::from_fn(|_| Vec::new()),
            tables: Vec::new(),
            places: FxHashMap::default(),
            firsts: FxHashMap::default(),
            tables_of: FxHashMap::default(),
            prefixes: FxHashMap::default(),
            prefix_spaces: Vec::new(),
            page_bits: machine.huge_shift() - machine.small_shift(),
        }
    }

    /// Prepares the tags of a chunk's tables.
    #[inline]
    fn know(&mut self, machine: &Machine, dense: u32, chunk: impl FnOnce() -> Chunk) {
        let known = self.chunks_prefixes[0].get(dense as usize);
        if known.is_none_or(|&tag| tag == NONE) {
            self.learn(machine, dense as usize, &chunk());
        }
    }

    #[cold]
    fn learn(&mut self, machine: &Machine, at: usize, chunk: &Chunk) {
        let tables = self.chunks_prefixes.iter_mut().zip(&mut self.chunks_tables);
        for (level, (prefixes, tables)) in (1..=machine.walk.levels).zip(tables) {
            if prefixes.len() <= at {
                prefixes.resize(at + 1, NONE);
                tables.resize(at + 1, NONE);
            }
            let key = (chunk.space, level, prefix(machine, level, chunk.number));
            let next = self.prefix_spaces.len() as u32;
            let tag = *self.prefixes.entry(key).or_insert(next);
            if tag == next {
                self.prefix_spaces.push(chunk.space);
            }
            prefixes[at] = tag;
        }
    }

    /// Number of tables that a walk reads, including the lowest one. Fills the caches.
    pub fn tables_read(
        &mut self,
        machine: &Machine,
        dense: u32,
        chunk: &Chunk,
        size: PageSize,
    ) -> u32 {
        self.know(machine, dense, || *chunk);
        let lowest = lowest(size);
        let prefixes = &self.chunks_prefixes;
        let tag = |remaining: u32| prefixes[remaining as usize - 1][dense as usize];
        let mut read = levels(machine, size);
        let mut through = self.caches.len();
        for (at, (remaining, cache)) in self.caches.iter_mut().enumerate() {
            if *remaining >= lowest && cache.hit(0, tag(*remaining)) {
                read = *remaining - lowest + 1;
                through = at;
                break;
            }
        }
        for (remaining, cache) in &mut self.caches[..through] {
            if *remaining >= lowest {
                cache.fill(0, tag(*remaining));
            }
        }
        read
    }

    /// References needed to read the host's tables for a guest physical page.
    fn nested(&mut self, machine: &Machine, tag: u32, size: PageSize) -> u64 {
        if let Some(cache) = &mut self.nested {
            if cache.hit(0, tag) {
                return 0;
            }
            cache.fill(0, tag);
        }
        let all = levels(machine, size);
        u64::from(all.saturating_sub(machine.walk.nested_levels_cached).max(1))
    }

    /// References of walks in native processes for pages of one size; empties the block. As with
    /// levels of TLBs, a cache gets the walks that missed in those before it, in order: all walks
    /// go through the first cache, the remaining ones through the next.
    pub fn native(
        &mut self,
        machine: &Machine,
        chunks: &Chunks,
        size: PageSize,
        block: &mut Block,
    ) -> u64 {
        // The chunk's dense number is what a tag says of its tables.
        let within = match size {
            PageSize::Small => self.page_bits,
            PageSize::Huge => 0,
        };
        for at in 0..block.count() {
            let dense = (parts(block.entries[at]).1 & !HUGE) >> within;
            self.know(machine, dense, || *chunks.get(dense));
            block.entries[at] = u64::from(dense);
        }
        let lowest = lowest(size);
        let most = self.prefix_spaces.len() as u32;
        let mut references = 0;
        for (remaining, cache) in &mut self.caches {
            if *remaining >= lowest {
                let before = block.count;
                let prefixes = &*self.chunks_prefixes[*remaining as usize - 1];
                cache.filter(block, most, |dense| (0, prefixes[dense as usize]));
                references += (before - block.count) as u64 * u64::from(*remaining - lowest + 1);
            }
        }
        references += block.count as u64 * u64::from(levels(machine, size));
        block.count = 0;
        references
    }

    /// References of a walk in a guest: each of its tables is itself at a guest physical address.
    pub fn guest(&mut self, machine: &Machine, chunk: &Chunk, walk: GuestWalk) -> u64 {
        let lowest = lowest(chunk.first);
        let read = self.tables_read(machine, walk.dense, chunk, chunk.first);
        let mut references = 0;
        for level in (lowest..lowest + read).rev() {
            let place = self.place(machine, level, walk.dense, chunk);
            let tag = match walk.tables {
                PageSize::Small => SECOND | place,
                PageSize::Huge => SECOND | HUGE | self.tables[place as usize].first,
            };
            references += 1 + self.nested(machine, tag, walk.tables);
        }
        let data = match chunk.second {
            PageSize::Small => walk.dense << self.page_bits | walk.in_chunk,
            PageSize::Huge => HUGE | walk.dense,
        };
        references + self.nested(machine, data, chunk.second)
    }

    /// The table page that a walk for a chunk reads at `level`, numbered within its guest.
    pub fn table(&mut self, machine: &Machine, level: u32, dense: u32, chunk: &Chunk) -> u32 {
        let place = self.place(machine, level, dense, chunk);
        self.tables[place as usize].number
    }

    #[inline]
    fn place(&mut self, machine: &Machine, level: u32, dense: u32, chunk: &Chunk) -> u32 {
        let at = level as usize - 1;
        self.know(machine, dense, || *chunk);
        let known = self.chunks_tables[at][dense as usize];
        if known != NONE {
            return known;
        }
        let place = self.meet(machine, level, chunk);
        self.chunks_tables[at][dense as usize] = place;
        place
    }

    /// The place of a table that this chunk's walks read for the first time.
    #[cold]
    fn meet(&mut self, machine: &Machine, level: u32, chunk: &Chunk) -> u32 {
        let space = chunk.space;
        let next = self.tables.len() as u32;
        let covers = (space, level, prefix(machine, level, chunk.number));
        let place = *self.places.entry(covers).or_insert(next);
        if place == next {
            let count = self.tables_of.entry(space).or_default();
            let number = *count;
            *count += 1;
            let group = (space, number >> self.page_bits);
            self.tables.push(Table {
                space,
                number,
                first: *self.firsts.entry(group).or_insert(next),
            });
        }
        place
    }

    /// Forgets a space: after a change of page tables the walk caches are flushed. `space_of`
    /// returns the space of a chunk by its dense number.
    pub fn forget(&mut self, space: SpaceId, space_of: impl Fn(u32) -> SpaceId) {
        for (_, cache) in &mut self.caches {
            cache.drop_where(|tag| self.prefix_spaces[tag as usize] == space);
        }
        let Some(cache) = &mut self.nested else {
            return;
        };
        let (tables, page_bits) = (&self.tables, self.page_bits);
        cache.drop_where(|tag| {
            let rest = tag & !(SECOND | HUGE);
            let of = match (tag & SECOND != 0, tag & HUGE != 0) {
                (true, _) => tables[rest as usize].space,
                (false, true) => space_of(rest),
                (false, false) => space_of(rest >> page_bits),
            };
            of == space
        });
    }
}
