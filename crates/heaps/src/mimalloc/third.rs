//! mimalloc 3 (3.0 to 3.2): pages in arenas, without segments.
//!
//! ```text
//!  arena   at a multiple of 64 KiB: head and bitmaps │ slices of 64 KiB
//!  page    one or more slices: descriptor │ blocks of one size; or with a mapping of its own
//! ```
//!
//! A page is recognised by its descriptor, which names its arena and where it is in it, or the mapping that
//! it is in.

use super::super::Image;
use super::super::glibc::is_private_memory;
use super::layout::SLICE;
use super::page::{self, Descriptor};
use super::{Tiling, page_tiles};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::memory::{PageState, TileState, Unread};
use std::collections::BTreeMap;

/// Words of a descriptor: the fixed ones, and among which it names its arena.
const WORDS: usize = 24;
const NAMES: std::ops::Range<usize> = 7..22;
/// Largest distance from a page's slices to its first block, beside a block's own alignment.
const MOST_BEFORE: u64 = 2 * SLICE;
/// Words at the start of an arena among which are its slices and those of its head; most slices (64 GiB).
const ARENA_WORDS: usize = 10;
const MOST_SLICES: u64 = 1 << 20;

/// A page: its descriptor is at `start`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    start: u64,
    /// The memory that is its own.
    from: u64,
    end: u64,
    /// Where its arena starts.
    arena: Option<u64>,
}

/// An arena that was recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Arena {
    start: u64,
    /// Where its slices for pages start, and where it ends.
    first: u64,
    end: u64,
}

/// The tiles of all pages and arenas; how many arenas, and pages of their own, there are.
pub(super) fn read(
    maps: &[MapsEntry],
    image: &mut Image<'_>,
    tiling: &mut Tiling<'_>,
    unread: &mut Vec<(u64, u64, Unread)>,
) -> u64 {
    let pages = pages(maps, image);
    let mut parts = 0;
    let arenas = arenas(&pages, image);
    let mut places: Vec<(u64, Option<&Page>)> =
        pages.iter().map(|page| (page.from, Some(page))).collect();
    places.extend(arenas.iter().map(|arena| (arena.start, None)));
    places.sort_unstable_by_key(|place| (place.0, place.1.is_some()));
    let mut within: Option<Arena> = None;
    let mut at = 0;
    for (start, page) in places {
        // Slices of an arena that no page has are free.
        let free_end = within.map_or(at, |arena: Arena| arena.end.min(start));
        tiling.tile(at, free_end.saturating_sub(at), TileState::Free { kept: 0 });
        at = start;
        match page {
            None => {
                let arena = arenas.iter().find(|arena| arena.start == start).copied();
                within = arena;
                if let Some(arena) = arena {
                    parts += 1;
                    tiling.tile(start, arena.first - start, TileState::Bookkeeping);
                    at = arena.first;
                }
            }
            Some(page) => {
                if within.is_none_or(|arena| page.end > arena.end) {
                    within = None;
                    parts += 1;
                }
                match page.read(image) {
                    Ok(read) => page_tiles(read.as_ref(), page.from, page.end, tiling),
                    Err(why) => unread.push((page.from, page.end, why)),
                }
                at = page.end;
            }
        }
    }
    if let Some(arena) = within {
        let rest = arena.end.saturating_sub(at);
        tiling.tile(at, rest, TileState::Free { kept: 0 });
    }
    parts
}

/// All pages by address.
fn pages(maps: &[MapsEntry], image: &Image<'_>) -> Vec<Page> {
    let mut found: Vec<Page> = Vec::new();
    for entry in maps.iter().filter(|entry| is_private_memory(entry)) {
        let range = (entry.mapping.start, entry.mapping.end);
        for run in image.presence().within(range.0, range.1) {
            if run.state == PageState::Swapped {
                continue;
            }
            let Some(mut at) = run.start.checked_next_multiple_of(SLICE) else {
                continue;
            };
            while at < run.end {
                let behind = found.last().map_or(0, |last| last.end);
                let page = (at >= behind).then(|| Page::at(at, range, image)).flatten();
                at = page.map_or(at + SLICE, |page| page.end.next_multiple_of(SLICE));
                found.extend(page);
            }
        }
    }
    found
}

impl Page {
    /// The page whose descriptor is at `start`, in a mapping.
    fn at(start: u64, mapping: (u64, u64), image: &Image<'_>) -> Option<Self> {
        let words: [u64; WORDS] = image.now_all(start).ok()?;
        let descriptor = Descriptor::of_third(&words);
        let first = words[6];
        let is_near =
            (start + 64..start + MOST_BEFORE).contains(&first) || descriptor.has_one_block();
        let is_page = descriptor.is_sound() && is_near && first < mapping.1;
        is_page.then_some(())?;
        let blocks_end = first.checked_add(descriptor.bytes()?)?;
        let found = NAMES.into_iter().find_map(|at| {
            let (one, two) = (words[at], words[at + 1]);
            let (index, count) = (two & 0xffff_ffff, two >> 32);
            let is_in_arena =
                one > 0 && one.is_multiple_of(SLICE) && (1..=MOST_SLICES).contains(&count);
            if is_in_arena && one.checked_add(index * SLICE) == Some(start) {
                return Some((start, start + count * SLICE, Some(one)));
            }
            let end = one.checked_add(two)?;
            let is_own = one >= mapping.0
                && one <= start
                && one.is_multiple_of(image.page())
                && two.is_multiple_of(image.page())
                && blocks_end <= end
                && end <= mapping.1;
            (is_own && two > 0).then_some((one, end, None))
        });
        let (from, end, arena) = found?;
        (blocks_end <= end).then_some(Self {
            start,
            from,
            end,
            arena,
        })
    }

    fn read(&self, image: &mut Image<'_>) -> Result<Option<page::Page>, Unread> {
        page::read_by(image, self.from, |image| {
            let words: [u64; WORDS] = image.now_all(self.start)?;
            Ok((Descriptor::of_third(&words), self.end))
        })
    }
}

/// The arenas that pages name and whose heads agree with them.
fn arenas(pages: &[Page], image: &Image<'_>) -> Vec<Arena> {
    let mut of: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for page in pages {
        if let Some(arena) = page.arena {
            let seen = of.entry(arena).or_insert((page.from, page.end));
            *seen = (seen.0.min(page.from), seen.1.max(page.end));
        }
    }
    let found = of
        .into_iter()
        .filter_map(|(start, (first_page, last_page))| {
            let words: [u64; ARENA_WORDS] = image.now_all(start).ok()?;
            words.windows(2).skip(3).find_map(|two| {
                let (slices, head) = (two[0], two[1]);
                let is_head = (1..=MOST_SLICES).contains(&slices) && (1..slices).contains(&head);
                let (first, end) = (start + head * SLICE, start + slices * SLICE);
                let agrees = is_head && first <= first_page && last_page <= end;
                agrees.then_some(Arena { start, first, end })
            })
        });
    found.collect()
}
