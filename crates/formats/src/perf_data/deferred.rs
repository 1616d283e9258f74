//! User stacks in records of their own (`perf record --call-graph fp,defer`, Linux 6.19).
//!
//! A sample's chain then ends in `PERF_CONTEXT_USER_DEFERRED` and a cookie. The kernel reads the
//! user stack when the thread returns to user mode, once for all samples of that stay in the
//! kernel, and writes it as `PERF_RECORD_CALLCHAIN_DEFERRED`: cookie, number of addresses,
//! addresses, without a marker before them (kernel/events/core.c). That may be long after the
//! sample, so the stacks are collected before samples are passed on.

use super::cursor::Cursor;
use super::cursor::u64_at;
use super::header::next_record;
use super::layout::{RECORD_HEADER_SIZE, kernel_record, tool_record};
use super::sources::Sources;
use super::unpack::Unpacked;
use pagewise_model::event::{Callchain, PERF_CONTEXT_USER};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// `PERF_CONTEXT_USER_DEFERRED` of include/uapi/linux/perf_event.h.
const PERF_CONTEXT_USER_DEFERRED: u64 = (-640_i64).cast_unsigned();
/// Most stacks that are kept: 400 MB at 24 bytes each.
const MOST: usize = 1 << 24;

/// The stacks of a file, by cookie.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    of_cookie: FxHashMap<u64, u32>,
    /// Where each distinct stack is in `words`.
    stacks: Vec<Range<usize>>,
    words: Vec<u8>,
    numbers: FxHashMap<Box<[u8]>, u32>,
}

/// A sample's chain once its reference was looked up.
pub(super) enum Joined {
    /// It has no reference.
    Whole,
    /// It is complete now.
    Found,
    /// The file does not contain its user part.
    Missing,
}

impl Deferred {
    /// The stacks in these records.
    pub fn collect(layouts: &Sources, records: &[u8]) -> Self {
        let mut found = Self::default();
        if !layouts.defer_callchains() {
            return found;
        }
        let mut unpacked = Some(Unpacked::default());
        let mut rest = records;
        while let Some((kind, record, size)) = next_record(rest) {
            let packed = match kind {
                tool_record::COMPRESSED => record.get(RECORD_HEADER_SIZE..),
                tool_record::COMPRESSED2 => packed_of_stated_size(record),
                _ => None,
            };
            match (packed, &mut unpacked) {
                (Some(packed), Some(stream)) => {
                    if found.take_packed(layouts, stream, packed).is_none() {
                        unpacked = None;
                    }
                }
                _ => found.take(layouts, kind, record),
            }
            rest = rest.get(size..).unwrap_or_default();
        }
        found.numbers = FxHashMap::default();
        found
    }

    /// Takes the records of a packed one. `None` when the stream is damaged.
    fn take_packed(
        &mut self,
        layouts: &Sources,
        stream: &mut Unpacked,
        packed: &[u8],
    ) -> Option<()> {
        stream.append(packed).ok()?;
        let (_, unseen) = stream.unseen();
        let mut at = 0;
        while let Some((kind, record, size)) = next_record(unseen.get(at..).unwrap_or_default()) {
            self.take(layouts, kind, record);
            at += size;
        }
        stream.advance(at.min(unseen.len()));
        stream.forget_before(None);
        Some(())
    }

    fn take(&mut self, layouts: &Sources, kind: u32, record: &[u8]) {
        if kind == kernel_record::CALLCHAIN_DEFERRED
            && let Some((cookie, stack)) = stack_of(layouts, record)
            && self.of_cookie.len() < MOST
        {
            let next = u32::try_from(self.stacks.len()).unwrap_or(u32::MAX);
            let number = *self.numbers.entry(stack.into()).or_insert(next);
            if number == next {
                let start = self.words.len();
                self.words.extend_from_slice(stack);
                self.stacks.push(start..self.words.len());
            }
            self.of_cookie.insert(cookie, number);
        }
    }

    /// Writes a chain into `joined` with the user stack that it refers to.
    pub fn join(&self, chain: Callchain<'_>, joined: &mut Vec<u8>) -> Joined {
        let marker = PERF_CONTEXT_USER_DEFERRED.to_le_bytes();
        let bytes = chain.as_bytes();
        let at = bytes.chunks_exact(8).position(|word| word == marker);
        let Some(at) = at.map(|at| at * 8) else {
            return Joined::Whole;
        };
        joined.clear();
        joined.extend_from_slice(&bytes[..at]);
        let cookie = super::cursor::u64_at(bytes, at + 8);
        let stack = cookie
            .and_then(|cookie| self.of_cookie.get(&cookie))
            .and_then(|&number| self.stacks.get(number as usize));
        let Some(stack) = stack else {
            return Joined::Missing;
        };
        joined.extend_from_slice(&PERF_CONTEXT_USER.to_le_bytes());
        joined.extend_from_slice(&self.words[stack.clone()]);
        Joined::Found
    }
}

/// Cookie and addresses of a record.
fn stack_of<'r>(layouts: &Sources, record: &'r [u8]) -> Option<(u64, &'r [u8])> {
    let layout = layouts.layout(layouts.of_other(record))?;
    let (body, _) = layout.split_trailer(record)?;
    let mut at = Cursor(body);
    let (cookie, count) = at.u64().zip(at.u64())?;
    Some((cookie, at.take_array(count, 8)?))
}

/// `COMPRESSED2` is padded to eight bytes, so it states its actual length.
pub(super) fn packed_of_stated_size(record: &[u8]) -> Option<&[u8]> {
    let size = u64_at(record, RECORD_HEADER_SIZE)?;
    let payload = record.get(RECORD_HEADER_SIZE + 8..)?;
    payload.get(..usize::try_from(size).ok()?)
}
