//! The ring that perf events write into, shared with the kernel.
//!
//! ```text
//! one page of control            2^n pages of records
//! +--------------------------+   +-------------------------------------------+
//! | … data_head … data_tail  |   |  free  | oldest ….… newest |     free      |
//! +--------------------------+   +-------------------------------------------+
//!                                         ^ data_tail (ours)  ^ data_head (the kernel's)
//! ```
//! Both positions count bytes since the start and never wrap; a position modulo the size is
//! an offset. The kernel writes records only between head and tail + size, then publishes the new
//! head; we read between tail and head, then publish the new tail (include/uapi/linux/
//! perf_event.h, `struct perf_event_mmap_page`; kernel/events/ring_buffer.c).

use super::perf_event::EventFd;
use perf_event_open_sys::bindings::perf_event_mmap_page;
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};

/// Size in bytes of `struct perf_event_header`.
const HEADER: usize = 8;

/// A mapped ring of one CPU.
#[derive(Debug)]
pub struct Ring {
    control: NonNull<perf_event_mmap_page>,
    mapped: usize,
    data: NonNull<u8>,
    size: usize,
    /// Buffer to assemble the record that lies across the end of the ring.
    split: Vec<u8>,
}

// SAFETY: the mapping belongs to this value alone and has no thread affinity; positions that the
// kernel also accesses are only accessed atomically.
unsafe impl Send for Ring {}

impl Ring {
    /// Maps a ring of `pages` pages (a power of two) of `page_size` bytes onto `event`.
    ///
    /// # Errors
    /// `EPERM` if it exceeds the limit of locked memory, otherwise the kernel's refusal.
    pub fn map(event: &EventFd, pages: usize, page_size: usize) -> io::Result<Self> {
        if !pages.is_power_of_two() {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let size = pages * page_size;
        let mapped = size + page_size;
        // SAFETY: a new shared mapping at an address of the kernel's choice; nothing is replaced.
        let start = unsafe {
            libc::mmap(
                ptr::null_mut(),
                mapped,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                event.raw(),
                0,
            )
        };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let control = NonNull::new(start.cast::<perf_event_mmap_page>())
            .ok_or(io::ErrorKind::UnexpectedEof)?;
        // SAFETY: the mapping is `page_size + size` bytes long, so its data area, which starts
        // after the control page, is inside it.
        let data = unsafe { control.cast::<u8>().add(page_size) };
        Ok(Self {
            control,
            mapped,
            data,
            size,
            split: Vec::new(),
        })
    }

    /// Bytes for records.
    #[must_use]
    pub fn size(&self) -> usize {
        self.size
    }

    /// Passes on all records written so far, oldest first, in spans of whole records, then returns
    /// their room to the kernel. Returns false if it read something that is not a record (a size
    /// below the header's or past the written data): the rest up to the head is then dropped.
    pub fn drain(&mut self, mut visit: impl FnMut(&[u8])) -> bool {
        let head = self.head().load(Ordering::Acquire);
        let tail = self.tail().load(Ordering::Relaxed);
        let mut split = std::mem::take(&mut self.split);
        let whole = match self.written(tail, head) {
            Some((first, second)) => visit_records(first, second, &mut split, &mut visit),
            None => false,
        };
        self.split = split;
        self.tail().store(head, Ordering::Release);
        whole
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: the field lies in the control page, which is mapped while `self` lives, is
        // aligned to eight bytes, and is only accessed atomically here and in the kernel.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control.as_ptr()).data_head) }
    }

    fn tail(&self) -> &AtomicU64 {
        // SAFETY: as for `head`; we are its only writer.
        unsafe { AtomicU64::from_ptr(&raw mut (*self.control.as_ptr()).data_tail) }
    }

    /// The data between `tail` and `head`: up to the end of the ring, and from its start on. `None`
    /// if that is more than the ring's size.
    fn written(&self, tail: u64, head: u64) -> Option<(&[u8], &[u8])> {
        let length = usize::try_from(head.wrapping_sub(tail)).ok()?;
        if length > self.size {
            return None;
        }
        let start = usize::try_from(tail & (self.size as u64 - 1)).ok()?;
        let first = length.min(self.size - start);
        // SAFETY: both ranges lie in the `size` mapped bytes at `data`: `start + first <= size`
        // and `length - first <= start`. They cover exactly tail to head, which the kernel leaves
        // alone until we move the tail; `head` was loaded with `Acquire`, so its writes are seen.
        unsafe {
            Some((
                std::slice::from_raw_parts(self.data.as_ptr().add(start), first),
                std::slice::from_raw_parts(self.data.as_ptr(), length - first),
            ))
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // SAFETY: exactly the range that `map` mapped; no reference into it outlives `self`.
        unsafe { libc::munmap(self.control.as_ptr().cast(), self.mapped) };
    }
}

/// Visits the records in `first`, which extends to the end of the ring, and `second`, which
/// continues at the start of the ring. Records are multiples of eight bytes, so a header never lies
/// across the end, but a record may: that one is assembled in `split`. False if there was something
/// that is not a record.
fn visit_records(
    first: &[u8],
    second: &[u8],
    split: &mut Vec<u8>,
    visit: &mut impl FnMut(&[u8]),
) -> bool {
    let Some(whole) = whole_records(first) else {
        return false;
    };
    let (before, torn) = first.split_at(whole);
    let missing = match record_size(torn) {
        None => 0,
        Some(size) => size - torn.len(),
    };
    let Some((end, after)) = second.split_at_checked(missing) else {
        return false;
    };
    split.clear();
    split.extend_from_slice(torn);
    split.extend_from_slice(end);
    let complete = whole_records(after) == Some(after.len());
    [before, split, after]
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .for_each(visit);
    complete
}

/// Length of the whole records at the start of `bytes`; `None` if one has no valid size.
fn whole_records(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    while at < bytes.len() {
        let size = record_size(&bytes[at..])?;
        if size > bytes.len() - at {
            break;
        }
        at += size;
    }
    Some(at)
}

/// `perf_event_header.size` of the record at the start of `bytes`.
fn record_size(bytes: &[u8]) -> Option<usize> {
    let size = usize::from(u16::from_le_bytes([*bytes.get(6)?, *bytes.get(7)?]));
    (size >= HEADER).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record of `words` eight-byte words filled with `fill`.
    fn record(words: u16, fill: u8) -> Vec<u8> {
        let size = words * 8;
        let mut bytes = vec![fill; usize::from(size)];
        bytes[6..8].copy_from_slice(&size.to_le_bytes());
        bytes
    }

    /// Records read if `records` are in a ring of 64 bytes from position `tail` on.
    fn read_back(tail: u64, records: &[Vec<u8>]) -> Option<Vec<u8>> {
        let bytes = records.concat();
        let until_end = usize::try_from(64 - tail % 64).unwrap().min(bytes.len());
        let (first, second) = bytes.split_at(until_end);
        let mut seen = Vec::new();
        let mut whole_spans = true;
        let good = visit_records(first, second, &mut Vec::new(), &mut |span: &[u8]| {
            whole_spans &= whole_records(span) == Some(span.len());
            seen.extend_from_slice(span);
        });
        assert!(whole_spans, "a span ended inside a record");
        good.then_some(seen)
    }

    #[test]
    fn records_come_back_whole_wherever_the_ring_wraps() {
        let records = [record(1, 1), record(3, 2), record(2, 3), record(2, 4)];
        for tail in (0..128).step_by(8) {
            assert_eq!(read_back(tail, &records), Some(records.concat()), "{tail}");
        }
    }

    #[test]
    fn a_record_without_size_is_given_up() {
        let mut broken = record(2, 1);
        broken[6] = 0;
        assert_eq!(read_back(56, &[broken]), None);
    }

    #[test]
    fn an_empty_ring_has_nothing() {
        assert_eq!(read_back(40, &[]), Some(Vec::new()));
    }
}
