//! One extent, as `edata_t` (5.3) or `extent_t` (before) describes it.
//!
//! ```text
//!  +0   bits: arena 12 │ slab 1 │ … │ state │ size class 8 │ free blocks 10 │ …
//!  +8   address
//!  +16  size in whole pages; a number below
//!  +64  a bit for each block of a slab, set while it is free
//! ```

use super::super::scattered::Scattered;
use super::PAGE;
use super::tree::Leaf;
use pagewise_model::memory::Unread;

/// Where the bits of one range of versions are.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    state: u32,
    state_mask: u64,
    class: u32,
    free: u32,
}

/// 5.3, then 5.1 and 5.2, then 5.0.
pub(super) const LAYOUTS: [Layout; 3] = [
    Layout {
        state: 17,
        state_mask: 7,
        class: 20,
        free: 28,
    },
    Layout {
        state: 16,
        state_mask: 3,
        class: 18,
        free: 26,
    },
    Layout {
        state: 15,
        state_mask: 3,
        class: 17,
        free: 25,
    },
];

const ARENA_MASK: u64 = 0xfff;
const IS_SLAB: u64 = 1 << 12;
/// `extent_state_active`, and the last of the states in which an extent rests.
const ACTIVE: u64 = 0;
const RETAINED: u64 = 3;
const BITMAP: u64 = 64;
/// Most blocks in a slab, and words of its bitmap.
const MOST_BLOCKS: u64 = 512;
const WORDS: usize = 8;
/// Largest extent that is believed.
const LARGEST: u64 = 1 << 46;

/// An extent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub start: u64,
    pub size: u64,
    pub arena: u64,
    pub content: Content,
}

/// What an extent is used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// One block; without the page that varies where it starts.
    Large { bytes: u64 },
    /// Blocks of one size.
    Slab(Slab),
    /// Nothing.
    Freed,
}

/// Blocks of one size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Slab {
    pub block: u64,
    pub count: u64,
    pub free: u64,
    bits: [u64; WORDS],
}

impl Slab {
    /// Whether the block of this number is free.
    pub fn is_free(&self, number: u64) -> bool {
        let word = usize::try_from(number / 64).unwrap_or(WORDS);
        self.bits
            .get(word)
            .is_some_and(|bits| bits >> (number % 64) & 1 != 0)
    }
}

/// Reads the extent to which a leaf of the map leads.
///
/// # Errors
/// Where it cannot be read, or contradicts the map or itself.
pub(super) fn read(
    words: &mut Scattered<'_>,
    leaf: &Leaf,
    layout: &Layout,
) -> Result<Extent, Unread> {
    let bits = word(words, leaf.extent)?;
    let start = word(words, leaf.extent + 8)? / PAGE * PAGE;
    let size = word(words, leaf.extent + 16)? / PAGE * PAGE;
    let holds = size > 0 && size < LARGEST && leaf.address >= start && leaf.address - start < size;
    let state = bits >> layout.state & layout.state_mask;
    let (class, is_slab) = (bits >> layout.class & 0xff, bits & IS_SLAB != 0);
    // Class and slab of a freed extent are those of its last use, and the map's those of another.
    let agrees = state != ACTIVE || (class == leaf.class && is_slab == leaf.is_slab);
    if !holds || state > RETAINED || !agrees {
        return Err(Unread::Changed);
    }
    let content = match (state, is_slab) {
        (ACTIVE, true) => Content::Slab(slab(words, leaf.extent, class, size, bits, layout)?),
        (ACTIVE, false) => Content::Large {
            bytes: size_of_class(class)
                .filter(|bytes| *bytes <= size)
                .unwrap_or(size),
        },
        _ => Content::Freed,
    };
    Ok(Extent {
        start,
        size,
        arena: bits & ARENA_MASK,
        content,
    })
}

fn slab(
    words: &mut Scattered<'_>,
    extent: u64,
    class: u64,
    size: u64,
    bits: u64,
    layout: &Layout,
) -> Result<Slab, Unread> {
    let block = size_of_class(class).ok_or(Unread::Changed)?;
    let count = size / block;
    let free = bits >> layout.free & 0x3ff;
    if count == 0 || count > MOST_BLOCKS {
        return Err(Unread::OtherLayout);
    }
    let mut map = [0; WORDS];
    for (at, place) in (0..count.div_ceil(64)).zip(&mut map) {
        *place = word(words, extent + BITMAP + 8 * at)?;
    }
    let shown: u64 = map.iter().map(|word| u64::from(word.count_ones())).sum();
    let slab = Slab {
        block,
        count,
        free,
        bits: map,
    };
    let is_past_the_end = (count..count.next_multiple_of(64)).any(|number| slab.is_free(number));
    match shown == free && !is_past_the_end {
        true => Ok(slab),
        false => Err(Unread::Changed),
    }
}

/// Bytes of the blocks of a class: 8, then multiples of 16 up to 128, then four steps for each
/// doubling (jemalloc(3), "Size classes").
fn size_of_class(class: u64) -> Option<u64> {
    match class {
        0 => Some(8),
        1..=8 => Some(16 * class),
        _ => {
            let (doubling, step) = ((class - 9) / 4, (class - 9) % 4);
            let from = 128_u64.checked_shl(u32::try_from(doubling).ok()?)?;
            (doubling < 40).then(|| from + (step + 1) * (from / 4))
        }
    }
}

fn word(words: &mut Scattered<'_>, address: u64) -> Result<u64, Unread> {
    words.word(address).map_err(Unread::from)
}

#[cfg(test)]
mod tests {
    use super::size_of_class;

    #[test]
    fn sizes_of_classes_are_those_of_the_manual() {
        let classes = [0, 1, 8, 9, 12, 13, 28, 36, 39];
        let sizes = classes.map(|class| size_of_class(class).unwrap_or(0));
        let expected = [8, 16, 128, 160, 256, 320, 4096, 16384, 28672];
        assert_eq!(sizes, expected);
    }
}
