//! Records of the side band, which tell of a thread's life and memory: mappings, names, starts and ends.

use super::record_bytes::{kind, next_record, word32, word64};

/// Threads whose births are reported in `span`, with the thread that started each (`struct {
/// header; pid, ppid, tid, ptid; … }`).
pub(super) fn births(span: &[u8]) -> Vec<(i32, i32)> {
    let mut born = Vec::new();
    let mut rest = span;
    while let Some((record, after)) = next_record(rest) {
        if word32(record, 0) == kind::FORK {
            let of = |at: usize| word32(record, at).cast_signed();
            born.push((of(16), of(20)));
        }
        rest = after;
    }
    born
}

/// Whether a record tells of a thread's life or memory, whoever records it.
pub(super) fn is_of(record: &[u8]) -> bool {
    matches!(
        word32(record, 0),
        kind::MMAP | kind::MMAP2 | kind::COMM | kind::FORK | kind::EXIT
    )
}

pub(super) fn timed(mut span: &[u8], is_new: bool) -> Vec<(u64, bool, &[u8])> {
    let mut records = Vec::new();
    while let Some((record, after)) = next_record(span) {
        records.push((time(record), is_new, record));
        span = after;
    }
    records
}

/// Such a record ends with the thread that wrote it, time, CPU and identifier, eight bytes each
/// (`perf_event__output_id_sample`, kernel/events/core.c, for the fields that all our sources have).
pub(super) fn time(record: &[u8]) -> u64 {
    word64(record, record.len().saturating_sub(24))
}

/// The identifier of the event by which it was written.
pub(super) fn id(record: &[u8]) -> u64 {
    word64(record, record.len().saturating_sub(8))
}

/// Process and thread that wrote it. A thread that ends is the one that is reported.
pub(super) fn writer(record: &[u8]) -> [i32; 2] {
    let at = record.len().saturating_sub(32);
    [at, at + 4].map(|at| word32(record, at).cast_signed())
}
