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
use page::{Blocks, Descriptor};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{
    Heap, HeapCheck, HeapFacts, HeapPart, Returns, TileSink, TileState, Unread,
};
use pagewise_model::units::Bytes;

/// Reads mimalloc's segments.
pub struct Mimalloc;

/// Most slices of a segment's head.
const MOST_HEAD: u64 = 8;
/// The part of the heap (1 in so many) that may have changed.
const MAY_CHANGE: u64 = 5;
const LARGE: u64 = 128 << 10;

impl AllocatorReader for Mimalloc {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut found = HeapsRead::default();
        let segments = segments(maps, image);
        if segments.is_empty() {
            let mut tiling = Tiling::new(sink);
            let sums = third::read(maps, image, &mut tiling, &mut found.unread);
            let extents = tiling.finish();
            found.heaps.extend(sums.and_then(|sums| sums.heap(extents)));
            return found;
        }
        let mut sums = Sums::default();
        let mut tiling = Tiling::new(sink);
        for segment in &segments {
            match sums.segment(segment, image, &mut tiling) {
                Ok(()) => {}
                Err(reason) => {
                    let end = segment.start + segment.length;
                    found.unread.push((segment.start, end, reason));
                }
            }
        }
        let extents = tiling.finish();
        found.heaps.extend(sums.heap(extents));
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
}

#[derive(Default)]
struct Sums {
    segments: u64,
    size: u64,
    in_use: u64,
    blocks: u64,
    free: u64,
    free_blocks: u64,
    large_free: u64,
    reserve: u64,
    changed: u64,
}

impl Sums {
    fn segment(
        &mut self,
        segment: &Segment,
        image: &mut Image<'_>,
        tiling: &mut Tiling<'_>,
    ) -> Result<(), Unread> {
        let layout = segment.layout;
        self.segments += 1;
        self.size += segment.length;
        for &(first, count) in &segment.spans {
            let (start, length) = (segment.start + first * SLICE, count * SLICE);
            let place = segment.start + layout.first + layout.stride * first;
            if first == 0 {
                tiling.tile(start, length, TileState::Bookkeeping);
                continue;
            }
            let descriptor = Descriptor::read(image, place, layout)?;
            if descriptor.slices == count && descriptor.block == 0 {
                self.free_slices(start, start + length, tiling);
                continue;
            }
            match page::read(image, place, start, layout)? {
                Some(blocks) if descriptor.slices == count => {
                    self.page(&blocks, start, start + length, tiling);
                }
                _ => {
                    self.changed += length;
                    tiling.tile(start, length, TileState::Changed);
                }
            }
        }
        Ok(())
    }

    fn free_slices(&mut self, start: u64, end: u64, tiling: &mut Tiling<'_>) {
        if start >= end {
            return;
        }
        let length = end - start;
        self.free += length;
        self.free_blocks += 1;
        self.large_free += if length >= LARGE { length } else { 0 };
        tiling.tile(start, length, TileState::Free { kept: 0 });
    }

    fn page(&mut self, page: &Blocks, from: u64, end: u64, tiling: &mut Tiling<'_>) {
        let (start, block) = (page.start, page.block);
        let used = page.free.len() as u64;
        let free = page.free.iter().filter(|is_free| **is_free).count() as u64;
        self.in_use += (used - free) * block;
        self.blocks += used - free;
        self.free += free * block;
        self.free_blocks += free;
        self.large_free += if block >= LARGE { free * block } else { 0 };
        tiling.tile(from, start - from, TileState::Bookkeeping);
        tiling.blocks(start, block, used, |number| {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            page.free.get(number).copied().unwrap_or(false)
        });
        let fresh = start + used * block;
        let behind = start + page.room * block;
        self.reserve += behind - fresh;
        tiling.tile(fresh, behind - fresh, TileState::Reserve { kept: 0 });
        tiling.tile(behind, end - behind, TileState::Bookkeeping);
    }

    fn heap(self, extents: Vec<u64>) -> Option<HeapFacts> {
        if self.segments == 0 || self.changed > self.size / MAY_CHANGE {
            return None;
        }
        Some(HeapFacts {
            heap: Heap {
                count: self.segments,
                size: Bytes(self.size),
                in_use: Bytes(self.in_use),
                blocks: self.blocks,
                free: Bytes(self.free),
                free_blocks: self.free_blocks,
                large_free: Bytes(self.large_free),
                changed: Bytes(self.changed),
                reserve: Bytes(self.reserve),
                ..Heap::new(
                    AllocatorKind::Mimalloc,
                    HeapPart::Arenas,
                    match self.changed {
                        0 => HeapCheck::Counter,
                        _ => HeapCheck::Filled,
                    },
                )
            },
            extents,
            // Free slices go back some time after they were freed, with what is freed next: `mi_collect`
            // returned none of them (2.0.9).
            returns: Returns::Nothing,
        })
    }
}

#[cfg(test)]
mod tests;
