//! jemalloc (5.0 to 5.3), read by its map from pages to extents.
//!
//! An extent is a run of pages in one state: in use as one large block or as a slab of small blocks
//! of one size, or freed (dirty, muzzy, retained). [`tree`] finds the map and leads to all of them;
//! [`extent`] reads one. What the map says of an extent must be what the extent says of itself, and
//! a slab's count of free blocks what its bitmap shows. Blocks in the caches of threads look in use,
//! as in jemalloc's own `stats.allocated`.

mod base;
mod extent;
mod tree;

use super::scattered::Scattered;
use super::tiling::Tiling;
use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Image};
use extent::{Content, Extent, LAYOUTS, Layout};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{HeapFacts, Returns, TileSink, TileState, Unread};
use std::collections::BTreeSet;
use tree::{Leaf, Tree};

/// Reads jemalloc's extents.
pub struct Jemalloc;

/// Its pages, as built for x86-64 and by default for AArch64.
pub(super) const PAGE: u64 = 4096;
/// How often an extent is read again if it changed meanwhile.
const ATTEMPTS: usize = 3;
/// Extents that show the layout.
const SAMPLE: u64 = 4096;
/// The part (1 in so many) of the extents that may have changed while they were read.
const MAY_CHANGE: u64 = 50;

impl AllocatorReader for Jemalloc {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let data = writable_data(maps, |_| true);
        let mut words = Scattered::new(image);
        let mut found = HeapsRead::default();
        for tree in tree::find(image, &mut words, &data) {
            let Some(layout) = layout(&tree, &mut words) else {
                continue;
            };
            let (facts, changed) = heap(&tree, layout, &mut words, sink);
            found.unread.extend(changed);
            found.heaps.extend(facts);
        }
        found
    }
}

/// The layout with which most extents in use agree with the map. Freed ones agree with any.
fn layout(tree: &Tree, words: &mut Scattered<'_>) -> Option<&'static Layout> {
    let mut best = (0, None);
    for layout in &LAYOUTS {
        let (mut looked_at, mut sound, mut used, mut end) = (0, 0, 0, 0);
        let mut extents = words.again();
        tree.each(words, &mut |leaf| {
            // Inside a freed extent, the map has what was there before.
            if leaf.address < end {
                return true;
            }
            looked_at += 1;
            if let Ok(extent) = extent::read(&mut extents, &leaf, layout) {
                end = extent.start + extent.size;
                sound += 1;
                used += u64::from(extent.content != Content::Freed);
            }
            looked_at < SAMPLE
        });
        if sound > looked_at / 2 && used > best.0 {
            best = (used, Some(layout));
        }
    }
    best.1
}

/// The heap behind the tree, and what of it could not be read; none if that is too much.
fn heap(
    tree: &Tree,
    layout: &Layout,
    words: &mut Scattered<'_>,
    sink: &mut dyn TileSink,
) -> (Option<HeapFacts>, Vec<(u64, u64, Unread)>) {
    let mut unread: Vec<(u64, u64, Unread)> = Vec::new();
    let mut arenas = BTreeSet::new();
    let mut tiling = Tiling::new(sink, AllocatorKind::Jemalloc);
    let mut blocks = base::Blocks::default();
    let mut end = 0;
    let mut extents = words.again();
    blocks.note(&mut extents, tree.root);
    tree.each(words, &mut |leaf| {
        if leaf.address < end {
            return true;
        }
        blocks.note(&mut extents, leaf.extent);
        blocks.note(&mut extents, leaf.place);
        match read_again(&mut extents, &leaf, layout) {
            Ok(extent) => {
                tiles(&extent, &mut tiling);
                end = extent.start + extent.size;
                arenas.insert(extent.arena);
            }
            Err(reason) => {
                end = leaf.address + PAGE;
                match unread.last_mut() {
                    Some(last) if last.1 == leaf.address && last.2 == reason => last.1 = end,
                    _ => unread.push((leaf.address, end, reason)),
                }
            }
        }
        true
    });
    let changed: u64 = unread.iter().map(|range| (range.1 - range.0) / PAGE).sum();
    if changed * MAY_CHANGE > tiling.size() / PAGE {
        return (None, unread);
    }
    blocks.tiles(&mut tiling);
    let facts = tiling.heap(arenas.len() as u64, true, Returns::Pages);
    (facts, unread)
}

fn read_again(words: &mut Scattered<'_>, leaf: &Leaf, layout: &Layout) -> Result<Extent, Unread> {
    let mut reason = Unread::Changed;
    for _ in 0..ATTEMPTS {
        match extent::read(words, leaf, layout) {
            Ok(extent) => return Ok(extent),
            Err(why) => reason = why,
        }
        words.forget(leaf.extent);
    }
    Err(reason)
}

fn tiles(extent: &Extent, tiling: &mut Tiling<'_>) {
    let (start, size) = (extent.start, extent.size);
    match &extent.content {
        Content::Large { bytes } => tiling.large(start, size, *bytes),
        Content::Freed => tiling.tile(start, size, TileState::Free { kept: 0 }),
        Content::Slab(slab) => {
            let is_free = |number| slab.is_free(number);
            tiling.blocks((start, start + size), (slab.block, slab.count), is_free);
        }
    }
}

#[cfg(test)]
mod tests;
