//! Arrays of TLB entries, made for speed: nothing is searched.
//!
//! A tag has 32 bits: [`super::chunks`] numbers pages densely. For each page an array records the
//! way it was last put in; the page is present if that way of its set still has its tag. So a
//! look-up is two loads and a comparison, and replacing an entry needs no bookkeeping.

use super::chunks::SECOND;
use super::machine::{Array as Description, Index};
use super::order::{Order, with_order};
use super::ordered::{Ordered, Uses, masked};

/// An empty way.
pub const EMPTY: u32 = u32::MAX;

/// An array of any shape.
#[derive(Clone, Debug)]
pub struct Array {
    /// Ways of all sets, one set after another, padded to powers of two.
    tags: Vec<u32>,
    way_bits: u32,
    indexing: Indexing,
    order: Order,
    /// By stage and size (the upper bits of a tag), then page: the way it was last put in.
    ways: [Vec<u8>; 4],
}

/// Bits of a tag below the stage and size bits.
const PAGE: u32 = SECOND - 1;

impl Array {
    pub fn new(description: &Description) -> Self {
        let way_bits = description.ways.next_power_of_two().trailing_zeros();
        Self {
            tags: vec![EMPTY; (description.sets() as usize) << way_bits],
            way_bits,
            indexing: Indexing::new(description),
            order: Order::new(description),
            ways: std::array::from_fn(|_| Vec::new()),
        }
    }

    /// Set and way of an entry that is present.
    #[inline(always)]
    fn find(&self, number: u32, tag: u32) -> Option<(usize, usize)> {
        let page = (tag & PAGE) as usize;
        let way = *self.ways[(tag >> PAGE.count_ones()) as usize].get(page)?;
        let (set, way) = (self.indexing.set(number), usize::from(way));
        (self.tags[set << self.way_bits | way] == tag).then_some((set, way))
    }

    /// Whether the entry is present; marks it as used.
    #[inline(always)]
    pub fn hit(&mut self, number: u32, tag: u32) -> bool {
        let Some((set, way)) = self.find(number, tag) else {
            return false;
        };
        with_order!(&mut self.order, order => order.lent().used(set, way));
        true
    }

    /// Takes a block in order: an access without an entry here fills one and stays in the block.
    /// `key` returns number and tag; all tags have one size and stage and are at most `most`.
    pub fn filter(&mut self, block: &mut Block, most: u32, key: impl Fn(u64) -> (u32, u32)) {
        let ways = &mut self.ways[(most >> PAGE.count_ones()) as usize];
        let most = (most & PAGE) as usize;
        if most >= ways.len() {
            note_new(ways, most, 0);
        }
        let (tags, indexing, way_bits) = (&mut self.tags, self.indexing, self.way_bits);
        with_order!(&mut self.order, order => match indexing.is_linear() {
            true => filter::<true>(block, key, order.lent(), tags, ways, indexing, way_bits),
            false => filter::<false>(block, key, order.lent(), tags, ways, indexing, way_bits),
        });
    }

    /// Fills in a missing entry; returns the tag it replaced, or [`EMPTY`].
    #[inline(always)]
    pub fn fill(&mut self, number: u32, tag: u32) -> u32 {
        let set = self.indexing.set(number);
        let way = with_order!(&mut self.order, order => order.lent().replace(set));
        let page = (tag & PAGE) as usize;
        let ways = &mut self.ways[(tag >> PAGE.count_ones()) as usize];
        match ways.get_mut(page) {
            Some(noted) => *noted = way as u8,
            None => note_new(ways, page, way),
        }
        std::mem::replace(&mut self.tags[set << self.way_bits | way], tag)
    }

    /// Drops an entry if it is present.
    #[inline]
    pub fn drop_one(&mut self, number: u32, tag: u32) {
        if let Some((set, way)) = self.find(number, tag) {
            self.empty(set, way);
        }
    }

    /// Drops entries whose tag matches.
    pub fn drop_where(&mut self, matches: impl Fn(u32) -> bool) {
        for at in 0..self.tags.len() {
            if self.tags[at] != EMPTY && matches(self.tags[at]) {
                self.empty(at >> self.way_bits, at & ((1 << self.way_bits) - 1));
            }
        }
    }

    fn empty(&mut self, set: usize, way: usize) {
        let tags = &mut self.tags[set << self.way_bits..];
        tags[way] = EMPTY;
        with_order!(&mut self.order, order => {
            order.emptied(set, way, |other| tags[other] == EMPTY);
        });
    }
}

/// Accesses on their way through the levels: the product's page number (its lowest 32 bits) in the
/// upper half, its tag in the lower.
#[derive(Debug)]
pub struct Block {
    pub entries: [u64; BLOCK],
    pub count: usize,
}

/// Accesses processed together.
pub const BLOCK: usize = 256;

impl Block {
    pub fn new() -> Self {
        Self {
            entries: [0; BLOCK],
            count: 0,
        }
    }

    pub fn entries(&self) -> &[u64] {
        &self.entries[..self.count()]
    }

    /// The number of accesses, as a bound that is visible to the compiler.
    #[inline(always)]
    pub fn count(&self) -> usize {
        self.count.min(BLOCK)
    }
}

/// Page number and tag of an entry of a block.
#[inline(always)]
pub fn parts(entry: u64) -> (u32, u32) {
    ((entry >> 32) as u32, entry as u32)
}

/// The loop of [`Array::filter`], for each replacement order. The loop is bound by its number of
/// instructions: all tables have lengths that are powers of two, so that masks replace checks.
#[inline(always)]
fn filter<const IS_LINEAR: bool>(
    block: &mut Block,
    key: impl Fn(u64) -> (u32, u32),
    mut order: impl Uses,
    tags: &mut [u32],
    ways: &mut [u8],
    indexing: Indexing,
    way_bits: u32,
) {
    let (tags, in_tags) = masked(tags);
    let (ways, in_ways) = masked(ways);
    let mut left = 0;
    for at in 0..block.count() {
        let entry = block.entries[at];
        let (number, tag) = key(entry);
        let set = match IS_LINEAR {
            true => (number & indexing.mask) as usize,
            false => indexing.set(number),
        };
        let noted = &mut ways[tag as usize & in_ways];
        let way = usize::from(*noted);
        if tags[(set << way_bits | way) & in_tags] == tag {
            order.used(set, way);
            continue;
        }
        let way = order.replace(set);
        *noted = way as u8;
        tags[(set << way_bits | way) & in_tags] = tag;
        block.entries[left] = entry;
        left += 1;
    }
    block.count = left;
}

/// Records the way of a page beyond all those recorded before.
#[cold]
fn note_new(ways: &mut Vec<u8>, page: usize, way: usize) {
    ways.resize((page + 1).next_power_of_two().max(64), 0);
    ways[page] = way as u8;
}

/// Finds a set from a page number.
#[derive(Clone, Copy, Debug)]
pub struct Indexing {
    mask: u32,
    fold: u32,
}

impl Indexing {
    pub fn new(description: &Description) -> Self {
        let mask = description.sets() - 1;
        let fold = match description.index {
            // A shift by 32 leaves nothing of a page number to fold in.
            Index::Linear => 32,
            Index::Xor => mask.count_ones(),
        };
        Self { mask, fold }
    }

    fn is_linear(self) -> bool {
        self.fold == 32
    }

    #[inline(always)]
    pub fn set(self, number: u32) -> usize {
        ((number ^ (u64::from(number) >> self.fold) as u32) & self.mask) as usize
    }
}
