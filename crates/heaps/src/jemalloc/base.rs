//! jemalloc's memory for its own data: blocks at multiples of 2 MiB that start with their size and
//! the address of the block before.

use super::super::scattered::Scattered;
use super::super::tiling::Tiling;
use pagewise_model::memory::TileState;
use std::collections::{BTreeMap, BTreeSet};

/// Alignment and unit of these blocks (`BASE_BLOCK_MIN_ALIGN`).
const UNIT: u64 = 2 << 20;
/// Largest block, and most of them.
const LARGEST: u64 = 256 << 20;
const MOST: usize = 1 << 16;

/// The blocks that were found: start and size.
#[derive(Default)]
pub(super) struct Blocks {
    found: BTreeMap<u64, u64>,
    /// Places of unit size that are in none.
    missed: BTreeSet<u64>,
}

impl Blocks {
    /// Looks for the block that holds this address, and for those it leads to. Whether there is one.
    pub fn note(&mut self, words: &mut Scattered<'_>, address: u64) -> bool {
        if self.holds(address) {
            return true;
        }
        if self.missed.contains(&(address / UNIT)) {
            return false;
        }
        let start = address / UNIT * UNIT;
        let mut candidates = (0..LARGEST / UNIT).filter_map(|back| start.checked_sub(back * UNIT));
        let found = candidates.find_map(|at| {
            let size = size(words, at)?;
            (address < at + size).then_some(at)
        });
        let Some(mut at) = found else {
            self.missed.insert(address / UNIT);
            return false;
        };
        while at != 0 && self.found.len() < MOST && !self.found.contains_key(&at) {
            let Some(size) = size(words, at) else {
                break;
            };
            self.found.insert(at, size);
            at = words.word(at + 8).unwrap_or(0);
        }
        true
    }

    fn holds(&self, address: u64) -> bool {
        let before = self.found.range(..=address).next_back();
        before.is_some_and(|(start, size)| address < start + size)
    }

    /// Their tiles.
    pub fn tiles(&self, tiling: &mut Tiling<'_>) {
        for (start, size) in &self.found {
            tiling.tile(*start, *size, TileState::Bookkeeping);
        }
    }
}

/// The size of the block at `start`, if one starts there: behind size and link it describes the part
/// of itself that is not used yet.
fn size(words: &mut Scattered<'_>, start: u64) -> Option<u64> {
    if !start.is_multiple_of(UNIT) {
        return None;
    }
    let size = words.word(start).ok()?;
    let rest = words.word(start + 24).ok()?;
    let is_block = size > 0 && size <= LARGEST && size.is_multiple_of(UNIT);
    (is_block && (start..=start + size).contains(&rest)).then_some(size)
}
