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
use super::tiling::{Listed, Tiling};
use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Hole, Image};
use classes::Classes;
use map::{Place, Span};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{Presence, Returns, TileSink, TileState, Unread};
use pagewise_model::units::Bytes;

/// Reads tcmalloc's spans.
pub struct Tcmalloc;

/// How often a span is read if it changes meanwhile.
const LOOKS: usize = 3;
impl AllocatorReader for Tcmalloc {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut found = HeapsRead::default();
        let data = Words::new(&data_ranges(maps), image);
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
        let mut tiling = Tiling::new(sink, AllocatorKind::Tcmalloc);
        for span in &spans {
            let (start, length) = map.range(span);
            if let Err(why) = tiles(span, (start, length), &classes, image, &mut tiling) {
                found.unread.push((start, start + length, why));
            }
        }
        let sum_of = |place: Place| {
            let spans = spans.iter().filter(|span| span.place == place);
            spans.map(|span| map.range(span).1).sum::<u64>()
        };
        let (normal, returned) = (sum_of(Place::Free), sum_of(Place::Returned));
        let all = sum_of(Place::InUse) + normal + returned;
        for (start, end) in map.own_pages(&spans, image.page()) {
            tiling.tile(start, end - start, TileState::Bookkeeping);
        }
        let is_counted = data.holds([all, normal, returned]);
        let facts = tiling.heap(spans.len() as u64, is_counted, Returns::Pages);
        found.heaps.extend(facts.map(|mut facts| {
            let (bytes, objects) = caches::bytes(&data, &classes, &mut words);
            let heap = &mut facts.heap;
            heap.cached = Bytes(bytes.min(heap.in_use.0));
            heap.in_use = heap.in_use - heap.cached;
            heap.blocks -= objects.min(heap.blocks);
            facts
        }));
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
    fn new(ranges: &[(u64, u64)], image: &mut Image<'_>) -> Self {
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

/// The tiles of a span in this range.
fn tiles(
    span: &Span,
    (start, length): (u64, u64),
    classes: &Classes,
    image: &mut Image<'_>,
    tiling: &mut Tiling<'_>,
) -> Result<(), Unread> {
    match (span.place, span.class) {
        (Place::Returned, _) => tiling.returned(start, length),
        (Place::Free, _) => tiling.tile(start, length, TileState::Free { kept: 0 }),
        (Place::InUse, 0) => tiling.tile(start, length, TileState::Live { block: length }),
        (Place::InUse, class) => {
            match objects(span, (start, length), classes.size(class), image)? {
                Some(objects) => tiling.blocks(
                    (start, start + length),
                    (objects.size, objects.count()),
                    |number| objects.is_free(number),
                ),
                None => tiling.tile(start, length, TileState::Changed),
            }
        }
    }
    Ok(())
}

/// The span's objects; `None` if its list and its count disagree all the time.
fn objects(
    span: &Span,
    (start, length): (u64, u64),
    size: Option<u64>,
    image: &mut Image<'_>,
) -> Result<Option<Listed>, Unread> {
    let Some(size) = size.filter(|size| *size <= length) else {
        return Ok(None);
    };
    let mut span = *span;
    for _ in 0..LOOKS {
        image.load(start, length);
        let mut objects = Listed::new(start, size, length / size);
        match objects.follow(span.objects, image) {
            Ok(Some(free)) if span.in_use + free == objects.count() => return Ok(Some(objects)),
            Ok(_) | Err(Hole::Absent) => {}
            Err(hole) => return Err(hole.into()),
        }
        image.forget();
        match Span::now(span.at, image) {
            Ok(now) if (now.start, now.class) == (span.start, span.class) => span = now,
            _ => return Ok(None),
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
