//! Blocks in use to which no pointer leads: the words of a snapshot as a graph, walked from its roots.
//!
//! Conservative: any aligned word that could be an address inside a block counts as a pointer to it,
//! whatever it is. What no word leads to, from registers, stacks and variables on, the program cannot
//! reach any more, unless it keeps addresses in a disguise.
//!
//! ```text
//!  registers, stacks, variables, other memory ─▶ block ─▶ block        reached
//!                                                block ─▶ block        lost
//! ```

use crate::draws::{Draw, Draws};
use crate::places::Places;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{Tile, TileSink, TileState};

/// Most blocks, and most pointers between them, that are kept: 16 and 4 bytes each.
const MOST_BLOCKS: usize = 1 << 24;
const MOST_POINTERS: usize = 1 << 26;
/// Bits of an address: programs keep tags in those above.
const ADDRESS: u64 = (1 << 48) - 1;
/// glibc's blocks end with the first word of the next one, and start with the word behind it.
const GLIBC_SHIFT: u64 = 8;
/// Largest block that a thread's cache of glibc holds by default, and how many of each size.
const CACHED: u64 = 0x410;
const CACHED_BLOCKS: u64 = 7;

/// A block in use, with its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Block {
    /// Where it starts.
    pub start: u64,
    /// Bytes.
    pub size: u64,
    /// Whose.
    pub allocator: AllocatorKind,
}

impl Block {
    fn has_header(&self) -> bool {
        self.allocator == AllocatorKind::Glibc
    }

    /// Where the program's bytes are.
    fn data(&self) -> (u64, u64) {
        let shift = if self.has_header() { GLIBC_SHIFT } else { 0 };
        (self.start + shift, self.start + self.size + shift)
    }
}

/// Blocks of the heaps whose blocks a program frees itself, and the ranges of these heaps.
#[derive(Clone, Debug, Default)]
pub struct LiveBlocks {
    blocks: Vec<Block>,
    /// Blocks in use, free ones and reserves: what is elsewhere is searched for pointers as a whole.
    covered: Vec<(u64, u64)>,
    /// Numbers of both when the present heap, and the present allocator, were begun.
    heap: (usize, usize),
    allocator: (usize, usize),
    is_open: bool,
    is_too_many: bool,
}

impl TileSink for LiveBlocks {
    fn start(&mut self, _: u64) {
        if self.is_open {
            self.back_to(self.heap);
        }
        self.heap = (self.blocks.len(), self.covered.len());
        self.is_open = true;
    }

    fn tile(&mut self, tile: Tile) {
        let end = tile.start.saturating_add(tile.length);
        match tile.state {
            TileState::Live { block } => {
                let size = block.clamp(1, tile.length.max(1));
                for number in 0..tile.length / size {
                    if self.blocks.len() >= MOST_BLOCKS {
                        self.is_too_many = true;
                        return;
                    }
                    let start = tile.start + number * size;
                    self.blocks.push(Block {
                        start,
                        size,
                        allocator: AllocatorKind::Unknown,
                    });
                }
            }
            TileState::Free { .. } | TileState::Reserve { .. } => {}
            TileState::Bookkeeping | TileState::Changed => return,
        }
        match self.covered.last_mut() {
            Some(last) if last.1 == tile.start => last.1 = end,
            _ => self.covered.push((tile.start, end)),
        }
    }

    fn finish(&mut self, is_right: bool) {
        if !is_right && self.is_open {
            self.back_to(self.heap);
        }
        self.is_open = false;
    }
}

impl LiveBlocks {
    fn back_to(&mut self, (blocks, covered): (usize, usize)) {
        self.blocks.truncate(blocks);
        self.covered.truncate(covered);
    }

    /// What was added since the last call is of this allocator. Of those that collect garbage, or keep
    /// objects of which they know more than a word tells, all memory is taken for roots.
    pub fn are_of(&mut self, allocator: Option<AllocatorKind>) {
        match allocator {
            Some(AllocatorKind::Go | AllocatorKind::Cpython) | None => self.back_to(self.allocator),
            Some(allocator) => {
                for block in self.blocks.iter_mut().skip(self.allocator.0) {
                    block.allocator = allocator;
                }
            }
        }
        self.allocator = (self.blocks.len(), self.covered.len());
    }

    /// The graph without pointers; `freed` are blocks that only look in use. `None` if there are too
    /// many.
    #[must_use]
    pub fn into_graph(self, mut freed: Vec<u64>) -> Option<Graph> {
        if self.is_too_many {
            return None;
        }
        let Self {
            mut blocks,
            mut covered,
            ..
        } = self;
        freed.sort_unstable();
        blocks.retain(|one| freed.binary_search(&one.start).is_err());
        blocks.sort_unstable();
        blocks.dedup_by_key(|one| one.start);
        covered.sort_unstable();
        Some(Graph {
            roots: vec![NOT; blocks.len()],
            offsets: Vec::with_capacity(blocks.len() + 1),
            places: Places::new(blocks.iter().map(Block::data)),
            blocks,
            covered,
            pointers: Vec::new(),
            at: (0, 0),
            is_too_many: false,
        })
    }
}

/// How a block is reached: by no pointer, by one into its middle, by one to its start.
const NOT: u8 = 0;
const INSIDE: u8 = 1;
const START: u8 = 2;

/// Blocks, and the pointers to them. Memory is given in order of address.
#[derive(Clone, Debug)]
pub struct Graph {
    blocks: Vec<Block>,
    places: Places,
    covered: Vec<(u64, u64)>,
    roots: Vec<u8>,
    /// Where the pointers of each block start.
    offsets: Vec<u32>,
    /// Numbers of blocks, times two, plus one where the start is meant.
    pointers: Vec<u32>,
    /// First block, and first covered range, that memory to come may be in.
    at: (usize, usize),
    is_too_many: bool,
}

impl Graph {
    /// Bytes and number of the blocks.
    #[must_use]
    pub fn size(&self) -> (u64, u64) {
        let bytes = self.blocks.iter().map(|one| one.size).sum();
        (bytes, self.blocks.len() as u64)
    }

    /// A word of a register, or the like.
    pub fn root(&mut self, word: u64) {
        let [to, before] = self.targets(word & ADDRESS);
        for (number, how) in [to, before].into_iter().flatten() {
            self.roots[number] = self.roots[number].max(how);
        }
    }

    /// The block with this address, and the one that ends just before it: an address at the very end of
    /// a block may be meant for that.
    fn targets(&self, word: u64) -> [Option<(usize, u8)>; 2] {
        let to = self.find(word);
        let before = match to {
            Some(number) if word >= self.blocks[number].data().0 + GLIBC_SHIFT => None,
            Some(number) if !self.blocks[number].has_header() => None,
            _ => self.find(word.wrapping_sub(GLIBC_SHIFT)),
        };
        let how = |number| match self.is_start(number, word) {
            true => START,
            false => INSIDE,
        };
        [
            to.map(|number| (number, how(number))),
            before.map(|number| (number, INSIDE)),
        ]
    }

    /// Words of memory from `start` on, behind all that was given before.
    pub fn memory(&mut self, start: u64, mut words: &[u8]) {
        let mut at = start;
        while !words.is_empty() {
            let (owner, end) = self.owner(at);
            let length = (end - at).div_ceil(8).saturating_mul(8);
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            let (of_owner, rest) = words.split_at(length.min(words.len()));
            self.words(owner, of_owner);
            at += of_owner.len() as u64;
            words = rest;
        }
    }

    /// Words that have one owner.
    fn words(&mut self, owner: Owner, words: &[u8]) {
        if owner == Owner::Free {
            return;
        }
        for word in words.chunks_exact(8) {
            let word = u64::from_le_bytes(word.try_into().unwrap_or_default());
            match owner {
                _ if word == 0 => {}
                Owner::Block(number) => self.pointer(number, word & ADDRESS),
                Owner::Root => self.root(word),
                Owner::Free => {}
            }
        }
    }

    /// Whose the word at `at` is, and where what is its own ends.
    fn owner(&mut self, at: u64) -> (Owner, u64) {
        let (block, covered) = &mut self.at;
        let blocks = self.blocks.get(*block..).unwrap_or_default();
        *block += blocks.iter().take_while(|one| one.data().1 <= at).count();
        let next = self.blocks.get(*block).map(Block::data);
        let next_start = match next {
            Some((start, end)) if start <= at => return (Owner::Block(*block), end),
            Some((start, _)) => start,
            None => u64::MAX,
        };
        let ranges = self.covered.get(*covered..).unwrap_or_default();
        *covered += ranges.iter().take_while(|one| one.1 <= at).count();
        match self.covered.get(*covered) {
            Some(range) if range.0 <= at => (Owner::Free, range.1.min(next_start)),
            Some(range) => (Owner::Root, range.0.min(next_start)),
            None => (Owner::Root, next_start),
        }
    }

    fn pointer(&mut self, from: usize, word: u64) {
        let [to, before] = self.targets(word);
        if to.is_none() && before.is_none() {
            return;
        }
        if self.pointers.len() + 2 > MOST_POINTERS {
            self.is_too_many = true;
            return;
        }
        self.close_before(from + 1);
        for (number, how) in [to, before].into_iter().flatten() {
            self.add(number, how == START);
        }
    }

    fn add(&mut self, to: usize, is_start: bool) {
        // There are at most 2^24 blocks.
        let pointer = u32::try_from(to).unwrap_or(0) << 1 | u32::from(is_start);
        self.pointers.push(pointer);
    }

    /// The blocks before this one have no more pointers.
    fn close_before(&mut self, number: usize) {
        let here = u32::try_from(self.pointers.len()).unwrap_or(u32::MAX);
        if self.offsets.len() < number {
            self.offsets.resize(number, here);
        }
    }

    /// The block with this address.
    fn find(&self, address: u64) -> Option<usize> {
        let near = self.places.at(address)?;
        let first = *near.start();
        let blocks = self
            .blocks
            .get(first..=*near.end().min(&(self.blocks.len() - 1)))?;
        let behind = blocks.partition_point(|one| one.data().0 <= address);
        let number = behind.checked_sub(1)?;
        (address < blocks[number].data().1).then_some(first + number)
    }

    fn is_start(&self, number: usize, address: u64) -> bool {
        let block = self.blocks[number];
        address
            == block.start
                + if block.has_header() {
                    2 * GLIBC_SHIFT
                } else {
                    0
                }
    }

    /// What no pointer leads to. `None` if there were too many pointers.
    #[must_use]
    pub fn into_unreached(mut self) -> Option<Unreached> {
        if self.is_too_many {
            return None;
        }
        self.close_before(self.blocks.len() + 1);
        let by_start = self.reached(|how| how == START, |pointer| pointer & 1 == 1);
        let by_any = self.reached(|how| how != NOT, |_| true);
        let bytes = |reached: &[bool]| -> u64 {
            let blocks = self.blocks.iter().zip(reached);
            blocks.filter(|one| !one.1).map(|one| one.0.size).sum()
        };
        let doubtful = bytes(&by_start) - bytes(&by_any);
        let blocks = self.blocks.into_iter().zip(by_any);
        let lost = blocks.filter(|one| !one.1).map(|one| one.0);
        Some(Unreached {
            lost: lost.collect(),
            doubtful,
        })
    }

    fn reached(&self, is_root: impl Fn(u8) -> bool, counts: impl Fn(u32) -> bool) -> Vec<bool> {
        let mut reached: Vec<bool> = self.roots.iter().map(|how| is_root(*how)).collect();
        let mut next: Vec<usize> = (0..reached.len()).filter(|one| reached[*one]).collect();
        while let Some(number) = next.pop() {
            let range = self.offsets[number] as usize..self.offsets[number + 1] as usize;
            for &pointer in &self.pointers[range] {
                let to = (pointer >> 1) as usize;
                if counts(pointer) && !reached[to] {
                    reached[to] = true;
                    next.push(to);
                }
            }
        }
        reached
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Owner {
    Block(usize),
    Free,
    Root,
}

/// Blocks that no pointer leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unreached {
    /// By address.
    lost: Vec<Block>,
    /// Bytes of further blocks to which pointers lead only into their middle.
    doubtful: u64,
}

impl Unreached {
    /// What is lost in another snapshot, too. A pointer that moves while memory is read can be missed
    /// in one.
    #[must_use]
    pub fn and(mut self, other: &Self) -> Self {
        self.lost
            .retain(|one| other.lost.binary_search(one).is_ok());
        Self {
            doubtful: self.doubtful.max(other.doubtful),
            ..self
        }
    }

    /// Whether nothing is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lost.is_empty()
    }

    /// The blocks, by address.
    #[must_use]
    pub fn blocks(&self) -> &[Block] {
        &self.lost
    }

    /// The allocator of the block that starts there.
    #[must_use]
    pub fn allocator(&self, start: u64) -> Option<AllocatorKind> {
        let at = self.lost.binary_search_by_key(&start, |block| block.start);
        Some(self.lost.get(at.ok()?)?.allocator)
    }

    /// Blocks drawn by their bytes.
    #[must_use]
    pub fn drawn(&self) -> Vec<Draw> {
        let mut draws = Draws::default();
        for block in &self.lost {
            draws.count(block.size, |offset| Draw {
                block: block.start,
                size: block.size,
                at: block.start + offset,
                of: block.size,
            });
        }
        draws.into_draws()
    }

    /// Bytes that are lost: at least, where so many caches of threads may hold freed blocks that look
    /// in use; as seen; and at most.
    #[must_use]
    pub fn bytes(&self, unseen_caches: u64) -> (u64, u64, u64) {
        let all = self.lost.iter().map(|block| block.size).sum::<u64>();
        let cacheable = |block: &&Block| block.has_header() && block.size <= CACHED;
        let sizes = self.lost.iter().filter(cacheable);
        let mut sizes: Vec<u64> = sizes.map(|block| block.size).collect();
        sizes.sort_unstable();
        let same = sizes.chunk_by(|one, other| one == other);
        let cached = same.map(|of| (of.len() as u64).min(CACHED_BLOCKS * unseen_caches) * of[0]);
        let least = all - cached.sum::<u64>();
        (least, all, all + self.doubtful)
    }
}

#[cfg(test)]
mod tests;
