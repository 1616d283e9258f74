//! musl's malloc (src/malloc/mallocng of 1.2.1 to 1.2.5), read by its list of groups.
//!
//! ```text
//!  context    secret │ 1 │ … │ first area │ last area │ … │ slots by size class
//!  area       secret │ next area │ number of descriptors │ descriptors
//!  descriptor links │ group │ available, freed (a bit for each slot) │ last slot, class, pages
//!  group      its descriptor │ slots of one size; a slot may hold a smaller group
//! ```
//!
//! The context is found in the variables of the C library or the program: its secret is also at the
//! start of each area, a page of its own. A group must name its descriptor, and the slots of each class
//! must be as many as the context counts. Memory goes back to the kernel when all slots of a group are
//! free, without being told to.

use super::tiling::Tiling;
use super::variables::writable_data;
use super::{AllocatorReader, HeapsRead, Hole, Image, glibc};
use pagewise_linux::proc::MapsEntry;
use pagewise_model::allocator::AllocatorKind;
use pagewise_model::memory::{HeapFacts, Returns, TileSink, TileState, Unread};

/// Reads musl's groups.
pub struct Musl;

/// An area, and its alignment.
const AREA: u64 = 4096;
/// Most areas, of 101 descriptors each.
const MOST_AREAS: usize = 1 << 20;
/// From an area's start to its descriptors, and their size.
const FIRST: u64 = 24;
const DESCRIPTOR: u64 = 40;
/// What sizes are a multiple of (`UNIT`), and a group's head.
const UNIT: u64 = 16;
/// Size of each class, in units (`__malloc_size_classes`).
const CLASSES: [u64; 48] = [
    1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 15, 18, 20, 25, 31, 36, 42, 50, 63, 72, 84, 102, 127, 146,
    170, 204, 255, 292, 340, 409, 511, 584, 682, 818, 1023, 1169, 1364, 1637, 2047, 2340, 2730,
    3276, 4095, 4680, 5460, 6552, 8191,
];
/// The class of a block with pages of its own.
const ALONE: u64 = 63;
const PAGE: u64 = 4096;
/// How often it is looked at a group that changes.
const LOOKS: usize = 3;
/// The part of the groups (1 in so many) that may have changed.
const MAY_CHANGE: usize = 20;

impl AllocatorReader for Musl {
    fn read(
        &self,
        maps: &[MapsEntry],
        image: &mut Image<'_>,
        sink: &mut dyn TileSink,
    ) -> HeapsRead {
        let mut found = HeapsRead::default();
        // Searching all variables takes longer than reading a small heap.
        if glibc::has_library(maps) {
            return found;
        }
        let data = writable_data(maps, |_| true);
        let Some(context) = Context::find(image, &data) else {
            return found;
        };
        match context.groups(image) {
            Ok(groups) => found.heaps.extend(heap(&groups, &context, image, sink)),
            Err(reason) => found.unread.push((0, u64::MAX, reason)),
        }
        found
    }
}

/// Where the allocator keeps its variables.
#[derive(Clone, Copy, Debug)]
struct Context {
    secret: u64,
    first: u64,
    /// Slots by class.
    counts: u64,
}

/// From the start of the context to its flag, where pages are always of 4 KiB, and where their size is a
/// variable before the flag.
const FLAGS: [u64; 2] = [8, 16];
/// From the flag on: first area, last area, slots by class.
const HEAD: u64 = 48;
const TAIL: u64 = 56;
const COUNTS: u64 = 72 + 8 * 48;

impl Context {
    fn find(image: &mut Image<'_>, data: &[(u64, u64)]) -> Option<Self> {
        for &(start, end) in data {
            let runs: Vec<_> = image.presence().within(start, end).collect();
            for run in runs {
                for at in (run.start..run.end).step_by(8) {
                    if let Some(found) = Self::at(image, at) {
                        return Some(found);
                    }
                }
            }
        }
        None
    }

    fn at(image: &mut Image<'_>, start: u64) -> Option<Self> {
        let secret = image.word(start).ok().filter(|secret| *secret != 0)?;
        FLAGS.into_iter().find_map(|flag| {
            let flag = start + flag;
            let is_area = |word: u64| word != 0 && word.is_multiple_of(AREA);
            let is_ready = image.word(flag).ok()? & 0xffff_ffff == 1;
            let first = is_ready.then(|| image.word(flag + HEAD).ok())??;
            let last = image.word(flag + TAIL).ok()?;
            let is_context = is_area(first)
                && is_area(last)
                && image.now(first) == Ok(secret)
                && image.now(last) == Ok(secret);
            is_context.then_some(Self {
                secret,
                first,
                counts: flag + COUNTS,
            })
        })
    }

    /// All groups by address, with the areas.
    fn groups(&self, image: &mut Image<'_>) -> Result<Groups, Unread> {
        let mut found = Groups::default();
        let mut area = self.first;
        while area != 0 {
            let head: [u64; 3] = image.now_all(area)?;
            let [secret, next, count] = head;
            let room = (AREA - FIRST) / DESCRIPTOR;
            if secret != self.secret || found.areas.len() >= MOST_AREAS {
                return Err(Unread::Changed);
            }
            for number in 0..(count & 0xffff_ffff).min(room) {
                let place = area + FIRST + DESCRIPTOR * number;
                match self.descriptor(image, place) {
                    Ok(group) => found.groups.extend(group),
                    Err(Unread::Changed) => found.changed += 1,
                    Err(reason) => return Err(reason),
                }
            }
            found.areas.push(area);
            area = next;
        }
        if found.changed > found.groups.len() / MAY_CHANGE {
            return Err(Unread::Changed);
        }
        found.groups.sort_by_key(|group| group.start);
        Ok(found)
    }

    /// The group of a descriptor, if it has one.
    fn descriptor(&self, image: &mut Image<'_>, place: u64) -> Result<Option<Group>, Unread> {
        for _ in 0..LOOKS {
            let [start, bits, rest] = image.now_all(place + 16)?;
            if start == 0 {
                return Ok(None);
            }
            let back = image.now(start);
            if let Some(group) = Group::parse(start, bits, rest)
                && back == Ok(place)
            {
                return Ok(Some(group));
            }
            if back == Err(Hole::Swapped) {
                return Err(Unread::Swapped);
            }
        }
        Err(Unread::Changed)
    }

    /// Whether the slots of each class are as many as the allocator counts.
    fn agrees(&self, groups: &[Group], image: &mut Image<'_>) -> bool {
        let mut sums = [0; CLASSES.len()];
        for group in groups.iter().filter(|group| group.is_counted) {
            if let Some(sum) = usize::try_from(group.class)
                .ok()
                .and_then(|class| sums.get_mut(class))
            {
                *sum += group.slots;
            }
        }
        image.now_all(self.counts) == Ok(sums)
    }
}

#[derive(Default)]
struct Groups {
    areas: Vec<u64>,
    groups: Vec<Group>,
    changed: usize,
}

/// Slots of one size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Group {
    start: u64,
    slots: u64,
    /// Bytes from one to the next.
    stride: u64,
    /// A bit for each that is free.
    free: u64,
    class: u64,
    /// Bytes of pages of its own; none inside a slot of another group.
    pages: u64,
    /// Whether its slots are counted: not those in pages that the program's files do not fill.
    is_counted: bool,
}

impl Group {
    /// The group at `start`, of a descriptor with these words.
    fn parse(start: u64, bits: u64, rest: u64) -> Option<Self> {
        let (last, class, pages) = (rest & 31, rest >> 6 & 63, (rest >> 12) * PAGE);
        let slots = last + 1;
        let stride = match usize::try_from(class).ok().and_then(|at| CLASSES.get(at)) {
            _ if last == 0 && pages > 0 => pages - UNIT,
            Some(units) => units * UNIT,
            None => return None,
        };
        let all = (1 << slots) - 1;
        let (available, freed) = (bits & 0xffff_ffff, bits >> 32);
        let length = UNIT.checked_add(slots * stride)?;
        let is_sound = start.is_multiple_of(UNIT)
            && start.checked_add(length.max(pages)).is_some()
            && (available | freed) & !all == 0
            && available & freed == 0
            && (pages == 0 || length <= pages)
            && (class < ALONE || slots == 1);
        is_sound.then_some(Self {
            start,
            slots,
            stride,
            free: available | freed,
            class,
            pages,
            is_counted: rest >> 5 & 1 == 1,
        })
    }

    fn end(&self) -> u64 {
        self.start + self.pages.max(UNIT + self.slots * self.stride)
    }

    fn is_free(&self, slot: u64) -> bool {
        self.free >> slot & 1 == 1
    }
}

fn heap(
    groups: &Groups,
    context: &Context,
    image: &mut Image<'_>,
    sink: &mut dyn TileSink,
) -> Option<HeapFacts> {
    let mut tiling = Tiling::new(sink, AllocatorKind::Musl);
    let mut rest = groups.groups.as_slice();
    let mut areas = groups.areas.clone();
    areas.sort_unstable();
    let mut areas = areas.into_iter().peekable();
    while let Some((group, behind)) = rest.split_first() {
        while let Some(area) = areas.next_if(|area| *area < group.start) {
            tiling.tile(area, AREA, TileState::Bookkeeping);
        }
        let inner = behind.partition_point(|other| other.start < group.end());
        let (inner, others) = behind.split_at(inner);
        tiles(group, inner, &mut tiling);
        rest = others;
    }
    for area in areas {
        tiling.tile(area, AREA, TileState::Bookkeeping);
    }
    let is_counted = groups.changed == 0 && context.agrees(&groups.groups, image);
    let count = groups.groups.len() as u64;
    tiling.heap(count, is_counted, Returns::Nothing)
}

/// The slots of a group, of which some hold those of `inner`.
fn tiles(group: &Group, inner: &[Group], tiling: &mut Tiling<'_>) {
    tiling.tile(group.start, UNIT, TileState::Bookkeeping);
    let mut inner = inner;
    for slot in 0..group.slots {
        let start = group.start + UNIT + slot * group.stride;
        let end = start + group.stride;
        let first = inner.partition_point(|other| other.start < start);
        let behind = inner.partition_point(|other| other.start < end);
        let within = inner.get(first..behind).unwrap_or_default();
        inner = inner.get(behind..).unwrap_or_default();
        let (block, kept) = (group.stride, group.stride);
        match within.split_first() {
            _ if group.is_free(slot) => tiling.tile(start, block, TileState::Free { kept }),
            Some((nested, others)) if nested.end() <= end => {
                tiling.tile(start, nested.start - start, TileState::Bookkeeping);
                tiles(nested, others, tiling);
                tiling.tile(nested.end(), end - nested.end(), TileState::Bookkeeping);
            }
            _ => tiling.tile(start, block, TileState::Live { block }),
        }
    }
    let used = group.start + UNIT + group.slots * group.stride;
    let rest = group.end().saturating_sub(used);
    tiling.tile(used, rest, TileState::Bookkeeping);
}

#[cfg(test)]
#[path = "musl_tests.rs"]
mod tests;
