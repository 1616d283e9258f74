//! Freed blocks in threads' caches (tcache), which look in use.
//!
//! A thread's cache is itself a block: 64 counts, then 64 heads of lists, one for each size from
//! 0x20 in steps of 0x10. From 2.42 on there are 76, the last 12 for ranges of larger sizes, and the
//! counts say how many more fit. Links are exclusive-ored with their own place (`PROTECT_PTR`, from
//! 2.32 on). A block is a cache only if every list leads through blocks of its size to its end.

use super::super::Image;
use super::chunks::{ALIGNMENT, CACHE_SIZES, FLAGS, SMALLEST};

/// Lists of small sizes, and all from 2.42 on.
const SMALL: u64 = 64;
const ALL: u64 = 76;
/// Longest list that is followed; the default is 7 blocks, or 16 from 2.42 on.
const LONGEST: usize = 4096;

/// Address ranges, for fast look-up.
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub fn new(ranges: &[(u64, u64)]) -> Self {
        let mut ranges = ranges.to_vec();
        ranges.sort_unstable();
        Self(ranges)
    }

    pub fn contain(&self, address: u64) -> bool {
        let before = self.0.partition_point(|range| range.0 <= address);
        let range = before.checked_sub(1).and_then(|at| self.0.get(at));
        range.is_some_and(|range| address < range.1)
    }
}

/// Blocks in the cache that is in the block at `block`, with their sizes; none if it is no cache.
pub(super) fn thread_cache(image: &mut Image<'_>, block: u64, heaps: &Ranges) -> Vec<(u64, u64)> {
    lists(image, block, heaps).unwrap_or_default()
}

/// Whether the block of this size may hold a cache with blocks in it: any list has a head, and all heads
/// may be blocks. The program's own blocks of such a size are ruled out by their first words. Nothing is
/// read for it: what the walk has not at hand is unknown, and may be anything.
pub(super) fn may_be_cache(image: &Image<'_>, block: u64, size: u64) -> bool {
    let Some(Shape { lists, heads, .. }) = Shape::new(block, size) else {
        return false;
    };
    let mut has_blocks = false;
    for list in 0..lists {
        match image.kept(heads + 8 * list) {
            Some(head) if !head.is_multiple_of(ALIGNMENT) => return false,
            Some(0) => {}
            Some(_) | None => has_blocks = true,
        }
    }
    has_blocks
}

/// Where a cache has its lists.
struct Shape {
    lists: u64,
    count_bytes: u64,
    /// Addresses of the counts, and of the heads of the lists.
    counts: u64,
    heads: u64,
}

impl Shape {
    /// That of a cache in the block of this size; `None` if no cache has it.
    fn new(block: u64, size: u64) -> Option<Self> {
        let [first, second, third] = CACHE_SIZES;
        let (lists, count_bytes) = match size {
            _ if size == first => (SMALL, 1),
            _ if size == second => (SMALL, 2),
            _ if size == third => (ALL, 2),
            _ => return None,
        };
        let counts = block + 16;
        Some(Self {
            lists,
            count_bytes,
            counts,
            heads: (counts + lists * count_bytes).next_multiple_of(8),
        })
    }
}

fn lists(image: &mut Image<'_>, block: u64, heaps: &Ranges) -> Option<Vec<(u64, u64)>> {
    let size = image.word(block + 8).ok()? & !FLAGS;
    let Shape {
        lists,
        count_bytes,
        counts,
        heads,
    } = Shape::new(block, size)?;
    let mut found = Vec::new();
    for list in 0..lists {
        let head = image.word(heads + 8 * list).ok()?;
        let sizes = match list < SMALL {
            true => (SMALLEST + ALIGNMENT * list)..=(SMALLEST + ALIGNMENT * list),
            false => (SMALLEST + ALIGNMENT * SMALL)..=(4 << 20) + ALIGNMENT,
        };
        let before = found.len();
        follow(image, head, sizes, heaps, LONGEST, &mut found)?;
        if lists == SMALL {
            let place = counts + list * count_bytes;
            let word = image.word(place / 8 * 8).ok()?;
            let count = (word >> (8 * (place % 8))) & ((1 << (8 * count_bytes)) - 1);
            let length = u64::try_from(found.len() - before).ok()?;
            (count == length).then_some(())?;
        }
    }
    Some(found)
}

/// Follows a list of blocks from the first one's bytes; `None` if it does not end as it should.
fn follow(
    image: &mut Image<'_>,
    head: u64,
    sizes: std::ops::RangeInclusive<u64>,
    heaps: &Ranges,
    longest: usize,
    found: &mut Vec<(u64, u64)>,
) -> Option<()> {
    let mut at = head;
    for _ in 0..longest {
        if at == 0 {
            return Some(());
        }
        let block = at.checked_sub(16)?;
        if !at.is_multiple_of(ALIGNMENT) || !heaps.contain(block) {
            return None;
        }
        let size = image.word(block + 8).ok()? & !FLAGS;
        sizes.contains(&size).then_some(())?;
        found.push((block, size));
        let link = image.word(at).ok()?;
        at = unmasked(link, at, heaps);
    }
    None
}

/// The link that was stored at `place`.
pub(super) fn unmasked(link: u64, place: u64, heaps: &Ranges) -> u64 {
    let plain = link ^ (place >> 12);
    match plain == 0 || heaps.contain(plain) {
        true => plain,
        // Before 2.32.
        false => link,
    }
}
