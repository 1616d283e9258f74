//! The array of arenas.

use super::super::Image;
use super::super::glibc::is_private_memory;
use pagewise_linux::proc::MapsEntry;

/// Sizes of arena and pool: from 3.10 on, and before.
const LAYOUTS: [(u64, u64); 2] = [(1 << 20, 16 << 10), (256 << 10, 4 << 10)];
/// `sizeof (struct arena_object)`.
pub(super) const ENTRY: u64 = 48;
/// Most entries of the array: a terabyte.
const MOST_ENTRIES: u64 = 1 << 20;
/// Entries that are not in use at the array's start, at most, before one that is.
const MOST_UNUSED: u64 = 256;

/// An entry of the array in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// Where it is.
    place: u64,
    pub index: u64,
    pub address: u64,
    /// The first pool that was never used.
    pub fresh: u64,
    pub free_pools: u64,
    pub pools: u64,
}

/// The arenas, and the sizes of an arena and a pool.
pub(super) fn arenas(
    maps: &[MapsEntry],
    image: &mut Image<'_>,
    data: &[(u64, u64)],
) -> Option<(Vec<Entry>, (u64, u64))> {
    let memory: Vec<(u64, u64)> = maps
        .iter()
        .filter(|entry| is_private_memory(entry))
        .map(|entry| (entry.mapping.start, entry.mapping.end))
        .collect();
    let heap = maps
        .iter()
        .map(|entry| &entry.mapping)
        .filter(|mapping| &*mapping.path == "[heap]")
        .map(|mapping| (mapping.start, mapping.end));
    let places: Vec<(u64, u64)> = heap.chain(memory.iter().copied()).collect();
    let mut pointers = pointers(image, data, &places);
    pointers.sort_unstable();
    pointers.dedup();
    for pointer in pointers {
        for layout in LAYOUTS {
            let entries = entries(image, pointer, layout, &memory);
            if !entries.is_empty() {
                return Some((entries, layout));
            }
        }
    }
    None
}

/// Variables that point into one of these ranges.
fn pointers(image: &mut Image<'_>, data: &[(u64, u64)], places: &[(u64, u64)]) -> Vec<u64> {
    let mut found = Vec::new();
    for &(start, end) in data {
        let runs: Vec<_> = image.presence().within(start, end).collect();
        for run in runs {
            for address in (run.start..run.end).step_by(8) {
                let Ok(word) = image.word(address) else {
                    break;
                };
                let leads = |place: &(u64, u64)| place.0 < word && word < place.1;
                if word.is_multiple_of(16) && places.iter().any(leads) {
                    found.push(word);
                }
            }
        }
    }
    found
}

/// The entries in use of the array at `base`; none if it is no such array.
fn entries(
    image: &mut Image<'_>,
    base: u64,
    layout: (u64, u64),
    memory: &[(u64, u64)],
) -> Vec<Entry> {
    let room = room(image, base);
    let mut found: Vec<Entry> = Vec::new();
    for index in 0..room.unwrap_or(MOST_ENTRIES) {
        let place = base + ENTRY * index;
        let mut read = entry(image, place, index, layout, memory);
        // It may change at this moment.
        if read.is_err() && !found.is_empty() {
            image.forget();
            read = entry(image, place, index, layout, memory);
        }
        match read {
            Ok(Some(entry)) => found.push(entry),
            Ok(None) if !found.is_empty() || index < MOST_UNUSED => {}
            // Its arena has been mapped since the mappings were read.
            Err(()) if !found.is_empty() && room.is_some() => {}
            _ => break,
        }
    }
    found
}

/// Entries for which the array at `base` has room: it is a block of `malloc`, which says how long it is.
fn room(image: &Image<'_>, base: u64) -> Option<u64> {
    let bytes = image.now(base.checked_sub(8)?).ok()? & !7;
    let room = bytes.checked_sub(16)? / ENTRY;
    (1..=MOST_ENTRIES).contains(&room).then_some(room)
}

/// One entry: `None` if it is not in use, an error if it is none.
fn entry(
    image: &mut Image<'_>,
    place: u64,
    index: u64,
    (size, pool): (u64, u64),
    memory: &[(u64, u64)],
) -> Result<Option<Entry>, ()> {
    let mut word = |at: u64| image.word(place + at).map_err(drop);
    let address = word(0)?;
    if address == 0 {
        return Ok(None);
    }
    let (fresh, counts) = (word(8)?, word(16)?);
    let entry = Entry {
        place,
        index,
        address,
        fresh,
        free_pools: counts & 0xffff_ffff,
        pools: counts >> 32,
    };
    let first = address.checked_next_multiple_of(pool).ok_or(())?;
    let end = address.checked_add(size).ok_or(())?;
    let is_sound = address.is_multiple_of(4096)
        && memory
            .iter()
            .any(|range| range.0 <= address && end <= range.1)
        && entry.pools == (end - first) / pool
        && entry.free_pools <= entry.pools
        && fresh >= first
        && fresh <= first + entry.pools * pool
        && (fresh - first).is_multiple_of(pool);
    if !is_sound {
        return Err(());
    }
    // The first pool names the arena's place in the array, once there is one.
    if fresh > first && word_of(image, first + 32)? & 0xffff_ffff != index {
        return Err(());
    }
    Ok(Some(entry))
}

fn word_of(image: &mut Image<'_>, address: u64) -> Result<u64, ()> {
    image.word(address).map_err(drop)
}

/// The current entry, if it is still that of the same arena.
pub(super) fn again(known: &Entry, (size, pool): (u64, u64), image: &mut Image<'_>) -> Entry {
    let range = [(known.address, known.address + size)];
    let read = entry(image, known.place, known.index, (size, pool), &range);
    match read {
        Ok(Some(entry)) if entry.address == known.address => entry,
        _ => *known,
    }
}
