//! mimalloc 2 (2.0.7 to 2.4), read by its segments; mimalloc 3 by its pages (`third`).
//!
//! ```text
//!  segment    at a multiple of 32 MiB: head │ descriptor of each slice of 64 KiB │ slices
//!  page       one or more slices, with blocks of one size; its descriptor is that of its first slice
//! ```
//!
//! A segment is recognised by its head and by pages that fill its slices without a gap. The blocks in use
//! of a page, and those in its lists of free blocks, must be as many as it has ever used. Builds that
//! encode the lists (`MI_SECURE`) are not read.

mod layout;
mod page;
mod third;

use super::glibc::is_private_memory;
use super::tiling::Tiling;
use super::{AllocatorReader, HeapsRead, Image};
use layout::{LAYOUTS, Layout, SEGMENT, SLICE, SLICES};
use page::{Descriptor, Page};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{Returns, TileSink, TileState, Unread};

/// Reads mimalloc's segments.
pub struct Mimalloc;

/// Most slices of a segment's head.
const MOST_HEAD: u64 = 8;
/// Free slices go back some time after they were freed, with what is freed next: `mi_collect` returned none
/// of them (2.0.9).
const RETURNS: Returns = Returns::Nothing;

impl AllocatorReader for Mimalloc {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut found = HeapsRead::default();
        let segments = segments(maps, image);
        let mut tiling = Tiling::new(sink, AllocatorKind::Mimalloc);
        if segments.is_empty() {
            let parts = third::read(maps, image, &mut tiling, &mut found.unread);
            found.heaps.extend(tiling.heap(parts, true, RETURNS));
            return found;
        }
        for segment in &segments {
            if let Err(reason) = segment.tiles(image, &mut tiling) {
                let end = segment.start + segment.length;
                found.unread.push((segment.start, end, reason));
            }
        }
        let heap = tiling.heap(segments.len() as u64, true, RETURNS);
        found.heaps.extend(heap);
        found
    }
}

/// A segment.
#[derive(Clone, Debug)]
struct Segment {
    start: u64,
    length: u64,
    layout: &'static Layout,
    /// First slice and number of slices of each page, or of slices that are free.
    spans: Vec<(u64, u64)>,
}

/// The segments by address, all of the layout that most have.
fn segments(maps: &[MapsEntry], image: &Image<'_>) -> Vec<Segment> {
    let mut best: Vec<Segment> = Vec::new();
    for layout in &LAYOUTS {
        let mut found: Vec<Segment> = Vec::new();
        for entry in maps.iter().filter(|entry| is_private_memory(entry)) {
            let mapping = &entry.mapping;
            let Some(mut at) = mapping.start.checked_next_multiple_of(SEGMENT) else {
                continue;
            };
            while at < mapping.end {
                found.extend(Segment::read(image, at, layout));
                at += SEGMENT;
            }
        }
        if found.len() > best.len() {
            best = found;
        }
    }
    best.sort_by_key(|segment| segment.start);
    best
}

impl Segment {
    /// The segment at `start`, if one is there.
    fn read(image: &Image<'_>, start: u64, layout: &'static Layout) -> Option<Self> {
        let word = |at: u64| image.now(start + at).ok();
        let (slices, head, entries) = (
            word(layout.slices)?,
            word(layout.head)?,
            word(layout.entries)?,
        );
        let is_head = (1..=MOST_HEAD).contains(&head)
            && (head + 1..1 << 32).contains(&slices)
            && entries == slices.min(SLICES);
        is_head.then_some(())?;
        let mut spans = Vec::new();
        let mut at = 0;
        while at < entries {
            let place = start + layout.first + layout.stride * at;
            let descriptor = Descriptor::read(image, place, layout).ok()?;
            let count = descriptor.slices;
            (count > 0 && at + count <= slices).then_some(())?;
            if at == 0 {
                (count == head).then_some(())?;
            }
            spans.push((at, count));
            at += count;
        }
        Some(Self {
            start,
            length: slices.checked_mul(SLICE)?,
            layout,
            spans,
        })
    }

    fn tiles(&self, image: &mut Image<'_>, tiling: &mut Tiling<'_>) -> Result<(), Unread> {
        let layout = self.layout;
        for &(first, count) in &self.spans {
            let (start, length) = (self.start + first * SLICE, count * SLICE);
            let place = self.start + layout.first + layout.stride * first;
            if first == 0 {
                tiling.tile(start, length, TileState::Bookkeeping);
                continue;
            }
            let descriptor = Descriptor::read(image, place, layout)?;
            if descriptor.slices == count && descriptor.block == 0 {
                tiling.tile(start, length, TileState::Free { kept: 0 });
                continue;
            }
            let blocks = page::read(image, place, start, layout)?;
            let blocks = blocks.filter(|_| descriptor.slices == count);
            page_tiles(blocks.as_ref(), start, start + length, tiling);
        }
        Ok(())
    }
}

/// The tiles of a page between these addresses, if it could be read.
fn page_tiles(page: Option<&Page>, from: u64, end: u64, tiling: &mut Tiling<'_>) {
    let Some(Page { blocks, room }) = page else {
        tiling.tile(from, end - from, TileState::Changed);
        return;
    };
    let (start, block) = (blocks.start, blocks.size);
    tiling.tile(from, start - from, TileState::Bookkeeping);
    let fresh = blocks.end();
    let is_free = |number| blocks.is_free(number);
    tiling.blocks((start, fresh), (block, blocks.count()), is_free);
    let behind = start + room * block;
    tiling.tile(fresh, behind - fresh, TileState::Reserve { kept: 0 });
    tiling.tile(behind, end - behind, TileState::Bookkeeping);
}

#[cfg(test)]
mod tests;
