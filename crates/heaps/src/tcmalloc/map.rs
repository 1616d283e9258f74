//! The map of pages: which span has a page.

use super::super::glibc::is_private_memory;
use super::super::scattered::Scattered;
use super::super::{Hole, Image};
use super::Words;
use pagewise_linux::proc::MapsEntry;

/// Sizes of tcmalloc's own pages, as powers of two: the default first.
const SHIFTS: [u32; 5] = [13, 12, 14, 15, 16];
/// Bits of an address (`kAddressBits`).
const ADDRESS_BITS: u32 = 48;
/// Most words near a word of the root: it has one for 2 GiB.
const MOST_NEAR: usize = 256;
const NEAR: u64 = 64 << 10;
/// Most places that are tried.
const MOST_TRIED: usize = 4096;
/// Most spans.
const MOST_SPANS: usize = 1 << 24;

/// Where a span is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    InUse,
    Free,
    Returned,
}

/// A span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Where it is described.
    pub at: u64,
    /// First page, and number of pages.
    pub start: u64,
    pub pages: u64,
    /// The first of its free objects, and how many are not free.
    pub objects: u64,
    pub in_use: u64,
    /// Class of its objects; 0 for none.
    pub class: usize,
    pub place: Place,
}

impl Span {
    fn parse(at: u64, words: [u64; 6]) -> Option<Self> {
        let [start, pages, _, _, objects, bits] = words;
        let place = match bits >> 24 & 3 {
            0 => Place::InUse,
            1 => Place::Free,
            2 => Place::Returned,
            _ => return None,
        };
        Some(Self {
            at,
            start,
            pages,
            objects,
            in_use: bits & 0xffff,
            class: usize::try_from(bits >> 16 & 0xff).ok()?,
            place,
        })
    }

    fn read(at: u64, words: &mut Scattered<'_>) -> Result<Option<Self>, Hole> {
        if at == 0 || !at.is_multiple_of(8) {
            return Ok(None);
        }
        let mut read = [0; 6];
        for (word, place) in read.iter_mut().zip((at..).step_by(8)) {
            *word = words.word(place)?;
        }
        Ok(Self::parse(at, read))
    }

    /// The span at this moment.
    pub fn now(at: u64, image: &Image<'_>) -> Result<Self, Hole> {
        Self::parse(at, image.now_all(at)?).ok_or(Hole::Absent)
    }
}

/// The map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Map {
    shift: u32,
    /// Number of each leaf, and where it is.
    leaves: Vec<(u64, u64)>,
}

/// Entries of a leaf, as a power of two.
fn leaf_bits(shift: u32) -> u32 {
    (ADDRESS_BITS - shift).div_ceil(2)
}

/// Finds the map.
pub(super) fn find(data: &Words, maps: &[MapsEntry], words: &mut Scattered<'_>) -> Option<Map> {
    let may_be_heap =
        |entry: &&MapsEntry| is_private_memory(entry) || &*entry.mapping.path == "[heap]";
    let heaps: Vec<(u64, u64)> = maps
        .iter()
        .filter(may_be_heap)
        .map(|entry| (entry.mapping.start, entry.mapping.end))
        .collect();
    let in_heaps = |address: u64| {
        let behind = heaps.partition_point(|range| range.0 <= address);
        behind
            .checked_sub(1)
            .is_some_and(|at| address < heaps[at].1)
    };
    let mut tried = 0;
    for &(place, leaf) in &data.0 {
        if !leaf.is_multiple_of(8) || !in_heaps(leaf) {
            continue;
        }
        // The root is nearly empty.
        let near = data.within(place.saturating_sub(NEAR), place + NEAR);
        if near.len() > MOST_NEAR {
            continue;
        }
        tried += 1;
        if tried > MOST_TRIED {
            return None;
        }
        let root = SHIFTS.into_iter().find_map(|shift| {
            let number = number_of(leaf, shift, &in_heaps, words)?;
            Some((shift, place.checked_sub(8 * number)?))
        });
        if let Some((shift, root)) = root {
            return Some(Map::new(shift, root, data, &in_heaps));
        }
    }
    None
}

/// The number of a leaf: by the first span that it leads to and that says where it is.
fn number_of(
    leaf: u64,
    shift: u32,
    in_heaps: &impl Fn(u64) -> bool,
    words: &mut Scattered<'_>,
) -> Option<u64> {
    let bits = leaf_bits(shift);
    let runs: Vec<_> = words.presence().within(leaf, leaf + (8 << bits)).collect();
    for run in runs {
        for place in (run.start.next_multiple_of(8)..run.end).step_by(8) {
            let at = words.word(place).ok()?;
            if at == 0 {
                continue;
            }
            let span = Span::read(at, words).ok()??;
            let number = span.start >> bits;
            let is_here = span.start & ((1 << bits) - 1) == (place - leaf) / 8;
            let is_span = is_here
                && number < 1 << (ADDRESS_BITS - shift - bits)
                && (1..1 << bits).contains(&span.pages)
                && in_heaps(span.start << shift);
            return is_span.then_some(number);
        }
    }
    None
}

impl Map {
    fn new(shift: u32, root: u64, data: &Words, in_heaps: &impl Fn(u64) -> bool) -> Self {
        let length = 8 << (ADDRESS_BITS - shift - leaf_bits(shift));
        let entries = data.within(root, root + length).iter();
        let leaves = entries.filter(|one| in_heaps(one.1));
        Self {
            shift,
            leaves: leaves.map(|one| ((one.0 - root) / 8, one.1)).collect(),
        }
    }

    /// All spans by address.
    pub fn spans(&self, words: &mut Scattered<'_>) -> Result<Vec<Span>, Hole> {
        let bits = leaf_bits(self.shift);
        let mut spans: Vec<Span> = Vec::new();
        for &(number, leaf) in &self.leaves {
            let first = number << bits;
            let mut page = first;
            while page < first + (1 << bits) && spans.len() < MOST_SPANS {
                let place = leaf + 8 * (page - first);
                let at = match words.word(place) {
                    Ok(at) => at,
                    // Nothing was ever written there.
                    Err(Hole::Absent) => 0,
                    Err(hole) => return Err(hole),
                };
                let behind = spans.last().map_or(0, |last| last.start + last.pages);
                match Span::read(at, words) {
                    Ok(Some(span)) if span.start == page && page >= behind && span.pages > 0 => {
                        page += span.pages;
                        spans.push(span);
                    }
                    // Entries inside spans that were joined are old.
                    Ok(_) | Err(Hole::Absent) => page += 1,
                    Err(hole) => return Err(hole),
                }
            }
        }
        Ok(spans)
    }

    /// First address of a span, and its bytes.
    pub fn range(&self, span: &Span) -> (u64, u64) {
        (span.start << self.shift, span.pages << self.shift)
    }

    /// The first address that the map is about, and the first behind.
    pub fn start(&self) -> u64 {
        let first = self.leaves.first().map_or(0, |leaf| leaf.0);
        first << (leaf_bits(self.shift) + self.shift)
    }

    pub fn end(&self) -> u64 {
        let last = self.leaves.last().map_or(0, |leaf| leaf.0 + 1);
        last << (leaf_bits(self.shift) + self.shift)
    }

    /// Pages that hold the leaves and the descriptions of spans, by address, outside spans.
    pub fn own_pages(&self, spans: &[Span], page: u64) -> Vec<(u64, u64)> {
        let length = 8 << leaf_bits(self.shift);
        let leaves = self.leaves.iter().map(|leaf| (leaf.1, leaf.1 + length));
        let described = spans.iter().map(|span| (span.at, span.at + 1));
        let whole = |(start, end): (u64, u64)| (start / page * page, end.next_multiple_of(page));
        let mut pages: Vec<(u64, u64)> = leaves.chain(described).map(whole).collect();
        pages.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for (start, end) in pages {
            match joined.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => joined.push((start, end)),
            }
        }
        joined.retain(|range| {
            let behind = spans.partition_point(|span| self.range(span).0 < range.1);
            let before = behind.checked_sub(1).map(|at| self.range(&spans[at]));
            before.is_none_or(|(start, length)| start + length <= range.0)
        });
        joined
    }
}
