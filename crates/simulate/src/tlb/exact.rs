//! The exact engine: every entry of every array.
//!
//! ```text
//!  addresses ─▶ tags, repeats of a page skipped  ─▶ first level ─▶ beyond it
//!               a block at a time, no branch        most end here
//! ```

use super::array::{Array, BLOCK, Block, EMPTY, parts};
use super::chunks::{Chunk, Chunks, HUGE, SECOND, UNKNOWN};
use super::counts::Counts;
use super::engine::{Engine, Space, SpaceId};
use super::machine::{Level as Description, Machine, Stages};
use super::machine::{PageSize, Stage};
use super::recent::{RECENT, Recent};
use super::visit::Visit;
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
    /// Whether an entry dropped in one level may force another level to drop entries.
    is_inclusive: bool,
    /// Tags of the most recent products, by sets of the first level ([`Recent`]).
    recent: [u32; RECENT],
}

/// Product sizes of a space: see [`Exact::block`].
const SMALL: u8 = 0;
const HUGE_ONLY: u8 = 1;
const BOTH: u8 = 2;

/// Bits of an address inside pages of 4 KiB and 2 MiB: constants take fewer instructions.
const X86: [u32; 2] = [12, 21];

/// A level's arrays by page size.
#[derive(Clone, Debug)]
struct Level {
    arrays: Vec<Array>,
    by_size: [Place; 2],
    is_inclusive: bool,
}

/// Where a level stores pages of a size.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// Index of the array, or [`NOWHERE`].
    array: usize,
    /// Binary logarithm of the pages in an entry.
    shift: u32,
}

const NOWHERE: usize = usize::MAX;

/// A page in the form that arrays use.
#[derive(Clone, Copy, Debug)]
struct Page {
    size: PageSize,
    /// Number in units of its size, the lowest bits.
    number: u32,
    /// Tag in units of its size, before neighbours are grouped.
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

    #[inline(always)]
    fn hit(&mut self, page: Page) -> bool {
        let Place { array, shift } = self.by_size[page.size as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return false;
        };
        array.hit(page.number >> shift, grouped(page.tag, shift))
    }

    /// Takes accesses to products of one size, with tags up to `most`; leaves those that miss in
    /// this level.
    fn filter(&mut self, size: PageSize, most: u32, block: &mut Block) {
        let Place { array, shift } = self.by_size[size as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return;
        };
        match shift {
            0 => array.filter(block, most, parts),
            _ => array.filter(block, most >> shift, |entry| {
                let (number, tag) = parts(entry);
                (number >> shift, tag >> shift)
            }),
        }
    }

    /// Fills in an entry; returns the replaced tag, or [`EMPTY`].
    #[inline(always)]
    fn fill(&mut self, page: Page) -> u32 {
        let Place { array, shift } = self.by_size[page.size as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return EMPTY;
        };
        array.fill(page.number >> shift, grouped(page.tag, shift))
    }

    /// Drops entries that map any memory of an entry evicted from a lower level. Entries of a chunk
    /// have the size of its product: those of other sizes were dropped when the size changed.
    #[inline]
    fn drop_overlapping(&mut self, page_bits: u32, gone: Covered, chunk: &Chunk) {
        let Place { array, shift } = self.by_size[chunk.product() as usize];
        let Some(array) = self.arrays.get_mut(array) else {
            return;
        };
        if chunk.product() == PageSize::Huge {
            return array.drop_one(chunk.number as u32, HUGE | gone.dense);
        }
        let Some((page, pages)) = gone.pages else {
            let of_chunk = |tag: u32| tag & HUGE == 0 && tag << shift >> page_bits == gone.dense;
            return array.drop_where(of_chunk);
        };
        for page in (page..page + (1 << pages)).step_by(1 << shift) {
            let number = chunk.number << page_bits | u64::from(page);
            array.drop_one(
                (number >> shift) as u32,
                (gone.dense << page_bits | page) >> shift,
            );
        }
    }

    fn drop_where(&mut self, page_bits: u32, matches: impl Fn(Covered) -> bool) {
        for (at, array) in self.arrays.iter_mut().enumerate() {
            let small = self.by_size[0];
            let shift = if small.array == at { small.shift } else { 0 };
            array.drop_where(|tag| matches(Covered::new(tag, shift, page_bits)));
        }
    }
}

/// The tag of an entry for 2^shift neighbouring small pages.
#[inline]
fn grouped(tag: u32, shift: u32) -> u32 {
    (tag & SECOND) | ((tag & !SECOND) >> shift)
}

/// The memory that an entry maps.
#[derive(Clone, Copy, Debug)]
struct Covered {
    stage: Stage,
    dense: u32,
    /// First small page in the chunk, and the number of pages as a power of two; `None` for all.
    pages: Option<(u32, u32)>,
}

impl Covered {
    fn new(tag: u32, shift: u32, page_bits: u32) -> Self {
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

/// The size that a product's tag encodes.
#[inline(always)]
fn size_of(tag: u32) -> PageSize {
    if tag & HUGE == 0 {
        PageSize::Small
    } else {
        PageSize::Huge
    }
}

/// The product of an entry of a block.
#[inline(always)]
fn product(entry: u64) -> Page {
    let (number, tag) = parts(entry);
    Page {
        size: size_of(tag),
        number,
        tag,
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
            recent: [EMPTY; RECENT],
            machine: machine.clone(),
        }
    }

    /// Virtual numbers of the chunks of a space that were touched, in order of first access.
    pub fn touched(&self, space: SpaceId) -> impl Iterator<Item = u64> {
        self.chunks.of_space(space).map(|chunk| chunk.number)
    }

    /// Number of levels that store products of a space.
    fn products(&self, space: Space) -> usize {
        self.levels.len() - usize::from(self.is_apart(space))
    }

    /// Whether the last level has separate entries for the space's two stages.
    fn is_apart(&self, space: Space) -> bool {
        space.second.is_some() && self.machine.stages == Stages::Separate
    }

    /// Takes accesses in order: `access` returns an item's address and the number of accesses to
    /// that page that the item represents.
    #[inline(always)]
    fn take<T>(&mut self, id: SpaceId, items: &[T], access: impl Fn(&T) -> (u64, u64)) {
        let space = self.chunks.space(id);
        let products = self.products(space);
        let recent = Recent::new(&self.machine, products);
        let only = self.chunks.only(id);
        let address = |item: &T| access(item).0;
        let mut block = Block::new();
        let mut rest = items;
        let mut unknown = 0;
        while !rest.is_empty() {
            let part = &rest[..rest.len().min(BLOCK)];
            let known = match only {
                Some(PageSize::Small) if self.shifts == X86 => {
                    self.block::<SMALL, true, T>(id, recent, part, &address, &mut block)
                }
                Some(PageSize::Small) => {
                    self.block::<SMALL, false, T>(id, recent, part, &address, &mut block)
                }
                Some(PageSize::Huge) => {
                    self.block::<HUGE_ONLY, false, T>(id, recent, part, &address, &mut block)
                }
                None => self.block::<BOTH, false, T>(id, recent, part, &address, &mut block),
            };
            let accesses: u64 = part[..known].iter().map(|item| access(item).1).sum();
            self.counts.accesses += accesses;
            self.counts.hits[0] += accesses - block.count as u64;
            self.look_up(&mut block, only, products, space);
            rest = &rest[known..];
            let is_new = known < part.len();
            if is_new
                && self
                    .chunks
                    .dense(id, address(&rest[0]) >> self.shifts[1])
                    .is_none()
            {
                // More memory than there are tags: no TLB would cover much of it either.
                unknown += access(&rest[0]).1;
                rest = &rest[1..];
            }
        }
        if products == 0 {
            // Stage entries have been put into the first level, into any of its sets.
            self.recent = [EMPTY; RECENT];
        }
        self.counts.accesses += unknown;
        self.counts.refills[0][0] += unknown;
    }

    /// Fills a block with the accesses that may change something ([`Recent`]) and returns how many
    /// items it took, up to the first access to a new chunk. There is one branch-free loop for each
    /// combination of sizes.
    #[inline(always)]
    fn block<const SIZES: u8, const IS_X86: bool, T>(
        &mut self,
        id: SpaceId,
        recent: Recent,
        items: &[T],
        address: &impl Fn(&T) -> u64,
        block: &mut Block,
    ) -> usize {
        let [small, huge] = if IS_X86 { X86 } else { self.shifts };
        let page_bits = huge - small;
        let in_chunk = (1_u32 << page_bits) - 1;
        let is_absent = recent.sets.map(|sets| usize::from(sets.is_absent));
        let mut chunks = self.chunks.finder(id);
        let mut count = 0;
        for (at, item) in items.iter().take(BLOCK).enumerate() {
            let address = address(item);
            let chunk = address >> huge;
            let begins = chunks.begins(chunk);
            if begins == UNKNOWN {
                block.count = count;
                return at;
            }
            let (tag, number, size) = match SIZES {
                SMALL => {
                    let page = (address >> small) as u32;
                    (begins | page & in_chunk, page, 0)
                }
                HUGE_ONLY => (begins, chunk as u32, 1),
                _ => {
                    // The sign bit of a huge page's tag masks out the small page's number.
                    let is_huge = (begins.cast_signed() >> 31) as u32;
                    let page = address >> small;
                    let tag = begins | page as u32 & in_chunk & !is_huge;
                    let number = (page >> (page_bits & is_huge)) as u32;
                    (tag, number, (tag >> 31) as usize)
                }
            };
            let sets = recent.sets[size];
            let slot = &mut self.recent[((number & sets.mask) + sets.first) as usize % RECENT];
            block.entries[count] = u64::from(number) << 32 | u64::from(tag);
            count += usize::from(tag != *slot) | is_absent[size];
            *slot = tag;
        }
        block.count = count;
        items.len().min(BLOCK)
    }

    /// A page of the first stage: `in_chunk` is the small page's number in its chunk.
    #[inline(always)]
    fn first_page(&self, dense: u32, chunk: &Chunk, size: PageSize, in_chunk: u32) -> Page {
        let (number, tag) = match size {
            PageSize::Small => (
                (chunk.number << self.page_bits) as u32 | in_chunk,
                dense << self.page_bits | in_chunk,
            ),
            PageSize::Huge => (chunk.number as u32, HUGE | dense),
        };
        Page { size, number, tag }
    }

    /// Looks up the accesses that may change something; `only` is their size, if all have the same.
    fn look_up(
        &mut self,
        block: &mut Block,
        only: Option<PageSize>,
        products: usize,
        space: Space,
    ) {
        let Some(size) = only.filter(|_| !self.is_inclusive) else {
            for &entry in block.entries() {
                self.one(product(entry), products, space);
            }
            return;
        };
        // The content of a level depends only on which accesses reach it: process the levels in
        // turn.
        let most = self.chunks.most(size);
        for (level, hits) in self.levels[..products]
            .iter_mut()
            .zip(&mut self.counts.hits)
        {
            let before = block.count;
            level.filter(size, most, block);
            *hits += (before - block.count) as u64;
        }
        if space.second.is_none() {
            self.counts.refills[0][size as usize] += block.count as u64;
            if self.machine.walk.levels > 0 {
                let walks = self.walker.native(&self.machine, &self.chunks, size, block);
                self.counts.references += walks;
            }
            return;
        }
        for &entry in block.entries() {
            self.refill(product(entry), space);
        }
    }

    /// Looks up one access.
    fn one(&mut self, page: Page, products: usize, space: Space) {
        for level in 0..products {
            if self.levels[level].hit(page) {
                self.counts.hits[level] += 1;
                self.fill_above(level, page);
                return;
            }
        }
        self.refill(page, space);
        self.fill_above(products, page);
    }

    /// Handles a product that misses in all levels.
    #[inline]
    fn refill(&mut self, page: Page, space: Space) {
        let dense = self.chunks.dense_of(page.tag);
        let chunk = *self.chunks.get(dense);
        // Meaningless for a huge product, which contains no small page.
        let in_chunk = page.tag & ((1 << self.page_bits) - 1);
        if self.is_apart(space) {
            self.both_stages(dense, chunk, in_chunk);
        } else {
            self.refill_product(space, dense, chunk, in_chunk, page.size);
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
        let gone = Covered::new(went, rest[0].by_size[0].shift, self.page_bits);
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
        in_chunk: u32,
        size: PageSize,
    ) {
        self.counts.refills[0][size as usize] += 1;
        if self.machine.walk.levels == 0 {
            return;
        }
        let machine = &self.machine;
        self.counts.references += match space.second {
            None => u64::from(self.walker.tables_read(machine, dense, &chunk, size)),
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

    /// Looks up both stages in the last level and refills missing entries.
    #[inline]
    fn both_stages(&mut self, dense: u32, chunk: Chunk, in_chunk: u32) {
        let first = self.first_page(dense, &chunk, chunk.first, in_chunk);
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

    /// Whether the last level has the entry of the second stage; refills it if not.
    #[inline]
    fn second_stage(&mut self, dense: u32, chunk: &Chunk, in_chunk: u32) -> bool {
        let page = match chunk.second {
            PageSize::Small => Page {
                size: PageSize::Small,
                number: chunk.physical << self.page_bits | in_chunk,
                tag: SECOND | dense << self.page_bits | in_chunk,
            },
            PageSize::Huge => Page {
                size: PageSize::Huge,
                number: chunk.physical,
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
        self.take(id, addresses, |&address| (address, 1));
    }

    fn access_visits(&mut self, id: SpaceId, visits: &[Visit]) {
        let products = self.products(self.chunks.space(id));
        if Recent::new(&self.machine, products)
            .sets
            .iter()
            .any(|sets| sets.is_absent)
        {
            // Repeated accesses are looked up each time.
            for visit in visits {
                let accesses = [visit.address(); 16];
                self.access(id, &accesses[..visit.accesses() as usize]);
            }
            return;
        }
        self.take(id, visits, |visit| (visit.address(), visit.accesses()));
    }

    fn remap(&mut self, id: SpaceId, stage: Stage, chunk: u64, size: PageSize) {
        let Some(dense) = self.chunks.dense(id, chunk) else {
            return;
        };
        if !self.chunks.resize(dense, stage, size) {
            return;
        }
        self.recent = [EMPTY; RECENT];
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
