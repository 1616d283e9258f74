//! Arrays of TLB entries, made for speed: nothing is searched.
//!
//! A tag is 32 bits: [`super::chunks`] numbers pages densely. For each page an array notes the way
//! that it was last put in; the page is there if that way of its set still has its tag. So a look-up
//! is two loads and a comparison, and an entry that is replaced needs no note.

use super::chunks::SECOND;
use super::machine::{Array as Description, Index};
use super::order::{Order, Ordered, with_order};

/// No entry.
pub const EMPTY: u32 = u32::MAX;

/// An array of any shape.
#[derive(Clone, Debug)]
pub struct Array {
    /// Ways of all sets, one set after another, in powers of two.
    tags: Vec<u32>,
    way_bits: u32,
    indexing: Indexing,
    order: Order,
    /// By stage and size (the upper bits of a tag), then page: the way it was last put in.
    ways: [Vec<u8>; 4],
}

/// Bits of a tag below those of stage and size.
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

    /// Set and way of an entry that is there.
    #[inline(always)]
    fn find(&self, number: u64, tag: u32) -> Option<(usize, usize)> {
        let page = (tag & PAGE) as usize;
        let way = *self.ways[(tag >> PAGE.count_ones()) as usize].get(page)?;
        let (set, way) = (self.indexing.set(number), usize::from(way));
        (self.tags[set << self.way_bits | way] == tag).then_some((set, way))
    }

    /// Whether the entry is there; marks it as used.
    #[inline(always)]
    pub fn hit(&mut self, number: u64, tag: u32) -> bool {
        let Some((set, way)) = self.find(number, tag) else {
            return false;
        };
        with_order!(&mut self.order, order => order.used(set, way));
        true
    }

    /// Takes accesses to products of one size, in order: those that find no entry here put it in
    /// and are left in the block.
    pub fn filter(&mut self, block: &mut Block, shifts: Shifts) {
        let Some(most) = block.tags[..block.count].iter().max() else {
            return;
        };
        let ways = &mut self.ways[(most >> PAGE.count_ones()) as usize];
        let most = ((most & PAGE) >> shifts.tag) as usize;
        if most >= ways.len() {
            note_new(ways, most, 0);
        }
        let (tags, indexing, way_bits) = (&mut self.tags, self.indexing, self.way_bits);
        with_order!(&mut self.order, order => {
            filter(block, shifts, order, tags, ways, indexing, way_bits);
        });
    }

    /// Puts in an entry that is not there; returns what it replaced, or [`EMPTY`].
    #[inline(always)]
    pub fn fill(&mut self, number: u64, tag: u32) -> u32 {
        let set = self.indexing.set(number);
        let way = with_order!(&mut self.order, order => order.replace(set));
        let page = (tag & PAGE) as usize;
        let ways = &mut self.ways[(tag >> PAGE.count_ones()) as usize];
        match ways.get_mut(page) {
            Some(noted) => *noted = way as u8,
            None => note_new(ways, page, way),
        }
        std::mem::replace(&mut self.tags[set << self.way_bits | way], tag)
    }

    /// Drops an entry if it is there.
    #[inline]
    pub fn drop_one(&mut self, number: u64, tag: u32) {
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

/// Accesses on their way through levels.
#[derive(Debug)]
pub struct Block {
    pub tags: [u32; BLOCK],
    pub addresses: [u64; BLOCK],
    pub count: usize,
}

/// Accesses taken together.
pub const BLOCK: usize = 256;

/// The loop of [`Array::filter`], for each kind of order.
#[inline(always)]
fn filter(
    block: &mut Block,
    shifts: Shifts,
    order: &mut impl Ordered,
    tags: &mut [u32],
    ways: &mut [u8],
    indexing: Indexing,
    way_bits: u32,
) {
    let mut left = 0;
    for at in 0..block.count.min(BLOCK) {
        let (product, address) = (block.tags[at], block.addresses[at]);
        let set = indexing.set(address >> shifts.address);
        let tag = product >> shifts.tag;
        let noted = &mut ways[(tag & PAGE) as usize];
        let way = usize::from(*noted);
        if tags[set << way_bits | way] == tag {
            order.used(set, way);
            continue;
        }
        let way = order.replace(set);
        *noted = way as u8;
        tags[set << way_bits | way] = tag;
        block.tags[left] = product;
        block.addresses[left] = address;
        left += 1;
    }
    block.count = left;
}

/// Notes the way of a page above all that were noted before.
#[cold]
fn note_new(ways: &mut Vec<u8>, page: usize, way: usize) {
    ways.resize((page + 1).next_power_of_two().max(64), 0);
    ways[page] = way as u8;
}

/// What to leave out of addresses and tags of products for an array's entries.
#[derive(Clone, Copy, Debug)]
pub struct Shifts {
    pub address: u32,
    pub tag: u32,
}

/// Finds a set from a page number.
#[derive(Clone, Copy, Debug)]
struct Indexing {
    mask: u64,
    fold: u32,
}

impl Indexing {
    fn new(description: &Description) -> Self {
        let mask = u64::from(description.sets()) - 1;
        let fold = match description.index {
            // A shift by 63 leaves nothing of a page number to fold in.
            Index::Linear => 63,
            Index::Xor => mask.count_ones(),
        };
        Self { mask, fold }
    }

    #[inline]
    fn set(self, number: u64) -> usize {
        ((number ^ (number >> self.fold)) & self.mask) as usize
    }
}

/// The set that `number` belongs to.
pub fn set_of(description: &Description, number: u64) -> usize {
    Indexing::new(description).set(number)
}
