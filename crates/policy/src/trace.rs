//! Recorded page events ([`pagewise_wire::trace`]) in the form that policies need: uses of pages.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use pagewise_wire::trace::{Event, Header, Record};
use thiserror::Error;

use crate::page::{MAX_PAGES, Page, Span};

/// A trace cannot be read.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum TraceError {
    /// Not a trace.
    #[error(
        "not a fault trace: it does not start with 'PWFAULTS' (record one with --record-faults)"
    )]
    NotATrace,
    /// Of another version.
    #[error("a fault trace of version {0}; this program reads version {expected}", expected = pagewise_wire::trace::VERSION)]
    Version(u32),
    /// It contains no uses.
    #[error("the trace contains no use of any page")]
    Empty,
    /// An impossible page number.
    #[error(
        "record {record} names page {page}; there are at most {MAX_PAGES}: the file is damaged"
    )]
    Page {
        /// Number of the record, from 0.
        record: usize,
        /// The page.
        page: u64,
    },
}

/// One use of a page, or its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reference {
    /// The page.
    pub page: Page,
    /// Its region.
    pub region: u16,
    /// The thread.
    pub thread: u16,
    /// Use or end.
    pub kind: ReferenceKind,
}

/// What a reference does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// Reads the page.
    Read,
    /// Writes the page.
    Write,
    /// Gives the page back.
    Remove,
}

/// A whole trace.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace {
    /// The uses, in order.
    pub references: Vec<Reference>,
    /// Spans of the regions.
    pub regions: BTreeMap<u16, Span>,
    /// Those of them that are mapped files.
    pub files: BTreeSet<u16>,
    /// Pages that could be resident in the recorded run.
    pub budget_pages: u64,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// Uses that the recorder could not see, because the page had been read ahead. They are counted
    /// as uses at the time of the read.
    pub presumed: u64,
    /// Records of unknown kind, skipped.
    pub unknown: u64,
    /// Bytes behind the last whole record.
    pub cut: usize,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// When `bytes` are not a trace of this version, or contain no uses. A truncated last record is
    /// counted in [`Trace::cut`].
    pub fn parse(bytes: &[u8]) -> Result<Trace, TraceError> {
        let (head, body) = bytes
            .split_first_chunk::<{ Header::BYTES }>()
            .ok_or(TraceError::NotATrace)?;
        let header = Header::from_bytes(head).ok_or(TraceError::NotATrace)?;
        if header.version != pagewise_wire::trace::VERSION {
            return Err(TraceError::Version(header.version));
        }
        let (records, rest) = body.as_chunks::<{ Record::BYTES }>();
        let mut trace = Trace {
            budget_pages: header.budget_pages,
            page_bytes: header.page_bytes,
            cut: rest.len(),
            ..Trace::default()
        };
        for (number, bytes) in records.iter().enumerate() {
            trace.add(number, Record::from_bytes(*bytes))?;
        }
        if trace.references.is_empty() {
            return Err(TraceError::Empty);
        }
        Ok(trace)
    }

    fn add(&mut self, number: usize, record: Record) -> Result<(), TraceError> {
        let out_of_range = TraceError::Page {
            record: number,
            page: record.page(),
        };
        let page = u32::try_from(record.page()).map_err(|_| out_of_range)?;
        if page >= MAX_PAGES {
            return Err(TraceError::Page {
                record: number,
                page: record.page(),
            });
        }
        let kind = match record.event() {
            Some(Event::FirstRead | Event::Refault | Event::Sampled | Event::Read) => {
                ReferenceKind::Read
            }
            Some(Event::FirstWrite | Event::RefaultWrite | Event::Dirtied | Event::Write) => {
                ReferenceKind::Write
            }
            Some(Event::Prefetched) => {
                self.presumed += 1;
                ReferenceKind::Read
            }
            Some(Event::Removed) => ReferenceKind::Remove,
            Some(Event::Region) => {
                self.regions.insert(
                    record.region(),
                    Span {
                        first: page,
                        count: 0,
                    },
                );
                return Ok(());
            }
            Some(Event::RegionPages) => {
                self.regions.entry(record.region()).or_default().count = page;
                return Ok(());
            }
            Some(Event::RegionOfFile) => {
                self.files.insert(record.region());
                return Ok(());
            }
            Some(Event::Dropped | Event::Evicted) => return Ok(()),
            None => {
                self.unknown += 1;
                return Ok(());
            }
        };
        let (region, thread) = (self.region_of(page, record.region()), record.thread());
        // A trace from another recorder may lack its regions: then each region is the range of
        // pages used.
        let span = self.regions.entry(region).or_insert(Span {
            first: page,
            count: 1,
        });
        if !span.contains(page) {
            let first = span.first.min(page);
            *span = Span {
                first,
                count: span.end().max(page + 1) - first,
            };
        }
        self.references.push(Reference {
            page,
            region,
            thread,
            kind,
        });
        Ok(())
    }

    /// The region of a page: as recorded, or the known one that contains it, since only faults are
    /// recorded with their regions.
    fn region_of(&self, page: Page, recorded: u16) -> u16 {
        let holds = |span: &Span| span.contains(page);
        if self.regions.get(&recorded).is_some_and(holds) {
            return recorded;
        }
        let known = self.regions.iter().find(|(_, span)| holds(span));
        known.map_or(recorded, |(region, _)| *region)
    }

    /// Whether the page of `reference` is one of a mapped file.
    #[must_use]
    pub fn is_of_file(&self, reference: &Reference) -> bool {
        self.files.contains(&reference.region)
    }

    /// Number of the highest page, plus one.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.references
            .iter()
            .map(|one| one.page + 1)
            .max()
            .unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(records: &[Record]) -> Vec<u8> {
        let header = Header {
            magic: pagewise_wire::trace::MAGIC,
            version: pagewise_wire::trace::VERSION,
            page_bytes: 4096,
            budget_pages: 100,
            pid: 1,
            reserved: 0,
        };
        let mut bytes = header.to_bytes().to_vec();
        records
            .iter()
            .for_each(|record| bytes.extend(record.to_bytes()));
        bytes
    }

    #[test]
    fn records_become_references() {
        let records = [
            Record::new(0, 100, Event::Region).in_region(3),
            Record::new(0, 50, Event::RegionPages).in_region(3),
            Record::new(0, 500, Event::Region).in_region(4),
            Record::new(0, 50, Event::RegionPages).in_region(4),
            Record::new(0, 500, Event::RegionOfFile).in_region(4),
            Record::new(1, 120, Event::FirstWrite)
                .in_region(3)
                .by_thread(9),
            Record::new(2, 120, Event::Evicted).in_region(3),
            Record::new(3, 120, Event::Removed).in_region(3),
        ];
        let mut bytes = file(&records);
        bytes.extend([1, 2, 3]);
        let trace = Trace::parse(&bytes).expect("a trace");
        assert_eq!(
            trace.regions[&3],
            Span {
                first: 100,
                count: 50
            }
        );
        let kinds: Vec<_> = trace.references.iter().map(|one| one.kind).collect();
        assert_eq!(kinds, [ReferenceKind::Write, ReferenceKind::Remove]);
        assert_eq!(
            (trace.cut, trace.pages(), trace.references[0].thread),
            (3, 121, 9)
        );
        assert_eq!((trace.budget_pages, trace.page_bytes), (100, 4096));
        assert_eq!(trace.files, BTreeSet::from([4]));
    }

    #[test]
    fn what_is_no_trace_is_refused() {
        assert_eq!(Trace::parse(b"hello"), Err(TraceError::NotATrace));
        assert_eq!(Trace::parse(&[0; 64]), Err(TraceError::NotATrace));
        assert_eq!(Trace::parse(&file(&[])), Err(TraceError::Empty));
        let damaged = file(&[Record::new(0, 0xffff_ffff, Event::Read)]);
        assert!(matches!(
            Trace::parse(&damaged),
            Err(TraceError::Page { record: 0, .. })
        ));
        let mut other = file(&[]);
        other[8] = 99;
        assert_eq!(Trace::parse(&other), Err(TraceError::Version(99)));
    }
}
