//! The exact engine: every entry of every array.

use super::array::{Array, EMPTY};
use super::chunks::{Chunk, Chunks, HUGE, SECOND};
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
    /// Tag of the last access's product where the first level holds it, else [`EMPTY`]: the same
    /// page again changes nothing.
    last: u32,
}

/// A level's arrays by page size.
#[derive(Clone, Debug)]
struct Level {
    arrays: Vec<Array>,
    /// Place of the array, and binary logarithm of small pages in an entry.
    by_size: [Option<(usize, u32)>; 2],
    is_inclusive: bool,
}

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
            let at = arrays.iter().position(|array| array.holds(size))?;
            let shift = match size {
                PageSize::Small => arrays[at].pages_per_entry.trailing_zeros(),
                PageSize::Huge => 0,
            };
            Some((at, shift))
        };
        Self {
            arrays: description.arrays.iter().map(Array::new).collect(),
            by_size: [place(PageSize::Small), place(PageSize::Huge)],
            is_inclusive: description.is_inclusive,
        }
    }

    fn holds(&self, size: PageSize) -> bool {
        self.by_size[size as usize].is_some()
    }

    #[inline]
    fn hit(&mut self, page: Page) -> bool {
        let Some((at, shift)) = self.by_size[page.size as usize] else {
            return false;
        };
        self.arrays[at].hit(page.number >> shift, grouped(page.tag, shift))
    }

    /// Fills; returns the tag that went, or [`EMPTY`], and the logarithm of the pages it stood for.
    #[inline]
    fn fill(&mut self, page: Page) -> (u32, u32) {
        let Some((at, shift)) = self.by_size[page.size as usize] else {
            return (EMPTY, 0);
        };
        let tag = self.arrays[at].fill(page.number >> shift, grouped(page.tag, shift));
        // What went may be of the other size where both share the array.
        let is_small = tag & HUGE == 0;
        let went_shift = self.by_size[0]
            .filter(|_| is_small)
            .map_or(0, |small| small.1);
        (tag, went_shift)
    }

    fn drop_where(&mut self, page_bits: u32, matches: impl Fn(Covered) -> bool) {
        for (at, array) in self.arrays.iter_mut().enumerate() {
            let small = self.by_size[0].filter(|(place, _)| *place == at);
            let shift = small.map_or(0, |(_, shift)| shift);
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

    fn overlaps(self, other: Self) -> bool {
        if self.dense != other.dense {
            return false;
        }
        match (self.pages, other.pages) {
            (Some((a, shift_a)), Some((b, shift_b))) => {
                let shift = shift_a.max(shift_b);
                a >> shift == b >> shift
            }
            _ => true,
        }
    }
}

impl Exact {
    /// An engine with empty TLBs.
    #[must_use]
    pub fn new(machine: &Machine) -> Self {
        let page_bits = machine.huge_shift() - machine.small_shift();
        Self {
            chunks: Chunks::new(page_bits),
            levels: machine.levels.iter().map(Level::new).collect(),
            walker: Walker::new(machine),
            counts: Counts::default(),
            page_bits,
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

    fn product(&self, dense: u32, chunk: &Chunk, address: u64) -> Page {
        match chunk.product() {
            PageSize::Small => {
                let number = address >> self.machine.small_shift();
                Page {
                    size: PageSize::Small,
                    number,
                    tag: dense << self.page_bits | self.page_in_chunk(number),
                }
            }
            PageSize::Huge => Page {
                size: PageSize::Huge,
                number: chunk.number,
                tag: HUGE | dense,
            },
        }
    }

    fn page_in_chunk(&self, number: u64) -> u32 {
        number as u32 & ((1 << self.page_bits) - 1)
    }

    /// An access whose product the first level was not just asked for.
    fn access_page(&mut self, space: Space, dense: u32, chunk: Chunk, address: u64, page: Page) {
        let is_apart = self.is_apart(space);
        let products = self.levels.len() - usize::from(is_apart);
        for level in 0..products {
            if self.levels[level].hit(page) {
                self.counts.hits[level] += 1;
                self.fill_above(level, page);
                return;
            }
        }
        if is_apart {
            self.both_stages(dense, chunk, address);
        } else {
            self.refill_product(space, chunk, address, page);
        }
        self.fill_above(products, page);
    }

    fn fill_above(&mut self, level: usize, page: Page) {
        for upper in (0..level).rev() {
            self.fill(upper, page);
        }
    }

    fn fill(&mut self, level: usize, page: Page) {
        let (went, shift) = self.levels[level].fill(page);
        if went == EMPTY || !self.levels[level].is_inclusive {
            return;
        }
        let gone = Covered::of(went, shift, self.page_bits);
        for upper in &mut self.levels[..level] {
            upper.drop_where(self.page_bits, |entry| entry.overlaps(gone));
        }
    }

    fn refill_product(&mut self, space: Space, chunk: Chunk, address: u64, page: Page) {
        self.counts.refills[0][page.size as usize] += 1;
        if self.machine.walk.levels == 0 {
            return;
        }
        let machine = &self.machine;
        self.counts.references += match space.second {
            None => self
                .walker
                .native(machine, chunk.space, chunk.number, chunk.first),
            Some(_) => {
                let page = self.page_in_chunk(address >> machine.small_shift());
                let physical = u64::from(chunk.physical) << self.page_bits | u64::from(page);
                let tables = space.second_entries();
                self.walker.guest(
                    machine,
                    chunk.space,
                    &GuestWalk {
                        chunk: chunk.number,
                        first: chunk.first,
                        second: chunk.second,
                        tables,
                        physical,
                    },
                )
            }
        };
    }

    /// Looks both stages up in the last level and refills what it lacks.
    fn both_stages(&mut self, dense: u32, chunk: Chunk, address: u64) {
        let number = address >> self.machine.small_shift();
        let in_chunk = self.page_in_chunk(number);
        let first = match chunk.first {
            PageSize::Small => Page {
                size: PageSize::Small,
                number,
                tag: dense << self.page_bits | in_chunk,
            },
            PageSize::Huge => Page {
                size: PageSize::Huge,
                number: chunk.number,
                tag: HUGE | dense,
            },
        };
        let last = self.levels.len() - 1;
        let has_first = self.levels[last].hit(first);
        if !has_first {
            self.counts.refills[0][first.size as usize] += 1;
            if self.machine.walk.tables_need_second_stage && self.machine.walk.levels > 0 {
                self.tables_of(chunk);
            }
            self.fill(last, first);
        }
        let has_second = self.second_stage(dense, chunk, in_chunk);
        if has_first && has_second {
            self.counts.hits[last] += 1;
        }
    }

    /// Whether the last level has the entry of the second stage; refills it where not.
    fn second_stage(&mut self, dense: u32, chunk: Chunk, in_chunk: u32) -> bool {
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
    fn tables_of(&mut self, chunk: Chunk) {
        let lowest = walk::lowest(chunk.first);
        let machine = &self.machine;
        let read = self
            .walker
            .tables_read(machine, chunk.space, chunk.number, chunk.first);
        for level in (lowest..lowest + read).rev() {
            let table = self
                .walker
                .table(&self.machine, chunk.space, level, chunk.number);
            let of_tables = walk::TABLE_CHUNKS + u64::from(table >> self.page_bits);
            let Some(dense) = self.chunks.dense(chunk.space, of_tables) else {
                continue;
            };
            let tables = *self.chunks.get(dense);
            let in_chunk = table & ((1 << self.page_bits) - 1);
            self.second_stage(dense, tables, in_chunk);
        }
    }
}

impl Engine for Exact {
    fn add(&mut self, space: Space) -> SpaceId {
        self.chunks.add(space)
    }

    fn access(&mut self, id: SpaceId, addresses: &[u64]) {
        let space = self.chunks.space(id);
        let is_apart = self.is_apart(space);
        // Where the first level holds no products, the same page again is looked up again.
        let has_products = self.levels.len() > usize::from(is_apart);
        let shift = self.machine.huge_shift();
        let mut number = u64::MAX;
        let mut dense = 0;
        let mut chunk = None;
        let mut last = self.last;
        let mut repeats = 0;
        for &address in addresses {
            if address >> shift != number || chunk.is_none() {
                number = address >> shift;
                let known = self.chunks.dense(id, number);
                dense = known.unwrap_or(0);
                chunk = known.map(|dense| *self.chunks.get(dense));
            }
            let Some(chunk) = chunk else {
                // More memory than tags can name: no TLB would hold much of it either.
                self.counts.refills[0][0] += 1;
                continue;
            };
            let page = self.product(dense, &chunk, address);
            if page.tag == last {
                repeats += 1;
                continue;
            }
            last = if has_products && self.levels[0].holds(page.size) {
                page.tag
            } else {
                EMPTY
            };
            self.access_page(space, dense, chunk, address, page);
        }
        self.last = last;
        self.counts.hits[0] += repeats;
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
        self.walker.forget(id);
        let is_apart = self.is_apart(self.chunks.space(id));
        let last = self.levels.len() - 1;
        let chunks = &self.chunks;
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
