//! `struct malloc_par`: the start of the main heap, and the count of blocks with mappings of their
//! own.
//!
//! Found by the address in it that is the heap's start (`sbrk_base`). Before it are the bytes in
//! mapped blocks, now and at most, and four counts; 2.35 put huge-page settings before those.

use super::super::Image;
use super::arena::words_that;

/// From `sbrk_base` back to `max_mmapped_mem` and `mmapped_mem`.
const MOST_MAPPED: u64 = 8;
const MAPPED: u64 = 16;
/// From `sbrk_base` back to `mmap_threshold`: from 2.35 on, and before.
const THRESHOLDS: [u64; 2] = [80, 56];
/// `DEFAULT_MMAP_THRESHOLD`, and the maximum to which it rises.
const THRESHOLD: u64 = 128 << 10;
const HIGHEST_THRESHOLD: u64 = 32 << 20;

/// What it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Parameters {
    /// First block of the main heap.
    pub heap_start: u64,
    /// Where the bytes in blocks with mappings of their own are counted.
    pub mapped_place: u64,
    /// The size from which blocks get such mappings, if it is not the usual one.
    pub raised_threshold: Option<u64>,
}

/// The parameters of the heap in this range.
pub(super) fn find(
    image: &mut Image<'_>,
    data: &[(u64, u64)],
    heap: (u64, u64),
) -> Option<Parameters> {
    let page = image.page();
    // The first block is at the start, unless something else has moved the break before.
    let is_start = |word: u64| word >= heap.0 && word < heap.1 && word.is_multiple_of(16);
    let mut places: Vec<(u64, u64)> = Vec::new();
    for place in words_that(image, data, is_start) {
        if let Ok(start) = image.word(place) {
            places.push((start, place));
        }
    }
    places.sort_unstable();
    places.into_iter().find_map(|(start, place)| {
        let mut back = |bytes: u64| image.word(place.checked_sub(bytes)?).ok();
        let (mapped, most) = (back(MAPPED)?, back(MOST_MAPPED)?);
        let is_sound = mapped <= most && mapped.is_multiple_of(page) && most.is_multiple_of(page);
        let threshold = THRESHOLDS.into_iter().find_map(|bytes| {
            let found = back(bytes)?;
            (4096..=HIGHEST_THRESHOLD).contains(&found).then_some(found)
        });
        is_sound.then_some(())?;
        Some(Parameters {
            heap_start: start,
            mapped_place: place - MAPPED,
            raised_threshold: Some(threshold?).filter(|found| *found > THRESHOLD),
        })
    })
}
