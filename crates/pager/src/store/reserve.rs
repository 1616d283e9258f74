//! File blocks, allocated ahead of the writes.
//!
//! The first write to a range without blocks takes an exclusive lock on the file until they are
//! found and recorded, and all readers of the file wait meanwhile: a write by direct I/O locks the
//! inode exclusively unless it covers only existing blocks (`ext4_dio_write_checks`,
//! `fs/ext4/file.c`, Linux 6.18). Over blocks that were allocated in one piece before, reads and
//! writes run concurrently.

use core::sync::atomic::{AtomicU32, Ordering};

use crate::page::PAGE_BYTES;
use crate::store::transfer::Transfer;
use crate::sys;

/// Number of pages whose blocks are allocated at once: 64 MiB.
const PIECE: u32 = 16 << 10;

/// How far allocation has progressed.
#[derive(Debug)]
pub struct Reserve {
    /// Pages that may be used.
    most: u32,
    /// Pages from the start of the file whose blocks were allocated.
    end: AtomicU32,
}

impl Reserve {
    /// No blocks yet, of `pages` pages that `file` may take. A file system in memory would take the
    /// memory at once, and has no blocks to search for: nothing is allocated there.
    #[must_use]
    pub fn new(file: i32, pages: u32) -> Self {
        let end = if sys::is_in_memory(file) { pages } else { 0 };
        Self {
            most: pages,
            end: AtomicU32::new(end),
        }
    }

    /// Allocates the blocks for the imminent writes to `file`, and some after them. If they cannot
    /// be allocated in this way (too little room, no such call for this file), the write itself
    /// gets what it needs, or reports the error.
    pub fn cover(&self, file: i32, transfers: &[Transfer]) {
        let ends = transfers.iter().map(|one| one.at + one.pages);
        let wanted = ends.max().unwrap_or(0);
        let begin = self.end.load(Ordering::Relaxed);
        if wanted <= begin {
            return;
        }
        // A request beyond the file size limit would end the program by SIGXFSZ.
        let limit = sys::largest_file().map_or(u64::MAX, |bytes| bytes / PAGE_BYTES as u64);
        let most = self.most.min(u32::try_from(limit).unwrap_or(u32::MAX));
        let end = wanted.next_multiple_of(PIECE).min(most.max(wanted));
        let mine = self
            .end
            .compare_exchange(begin, end, Ordering::Relaxed, Ordering::Relaxed);
        if mine.is_ok() {
            let bytes = |pages: u32| u64::from(pages) * PAGE_BYTES as u64;
            sys::allocate(file, bytes(begin), bytes(end - begin));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::{AsRawFd, FromRawFd};
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn transfer(at: u32, pages: u32) -> Transfer {
        let memory = core::ptr::null_mut();
        Transfer { at, memory, pages }
    }

    fn kept(file: &File) -> (u64, u64) {
        let status = file.metadata().expect("an open file");
        (status.len(), status.blocks() * 512)
    }

    #[test]
    fn blocks_come_ahead_of_writes_and_no_further_than_the_store() {
        let file = tempfile::tempfile().expect("a temporary file");
        let pages = PIECE + 100;
        let reserve = Reserve::new(file.as_raw_fd(), pages);
        if sys::is_in_memory(file.as_raw_fd()) || !sys::allocate(file.as_raw_fd(), 0, 4096) {
            // Not supported on this file system: writes must do without it.
            reserve.cover(file.as_raw_fd(), &[transfer(0, 8)]);
            assert!(kept(&file).0 <= 4096);
            return;
        }
        let bytes = |pages: u32| u64::from(pages) * PAGE_BYTES as u64;
        reserve.cover(file.as_raw_fd(), &[transfer(3, 2)]);
        let (length, blocks) = kept(&file);
        assert_eq!(length, bytes(PIECE));
        assert!(blocks >= bytes(PIECE), "{blocks}");
        reserve.cover(file.as_raw_fd(), &[transfer(7, 1), transfer(PIECE - 1, 2)]);
        let (length, blocks) = kept(&file);
        assert_eq!(length, bytes(pages));
        assert!(blocks >= bytes(pages), "{blocks}");
    }

    #[test]
    fn nothing_is_asked_of_memory_or_insisted_on() {
        // SAFETY: a new descriptor, which the file closes.
        let memory = unsafe {
            let fd = libc::memfd_create(c"store".as_ptr(), 0);
            assert!(fd >= 0);
            File::from_raw_fd(fd)
        };
        Reserve::new(memory.as_raw_fd(), 64).cover(memory.as_raw_fd(), &[transfer(0, 8)]);
        assert_eq!(kept(&memory), (0, 0));
        // A call that fails is not repeated at each write.
        let reserve = Reserve::new(-1, 64);
        reserve.cover(-1, &[transfer(0, 8)]);
        assert_eq!(reserve.end.load(Ordering::Relaxed), 64);
    }
}
