//! The records of one CPU, page by page (`kernel/trace/ring_buffer.c`).
//!
//! ```text
//! page:   time stamp u64 | length and flags | records
//! record: type u5, time since the last one u27, then by type
//!   1…28  a record of four times as many bytes
//!   0     u32 bytes, its own four included
//!   29    padding: without time the end of the page, else u32 bytes of a discarded record
//!   30    u32: the upper bits of a long time since the last record
//!   31    u32: with the u27, the lower 59 bits of the time itself
//! ```

use super::meta::{CpuData, PageHeader};
use super::packing::Packing;
use std::ops::Range;

const LENGTH: u64 = (1 << 27) - 1;
/// Records were overwritten before the page was read.
const MISSED: u64 = 1 << 31;
/// Their number is stored after the page's last record.
const MISSED_STORED: u64 = 1 << 30;
/// Bits of a time that an absolute time stamp has.
const STAMP_BITS: u32 = 59;

/// The current record of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// Ticks of the trace clock.
    pub time: u64,
    /// Where the record is in [`Stream::bytes`].
    pub place: Range<usize>,
    /// Set when records are missing before this one: their number, if known.
    pub missed: Option<Option<u64>>,
}

/// What could not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Damage {
    /// Pages, chunks and records that contradict themselves.
    pub malformed: u64,
    /// Bytes beyond the end of the file.
    pub missing_bytes: u64,
}

/// The pages of one CPU; if they are packed, one chunk is in memory at a time.
pub(super) struct Stream<'a> {
    pub cpu: u32,
    layout: PageHeader,
    page_size: usize,
    source: Source<'a>,
    /// The next page's offset in the block.
    next_page: usize,
    /// The unread rest of this page.
    rest: Range<usize>,
    time: u64,
    missed: Option<Option<u64>>,
    head: Option<Head>,
    damage: Damage,
}

enum Source<'a> {
    Plain(&'a [u8]),
    Packed {
        packing: Packing,
        chunks: u32,
        rest: &'a [u8],
        block: Vec<u8>,
    },
}

impl Source<'_> {
    fn block(&self) -> &[u8] {
        match self {
            Self::Plain(bytes) => bytes,
            Self::Packed { block, .. } => block,
        }
    }
}

impl<'a> Stream<'a> {
    /// The stream at its first record.
    pub fn new(data: &CpuData<'a>, page_size: usize, layout: PageHeader) -> Self {
        let mut damage = Damage {
            missing_bytes: data.missing,
            ..Damage::default()
        };
        let source = match data.packed {
            None => Source::Plain(data.bytes),
            Some(packing) => {
                let count = data.bytes.split_first_chunk();
                damage.malformed += u64::from(count.is_none() && !data.bytes.is_empty());
                let (chunks, rest) = count.unwrap_or((&[0; 4], &[]));
                Source::Packed {
                    packing,
                    chunks: u32::from_le_bytes(*chunks),
                    rest,
                    block: Vec::new(),
                }
            }
        };
        let mut stream = Self {
            cpu: data.cpu,
            layout,
            page_size,
            source,
            next_page: 0,
            rest: 0..0,
            time: 0,
            missed: None,
            head: None,
            damage,
        };
        stream.advance();
        stream
    }

    /// The current record; `None` after the last.
    #[inline]
    pub fn head(&self) -> Option<&Head> {
        self.head.as_ref()
    }

    /// The bytes of a record.
    #[inline]
    pub fn bytes(&self, place: &Range<usize>) -> &[u8] {
        self.source.block().get(place.clone()).unwrap_or_default()
    }

    pub fn damage(&self) -> Damage {
        self.damage
    }

    /// Goes to the next record.
    #[inline]
    pub fn advance(&mut self) {
        self.head = loop {
            if self.rest.is_empty() {
                match self.turn_page() {
                    true => continue,
                    false => break None,
                }
            }
            match self.record() {
                Some(Some(place)) => {
                    break Some(Head {
                        time: self.time,
                        place,
                        missed: self.missed.take(),
                    });
                }
                Some(None) => {}
                None => self.spoilt(),
            }
        };
    }

    /// The rest of a page is damaged: its records are missing.
    #[cold]
    fn spoilt(&mut self) {
        self.damage.malformed += 1;
        self.missed = Some(None);
        self.rest.start = self.rest.end;
    }

    /// Skips one item of the page. Returns its position if it is a record; the outer `None` means
    /// that the item is damaged.
    #[inline]
    fn record(&mut self) -> Option<Option<Range<usize>>> {
        let at = self.rest.start;
        let word = self.word(at)?;
        let (kind, delta) = (word & 31, u64::from(word >> 5));
        let (start, end) = match kind {
            0 => (at + 8, at.checked_add(4)?.checked_add(self.size(at)?)?),
            1..=28 => (at + 4, at + 4 + 4 * kind as usize),
            29 if delta == 0 => (at, self.rest.end),
            29 => (at, at.checked_add(4)?.checked_add(self.size(at)?)?),
            _ => (at, at + 8),
        };
        if end > self.rest.end || start > end {
            return None;
        }
        match kind {
            30 => {
                self.time = self
                    .time
                    .wrapping_add((u64::from(self.word(at + 4)?) << 27) + delta)
            }
            31 => self.stamp((u64::from(self.word(at + 4)?) << 27) + delta),
            _ => self.time = self.time.wrapping_add(delta),
        }
        self.rest.start = end;
        Some((kind < 29).then_some(start..end))
    }

    /// Takes an absolute time, whose upper bits are those of the time before.
    fn stamp(&mut self, low: u64) {
        let high = self.time >> STAMP_BITS << STAMP_BITS;
        let time = high | low & ((1 << STAMP_BITS) - 1);
        let wrapped = time < self.time && high != 0;
        self.time = time.wrapping_add(u64::from(wrapped) << STAMP_BITS);
    }

    #[inline]
    fn word(&self, at: usize) -> Option<u32> {
        let bytes = self.source.block().get(at..self.rest.end)?;
        Some(u32::from_le_bytes(*bytes.first_chunk()?))
    }

    /// The size stored after a record's first word; at least its own four bytes, in whole words.
    fn size(&self, at: usize) -> Option<usize> {
        let size = usize::try_from(self.word(at + 4)?).ok()?;
        (size >= 4).then(|| size.next_multiple_of(4))
    }

    /// Begins the next page; `false` after the last.
    fn turn_page(&mut self) -> bool {
        if self.next_page >= self.source.block().len() && !self.unpack() {
            return false;
        }
        let start = self.next_page;
        let end = self.source.block().len().min(start + self.page_size);
        self.next_page = end;
        self.rest = end..end;
        self.begin_page(start, end);
        true
    }

    /// Reads a page's header. A page that the end of the file cuts off is read as far as possible.
    fn begin_page(&mut self, start: usize, end: usize) {
        let page = &self.source.block()[start..end];
        let Some((time, commit)) = self.header(page) else {
            return self.spoilt_page(page.len());
        };
        let data = start + self.layout.data;
        let length = usize::try_from(commit & LENGTH).unwrap_or(usize::MAX);
        if length > self.page_size - self.layout.data {
            return self.spoilt_page(page.len());
        }
        self.time = time;
        if commit & MISSED != 0 {
            let stored = (commit & MISSED_STORED != 0).then(|| self.stored(page, length));
            self.miss(stored.flatten());
        }
        self.rest = data..end.min(data + length);
    }

    fn header(&self, page: &[u8]) -> Option<(u64, u64)> {
        let time = u64::from_le_bytes(*page.first_chunk()?);
        let (offset, size) = self.layout.commit;
        let field = page.get(offset..offset + size)?;
        let commit = match size {
            4 => u32::from_le_bytes(*field.first_chunk()?).into(),
            _ => u64::from_le_bytes(*field.first_chunk()?),
        };
        (page.len() >= self.layout.data).then_some((time, commit))
    }

    /// The number of missed records after a page's last record.
    fn stored(&self, page: &[u8], length: usize) -> Option<u64> {
        let field = page.get(self.layout.data + length..)?;
        match self.layout.commit.1 {
            4 => Some(u32::from_le_bytes(*field.first_chunk()?).into()),
            _ => Some(u64::from_le_bytes(*field.first_chunk()?)),
        }
    }

    /// Records a loss; two losses before one record become one, of unknown size if either is
    /// unknown.
    fn miss(&mut self, count: Option<u64>) {
        self.missed = Some(match self.missed {
            None => count,
            Some(before) => before.zip(count).map(|(a, b)| a.saturating_add(b)),
        });
    }

    #[cold]
    fn spoilt_page(&mut self, len: usize) {
        self.missed = Some(None);
        if len < self.page_size {
            let missing = (self.page_size - len) as u64;
            self.damage.missing_bytes = self.damage.missing_bytes.saturating_add(missing);
        } else {
            self.damage.malformed += 1;
        }
    }

    /// Unpacks the next chunk that can be unpacked; `false` if there is none.
    fn unpack(&mut self) -> bool {
        let Source::Packed {
            packing,
            chunks,
            rest,
            block,
        } = &mut self.source
        else {
            return false;
        };
        self.next_page = 0;
        self.rest = 0..0;
        while *chunks > 0 {
            *chunks -= 1;
            block.clear();
            let Some((packed, size)) = chunk(rest) else {
                // The end of the file, where the missing bytes have been counted, or a wrong size.
                self.damage.malformed += 1;
                *chunks = 0;
                return false;
            };
            if packing.unpack(packed, size, block).is_ok() && !block.is_empty() {
                return true;
            }
            block.clear();
            self.damage.malformed += 1;
            self.missed = Some(None);
        }
        block.clear();
        false
    }
}

/// The next chunk's bytes and the size that they unpack to.
fn chunk<'a>(rest: &mut &'a [u8]) -> Option<(&'a [u8], u32)> {
    let (packed, after) = rest.split_first_chunk()?;
    let (size, after) = after.split_first_chunk()?;
    let len = usize::try_from(u32::from_le_bytes(*packed)).ok()?;
    let (bytes, after) = after.split_at_checked(len)?;
    *rest = after;
    Some((bytes, u32::from_le_bytes(*size)))
}
