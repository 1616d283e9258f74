//! Memory in chunks of a huge page's size, numbered densely, so that a page's tag fits into 32
//! bits.
//!
//! ```text
//!  tag of a small page's entry   0 s dddd…d pppp   s stage, d dense number, p page in the chunk
//!  tag of a huge page's entry    1 s 000000 dddd
//! ```

use super::engine::{Space, SpaceId};
use super::machine::{PageSize, Stage};
use rustc_hash::FxHashMap;

/// Bit in the tags of huge pages.
pub const HUGE: u32 = 1 << 31;
/// Bit in the tags of second stages.
pub const SECOND: u32 = 1 << 30;

/// The data of a chunk.
#[derive(Clone, Copy, Debug)]
pub struct Chunk {
    /// Virtual number in its space.
    pub number: u64,
    /// Guest physical number: the order of first access in its space.
    pub physical: u32,
    /// Its space.
    pub space: SpaceId,
    /// Page size at the first stage.
    pub first: PageSize,
    /// Page size of second-stage entries; the same as `first` where there is no second stage.
    pub second: PageSize,
}

impl Chunk {
    /// The smaller of the two sizes: the range of an entry that combines both stages.
    #[inline]
    pub fn product(&self) -> PageSize {
        product(self.first, self.second)
    }
}

fn product(first: PageSize, second: PageSize) -> PageSize {
    match (first, second) {
        (PageSize::Huge, PageSize::Huge) => PageSize::Huge,
        _ => PageSize::Small,
    }
}

/// Page size of a new chunk's second stage; that of the first where there is no second stage.
fn second(space: Space) -> PageSize {
    match space.second {
        None => space.first,
        Some(_) => space.second_entries(),
    }
}

/// All chunks of all spaces, found through a two-level table for each space:
///
/// ```text
///  chunk number ─▶ region (upper bits) ─▶ start of its leaf ─▶ leaf (lower bits) ─▶ tag
///                  └ a few recent regions; a hash table has all
/// ```
#[derive(Clone, Debug)]
pub struct Chunks {
    chunks: Vec<Chunk>,
    spaces: Vec<Spaced>,
    /// Leaves of all spaces, one after another: the start of each chunk's product tags.
    leaves: Vec<u32>,
    /// Bits of a small page's number inside its chunk.
    page_bits: u32,
    most: usize,
}

#[derive(Clone, Debug)]
struct Spaced {
    space: Space,
    /// Size of the products of all its chunks, `None` once there may be both sizes.
    only: Option<PageSize>,
    /// Chunks that have physical memory.
    physical: u32,
    /// Recently looked-up regions, by their lowest bits, and where their leaves start.
    recent: [(u64, u32); RECENT],
    regions: FxHashMap<u64, u32>,
}

/// Finds the tags of a space's chunks.
pub struct Finder<'a> {
    recent: &'a mut [(u64, u32); RECENT],
    regions: &'a FxHashMap<u64, u32>,
    leaves: &'a [u32],
}

impl Finder<'_> {
    /// The start of the tags of a chunk's products: the whole tag for a huge page; for a small one,
    /// the page's number in the chunk is added. [`UNKNOWN`] if the chunk is new.
    #[inline(always)]
    pub fn begins(&mut self, number: u64) -> u32 {
        let region = number >> LEAF_BITS;
        let (known, mut leaf) = self.recent[region as usize % RECENT];
        if known != region {
            match self.another(region) {
                Some(found) => leaf = found,
                None => return UNKNOWN,
            }
        }
        let at = number as usize % (1 << LEAF_BITS);
        self.leaves[(leaf as usize) << LEAF_BITS | at]
    }

    /// The leaf of a region that was not looked up recently.
    #[cold]
    #[inline(never)]
    fn another(&mut self, region: u64) -> Option<u32> {
        let &leaf = self.regions.get(&region)?;
        self.recent[region as usize % RECENT] = (region, leaf);
        Some(leaf)
    }
}

/// Chunks in a leaf, as bits. A leaf of 1 KiB covers 512 MiB on x86-64.
const LEAF_BITS: u32 = 8;
const RECENT: usize = 64;
/// Not a region: no chunk number has this many bits.
const NO_REGION: u64 = u64::MAX;
/// Content of a leaf for untouched chunks; never a tag.
pub const UNKNOWN: u32 = u32::MAX;

impl Chunks {
    /// For chunks of `2^page_bits` small pages.
    pub fn new(page_bits: u32) -> Self {
        Self {
            chunks: Vec::new(),
            spaces: Vec::new(),
            leaves: Vec::new(),
            page_bits,
            most: 1 << (30 - page_bits),
        }
    }

    pub fn add(&mut self, space: Space) -> SpaceId {
        self.spaces.push(Spaced {
            space,
            only: Some(product(space.first, second(space))),
            physical: 0,
            recent: [(NO_REGION, 0); RECENT],
            regions: FxHashMap::default(),
        });
        (self.spaces.len() - 1) as SpaceId
    }

    pub fn space(&self, id: SpaceId) -> Space {
        self.spaces[id as usize].space
    }

    #[inline]
    pub fn get(&self, dense: u32) -> &Chunk {
        &self.chunks[dense as usize]
    }

    /// The dense number of the chunk of a tag of the first stage.
    #[inline]
    pub fn dense_of(&self, tag: u32) -> u32 {
        if tag & HUGE == 0 {
            tag >> self.page_bits
        } else {
            tag & !HUGE
        }
    }

    /// The size of all products of a space, if there is only one.
    pub fn only(&self, id: SpaceId) -> Option<PageSize> {
        self.spaces[id as usize].only
    }

    /// The highest tag of products of a size.
    pub fn most(&self, size: PageSize) -> u32 {
        let count = self.chunks.len() as u32;
        match size {
            PageSize::Small => (count << self.page_bits).saturating_sub(1),
            PageSize::Huge => HUGE | count,
        }
    }

    /// Chunks of a space in the order of first access.
    pub fn of_space(&self, space: SpaceId) -> impl Iterator<Item = &Chunk> {
        self.chunks.iter().filter(move |chunk| chunk.space == space)
    }

    /// What finds the tags of a space's chunks.
    #[inline(always)]
    pub fn finder(&mut self, space: SpaceId) -> Finder<'_> {
        let space = &mut self.spaces[space as usize];
        Finder {
            recent: &mut space.recent,
            regions: &space.regions,
            leaves: &self.leaves,
        }
    }

    /// The dense number of a chunk, assigned now if it is new; `None` when there are no tags left.
    pub fn dense(&mut self, space: SpaceId, number: u64) -> Option<u32> {
        match self.finder(space).begins(number) {
            UNKNOWN => self.insert(space, number),
            tag => Some(self.dense_of(tag)),
        }
    }

    #[cold]
    fn insert(&mut self, id: SpaceId, number: u64) -> Option<u32> {
        if self.chunks.len() >= self.most {
            return None;
        }
        let dense = self.chunks.len() as u32;
        let spaced = &mut self.spaces[id as usize];
        let begins = spaced.space;
        let second = second(begins);
        let chunk = Chunk {
            number,
            physical: spaced.physical,
            space: id,
            first: begins.first,
            second,
        };
        spaced.physical += 1;
        let next = (self.leaves.len() >> LEAF_BITS) as u32;
        let leaf = *spaced.regions.entry(number >> LEAF_BITS).or_insert(next);
        if leaf == next {
            let longer = self.leaves.len() + (1 << LEAF_BITS);
            self.leaves.resize(longer, UNKNOWN);
        }
        self.chunks.push(chunk);
        self.note(dense);
        Some(dense)
    }

    /// Records the start of a chunk's tags.
    fn note(&mut self, dense: u32) {
        let chunk = &self.chunks[dense as usize];
        let leaf = self.spaces[chunk.space as usize].regions[&(chunk.number >> LEAF_BITS)];
        let at = chunk.number as usize % (1 << LEAF_BITS);
        self.leaves[leaf as usize * (1 << LEAF_BITS) + at] = match chunk.product() {
            PageSize::Small => dense << self.page_bits,
            PageSize::Huge => HUGE | dense,
        };
    }

    /// Sets a page size; returns whether it changed. An unaligned second stage of a guest stays
    /// small.
    pub fn resize(&mut self, dense: u32, stage: Stage, size: PageSize) -> bool {
        let chunk = &mut self.chunks[dense as usize];
        let space = self.spaces[chunk.space as usize].space;
        let before = (chunk.first, chunk.second);
        match (stage, space.second) {
            (Stage::First, None) => (chunk.first, chunk.second) = (size, size),
            (Stage::First, Some(_)) => chunk.first = size,
            (Stage::Second, Some(_)) if space.is_aligned => chunk.second = size,
            (Stage::Second, _) => {}
        }
        let changed = before != (chunk.first, chunk.second);
        let (space, product) = (chunk.space, chunk.product());
        let only = &mut self.spaces[space as usize].only;
        *only = only.filter(|&only| only == product);
        self.note(dense);
        changed
    }
}
