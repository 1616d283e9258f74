//! Sizes of objects: a table of numbers of 32 bits that starts with 0 and 8 and rises to 256 KiB, with the
//! table of how many move at once in front of it.

use super::super::scattered::Scattered;
use super::Words;

/// Largest size of a class (`kMaxSize`).
const LARGEST: u32 = 256 << 10;
/// Room in each table (`kClassSizesMax`): from 2.8 on, and before.
const ROOMS: [u64; 2] = [128, 96];
/// Fewest and most classes.
const FEWEST: usize = 20;
/// Most objects that move at once (`kMaxDynamicFreeListLength`).
const MOST_MOVED: u32 = 8192;

/// The classes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Classes {
    /// Size of each class, 0 for the first.
    pub sizes: Vec<u64>,
    /// How many objects of each move between caches at once.
    pub moved: Vec<u64>,
}

impl Classes {
    pub fn size(&self, class: usize) -> Option<u64> {
        self.sizes.get(class).copied().filter(|size| *size > 0)
    }
}

/// The table.
pub(super) fn find(data: &Words, words: &mut Scattered<'_>) -> Option<Classes> {
    data.0.iter().find_map(|&(place, word)| {
        // 0 and 8 are one word, or the second half of one and the first of the next.
        let at = match word {
            0x8_0000_0000 => place,
            _ if word & 0xffff_ffff == 8 => place.checked_sub(4)?,
            _ => return None,
        };
        table(at, words)
    })
}

fn table(at: u64, words: &mut Scattered<'_>) -> Option<Classes> {
    let mut sizes = Vec::new();
    for number in 0..ROOMS[0] {
        let size = number_at(at + 4 * number, words)?;
        match sizes.last() {
            None if size == 0 => {}
            Some(last) if u64::from(size) > *last => {}
            _ => return None,
        }
        sizes.push(u64::from(size));
        if size == LARGEST {
            break;
        }
    }
    let is_whole = sizes.len() >= FEWEST && sizes.last() == Some(&u64::from(LARGEST));
    is_whole.then_some(())?;
    let moved = ROOMS.into_iter().find_map(|room| {
        let moved = (0..sizes.len() as u64).map(|class| {
            let count = number_at((at + 4 * class).checked_sub(4 * room)?, words)?;
            let is_count = class == 0 || (2..=MOST_MOVED).contains(&count);
            is_count.then_some(u64::from(count))
        });
        moved.collect()
    });
    Some(Classes {
        moved: moved.unwrap_or_else(|| vec![0; sizes.len()]),
        sizes,
    })
}

/// The number of 32 bits at a multiple of four.
pub(super) fn number_at(at: u64, words: &mut Scattered<'_>) -> Option<u32> {
    let word = words.word(at / 8 * 8).ok()?;
    u32::try_from(word >> (8 * (at % 8)) & 0xffff_ffff).ok()
}
