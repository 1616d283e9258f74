//! gperftools' tcmalloc (2.7 to 2.18), read by its map of pages.
//!
//! ```text
//!  variables   root: one word for 2 GiB ─▶ leaf: one word for each page of 8 KiB ─▶ span
//!  span        first page, pages, list of free objects, objects in use and class; or free
//! ```
//!
//! The root has no symbol. It is found as a word that leads to a leaf whose spans say of themselves that
//! they are where the leaf has them. Objects in the caches of threads, and in those between threads and
//! spans, look in use; both are found by what their elements say of themselves.

mod caches;
mod classes;
mod map;

use super::scattered::Scattered;
use super::tiling::Tiling;
use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Image};
use classes::Classes;
use map::{Map, Place, Span};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{
    Heap, HeapCheck, HeapFacts, HeapPart, Presence, Returns, TileSink, TileState, Unread,
};
use pagewise_model::units::Bytes;

/// Reads tcmalloc's spans.
pub struct Tcmalloc;

/// How often a span is read if it changes meanwhile.
const LOOKS: usize = 3;
/// The part of the heap (1 in so many) that may have changed.
const MAY_CHANGE: u64 = 5;
const LARGE: u64 = 128 << 10;

impl AllocatorReader for Tcmalloc {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut found = HeapsRead::default();
        let data = Words::of(&data_ranges(maps), image);
        let mut words = Scattered::new(image);
        let Some(classes) = classes::find(&data, &mut words) else {
            return found;
        };
        let Some(map) = map::find(&data, maps, &mut words) else {
            return found;
        };
        let spans = match map.spans(&mut words) {
            Ok(spans) => spans,
            Err(hole) => {
                let end = map.end();
                found.unread.push((map.start(), end, hole.into()));
                return found;
            }
        };
        let mut sums = Sums::default();
        let mut tiling = Tiling::new(sink);
        for span in &spans {
            if let Err(why) = sums.span(span, &map, &classes, image, &mut tiling) {
                let (start, length) = map.range(span);
                found.unread.push((start, start + length, why));
            }
        }
        let mut extents = tiling.finish();
        let mut tiling = Tiling::new(sink);
        for (start, end) in map.own_pages(&spans, image.page()) {
            tiling.tile(start, end - start, TileState::Bookkeeping);
        }
        extents.extend(tiling.finish());
        let cached = caches::bytes(&data, &classes, &mut words);
        let is_counted = data.holds([sums.size, sums.normal, sums.returned]);
        found.heaps.extend(sums.heap(extents, cached, is_counted));
        found
    }
}

/// Data of the library, or of the program where it contains it.
fn data_ranges(maps: &[MapsEntry]) -> Vec<(u64, u64)> {
    let program = maps.iter().find_map(MapsEntry::file);
    let is_library = |file: &str| {
        file.rsplit('/')
            .next()
            .unwrap_or(file)
            .starts_with("libtcmalloc")
    };
    let has_library = maps.iter().filter_map(MapsEntry::file).any(is_library);
    writable_data(maps, |file| match has_library {
        true => is_library(file),
        false => Some(file) == program,
    })
}

/// Words other than 0 in variables, with their places, by address.
struct Words(Vec<(u64, u64)>);

/// Most of them that are looked at.
const MOST_WORDS: usize = 1 << 20;

impl Words {
    fn of(ranges: &[(u64, u64)], image: &mut Image<'_>) -> Self {
        let presence: &Presence = image.presence();
        let mut found = Vec::new();
        for &(start, end) in ranges {
            for run in presence.within(start, end) {
                for place in (run.start..run.end).step_by(8) {
                    match image.word(place) {
                        Ok(0) => {}
                        Ok(word) if found.len() < MOST_WORDS => found.push((place, word)),
                        _ => break,
                    }
                }
            }
        }
        found.sort_unstable();
        Self(found)
    }

    /// Words in the range of places.
    fn within(&self, start: u64, end: u64) -> &[(u64, u64)] {
        let first = self.0.partition_point(|one| one.0 < start);
        let behind = self.0.partition_point(|one| one.0 < end);
        self.0.get(first..behind).unwrap_or_default()
    }

    fn at(&self, place: u64) -> u64 {
        let found = self.0.binary_search_by_key(&place, |one| one.0);
        found.map_or(0, |number| self.0[number].1)
    }

    /// Whether these numbers are somewhere one behind the other.
    fn holds(&self, numbers: [u64; 3]) -> bool {
        let is_first = |one: &&(u64, u64)| one.1 == numbers[0];
        let mut firsts = self.0.iter().filter(is_first);
        numbers[0] > 0
            && firsts
                .any(|one| self.at(one.0 + 8) == numbers[1] && self.at(one.0 + 16) == numbers[2])
    }
}

#[derive(Default)]
struct Sums {
    spans: u64,
    size: u64,
    in_use: u64,
    blocks: u64,
    free: u64,
    free_blocks: u64,
    large_free: u64,
    changed: u64,
    /// Free spans that are resident, and those that were returned.
    normal: u64,
    returned: u64,
}

impl Sums {
    fn span(
        &mut self,
        span: &Span,
        map: &Map,
        classes: &Classes,
        image: &mut Image<'_>,
        tiling: &mut Tiling<'_>,
    ) -> Result<(), Unread> {
        let (start, length) = map.range(span);
        self.spans += 1;
        self.size += length;
        match (span.place, span.class) {
            (Place::Returned, _) => {
                self.returned += length;
                tiling.tile(start, length, TileState::Free { kept: 0 });
            }
            (Place::Free, _) => {
                self.normal += length;
                self.free += length;
                self.free_blocks += 1;
                self.large_free += if length >= LARGE { length } else { 0 };
                tiling.tile(start, length, TileState::Free { kept: 0 });
            }
            (Place::InUse, 0) => {
                self.in_use += length;
                self.blocks += 1;
                tiling.tile(start, length, TileState::Live { block: length });
            }
            (Place::InUse, class) => {
                match objects(span, (start, length), classes.size(class), image)? {
                    Some((size, free)) => self.objects(start, length, size, &free, tiling),
                    None => {
                        self.changed += length;
                        tiling.tile(start, length, TileState::Changed);
                    }
                }
            }
        }
        Ok(())
    }

    fn objects(
        &mut self,
        start: u64,
        length: u64,
        size: u64,
        free: &[bool],
        tiling: &mut Tiling<'_>,
    ) {
        let all = free.len() as u64;
        let free_objects = free.iter().filter(|is_free| **is_free).count() as u64;
        self.in_use += (all - free_objects) * size;
        self.blocks += all - free_objects;
        self.free += free_objects * size;
        self.free_blocks += free_objects;
        tiling.blocks(start, size, all, |number| {
            let number = usize::try_from(number).unwrap_or(usize::MAX);
            free.get(number).copied().unwrap_or(false)
        });
        let behind = start + all * size;
        tiling.tile(behind, start + length - behind, TileState::Bookkeeping);
    }

    fn heap(self, extents: Vec<u64>, cached: (u64, u64), is_counted: bool) -> Option<HeapFacts> {
        if self.spans == 0 || self.changed > self.size / MAY_CHANGE {
            return None;
        }
        let (cached, objects) = (cached.0.min(self.in_use), cached.1.min(self.blocks));
        Some(HeapFacts {
            heap: Heap {
                count: self.spans,
                size: Bytes(self.size),
                in_use: Bytes(self.in_use - cached),
                blocks: self.blocks - objects,
                cached: Bytes(cached),
                free: Bytes(self.free),
                free_blocks: self.free_blocks,
                large_free: Bytes(self.large_free),
                changed: Bytes(self.changed),
                ..Heap::new(
                    AllocatorKind::Tcmalloc,
                    HeapPart::Arenas,
                    match is_counted && self.changed == 0 {
                        true => HeapCheck::Counter,
                        false => HeapCheck::Filled,
                    },
                )
            },
            extents,
            returns: Returns::Pages,
        })
    }
}

/// The size of the span's objects, and whether each is free; `None` if its list and its count disagree all
/// the time.
fn objects(
    span: &Span,
    (start, length): (u64, u64),
    size: Option<u64>,
    image: &mut Image<'_>,
) -> Result<Option<(u64, Vec<bool>)>, Unread> {
    let Some(size) = size.filter(|size| *size <= length) else {
        return Ok(None);
    };
    let mut span = *span;
    for _ in 0..LOOKS {
        image.load(start, length);
        if let Some(free) = listed(&span, (start, length), size, image)? {
            return Ok(Some((size, free)));
        }
        image.forget();
        match Span::now(span.at, image) {
            Ok(now) if (now.start, now.class) == (span.start, span.class) => span = now,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

fn listed(
    span: &Span,
    (start, length): (u64, u64),
    size: u64,
    image: &mut Image<'_>,
) -> Result<Option<Vec<bool>>, Unread> {
    let all = usize::try_from(length / size).unwrap_or(0);
    let mut free = vec![false; all];
    let mut at = span.objects;
    let mut count = 0;
    while at != 0 {
        let offset = at.wrapping_sub(start);
        let number = usize::try_from(offset / size).unwrap_or(usize::MAX);
        match free.get_mut(number) {
            Some(seen) if offset.is_multiple_of(size) && !*seen => *seen = true,
            // No object of this span, or a circle.
            _ => return Ok(None),
        }
        count += 1;
        at = match image.word(at) {
            Ok(next) => next,
            Err(super::Hole::Absent) => return Ok(None),
            Err(hole) => return Err(hole.into()),
        };
    }
    Ok((span.in_use + count == all as u64).then_some(free))
}

#[cfg(test)]
mod tests;
