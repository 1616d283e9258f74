//! Go's heap (runtime/mheap.go of 1.18 to 1.26), read by the runtime's list of spans.
//!
//! A span is a run of pages of 8 KiB: with objects of one size, with a single large object, or with a
//! stack. Pages of the heap's areas of 64 MiB that no span holds are free. The list (`allspans`) is
//! found as a slice of pointers to spans in the program's variables. A span with objects must hold as
//! many as its bits show; the sum of such spans is also a counter of the runtime (`heapInUse`).
//! Objects that nothing refers to any more are in use until the next collection frees them.

use super::scattered::Scattered;
use super::tiling::Tiling;
use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Hole, Image};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{HeapFacts, PageState, Returns, TileSink, TileState, Unread};
use std::collections::BTreeSet;

/// Reads Go's spans.
pub struct Golang;

/// Go's page, and the areas that its heap consists of (`heapArenaBytes` on 64-bit Linux).
const PAGE: u64 = 8192;
const AREA: u64 = 64 << 20;
/// Smallest room of the list of spans (`recordspan`), and the largest that is believed.
const LEAST_ROOM: u64 = 8192;
const MOST_SPANS: u64 = 1 << 27;
/// Spans that show list and layout.
const SAMPLE: u64 = 64;
/// The part (1 in so many) of the spans that may have changed while they were read.
const MAY_CHANGE: usize = 50;
/// How often a span is read again if it changed meanwhile.
const ATTEMPTS: usize = 3;

/// States of a span (`mSpanInUse`, `mSpanManual`).
const DEAD: u64 = 0;
const IN_USE: u64 = 1;
const MANUAL: u64 = 2;

/// Where a range of versions has the parts of a span. Address and pages are at 24 and 32 in all.
#[derive(Debug)]
struct Layout {
    /// Index of the first object that may be free; objects in all; each of so many bytes.
    free_index: u64,
    objects: u64,
    index_bytes: u32,
    /// Address of a bit for each object, set if it was found in use.
    bits: u64,
    /// Objects in use, class and state, in one word.
    counts: u64,
    object_size: u64,
    limit: u64,
}

const START: u64 = 24;
const PAGES: u64 = 32;

/// From 1.22 on, 1.21, and before.
const LAYOUTS: [Layout; 3] = [
    Layout {
        free_index: 48,
        objects: 50,
        index_bytes: 2,
        bits: 64,
        counts: 96,
        object_size: 104,
        limit: 112,
    },
    Layout {
        free_index: 48,
        objects: 56,
        index_bytes: 8,
        bits: 72,
        counts: 104,
        object_size: 112,
        limit: 120,
    },
    Layout {
        free_index: 48,
        objects: 56,
        index_bytes: 8,
        bits: 72,
        counts: 96,
        object_size: 104,
        limit: 112,
    },
];

/// A span in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    start: u64,
    pages: u64,
    place: u64,
    state: u64,
}

impl AllocatorReader for Golang {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let data = writable_data(maps, |_| true);
        let mut words = Scattered::new(image);
        let mut found = HeapsRead::default();
        for list in lists(image, &mut words, &data) {
            let Some(layout) = layout(&mut words, list) else {
                continue;
            };
            let counter = |sum| has_counter(image, &data, sum);
            let unread = &mut found.unread;
            let heap = read_heap(maps, list, layout, &mut words, sink, unread, counter);
            found.heaps.extend(heap);
        }
        found
    }
}

/// Addresses and lengths of lists of spans among these variables.
fn lists(image: &mut Image<'_>, words: &mut Scattered<'_>, data: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    for &(start, end) in data {
        let runs: Vec<_> = image.presence().within(start, end).collect();
        for run in runs.iter().filter(|run| run.state != PageState::Swapped) {
            let mut before = [0, 0];
            for place in (run.start..run.end).step_by(8) {
                let Ok(room) = image.word(place) else {
                    break;
                };
                let [list, length] = before;
                before = [length, room];
                let is_slice = (LEAST_ROOM..MOST_SPANS).contains(&room)
                    && (SAMPLE..=room).contains(&length)
                    && list.is_multiple_of(8)
                    && list >= PAGE;
                if is_slice && leads_to_spans(words, list) {
                    found.push((list, length));
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn leads_to_spans(words: &mut Scattered<'_>, list: u64) -> bool {
    (0..SAMPLE).all(|number| {
        let mut span = || {
            let place = words.word(list + 8 * number).ok()?;
            let is_place = place != 0 && place.is_multiple_of(8);
            let place = is_place.then_some(place)?;
            let start = words.word(place.checked_add(START)?).ok()?;
            let pages = words.word(place.checked_add(PAGES)?).ok()?;
            Some(start.is_multiple_of(PAGE) && start > 0 && pages < 1 << 32)
        };
        span() == Some(true)
    })
}

/// The layout with which all of the first spans in use agree with themselves.
fn layout(words: &mut Scattered<'_>, (list, length): (u64, u64)) -> Option<&'static Layout> {
    let places: Vec<u64> = (0..length.min(4 * SAMPLE))
        .filter_map(|number| words.word(list + 8 * number).ok())
        .collect();
    let fits = |layout: &Layout, words: &mut Scattered<'_>| {
        let mut counts = (0, 0);
        for place in &places {
            if let Ok(Some(span)) = span(words, *place, layout)
                && span.state == IN_USE
            {
                counts.0 += 1;
                counts.1 += usize::from(objects(words, &span, layout).is_ok());
            }
        }
        counts
    };
    LAYOUTS.iter().find(|layout| {
        let (in_use, sound) = fits(layout, words);
        in_use > 0 && sound * 10 >= in_use * 9
    })
}

/// The span at `place`; `None` if it is not in use.
fn span(words: &mut Scattered<'_>, place: u64, layout: &Layout) -> Result<Option<Span>, Hole> {
    let state = words.word(place + layout.counts)? >> 24 & 0xff;
    if state == DEAD {
        return Ok(None);
    }
    let (start, pages) = (words.word(place + START)?, words.word(place + PAGES)?);
    let is_sound = start.is_multiple_of(PAGE) && pages > 0 && pages < 1 << 32 && state <= MANUAL;
    let span = Span {
        start,
        pages,
        place,
        state,
    };
    Ok((is_sound && start < 1 << 56).then_some(span))
}

/// The objects of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Objects {
    size: u64,
    count: u64,
    in_use: u64,
    /// The first that may be free, and the bits of all.
    free_index: u64,
    bits: Vec<u64>,
}

impl Objects {
    fn is_free(&self, number: u64) -> bool {
        let bits = usize::try_from(number / 64)
            .ok()
            .and_then(|at| self.bits.get(at));
        number >= self.free_index && bits.is_none_or(|bits| bits >> (number % 64) & 1 == 0)
    }
}

fn objects(words: &mut Scattered<'_>, span: &Span, layout: &Layout) -> Result<Objects, Unread> {
    let mut word = |place: u64| words.word(place).map_err(Unread::from);
    let mut index = |at: u64| -> Result<u64, Unread> {
        let bytes = word((span.place + at) / 8 * 8)? >> (8 * ((span.place + at) % 8));
        Ok(match layout.index_bytes {
            2 => bytes & 0xffff,
            _ => bytes,
        })
    };
    let (free_index, count) = (index(layout.free_index)?, index(layout.objects)?);
    let (counts, size) = (
        word(span.place + layout.counts)?,
        word(span.place + layout.object_size)?,
    );
    let (in_use, limit) = (counts & 0xffff, word(span.place + layout.limit)?);
    let length = span.pages * PAGE;
    let is_sound = size > 0
        && count > 0
        && count <= length / 8
        && size.checked_mul(count).is_some_and(|bytes| bytes <= length)
        && free_index <= count
        && limit
            .checked_sub(span.start)
            .is_some_and(|bytes| bytes <= length);
    if !is_sound {
        return Err(Unread::Changed);
    }
    let place = word(span.place + layout.bits)?;
    let mut bits = Vec::new();
    if free_index < count {
        for at in 0..count.div_ceil(64) {
            bits.push(match words.word(place + 8 * at) {
                // A page that nothing was written to.
                Err(Hole::Absent) => 0,
                other => other.map_err(Unread::from)?,
            });
        }
    }
    let objects = Objects {
        size,
        count,
        in_use,
        free_index,
        bits,
    };
    let shown = (0..count)
        .filter(|number| !objects.is_free(*number))
        .count() as u64;
    match shown == in_use {
        true => Ok(objects),
        false => Err(Unread::Changed),
    }
}

/// The heap of a list of spans; none if too many of them changed meanwhile.
fn read_heap(
    maps: &[MapsEntry],
    (list, length): (u64, u64),
    layout: &Layout,
    words: &mut Scattered<'_>,
    sink: &mut dyn TileSink,
    unread: &mut Vec<(u64, u64, Unread)>,
    is_counter: impl FnOnce(u64) -> bool,
) -> Option<HeapFacts> {
    let mut spans: Vec<Span> = Vec::new();
    let mut places = words.again();
    for number in 0..length {
        let place = places.word(list + 8 * number).unwrap_or(0);
        if place != 0
            && let Ok(Some(span)) = span(words, place, layout)
        {
            spans.push(span);
        }
    }
    spans.sort_unstable_by_key(|span| span.start);
    spans.dedup_by_key(|span| span.start);
    let mut tiling = Tiling::new(sink, AllocatorKind::Go);
    let areas: BTreeSet<u64> = spans.iter().map(|span| span.start / AREA * AREA).collect();
    let (mut changed, mut in_use) = (0, 0);
    let mut at = 0;
    let mut next = 0;
    for (start, end) in heap_ranges(maps, &areas) {
        at = start.max(at);
        while let Some(span) = spans.get(next).filter(|span| span.start < end) {
            next += 1;
            if span.start < at {
                continue;
            }
            free(&mut tiling, at, span.start);
            at = span.start + span.pages * PAGE;
            match tiles(span, layout, words, &mut tiling) {
                Ok(()) if span.state == IN_USE => in_use += span.pages * PAGE,
                Ok(()) => {}
                Err(reason) => {
                    changed += 1;
                    unread.push((span.start, at, reason));
                }
            }
        }
        free(&mut tiling, at, end);
    }
    let heap = tiling.heap(areas.len() as u64, is_counter(in_use), Returns::Pages);
    heap.filter(|_| changed * MAY_CHANGE <= spans.len())
}

/// Pages without a span.
fn free(tiling: &mut Tiling<'_>, start: u64, end: u64) {
    tiling.tile(
        start,
        end.saturating_sub(start),
        TileState::Free { kept: 0 },
    );
}

/// The parts of these areas that can be written.
fn heap_ranges(maps: &[MapsEntry], areas: &BTreeSet<u64>) -> Vec<(u64, u64)> {
    let mut found: Vec<(u64, u64)> = Vec::new();
    for entry in maps
        .iter()
        .filter(|entry| super::glibc::is_private_memory(entry))
    {
        let (mut at, end) = (entry.mapping.start, entry.mapping.end);
        while at < end {
            let area = at / AREA * AREA;
            let until = end.min(area.saturating_add(AREA));
            if areas.contains(&area) {
                match found.last_mut() {
                    Some(last) if last.1 == at => last.1 = until,
                    _ => found.push((at, until)),
                }
            }
            at = until;
        }
    }
    found
}

fn tiles(
    span: &Span,
    layout: &Layout,
    words: &mut Scattered<'_>,
    tiling: &mut Tiling<'_>,
) -> Result<(), Unread> {
    let length = span.pages * PAGE;
    if span.state == MANUAL {
        tiling.tile(span.start, length, TileState::Live { block: length });
        return Ok(());
    }
    let mut outcome = objects(words, span, layout);
    for _ in 1..ATTEMPTS {
        if outcome.is_ok() {
            break;
        }
        words.forget(span.place);
        outcome = objects(words, span, layout);
    }
    let objects = outcome?;
    tiling.blocks(
        (span.start, span.start + length),
        (objects.size, objects.count),
        |number| objects.is_free(number),
    );
    Ok(())
}

/// Whether one of these variables is `sum`.
fn has_counter(image: &mut Image<'_>, data: &[(u64, u64)], sum: u64) -> bool {
    image.forget();
    data.iter().any(|&(start, end)| {
        let runs: Vec<_> = image.presence().within(start, end).collect();
        let mut places = runs.iter().flat_map(|run| (run.start..run.end).step_by(8));
        places.any(|place| image.word(place) == Ok(sum))
    })
}

#[cfg(test)]
#[path = "golang_tests.rs"]
mod tests;
