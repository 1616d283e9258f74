//! The exact engine: every entry of every array.
//!
//! ```text
//!  addresses ─▶ tags, repeats of a page left out ─▶ first level ─▶ beyond it
//!               a block at a time, no branch        most end here
//! ```

use super::array::{Array, BLOCK, Block, EMPTY, Shifts};
use super::chunks::{Chunk, Chunks, HUGE, SECOND, UNKNOWN};
use super::counts::Counts;
use super::engine::{Engine, PageSize, Space, SpaceId, Stage};
use super::machine::{Level as Description, Machine, Stages};
use super::walk::{self, GuestWalk, Walker};

/// Simulates every TLB entry of a machine.
#[derive(Clone, Debug)]
pub struct Exact {
    machine: Machine,
    chunks: Chunks,
    levels: Vec<Level>,
    walker: Walker,
    counts: Counts,
    /// Bits of a small page's number inside its chunk.
    page_bits: u32,
    /// Bits of an address inside a small and a huge page.
    shifts: [u32; 2],
    /// Whether what one level drops another may have to drop too.
    is_inclusive: bool,
    /// Tag of the last access's product where the first level holds it, else [`EMPTY`]: the same
    /// page again changes nothing.
    last: u32,
}

/// A level's arrays by page size.
#[derive(Clone, Debug)]
struct Level {
    arrays: Vec<Array>,
    by_size: [Place; 2],
    is_inclusive: bool,
}

/// Where a level holds pages of a size.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Which array, [`NOWHERE`] for none.
    array: usize,
    /// Binary logarithm of pages in an entry.
    shift: u32,
}

const NOWHERE: usize = usize::MAX;

/// A page as arrays see it.
#[derive(Clone, Copy, Debug)]
struct Page {
    size: PageSize,
    /// Number in units of its size.
    number: u64,
    /// Tag in units of its size, without neighbours taken together.
    tag: u32,
}

impl Level {
    fn new(description: &Description) -> Self {
        let place = |size| {
            let arrays = &description.arrays;
            let array = arrays.iter().position(|array| array.holds(size));
            let shift = match (size, array) {
                (PageSize::Small, Some(at)) => arrays[at].pages_per_entry.trailing_zeros(),
                _ => 0,
            };
            Place {
                array: array.unwrap_or(NOWHERE),
                shift,
            }
        };
        Self {
            arrays: description.arrays.iter().map(Array::new).collect(),
            by_size: [place(PageSize::Small), place(PageSize::Huge)],
            is_inclusive: description.is_inclusive,
        }
    }

    fn holds(&self, size: PageSize) -> bool {
        self.by_size[size as usize].array != NOWHERE
    }

    #[inline(always)]
    fn hit(&mut self, page: Page) -> bool {
        let Place { array, shift } = self.by_size[page.size as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return false;
        };
        array.hit(page.number >> shift, grouped(page.tag, shift))
    }

    /// Takes accesses to products of one size; leaves those that this level does not answer.
    fn filter(&mut self, size: PageSize, shifts: [u32; 2], block: &mut Block) {
        let Place { array, shift } = self.by_size[size as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return;
        };
        let shifts = Shifts {
            address: shifts[size as usize] + shift,
            tag: shift,
        };
        array.filter(block, shifts);
    }

    /// Fills; returns the tag that went, or [`EMPTY`].
    #[inline(always)]
    fn fill(&mut self, page: Page) -> u32 {
        let Place { array, shift } = self.by_size[page.size as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return EMPTY;
        };
        array.fill(page.number >> shift, grouped(page.tag, shift))
    }

    /// Drops what maps any of the memory of an entry of a lower level, which gave it up. Entries of
    /// a chunk are of the size of its product: those of others went when it was changed.
    #[inline]
    fn drop_overlapping(&mut self, page_bits: u32, gone: Covered, chunk: &Chunk) {
        let Place { array, shift } = self.by_size[chunk.product() as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return;
        };
        if chunk.product() == PageSize::Huge {
            return array.drop_one(chunk.number, HUGE | gone.dense);
        }
        let Some((page, pages)) = gone.pages else {
            let of_chunk = |tag: u32| tag & HUGE == 0 && tag << shift >> page_bits == gone.dense;
            return array.drop_where(of_chunk);
        };
        for page in (page..page + (1 << pages)).step_by(1 << shift) {
            let number = (chunk.number << page_bits | u64::from(page)) >> shift;
            array.drop_one(number, (gone.dense << page_bits | page) >> shift);
        }
    }

    fn drop_where(&mut self, page_bits: u32, matches: impl Fn(Covered) -> bool) {
        for (at, array) in self.arrays.iter_mut().enumerate() {
            let small = self.by_size[0];
            let shift = if small.array == at { small.shift } else { 0 };
            array.drop_where(|tag| matches(Covered::of(tag, shift, page_bits)));
        }
    }
}

/// The tag of an entry for 2^shift neighbouring small pages.
#[inline]
fn grouped(tag: u32, shift: u32) -> u32 {
    (tag & SECOND) | ((tag & !SECOND) >> shift)
}

/// What an entry maps.
#[derive(Clone, Copy, Debug)]
struct Covered {
    stage: Stage,
    dense: u32,
    /// First small page in the chunk and how many of them as a power of two; `None` for all.
    pages: Option<(u32, u32)>,
}

impl Covered {
    fn of(tag: u32, shift: u32, page_bits: u32) -> Self {
        let stage = if tag & SECOND == 0 {
            Stage::First
        } else {
            Stage::Second
        };
        let rest = tag & !(SECOND | HUGE);
        if tag & HUGE != 0 {
            return Self {
                stage,
                dense: rest,
                pages: None,
            };
        }
        let page = rest << shift;
        Self {
            stage,
            dense: page >> page_bits,
            pages: Some((page & ((1 << page_bits) - 1), shift)),
        }
    }
}

impl Exact {
    /// An engine with empty TLBs.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        let shifts = [machine.small_shift(), machine.huge_shift()];
        let page_bits = shifts[1] - shifts[0];
        Self {
            chunks: Chunks::new(page_bits),
            levels: machine.levels.iter().map(Level::new).collect(),
            walker: Walker::new(machine),
            counts: Counts::default(),
            page_bits,
            shifts,
            is_inclusive: machine.levels.iter().any(|level| level.is_inclusive),
            last: EMPTY,
            machine: machine.clone(),
        }
    }

    /// Virtual numbers of the chunks of a space that were touched, in order of first access.
    pub fn touched(&self, space: SpaceId) -> impl Iterator<Item = u64> {
        self.chunks.of(space).map(|chunk| chunk.number)
    }

    /// Whether the last level holds the space's two stages apart.
    fn is_apart(&self, space: Space) -> bool {
        space.second.is_some() && self.machine.stages == Stages::Separate
    }

    #[inline]
    fn page_in_chunk(&self, address: u64) -> u32 {
        (address >> self.shifts[0]) as u32 & ((1 << self.page_bits) - 1)
    }

    /// The page of an entry with this tag, of the first stage.
    #[inline]
    fn page(&self, tag: u32, address: u64) -> Page {
        let is_huge = tag & HUGE != 0;
        Page {
            size: if is_huge {
                PageSize::Huge
            } else {
                PageSize::Small
            },
            number: address >> self.shifts[usize::from(is_huge)],
            tag,
        }
    }

    /// Looks accesses up that came after each other to different pages.
    fn look_up(&mut self, block: &mut Block, products: usize, space: Space) {
        let tags = &block.tags[..block.count];
        let sizes = tags
            .iter()
            .fold([0, u32::MAX], |[any, all], tag| [any | tag, all & tag]);
        let is_mixed = (sizes[0] ^ sizes[1]) & HUGE != 0;
        if is_mixed || self.is_inclusive {
            for (&tag, &address) in block.tags.iter().zip(&block.addresses).take(block.count) {
                self.one(tag, address, products, space);
            }
            return;
        }
        // What a level holds depends on nothing but which accesses get to it: one after another.
        let size = self.page(sizes[0], 0).size;
        for (level, hits) in self.levels[..products]
            .iter_mut()
            .zip(&mut self.counts.hits)
        {
            let before = block.count;
            level.filter(size, self.shifts, block);
            *hits += (before - block.count) as u64;
        }
        for (&tag, &address) in block.tags.iter().zip(&block.addresses).take(block.count) {
            self.refill(self.page(tag, address), address, space);
        }
    }

    /// Looks one access up.
    fn one(&mut self, tag: u32, address: u64, products: usize, space: Space) {
        let page = self.page(tag, address);
        for level in 0..products {
            if self.levels[level].hit(page) {
                self.counts.hits[level] += 1;
                self.fill_above(level, page);
                return;
            }
        }
        self.refill(page, address, space);
        self.fill_above(products, page);
    }

    /// What happens where no level holds a product.
    #[inline]
    fn refill(&mut self, page: Page, address: u64, space: Space) {
        let dense = self.chunks.dense_of(page.tag);
        let chunk = *self.chunks.get(dense);
        if self.is_apart(space) {
            self.both_stages(dense, chunk, address);
        } else {
            self.refill_product(space, dense, chunk, address, page.size);
        }
    }

    #[inline]
    fn fill_above(&mut self, level: usize, page: Page) {
        for upper in (0..level).rev() {
            self.fill(upper, page);
        }
    }

    #[inline(always)]
    fn fill(&mut self, level: usize, page: Page) {
        let (upper, rest) = self.levels.split_at_mut(level);
        let went = rest[0].fill(page);
        if went == EMPTY || !rest[0].is_inclusive {
            return;
        }
        let gone = Covered::of(went, rest[0].by_size[0].shift, self.page_bits);
        let chunk = self.chunks.get(gone.dense);
        for upper in upper {
            upper.drop_overlapping(self.page_bits, gone, chunk);
        }
    }

    #[inline]
    fn refill_product(
        &mut self,
        space: Space,
        dense: u32,
        chunk: Chunk,
        address: u64,
        size: PageSize,
    ) {
        self.counts.refills[0][size as usize] += 1;
        if self.machine.walk.levels == 0 {
            return;
        }
        let in_chunk = self.page_in_chunk(address);
        let machine = &self.machine;
        self.counts.references += match space.second {
            None => self.walker.native(machine, dense, &chunk),
            Some(_) => {
                let tables = space.second_entries();
                let walk = GuestWalk {
                    dense,
                    in_chunk,
                    tables,
                };
                self.walker.guest(machine, &chunk, walk)
            }
        };
    }

    /// Looks both stages up in the last level and refills what it lacks.
    #[inline]
    fn both_stages(&mut self, dense: u32, chunk: Chunk, address: u64) {
        let in_chunk = self.page_in_chunk(address);
        let tag = match chunk.first {
            PageSize::Small => dense << self.page_bits | in_chunk,
            PageSize::Huge => HUGE | dense,
        };
        let first = self.page(tag, address);
        let last = self.levels.len() - 1;
        let has_first = self.levels[last].hit(first);
        if !has_first {
            self.counts.refills[0][first.size as usize] += 1;
            if self.machine.walk.tables_need_second_stage && self.machine.walk.levels > 0 {
                self.tables_of(dense, chunk);
            }
            self.fill(last, first);
        }
        let has_second = self.second_stage(dense, &chunk, in_chunk);
        if has_first && has_second {
            self.counts.hits[last] += 1;
        }
    }

    /// Whether the last level has the entry of the second stage; refills it where not.
    #[inline]
    fn second_stage(&mut self, dense: u32, chunk: &Chunk, in_chunk: u32) -> bool {
        let page = match chunk.second {
            PageSize::Small => Page {
                size: PageSize::Small,
                number: u64::from(chunk.physical) << self.page_bits | u64::from(in_chunk),
                tag: SECOND | dense << self.page_bits | in_chunk,
            },
            PageSize::Huge => Page {
                size: PageSize::Huge,
                number: u64::from(chunk.physical),
                tag: SECOND | HUGE | dense,
            },
        };
        let last = self.levels.len() - 1;
        if self.levels[last].hit(page) {
            return true;
        }
        self.counts.refills[1][page.size as usize] += 1;
        self.fill(last, page);
        false
    }

    /// Reads the guest's page tables through the second stage.
    fn tables_of(&mut self, dense: u32, chunk: Chunk) {
        let lowest = walk::lowest(chunk.first);
        let machine = &self.machine;
        let read = self.walker.tables_read(machine, dense, &chunk, chunk.first);
        for level in (lowest..lowest + read).rev() {
            let table = self.walker.table(&self.machine, level, dense, &chunk);
            let of_tables = walk::TABLE_CHUNKS + u64::from(table >> self.page_bits);
            let Some(dense) = self.chunks.dense(chunk.space, of_tables) else {
                continue;
            };
            let tables = *self.chunks.get(dense);
            let in_chunk = table & ((1 << self.page_bits) - 1);
            self.second_stage(dense, &tables, in_chunk);
        }
    }
}

impl Engine for Exact {
    fn add(&mut self, space: Space) -> SpaceId {
        self.chunks.add(space)
    }

    fn access(&mut self, id: SpaceId, addresses: &[u64]) {
        let space = self.chunks.space(id);
        let products = self.levels.len() - usize::from(self.is_apart(space));
        // Where the first level holds no products, the same page again is looked up again.
        let holds = |size| products > 0 && self.levels[0].holds(size);
        let again = [!holds(PageSize::Small), !holds(PageSize::Huge)];
        let in_chunk = (1_u32 << self.page_bits) - 1;
        let [small, huge] = self.shifts;
        let mut block = Block {
            tags: [0; BLOCK],
            addresses: [0; BLOCK],
            count: 0,
        };
        let mut at = 0;
        while at < addresses.len() {
            let (mut count, from) = (0, at);
            let mut last = self.last;
            let mut is_new = false;
            for &address in addresses[at..].iter().take(BLOCK) {
                let begins = self.chunks.begins(id, address >> huge);
                if begins == UNKNOWN {
                    is_new = true;
                    break;
                }
                // The sign of a huge page's tag leaves nothing of the small page's number.
                let is_small = !(begins.cast_signed() >> 31) as u32;
                let tag = begins | (address >> small) as u32 & in_chunk & is_small;
                (block.tags[count], block.addresses[count]) = (tag, address);
                count += usize::from(tag != last || again[(tag >> 31) as usize]);
                last = tag;
                at += 1;
            }
            self.last = last;
            self.counts.hits[0] += (at - from - count) as u64;
            block.count = count;
            self.look_up(&mut block, products, space);
            if is_new && self.chunks.dense(id, addresses[at] >> huge).is_none() {
                // More memory than tags can name: no TLB would hold much of it either.
                self.counts.refills[0][0] += 1;
                at += 1;
            }
        }
        self.counts.accesses += addresses.len() as u64;
    }

    fn remap(&mut self, id: SpaceId, stage: Stage, chunk: u64, size: PageSize) {
        let Some(dense) = self.chunks.dense(id, chunk) else {
            return;
        };
        if !self.chunks.resize(dense, stage, size) {
            return;
        }
        self.last = EMPTY;
        let chunks = &self.chunks;
        self.walker.forget(id, |dense| chunks.get(dense).space);
        let is_apart = self.is_apart(self.chunks.space(id));
        let last = self.levels.len() - 1;
        for (at, level) in self.levels.iter_mut().enumerate() {
            let drops = |entry: Covered| {
                let is_of_chunk = entry.dense == dense && entry.stage == stage;
                match stage {
                    Stage::First => is_of_chunk,
                    Stage::Second if is_apart && at == last => is_of_chunk,
                    Stage::Second => chunks.get(entry.dense).space == id,
                }
            };
            level.drop_where(self.page_bits, drops);
        }
    }

    fn counts(&self) -> Counts {
        self.counts
    }
}
