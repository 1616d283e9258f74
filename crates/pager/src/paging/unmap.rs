//! Pages of files that the kernel does not page out for this process: those of files that it neither
//! owns nor may write, which are most libraries of an ordinary user, and those that others map too.
//!
//! `MADV_DONTNEED` takes them out of this process's memory (mm/madvise.c, Linux 6.18): they stay in
//! the page cache as long as nobody needs the memory, and are mapped again when they are used. But it
//! would also drop what was written to a private mapping. Hence only views are unmapped, shared
//! mappings and such that may not be written, and of these only pages that the kernel says are the
//! file's (bit 61 of `/proc/self/pagemap`). One of them cannot become the process's own meanwhile:
//! the program's calls that could make the mapping another one wait ([`Changes`]), and the
//! mapping is looked at again in between. Calls that bypass libc are not seen; they would have to
//! replace the mapping and write to the page within microseconds.

use super::scan;
use crate::page::PAGE_BYTES;
use crate::sync::Changes;
use crate::sys::{self, maps};

/// Pages that are looked at, and unmapped, together.
const AT_ONCE: usize = 64;

/// Attempts to find a moment at which no mapping changes.
const ATTEMPTS: usize = 4;

/// A part of the mapping of a file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Piece {
    /// First address.
    pub(super) start: u64,
    /// First address past it.
    pub(super) end: u64,
    /// Inode of the file.
    pub(super) inode: u64,
}

/// Unmaps the file's pages of `piece`, unless it is no view of that file any more, or mappings
/// change all the time. Returns whether it did. `file` is /proc/self/maps, in use by this thread
/// alone.
pub(super) fn unmap(changes: &Changes, file: i32, piece: &Piece) -> bool {
    let mut found = false;
    for _ in 0..ATTEMPTS {
        let quiet = changes.between(|| {
            maps::each_file(file, |mapping| {
                if mapping.end <= piece.start {
                    return true;
                }
                let holds = mapping.start <= piece.start && piece.end <= mapping.end;
                found = holds && mapping.is_view && mapping.inode == piece.inode;
                if found {
                    unmap_pages(piece);
                }
                false
            });
        });
        if quiet {
            break;
        }
        sys::give_way();
    }
    found
}

fn unmap_pages(piece: &Piece) {
    let mut pages = [None; AT_ONCE];
    let mut start = piece.start;
    while start < piece.end {
        let count = ((piece.end - start) as usize / PAGE_BYTES).min(AT_ONCE);
        let pages = &mut pages[..count];
        scan::of_file(start, pages);
        for run in pages.chunk_by(|one, next| one == next) {
            let end = start + (run.len() * PAGE_BYTES) as u64;
            if run[0] == Some(true) {
                // SAFETY: pages of a file, which are the file's again when they are next used.
                unsafe { sys::advise(start, end, libc::MADV_DONTNEED) };
            }
            start = end;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    const PAGES: usize = 200;

    fn state(start: u64) -> [Option<bool>; PAGES] {
        let mut pages = [None; PAGES];
        scan::of_file(start, &mut pages);
        pages
    }

    #[test]
    fn the_files_pages_go_and_those_of_the_process_stay() {
        let mut file = tempfile::tempfile_in("/var/tmp").expect("a file");
        file.write_all(&vec![7; PAGES * PAGE_BYTES])
            .expect("written");
        let bytes = PAGES * PAGE_BYTES;
        let (both, only) = (libc::PROT_READ | libc::PROT_WRITE, libc::PROT_READ);
        // SAFETY: a new mapping, unmapped below.
        let start = unsafe {
            let fd = file.as_raw_fd();
            libc::mmap(core::ptr::null_mut(), bytes, both, libc::MAP_PRIVATE, fd, 0)
        };
        assert_ne!(start, libc::MAP_FAILED);
        let byte = |page: usize| {
            // SAFETY: within the mapping.
            unsafe { start.cast::<u8>().add(page * PAGE_BYTES) }
        };
        // SAFETY: as above; written only while it may be.
        let read = |page: usize| unsafe { byte(page).read_volatile() };
        // SAFETY: likewise.
        unsafe { byte(70).write_volatile(9) };
        assert!((0..PAGES).all(|page| read(page) == if page == 70 { 9 } else { 7 }));
        let maps = i32::try_from(sys::open(c"/proc/self/maps", libc::O_RDONLY)).expect("open");
        let inode = sys::files::status(file.as_raw_fd())
            .expect("a status")
            .place[1];
        let piece = Piece {
            start: start as u64,
            end: start as u64 + bytes as u64,
            inode,
        };
        let changes = Changes::new();
        assert!(!unmap(&changes, maps, &piece), "it may be written");
        // SAFETY: the mapping made above.
        assert_eq!(unsafe { libc::mprotect(start, bytes, only) }, 0);
        let other = Piece { inode: 1, ..piece };
        assert!(!unmap(&changes, maps, &other), "another file");
        let change = changes.enter();
        assert!(!unmap(&changes, maps, &piece), "it may be about to change");
        drop(change);
        assert!(state(start as u64).iter().all(Option::is_some));
        assert!(unmap(&changes, maps, &piece));
        let after = state(start as u64);
        assert_eq!(after[70], Some(false), "the page that was written stays");
        assert_eq!(after.iter().flatten().count(), 1);
        assert!((0..PAGES).all(|page| read(page) == if page == 70 { 9 } else { 7 }));
        sys::close(maps);
        // SAFETY: the mapping made above.
        unsafe { libc::munmap(start, bytes) };
    }
}
