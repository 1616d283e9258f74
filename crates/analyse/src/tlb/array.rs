//! Arrays of TLB entries, made for speed.
//!
//! A tag is 32 bits ([`super::chunks`] numbers pages densely). All tags of a set are compared at
//! once: each contributes its way where it matches, and the contributions are combined by OR, which
//! compilers turn into a few vector instructions on any machine. Up to 16 ways the order of use is a
//! permutation of ways in the 16 nibbles of a word; beyond that each way has a stamp.

use super::machine::{Array as Description, Index};
use super::replacement::{Draws, Replacement, plru_touch, plru_victim};

/// No entry.
pub const EMPTY: u32 = u32::MAX;
/// A lane that is no way: matches nothing that is looked up.
const PAD: u32 = u32::MAX - 1;
const ONES: u64 = 0x1111_1111_1111_1111;
const EIGHTS: u64 = 0x8888_8888_8888_8888;

/// An array of any shape.
#[derive(Clone, Debug)]
pub enum Array {
    Four(Sets<4>),
    Eight(Sets<8>),
    Twelve(Sets<12>),
    Sixteen(Sets<16>),
    Wide(Wide),
}

macro_rules! each {
    ($self:ident, $array:ident => $body:expr) => {
        match $self {
            Array::Four($array) => $body,
            Array::Eight($array) => $body,
            Array::Twelve($array) => $body,
            Array::Sixteen($array) => $body,
            Array::Wide($array) => $body,
        }
    };
}

impl Array {
    pub fn new(description: &Description) -> Self {
        match description.ways {
            0..=4 => Self::Four(Sets::new(description)),
            5..=8 => Self::Eight(Sets::new(description)),
            9..=12 => Self::Twelve(Sets::new(description)),
            13..=16 => Self::Sixteen(Sets::new(description)),
            _ => Self::Wide(Wide::new(description)),
        }
    }

    /// Whether the entry is there; marks it as used.
    #[inline]
    pub fn hit(&mut self, number: u64, tag: u32) -> bool {
        each!(self, array => array.hit(number, tag))
    }

    /// Puts in an entry that is not there; returns what it replaced, or [`EMPTY`].
    #[inline]
    pub fn fill(&mut self, number: u64, tag: u32) -> u32 {
        each!(self, array => array.fill(number, tag))
    }

    /// Drops entries whose tag matches.
    pub fn drop_where(&mut self, matches: impl Fn(u32) -> bool) {
        let (tags, free): (&mut [u32], &mut usize) = match self {
            Self::Four(array) => (array.tags.as_flattened_mut(), &mut array.free),
            Self::Eight(array) => (array.tags.as_flattened_mut(), &mut array.free),
            Self::Twelve(array) => (array.tags.as_flattened_mut(), &mut array.free),
            Self::Sixteen(array) => (array.tags.as_flattened_mut(), &mut array.free),
            Self::Wide(array) => (&mut array.tags, &mut array.free),
        };
        for tag in tags {
            if *tag < PAD && matches(*tag) {
                *tag = EMPTY;
                *free += 1;
            }
        }
    }
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

/// Sets of up to `LANES` ways, at most 16.
#[derive(Clone, Debug)]
pub struct Sets<const LANES: usize> {
    tags: Vec<[u32; LANES]>,
    /// LRU and FIFO: ways from the most recent in nibbles. Tree-PLRU: its bits.
    orders: Vec<u64>,
    /// Entries without a tag.
    free: usize,
    indexing: Indexing,
    ways: usize,
    replacement: Replacement,
    draws: Draws,
}

/// The way of `tag`, or `LANES` where it isn't.
#[inline]
fn find<const LANES: usize>(tags: &[u32; LANES], tag: u32) -> usize {
    let mut found = 0_u32;
    for (way, &other) in tags.iter().enumerate() {
        found |= if other == tag { way as u32 + 1 } else { 0 };
    }
    // 0 becomes u32::MAX.
    found.wrapping_sub(1) as usize
}

impl<const LANES: usize> Sets<LANES> {
    fn new(description: &Description) -> Self {
        let ways = description.ways as usize;
        let sets = description.sets() as usize;
        let tags = std::array::from_fn(|way| if way < ways { EMPTY } else { PAD });
        let order = match description.replacement {
            Replacement::TreePlru => 0,
            // Nibbles that are no ways are never looked for.
            _ => (0..16).fold(0, |order, way: u64| order | (way << (4 * way))),
        };
        Self {
            tags: vec![tags; sets],
            orders: vec![order; sets],
            free: sets * ways,
            indexing: Indexing::new(description),
            ways,
            replacement: description.replacement,
            draws: Draws::default(),
        }
    }

    #[inline]
    fn hit(&mut self, number: u64, tag: u32) -> bool {
        let set = self.indexing.set(number);
        let way = find(&self.tags[set], tag);
        if way >= LANES {
            return false;
        }
        match self.replacement {
            Replacement::Lru => self.orders[set] = moved_to_front(self.orders[set], way),
            Replacement::TreePlru => self.orders[set] = self.plru(set, way),
            Replacement::Fifo | Replacement::Random => {}
        }
        true
    }

    #[inline]
    fn fill(&mut self, number: u64, tag: u32) -> u32 {
        let set = self.indexing.set(number);
        let way = match self.empty(set) {
            Some(way) => way,
            None => self.victim(set),
        };
        match self.replacement {
            Replacement::Lru | Replacement::Fifo => {
                self.orders[set] = moved_to_front(self.orders[set], way);
            }
            Replacement::TreePlru => self.orders[set] = self.plru(set, way),
            Replacement::Random => {}
        }
        std::mem::replace(&mut self.tags[set][way], tag)
    }

    /// The lowest way without a tag, taken.
    #[inline]
    fn empty(&mut self, set: usize) -> Option<usize> {
        if self.free == 0 {
            return None;
        }
        let way = self.tags[set].iter().position(|&tag| tag == EMPTY)?;
        self.free -= 1;
        Some(way)
    }

    fn victim(&mut self, set: usize) -> usize {
        let order = self.orders[set];
        match self.replacement {
            Replacement::Lru | Replacement::Fifo => {
                ((order >> (4 * (self.ways - 1))) & 0xF) as usize
            }
            Replacement::TreePlru => plru_victim(u128::from(order), self.ways),
            Replacement::Random => self.draws.way(self.ways),
        }
    }

    fn plru(&self, set: usize, way: usize) -> u64 {
        plru_touch(u128::from(self.orders[set]), self.ways, way) as u64
    }
}

/// The permutation with `way` moved to its lowest nibble.
#[inline]
fn moved_to_front(order: u64, way: usize) -> u64 {
    let way = way as u64;
    if order & 0xF == way {
        return order;
    }
    // The lowest nibble that becomes zero is the way's; those above may be marked too, by borrow.
    let differs = order ^ (way * ONES);
    let zeros = differs.wrapping_sub(ONES) & !differs & EIGHTS;
    let at = zeros.trailing_zeros() & !3;
    let below = (1_u64 << at) - 1;
    let through = (0x10_u64 << at).wrapping_sub(1);
    (order & !through) | ((order & below) << 4) | way
}

/// Sets of more than 16 ways.
#[derive(Clone, Debug)]
pub struct Wide {
    /// Lanes of all sets, one set after another.
    tags: Vec<u32>,
    /// LRU: time of last use; FIFO: of filling. Below `i32::MAX`.
    stamps: Vec<i32>,
    clock: i32,
    plru: Vec<u128>,
    /// Where a tag was last found, by its low bits: a guess that is checked.
    hints: Vec<u32>,
    /// Entries without a tag.
    free: usize,
    indexing: Indexing,
    ways: usize,
    lanes: usize,
    replacement: Replacement,
    draws: Draws,
}

const HINTS: usize = 1024;
const VECTOR: usize = 8;

impl Wide {
    fn new(description: &Description) -> Self {
        let ways = description.ways as usize;
        let lanes = ways.next_multiple_of(VECTOR);
        let sets = description.sets() as usize;
        let lane = |at: usize| if at % lanes < ways { EMPTY } else { PAD };
        Self {
            tags: (0..sets * lanes).map(lane).collect(),
            stamps: vec![i32::MIN; sets * lanes],
            clock: i32::MIN + 1,
            plru: vec![0; sets],
            hints: vec![0; HINTS],
            free: sets * ways,
            indexing: Indexing::new(description),
            ways,
            lanes,
            replacement: description.replacement,
            draws: Draws::default(),
        }
    }

    /// The place of `tag` among the tags of its set.
    #[inline]
    fn find(&self, base: usize, tag: u32) -> Option<usize> {
        let mut found = 0_u32;
        let mut first = 1_u32;
        for tags in self.tags[base..base + self.lanes].chunks_exact(VECTOR) {
            for (lane, &other) in tags.iter().enumerate() {
                found |= if other == tag { first + lane as u32 } else { 0 };
            }
            first += VECTOR as u32;
        }
        (found > 0).then(|| base + found as usize - 1)
    }

    #[inline]
    fn hit(&mut self, number: u64, tag: u32) -> bool {
        let hint = &mut self.hints[tag as usize % HINTS];
        let guess = *hint as usize;
        let at = if self.tags[guess] == tag {
            guess
        } else {
            let base = self.indexing.set(number) * self.lanes;
            let Some(at) = self.find(base, tag) else {
                return false;
            };
            self.hints[tag as usize % HINTS] = at as u32;
            at
        };
        match self.replacement {
            Replacement::Lru => self.stamp(at),
            Replacement::TreePlru => self.touch(at),
            Replacement::Fifo | Replacement::Random => {}
        }
        true
    }

    fn fill(&mut self, number: u64, tag: u32) -> u32 {
        let base = self.indexing.set(number) * self.lanes;
        let at = match self.empty(base) {
            Some(at) => at,
            None => base + self.victim(base),
        };
        match self.replacement {
            Replacement::Lru | Replacement::Fifo => self.stamp(at),
            Replacement::TreePlru => self.touch(at),
            Replacement::Random => {}
        }
        self.hints[tag as usize % HINTS] = at as u32;
        std::mem::replace(&mut self.tags[at], tag)
    }

    fn empty(&mut self, base: usize) -> Option<usize> {
        if self.free == 0 {
            return None;
        }
        let tags = &self.tags[base..base + self.ways];
        let place = tags.iter().position(|&tag| tag == EMPTY)?;
        self.free -= 1;
        Some(base + place)
    }

    fn victim(&mut self, base: usize) -> usize {
        match self.replacement {
            Replacement::Lru | Replacement::Fifo => {
                let stamps = &self.stamps[base..base + self.ways];
                let oldest = stamps.iter().fold(i32::MAX, |a, &b| a.min(b));
                stamps.iter().position(|&s| s == oldest).unwrap_or(0)
            }
            Replacement::TreePlru => plru_victim(self.plru[base / self.lanes], self.ways),
            Replacement::Random => self.draws.way(self.ways),
        }
    }

    #[inline]
    fn stamp(&mut self, at: usize) {
        self.stamps[at] = self.clock;
        self.clock += 1;
        if self.clock == i32::MAX {
            self.renumber();
        }
    }

    /// Gives all stamps anew in the same order, so that the clock can run on.
    #[cold]
    fn renumber(&mut self) {
        let mut order: Vec<usize> = (0..self.stamps.len()).collect();
        order.sort_by_key(|&at| self.stamps[at]);
        self.clock = i32::MIN + 1;
        for at in order {
            self.stamps[at] = self.clock;
            self.clock += 1;
        }
    }

    fn touch(&mut self, at: usize) {
        let (set, way) = (at / self.lanes, at % self.lanes);
        self.plru[set] = plru_touch(self.plru[set], self.ways, way);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_way_moves_to_the_front_of_any_permutation() {
        let mut order = 0xFEDC_BA98_7654_3210_u64;
        let mut ways: Vec<usize> = (0..16).collect();
        let mut draws = Draws::default();
        for _ in 0..10_000 {
            let way = draws.way(16);
            let at = ways.iter().position(|&w| w == way).unwrap();
            ways.remove(at);
            ways.insert(0, way);
            order = moved_to_front(order, way);
            let nibbles: Vec<usize> = (0..16).map(|n| (order >> (4 * n) & 15) as usize).collect();
            assert_eq!(nibbles, ways);
        }
    }

    #[test]
    fn stamps_are_renewed_in_order() {
        let description = Description {
            holds: vec![],
            entries: 24,
            ways: 24,
            replacement: Replacement::Lru,
            pages_per_entry: 1,
            index: Index::Linear,
        };
        let mut array = Wide::new(&description);
        for tag in 0..24 {
            array.fill(0, tag);
        }
        array.clock = i32::MAX - 2;
        assert!(array.hit(0, 0) && array.hit(0, 1) && array.hit(0, 2));
        assert!(array.clock < 0, "renumbered");
        assert_eq!(array.fill(0, 100), 3, "the least recently used goes");
    }
}
