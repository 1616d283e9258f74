//! Freed blocks in fastbins: lists of small blocks that keep the bit "in use".
//!
//! `malloc_trim` first joins them with their free neighbours (`malloc_consolidate`), so the walk
//! needs them before it starts. A list leads through the heap in no order. A few blocks are followed
//! one by one; for more, one pass over the heap notes all blocks that may be in a list, with their
//! links, and the lists are followed in these notes.

use super::super::Image;
use super::caches::{Ranges, unmasked};
use super::chunks::{ALIGNMENT, Area, Broken, FLAGS, FastBlocks, SMALLEST};
use super::walk::noted;
use std::collections::BTreeSet;

/// Fastbins of an arena.
const BINS: u64 = 10;
/// Most blocks that are followed one by one: at least so many, and one for so many bytes of memory, of
/// which one pass takes as long.
const FEW: usize = 2048;
const BYTES_FOR_ONE: u64 = 8 << 10;
/// Most blocks that are noted (16 bytes each); those behind them count as in use.
const MOST_NOTED: usize = 1 << 23;

/// Why a list was followed no further.
enum Stop {
    /// It ended.
    End,
    /// Its next block is none, or was in a list before.
    Broken,
    /// It has more blocks than may be followed in this way.
    Many,
}

/// The blocks in the fastbins whose heads are at `heads`, of the arena with these heaps.
pub(super) fn read(
    image: &mut Image<'_>,
    heads: u64,
    heaps: &[Area],
) -> Result<FastBlocks, Broken> {
    let parts: Vec<(u64, u64)> = heaps.iter().map(|heap| (heap.first, heap.end)).collect();
    let ranges = Ranges::new(&parts);
    let present = parts
        .iter()
        .map(|part| image.presence().bytes(part.0, part.1).0);
    let few = usize::try_from(present.sum::<u64>() / BYTES_FOR_ONE).unwrap_or(FEW);
    let mut firsts = Vec::new();
    for bin in 0..BINS {
        match image.word(heads + 8 * bin) {
            Ok(first) if first != 0 => firsts.push((first, SMALLEST + ALIGNMENT * bin)),
            _ => {}
        }
    }
    let mut one_by_one = |block: u64, size: u64| {
        let may_be_listed = ranges.contain(block) && block.is_multiple_of(ALIGNMENT);
        may_be_listed.then_some(())?;
        let [word, link] = image.now_all(block + 8).ok()?;
        (word & !FLAGS == size).then_some(())?;
        Some(unmasked(link, block + 16, &ranges))
    };
    if let Some(found) = follow(&firsts, few.max(FEW), &mut one_by_one) {
        return Ok(found);
    }
    let noted = Noted::new(image, heaps, &ranges)?;
    let mut in_notes = |block: u64, _: u64| noted.link(block);
    Ok(follow(&firsts, usize::MAX, &mut in_notes).unwrap_or_default())
}

/// Follows all lists; `None` if they have more than `most` blocks. `link` is the block after one, or 0,
/// if that is a block of this size. It ends because no block is followed twice.
fn follow(
    firsts: &[(u64, u64)],
    most: usize,
    link: &mut dyn FnMut(u64, u64) -> Option<u64>,
) -> Option<FastBlocks> {
    let mut found = BTreeSet::new();
    let mut broken_lists = 0;
    for &(first, size) in firsts {
        let before = found.len();
        let mut at = first;
        let stop = loop {
            if at == 0 {
                break Stop::End;
            }
            if found.len() >= most {
                break Stop::Many;
            }
            match link(at, size) {
                Some(next) if found.insert(at) => at = next,
                _ => break Stop::Broken,
            }
        };
        match stop {
            Stop::End => {}
            // A head that leads to no block at all is not that of a list in this version.
            Stop::Broken => broken_lists += u64::from(found.len() > before),
            Stop::Many => return None,
        }
    }
    Some(FastBlocks {
        blocks: found.into_iter().collect(),
        broken_lists,
    })
}

/// Blocks that may be in a fastbin, by address, each with the next one in its list.
struct Noted(Vec<(u64, u64)>);

impl Noted {
    fn new(image: &mut Image<'_>, heaps: &[Area], ranges: &Ranges) -> Result<Self, Broken> {
        let mut all = Vec::new();
        for heap in heaps {
            let most = MOST_NOTED - all.len();
            all.extend(noted(image, heap, most, |image, block, size| {
                if size > SMALLEST + ALIGNMENT * (BINS - 1) {
                    return None;
                }
                let place = block + 16;
                let next = unmasked(image.word(place).ok()?, place, ranges);
                (next == 0 || ranges.contain(next)).then_some(next)
            })?);
        }
        all.sort_unstable();
        Ok(Self(all))
    }

    fn link(&self, block: u64) -> Option<u64> {
        let at = self.0.binary_search_by_key(&block, |noted| noted.0).ok()?;
        self.0.get(at).map(|noted| noted.1)
    }
}
