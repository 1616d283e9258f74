//! Which source a record belongs to, and where its time is.

use super::attr::Attr;
use super::cursor::u64_at;
use super::header::RawSource;
use super::layout::{RECORD_HEADER_SIZE, sample_type as bit};
use rustc_hash::FxHashMap;

/// Attributes by index and by id, with what they have in common computed once.
#[derive(Debug)]
pub(super) struct Sources {
    attrs: Vec<Layout>,
    by_id: FxHashMap<u64, u16>,
    /// Offset of the id in a sample, if it is the same for all sources.
    id_in_sample: Option<usize>,
    /// The same for other records, counted from their end.
    id_from_end: Option<usize>,
}

/// An attribute and the offsets that follow from it.
#[derive(Debug)]
pub(super) struct Layout {
    pub attr: Attr,
    time_in_sample: Option<usize>,
    /// Length of the trailer of records that are not samples.
    pub trailer: usize,
    time_in_trailer: Option<usize>,
    id_in_trailer: Option<usize>,
}

impl Layout {
    fn new(attr: Attr) -> Self {
        let all = bit::TID | bit::TIME | bit::ID | bit::STREAM_ID | bit::CPU | bit::IDENTIFIER;
        let shown = if attr.sample_id_all() {
            attr.sample_type & all
        } else {
            0
        };
        let before = |mask: u64| (shown & mask).count_ones() as usize * 8;
        let id_in_trailer = if shown & bit::IDENTIFIER != 0 {
            Some(before(all) - 8)
        } else {
            (shown & bit::ID != 0).then(|| before(bit::TID | bit::TIME))
        };
        let time_in_sample = attr.has(bit::TIME).then(|| {
            let first = attr.sample_type & (bit::IDENTIFIER | bit::IP | bit::TID);
            RECORD_HEADER_SIZE + first.count_ones() as usize * 8
        });
        Self {
            time_in_sample,
            trailer: before(all),
            time_in_trailer: (shown & bit::TIME != 0).then(|| before(bit::TID)),
            id_in_trailer,
            attr,
        }
    }

    /// Offset of the id in a sample of this source.
    fn id_in_sample(&self) -> Option<usize> {
        if self.attr.has(bit::IDENTIFIER) {
            return Some(RECORD_HEADER_SIZE);
        }
        let first = bit::IP | bit::TID | bit::TIME | bit::ADDR;
        let words = (self.attr.sample_type & first).count_ones() as usize;
        self.attr
            .has(bit::ID)
            .then_some(RECORD_HEADER_SIZE + words * 8)
    }

    fn id_from_end(&self) -> Option<usize> {
        self.id_in_trailer.map(|at| self.trailer - at)
    }

    /// The trailer of a record that is not a sample, and what comes before it.
    pub fn split_trailer<'a>(&self, record: &'a [u8]) -> Option<(&'a [u8], &'a [u8])> {
        let body = record.get(RECORD_HEADER_SIZE..)?;
        body.split_at_checked(body.len().checked_sub(self.trailer)?)
    }

    /// Process and thread of a trailer.
    pub fn trailer_ids(&self, trailer: &[u8]) -> (i32, i32) {
        let shown = self.trailer > 0 && self.attr.has(bit::TID);
        let word = if shown { u64_at(trailer, 0) } else { None };
        word.map_or((-1, -1), split_ids)
    }

    /// The id in a trailer, where it has one.
    pub fn trailer_id(&self, trailer: &[u8]) -> Option<u64> {
        u64_at(trailer, self.id_in_trailer?)
    }
}

/// Two 32-bit ids from one word.
fn split_ids(word: u64) -> (i32, i32) {
    let [a, b, c, d, e, f, g, h] = word.to_le_bytes();
    (
        i32::from_le_bytes([a, b, c, d]),
        i32::from_le_bytes([e, f, g, h]),
    )
}

impl Sources {
    pub fn new(sources: &[RawSource]) -> Self {
        let attrs: Vec<_> = sources
            .iter()
            .map(|s| Layout::new(s.attr.clone()))
            .collect();
        let by_id = (0_u16..)
            .zip(sources)
            .flat_map(|(index, source)| source.ids.iter().map(move |&id| (id, index)));
        Self {
            id_in_sample: same(attrs.iter().map(Layout::id_in_sample)),
            id_from_end: same(attrs.iter().map(Layout::id_from_end)),
            by_id: by_id.collect(),
            attrs,
        }
    }

    /// The source of a sample. `None` when its id belongs to no source.
    #[inline]
    pub fn of_sample(&self, record: &[u8]) -> Option<u16> {
        if self.attrs.len() == 1 {
            return Some(0);
        }
        match self.id_in_sample {
            Some(offset) => self.by_id.get(&u64_at(record, offset)?).copied(),
            None => Some(0),
        }
    }

    /// The source whose trailer another record carries: the first one if the record has no id, as
    /// with synthesised records.
    pub fn of_other(&self, record: &[u8]) -> u16 {
        let id = self
            .id_from_end
            .and_then(|from_end| u64_at(record, record.len().checked_sub(from_end)?));
        id.and_then(|id| self.by_id.get(&id).copied()).unwrap_or(0)
    }

    #[inline]
    pub fn layout(&self, source: u16) -> Option<&Layout> {
        self.attrs.get(usize::from(source))
    }

    /// The time of a sample; 0 without one, `None` when it is cut off or belongs to no source.
    #[inline]
    pub fn sample_time(&self, record: &[u8]) -> Option<u64> {
        let layout = self.layout(self.of_sample(record)?)?;
        match layout.time_in_sample {
            Some(offset) => u64_at(record, offset),
            None => Some(0),
        }
    }

    /// The time in the trailer of another record; 0 without one, `None` when it is cut off.
    pub fn other_time(&self, record: &[u8]) -> Option<u64> {
        let layout = self.layout(self.of_other(record))?;
        let (_, trailer) = layout.split_trailer(record)?;
        match layout.time_in_trailer {
            Some(offset) => u64_at(trailer, offset),
            None => Some(0),
        }
    }

    /// Whether samples may refer to user stacks that come in records of their own.
    pub fn defer_callchains(&self) -> bool {
        let mut layouts = self.attrs.iter();
        layouts.any(|layout| layout.attr.defers_callchains())
    }

    /// The source with this id.
    pub fn by_id(&self, id: u64) -> Option<u16> {
        self.by_id.get(&id).copied()
    }
}

/// The common value of all, if they agree.
fn same(mut values: impl Iterator<Item = Option<usize>>) -> Option<usize> {
    let first = values.next()??;
    values.all(|value| value == Some(first)).then_some(first)
}
