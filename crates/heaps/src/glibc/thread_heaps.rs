//! Heaps of threads' arenas: at multiples of 64 MiB (`HEAP_MAX_SIZE`), each with a head
//! (`heap_info`) that names its arena, the heap before it, and its size.

use super::super::Image;
use super::arena::Arena;
use super::chunks::{ALIGNMENT, Area, Ending, Walk};
use super::{fastbins, walk};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::memory::{Tile, TileSink, TileState, Unread};
use std::collections::BTreeMap;

/// Heaps start at multiples of this: 64 MiB, or 8 MiB where the arenas use huge pages of 2 MiB.
const STEP: u64 = 8 << 20;
/// Largest heap.
const LARGEST: u64 = 64 << 20;
/// Sizes of a heap's head: up to 2.34, and from 2.35 on.
const HEADS: [u64; 2] = [0x20, 0x30];
/// Largest distance from the end of a head to `top` in the arena behind it.
const MOST_BEFORE_TOP: u64 = 128;
/// Most heaps that are looked at.
const MOST_HEAPS: usize = 1 << 16;

/// A heap's head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    start: u64,
    arena: u64,
    size: u64,
}

/// An arena with its heaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ThreadArena {
    /// Address of the arena's data, in its first heap.
    address: u64,
    /// Start and size of each heap, by address.
    heaps: Vec<(u64, u64)>,
}

impl ThreadArena {
    /// First address of each heap, and first one after it.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.heaps
            .iter()
            .map(|(start, size)| (*start, start + size))
    }
}

/// An arena that was read: the sums, and whether they are its own.
pub(super) struct ArenaRead {
    pub walk: Walk,
    pub is_counted: bool,
    /// Start and end of the heaps that were read.
    pub heaps: Vec<(u64, u64)>,
    /// Those that could not be.
    pub unread: Vec<(u64, u64, Unread)>,
}

/// Sums over arenas.
pub(super) struct Sums {
    pub count: u64,
    pub length: u64,
    pub walk: Walk,
    pub all_counted: bool,
    pub extents: Vec<u64>,
}

impl Default for Sums {
    fn default() -> Self {
        Self {
            count: 0,
            length: 0,
            walk: Walk::default(),
            all_counted: true,
            extents: Vec::new(),
        }
    }
}

impl Sums {
    pub fn add(&mut self, read: ArenaRead) {
        self.count += 1;
        self.length += read.heaps.iter().map(|heap| heap.1 - heap.0).sum::<u64>();
        self.walk.add(read.walk);
        self.all_counted &= read.is_counted;
        self.extents.extend(read.heaps.iter().map(|heap| heap.0));
    }
}

/// The arenas of threads.
pub(super) fn find(maps: &[MapsEntry], image: &mut Image<'_>) -> Vec<ThreadArena> {
    let mut heads: Vec<Head> = Vec::new();
    for entry in maps {
        let mapping = &entry.mapping;
        if !super::mapped::is_private_memory(entry) {
            continue;
        }
        let Some(mut at) = mapping.start.checked_next_multiple_of(STEP) else {
            continue;
        };
        while at < mapping.end && heads.len() < MOST_HEAPS {
            heads.extend(head(image, at, mapping.end));
            at += STEP;
        }
    }
    let mut arenas: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    for one in &heads {
        // The arena is behind the head of one of the heaps.
        let is_behind = |other: &Head| {
            other.arena == one.arena && HEADS.iter().any(|size| other.start + size == one.arena)
        };
        if heads.iter().any(is_behind) {
            let heaps = arenas.entry(one.arena).or_default();
            heaps.push((one.start, one.size));
        }
    }
    let arenas = arenas.into_iter();
    arenas
        .map(|(address, heaps)| ThreadArena { address, heaps })
        .collect()
}

fn head(image: &mut Image<'_>, start: u64, end: u64) -> Option<Head> {
    let mut word = |at: u64| image.word(start + at).ok();
    let (arena, size, usable) = (word(0)?, word(16)?, word(24)?);
    let is_whole = |bytes: u64| bytes.is_multiple_of(4096) && bytes > 0;
    let is_head = arena.is_multiple_of(8)
        && arena != 0
        && is_whole(size)
        && is_whole(usable)
        && size <= usable
        && usable <= LARGEST;
    // It may have grown since its mapping was read.
    let size = size.min(end - start);
    is_head.then_some(Head { start, arena, size })
}

/// Reads the heaps of one arena.
pub(super) fn read(
    arena: &ThreadArena,
    image: &mut Image<'_>,
    sink: &mut dyn TileSink,
) -> Result<ArenaRead, Unread> {
    let place = top_of(arena, image).ok_or(Unread::OtherLayout)?;
    let top = image.now(place.0).unwrap_or(0);
    let areas: Vec<Area> = arena
        .ranges()
        .map(|(start, end)| Area {
            first: first_block(arena, place, start),
            end,
            top: (start..start + LARGEST).contains(&top).then_some(place.0),
        })
        .collect();
    let fast = fastbins::read(image, place.fastbins(), &areas)?;
    let mut sum = Walk {
        broken_lists: fast.broken_lists,
        ..Walk::default()
    };
    let (mut heaps, mut unread) = (Vec::new(), Vec::new());
    let mut is_whole = true;
    let mut has_top = false;
    for ((start, end), area) in arena.ranges().zip(&areas) {
        sink.start(start);
        sink.tile(Tile {
            start,
            length: area.first - start,
            state: TileState::Bookkeeping,
        });
        match walk::walk(image, area, &fast, &mut |tile| sink.tile(tile)) {
            Ok(walk) => {
                has_top |= walk.ending == Ending::Top && image.now(place.0) == Ok(walk.top);
                is_whole &= walk.is_whole();
                sum.add(walk);
                heaps.push((start, end));
                sink.finish(true);
            }
            Err(broken) => {
                is_whole = false;
                unread.push((start, end, broken.into()));
                sink.finish(false);
            }
        }
    }
    let length: u64 = arena.heaps.iter().map(|(_, size)| size).sum();
    let is_counted = is_whole && has_top && place.system_mem(image) == Some(length);
    Ok(ArenaRead {
        walk: sum,
        is_counted,
        heaps,
        unread,
    })
}

/// Where the blocks of the heap at `start` start.
fn first_block(arena: &ThreadArena, place: Arena, start: u64) -> u64 {
    let is_first = (start..start + LARGEST).contains(&arena.address)
        && HEADS.iter().any(|size| start + size == arena.address);
    let first = match is_first {
        true => place.end(),
        // All heads of a process have the same size.
        false => start + arena.address % STEP,
    };
    // The program's bytes, behind a header of 16, are aligned.
    first.next_multiple_of(ALIGNMENT)
}

/// Where the arena's `top` is: a word that points into one of its heaps, with sound lists behind it.
fn top_of(arena: &ThreadArena, image: &mut Image<'_>) -> Option<Arena> {
    (arena.address..arena.address + MOST_BEFORE_TOP)
        .step_by(8)
        .find_map(|place| {
            let top = image.now(place).ok()?;
            let in_heaps = arena
                .ranges()
                .any(|(start, _)| (start..start + LARGEST).contains(&top));
            let found = Arena(place);
            (in_heaps && found.is_sound(image)).then_some(found)
        })
}
