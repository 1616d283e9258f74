//! LRU of few ways: a word says in which order a set's ways were used.

use super::ordered::{Ordered, Uses, masked, with_empty};

/// Which of up to 8 ways was used after which, as a matrix of bits: bit `j` of byte `i` says that way
/// `i` was used after way `j`. The oldest way's byte is 0.
#[derive(Clone, Debug)]
pub struct Matrix {
    sets: Vec<u64>,
    ways: u32,
}

/// A [`Matrix`] in a loop.
struct LentMatrix<'a> {
    sets: &'a mut [u64],
    mask: usize,
    /// One bit for each way.
    row: u64,
}

/// Bit 0 of each byte.
const ONES: u64 = 0x0101_0101_0101_0101;
/// Bit 7 of each byte.
const TOPS: u64 = ONES << 7;

impl Matrix {
    pub fn new(sets: usize, ways: usize) -> Self {
        let oldest_first: Vec<u8> = (0..ways).map(|way| way as u8).collect();
        let mut matrix = Self {
            sets: Vec::new(),
            ways: ways as u32,
        };
        matrix.sets = vec![matrix.ordered(&oldest_first); sets];
        matrix
    }

    /// The matrix of these ways. Bytes of ways that are not there are never 0.
    fn ordered(&self, oldest_first: &[u8]) -> u64 {
        let none = u64::MAX.checked_shl(8 * self.ways).unwrap_or(0);
        let (mut matrix, mut older) = (none, 0);
        for &way in oldest_first {
            matrix |= older << (8 * way);
            older |= 1_u64 << way;
        }
        matrix
    }
}

impl LentMatrix<'_> {
    /// Makes a way the most recent one.
    #[inline(always)]
    fn newest(&self, matrix: u64, way: usize) -> u64 {
        // No more than 8 ways: what the compiler would otherwise mask again.
        let way = way % 8;
        (matrix | self.row << (8 * way)) & !(ONES << way)
    }
}

impl Ordered for Matrix {
    #[inline(always)]
    fn lent(&mut self) -> impl Uses {
        let (sets, mask) = masked(&mut self.sets);
        let row = (1 << self.ways) - 1;
        LentMatrix { sets, mask, row }
    }

    fn emptied(&mut self, set: usize, way: usize, is_empty: impl Fn(usize) -> bool) {
        let matrix = self.sets[set];
        let age = |way: &u8| matrix.to_le_bytes()[usize::from(*way)].count_ones();
        let mut oldest_first: Vec<u8> = (0..self.ways as u8).collect();
        oldest_first.sort_by_key(age);
        self.sets[set] = self.ordered(&with_empty(oldest_first, way, is_empty));
    }
}

impl Uses for LentMatrix<'_> {
    #[inline(always)]
    fn used(&mut self, set: usize, way: usize) {
        let at = set & self.mask;
        self.sets[at] = self.newest(self.sets[at], way);
    }

    #[inline(always)]
    fn replace(&mut self, set: usize) -> usize {
        let at = set & self.mask;
        let matrix = self.sets[at];
        // The lowest byte that is 0; higher ones may be marked too, by a borrow.
        let zeros = matrix.wrapping_sub(ONES) & !matrix & TOPS;
        let way = (zeros.trailing_zeros() / 8) as usize;
        self.sets[at] = self.newest(matrix, way);
        way
    }
}

/// A permutation of up to 16 ways in the nibbles of a word, the oldest lowest.
#[derive(Clone, Debug)]
pub struct Nibbles {
    orders: Vec<u64>,
    /// Position of the most recent way's lowest bit; nibbles above are 0.
    newest: u32,
}

/// [`Nibbles`] in a loop.
struct LentNibbles<'a> {
    orders: &'a mut [u64],
    mask: usize,
    newest: u32,
}

const NIBBLES: u64 = 0x1111_1111_1111_1111;
const EIGHTS: u64 = NIBBLES << 3;

/// Each way in all nibbles.
const REPEATED: [u64; 16] = {
    let mut repeated = [0; 16];
    let mut way = 0;
    while way < 16 {
        repeated[way] = way as u64 * NIBBLES;
        way += 1;
    }
    repeated
};

impl Nibbles {
    pub fn new(sets: usize, ways: usize) -> Self {
        let oldest_first: Vec<u8> = (0..ways).map(|way| way as u8).collect();
        Self {
            orders: vec![nibbles(&oldest_first); sets],
            newest: 4 * (ways as u32 - 1),
        }
    }
}

impl Ordered for Nibbles {
    #[inline(always)]
    fn lent(&mut self) -> impl Uses {
        let (orders, mask) = masked(&mut self.orders);
        LentNibbles {
            orders,
            mask,
            newest: self.newest,
        }
    }

    fn emptied(&mut self, set: usize, way: usize, is_empty: impl Fn(usize) -> bool) {
        let order = self.orders[set];
        let nibble = |at| (order >> (4 * at) & 0xF) as u8;
        let oldest_first = (0..=self.newest / 4).map(nibble).collect();
        self.orders[set] = nibbles(&with_empty(oldest_first, way, is_empty));
    }
}

impl Uses for LentNibbles<'_> {
    #[inline(always)]
    fn used(&mut self, set: usize, way: usize) {
        let order = &mut self.orders[set & self.mask];
        *order = moved_to_end(*order, way, self.newest);
    }

    #[inline(always)]
    fn replace(&mut self, set: usize) -> usize {
        let order = &mut self.orders[set & self.mask];
        let oldest = *order & 0xF;
        *order = *order >> 4 | oldest << self.newest;
        oldest as usize
    }
}

/// The permutation of these ways, the oldest first.
fn nibbles(oldest_first: &[u8]) -> u64 {
    let order = |order, way: &u8| order << 4 | u64::from(*way);
    oldest_first.iter().rev().fold(0, order)
}

/// The permutation with `way` moved to its end, whose lowest bit is at `newest`.
#[inline(always)]
fn moved_to_end(order: u64, way: usize, newest: u32) -> u64 {
    // The lowest nibble that becomes zero belongs to the way; higher ones may be marked too, by a
    // borrow or because they belong to no way.
    let differs = order ^ REPEATED[way % 16];
    let zeros = differs.wrapping_sub(NIBBLES) & !differs & EIGHTS;
    // That nibble and those below it.
    let upto = zeros ^ zeros.wrapping_sub(1);
    (order & upto >> 4) | (order & !upto) >> 4 | (way as u64) << newest
}
