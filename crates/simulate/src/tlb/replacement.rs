//! Which entry of a set is replaced.

use serde::Deserialize;

/// How a set chooses the entry to replace once it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Replacement {
    /// The least recently used.
    Lru,
    /// A tree of bits that point away from the most recently used entries (the number of ways must
    /// be a power of two).
    TreePlru,
    /// The one that was filled first.
    Fifo,
    /// Any entry.
    Random,
}

/// Draws for random replacement: xorshift64* (Vigna, 2016), the same in each engine.
#[derive(Clone, Copy, Debug)]
pub struct Draws(u64);

impl Default for Draws {
    fn default() -> Self {
        Self(0x9E37_79B9_7F4A_7C15)
    }
}

impl Draws {
    /// A way below `ways`.
    pub fn way(&mut self, ways: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 32;
        ((high * ways as u64) >> 32) as usize
    }
}

/// The bits of a tree over `ways` leaves, the root at bit 1 and the children of `n` at `2n`, `2n +
/// 1`; a set bit means that the upper half is the older one.
pub fn plru_touch(bits: u128, ways: usize, way: usize) -> u128 {
    let mut bits = bits;
    let mut node = 1;
    let mut half = ways / 2;
    while half > 0 {
        let is_upper = way & half != 0;
        if is_upper {
            bits &= !(1 << node);
        } else {
            bits |= 1 << node;
        }
        node = 2 * node + usize::from(is_upper);
        half /= 2;
    }
    bits
}

/// The leaf that the bits point to.
pub fn plru_victim(bits: u128, ways: usize) -> usize {
    let mut node = 1;
    while node < ways {
        node = 2 * node + usize::from(bits >> node & 1 == 1);
    }
    node - ways
}
