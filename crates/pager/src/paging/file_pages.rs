//! Pages of mapped files that are not managed: libraries, model weights, data. They count, and the
//! kernel keeps them while the machine has memory, so the managed pages would have to make room for
//! all of them. Where they are in the way, the kernel is asked to page them out.
//!
//! It is asked with `MADV_PAGEOUT` (mm/madvise.c, Linux 6.18), which loses nothing, whatever the
//! program does meanwhile: a clean page of the file is dropped and read again when it is used, a
//! dirty one stays, a page that other processes map stays, and so do all pages of a file that the
//! process may not write and does not own. A private page that was written has no place in its file:
//! it would go to the machine's swap, unencrypted and unasked, so ranges that have one are left out.
//!
//! What stays is unmapped ([`unmap`]), where that can lose nothing: it is in the page cache then,
//! which the kernel gives to others first, and comes back by a minor fault.
//!
//! User space does not see which pages are in use. So each piece is tried, and how soon its pages
//! come back tells: one from which more than a quarter came back soon is left alone, for twice as
//! long each time. Only where the budget is exceeded, with managed memory at its least, pieces go
//! in turn all the same.

use super::piece_note::{LEAST_PAGES, Note};
use super::{Pager, scan, unmap};
use crate::page::PAGE_BYTES;
use crate::sys::{self, files, maps};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};

/// Bytes that are judged together: less than this is not worth a note, and of more a part would be
/// in use nearly always.
const PIECE: u64 = 2 << 20;
const PIECE_PAGES: usize = PIECE as usize / PAGE_BYTES;
/// Below this part of the budget, and this number of pages, files are not in the way.
const LEAST_PART: u64 = 32;
const LEAST_OF_ALL: u64 = 256;
/// Longest time of one round, in nanoseconds: it goes on where it stopped.
const ROUND_NS: u64 = 10_000_000;
/// Nanoseconds between two rounds; the second where the last one paged nothing out, doubled each time
/// up to the third.
const PAUSE_NS: [u64; 3] = [100_000_000, 500_000_000, 8_000_000_000];
/// The most while the budget is exceeded, after a round that paged something out and one that did
/// not.
const PAUSE_EXCEEDED_NS: [u64; 2] = [20_000_000, 500_000_000];
/// Pieces that are unmapped in one round.
const STAYED: usize = 16;
/// Notes that are kept (64 KiB, in use as far as needed): enough for 8 GiB.
const NOTES: usize = 4096;
/// Places where the note on one piece may be.
const PROBES: usize = 8;
/// A note this old may give way to that on another piece. Milliseconds.
const STALE_MS: u64 = 1_200_000;

/// What is known of resident pages of files.
#[derive(Debug)]
pub struct FilePages {
    resident: AtomicU64,
    /// Pages beyond the budget although managed memory is at its least.
    excess: AtomicU64,
    total: AtomicU64,
    /// Where the next round starts; 0 for the lowest address.
    cursor: AtomicU64,
    due_ns: AtomicU64,
    pause_ns: AtomicU64,
    /// Pages that the kernel kept in this cycle over all mappings.
    kept: AtomicU64,
    /// Inode of the pager's own library, which is needed for every fault.
    own: AtomicU64,
    notes: [Slot; NOTES],
}

/// A note, as two words; the thread that pages out is the only one that uses them.
#[derive(Debug)]
struct Slot {
    /// Address of the piece; 0 for none.
    piece: AtomicU64,
    note: AtomicU64,
}

impl FilePages {
    /// Nothing is known.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            resident: AtomicU64::new(0),
            excess: AtomicU64::new(0),
            total: AtomicU64::new(0),
            cursor: AtomicU64::new(0),
            due_ns: AtomicU64::new(0),
            pause_ns: AtomicU64::new(0),
            kept: AtomicU64::new(0),
            own: AtomicU64::new(0),
            notes: [const {
                Slot {
                    piece: AtomicU64::new(0),
                    note: AtomicU64::new(0),
                }
            }; NOTES],
        }
    }

    /// The process has `resident` pages of files or shared memory, of `total` that its budget allows
    /// in all, and is `excess` pages beyond it with managed memory at its least.
    pub fn measured(&self, resident: u64, excess: u64, total: u64) {
        self.resident.store(resident, Ordering::Relaxed);
        self.excess.store(excess, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Whether it is time to page some out. `short` means that managed pages make room.
    #[must_use]
    pub fn are_in_the_way(&self, short: bool, now_ns: u64) -> bool {
        let resident = self.resident.load(Ordering::Relaxed);
        let total = self.total.load(Ordering::Relaxed);
        let must = self.excess.load(Ordering::Relaxed) > 0;
        let usual = self.pause_ns.load(Ordering::Relaxed);
        let pause = match (must, usual <= PAUSE_NS[0]) {
            (true, true) => usual.min(PAUSE_EXCEEDED_NS[0]),
            (true, false) => PAUSE_EXCEEDED_NS[1],
            (false, _) => usual,
        };
        (short || must)
            && resident >= LEAST_OF_ALL.max(total / LEAST_PART)
            && now_ns >= self.due_ns.load(Ordering::Relaxed).saturating_add(pause)
    }

    /// The note on `piece`: a slot for it, and what it says. `None` if there is no room.
    fn note(&self, piece: u64, now_ms: u64) -> Option<(&Slot, Option<Note>)> {
        let first = piece / PAGE_BYTES as u64;
        let first = (first.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize;
        let places = || (first..first + PROBES).map(|place| &self.notes[place % NOTES]);
        let piece_of = |slot: &Slot| slot.piece.load(Ordering::Relaxed);
        let note_of = |slot: &Slot| Note::from_word(slot.note.load(Ordering::Relaxed));
        if let Some(known) = places().find(|slot| piece_of(slot) == piece) {
            return Some((known, Some(note_of(known))));
        }
        let free = |slot: &&Slot| piece_of(slot) == 0 || note_of(slot).out_ms + STALE_MS < now_ms;
        places().find(free).map(|slot| (slot, None))
    }

    /// Keeps the note on `piece`, of which so many pages stayed.
    fn keep(&self, slot: &Slot, piece: u64, note: Note, stayed: u32) {
        self.kept.fetch_add(u64::from(stayed), Ordering::Relaxed);
        slot.note.store(note.to_word(), Ordering::Relaxed);
        slot.piece.store(piece, Ordering::Relaxed);
    }
}

impl Default for FilePages {
    fn default() -> Self {
        Self::new()
    }
}

/// One round over mappings of files.
struct Round {
    began_ns: u64,
    /// Pages that have to go, whether they are in use or not.
    must: u64,
    went: u64,
    /// The last file that was asked about, and whether its pages are on a disk.
    file: (u64, bool),
    /// Pieces to be unmapped, since the kernel did not page them out, and their pages.
    stayed: [Stayed; STAYED],
    stayed_count: usize,
    stayed_pages: u64,
}

/// A piece of which pages stayed.
#[derive(Clone, Copy, Debug, Default)]
struct Stayed {
    piece: unmap::Piece,
    /// As before it was to be paged out.
    note: Note,
    /// Pages before and after that.
    pages: [u32; 2],
}

impl Pager {
    /// Asks the kernel to page out file pages, for as long as a round may take. Called by one thread
    /// at a time, which holds nothing: the file system may be slow to answer. Returns the number of
    /// pages that went.
    pub fn page_out_files(&self) -> u64 {
        let all = &self.file_pages;
        let file = scan::maps();
        if file < 0 || self.holds_all() {
            return 0;
        }
        let own = match all.own.load(Ordering::Relaxed) {
            0 => own_inode(file),
            own => own,
        };
        all.own.store(own, Ordering::Relaxed);
        let mut round = Round {
            began_ns: sys::now_ns(),
            must: all.excess.load(Ordering::Relaxed),
            went: 0,
            file: (0, false),
            stayed: [Stayed::default(); STAYED],
            stayed_count: 0,
            stayed_pages: 0,
        };
        let from = all.cursor.load(Ordering::Relaxed);
        let mut next = 0;
        let told_all = maps::each_file(file, |mapping| {
            if mapping.end <= from || mapping.inode == own {
                return true;
            }
            let mut start = mapping.start.max(from);
            while start < mapping.end {
                let end = (start / PIECE + 1) * PIECE;
                let end = end.min(mapping.end);
                self.look_at_piece(&mapping, start, end, &mut round);
                start = end;
                let late = sys::now_ns() - round.began_ns > ROUND_NS;
                let full = round.stayed_count == STAYED;
                let will_go = round.went + round.stayed_pages;
                if late || full || (round.must > 0 && will_go >= round.must) {
                    next = start;
                    return false;
                }
            }
            true
        });
        all.cursor.store(next, Ordering::Relaxed);
        self.unmap_stayed(file, &mut round);
        if told_all {
            let kept = all.kept.swap(0, Ordering::Relaxed);
            self.counters.set(|all| &all.file_pages_kept, kept);
        }
        let pause = all.pause_ns.load(Ordering::Relaxed);
        let pause = match (round.went, told_all) {
            (0, true) => (pause * 2).clamp(PAUSE_NS[1], PAUSE_NS[2]),
            _ => PAUSE_NS[0],
        };
        all.pause_ns.store(pause, Ordering::Relaxed);
        all.due_ns.store(sys::now_ns(), Ordering::Relaxed);
        if round.went > 0 {
            self.counters.add(|all| &all.file_pages_out, round.went);
            self.refresh_limit();
        }
        round.went
    }

    fn look_at_piece(
        &self,
        mapping: &maps::FileMapping<'_>,
        start: u64,
        end: u64,
        round: &mut Round,
    ) {
        let mut pages = [None; PIECE_PAGES];
        let pages = &mut pages[..(end - start) as usize / PAGE_BYTES];
        let before = of_file(start, pages);
        let now_ms = round.began_ns / 1_000_000;
        let Some((slot, known)) = self.file_pages.note(start, now_ms) else {
            return;
        };
        if before < LEAST_PAGES && known.is_none() {
            return;
        }
        let mut note = known.unwrap_or_default();
        let (returned, wanted) = note.look(before, now_ms, round.must > 0);
        let back = u64::from(returned);
        self.counters.add(|all| &all.file_pages_back, back);
        if wanted && round.is_on_disk(mapping) {
            page_out(start, pages);
            let after = of_file(start, pages);
            if round.is_to_unmap(mapping, start..end, note, [before, after]) {
                // Noted anew once it is unmapped.
                self.file_pages.keep(slot, start, note, 0);
                return;
            }
            note = note.paged_out(before, after, now_ms);
            round.went += u64::from(note.went);
        } else if known.is_none() {
            return;
        }
        self.file_pages
            .keep(slot, start, note, note.stayed.min(before));
    }

    /// Unmaps what the kernel has not paged out. `file` as in [`unmap::unmap`].
    fn unmap_stayed(&self, file: i32, round: &mut Round) {
        let now_ms = round.began_ns / 1_000_000;
        for one in &round.stayed[..round.stayed_count] {
            let start = one.piece.start;
            let Some((slot, _)) = self.file_pages.note(start, now_ms) else {
                continue;
            };
            let [before, mut after] = one.pages;
            let mut note = one.note.postponed(now_ms);
            if unmap::unmap(&self.changes, file, &one.piece) {
                let mut pages = [None; PIECE_PAGES];
                let count = (one.piece.end - start) as usize / PAGE_BYTES;
                after = of_file(start, &mut pages[..count]);
                note = one.note.paged_out(before, after, now_ms);
            }
            round.went += u64::from(before.saturating_sub(after));
            self.file_pages.keep(slot, start, note, after);
        }
    }
}

impl Round {
    /// Whether a piece is to be unmapped, as pages of it stayed and may be; it is listed then.
    fn is_to_unmap(
        &mut self,
        mapping: &maps::FileMapping<'_>,
        range: Range<u64>,
        note: Note,
        pages: [u32; 2],
    ) -> bool {
        let [before, after] = pages;
        if after < LEAST_PAGES || !mapping.is_view || self.stayed_count == STAYED {
            return false;
        }
        let piece = unmap::Piece {
            start: range.start,
            end: range.end,
            inode: mapping.inode,
        };
        self.stayed[self.stayed_count] = Stayed { piece, note, pages };
        self.stayed_count += 1;
        self.stayed_pages += u64::from(before);
        true
    }

    /// Whether pages of the mapped file go to a disk rather than to swap.
    fn is_on_disk(&mut self, mapping: &maps::FileMapping<'_>) -> bool {
        // Asked only where need be: a program's seccomp filter may know no call for that.
        if mapping.on_device {
            return true;
        }
        if self.file.0 != mapping.inode {
            let on_disk = files::is_on_disk(mapping.path, mapping.inode);
            self.file = (mapping.inode, on_disk);
        }
        self.file.1
    }
}

/// Looks at the pages from `start` on; returns how many are resident pages of their file.
fn of_file(start: u64, pages: &mut [Option<bool>]) -> u32 {
    scan::of_file(start, pages);
    pages.iter().filter(|page| **page == Some(true)).count() as u32
}

/// Pages out what is of a file, without its neighbours that are not.
fn page_out(start: u64, pages: &[Option<bool>]) {
    let mut at = start;
    for run in pages.split(|page| *page == Some(false)) {
        let first = run.iter().position(Option::is_some);
        let last = run.iter().rposition(Option::is_some);
        if let Some((first, last)) = first.zip(last) {
            let address = |page: usize| at + (page * PAGE_BYTES) as u64;
            // SAFETY: this advice changes no byte of any mapping, even if the program has put
            // another one there meanwhile.
            unsafe { sys::advise(address(first), address(last + 1), libc::MADV_PAGEOUT) };
        }
        at += ((run.len() + 1) * PAGE_BYTES) as u64;
    }
}

/// The inode of the library that contains this code; `u64::MAX` if it is not known.
fn own_inode(file: i32) -> u64 {
    let here = own_inode as *const () as u64;
    let mut own = u64::MAX;
    maps::each_file(file, |mapping| {
        if (mapping.start..mapping.end).contains(&here) {
            own = mapping.inode;
        }
        own == u64::MAX
    });
    own
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn pages_of_a_file_go_and_those_that_were_written_stay() {
        static ALL: FilePages = FilePages::new();
        let mut file = tempfile::tempfile_in("/var/tmp").expect("a file");
        let bytes = 64 * PAGE_BYTES;
        file.write_all(&vec![7; bytes]).expect("written");
        file.sync_all().expect("on disk");
        let (nowhere, access) = (core::ptr::null_mut(), libc::PROT_READ | libc::PROT_WRITE);
        let fd = file.as_raw_fd();
        // SAFETY: a new mapping, unmapped below; only the pages written here are written.
        let start = unsafe {
            let start = libc::mmap(nowhere, bytes, access, libc::MAP_PRIVATE, fd, 0);
            assert_ne!(start, libc::MAP_FAILED);
            let place = start.cast::<u8>();
            for page in 0..64 {
                assert_eq!(place.add(page * PAGE_BYTES).read_volatile(), 7);
            }
            place.add(20 * PAGE_BYTES).write_volatile(9);
            start
        };
        let mut pages = [None; 64];
        assert_eq!(of_file(start as u64, &mut pages), 63);
        assert_eq!(pages[20], Some(false));
        page_out(start as u64, &pages);
        assert_eq!(of_file(start as u64, &mut pages), 0, "clean pages go");
        assert_eq!(pages[20], Some(false), "a private page stays");
        // SAFETY: mapped above; unmapped here.
        unsafe {
            let place = start.cast::<u8>();
            assert_eq!(place.add(20 * PAGE_BYTES).read_volatile(), 9);
            assert_eq!(place.add(19 * PAGE_BYTES).read_volatile(), 7);
            libc::munmap(start, bytes);
        }
        let (slot, known) = ALL.note(PIECE, 5).expect("a place");
        assert!(known.is_none());
        let note = Note::default().paged_out(30, 10, 5);
        slot.note.store(note.to_word(), Ordering::Relaxed);
        slot.piece.store(PIECE, Ordering::Relaxed);
        assert_eq!(ALL.note(PIECE, 6).and_then(|(_, note)| note), Some(note));
    }

    #[test]
    fn files_are_in_the_way_where_room_is_short_and_they_have_much() {
        let pages = FilePages::new();
        pages.measured(10_000, 0, 20_000);
        assert!(pages.are_in_the_way(true, 1) && !pages.are_in_the_way(false, 1));
        pages.measured(10_000, 5, 20_000);
        assert!(pages.are_in_the_way(false, 1), "the budget is exceeded");
        pages.measured(500, 5, 20_000);
        assert!(!pages.are_in_the_way(true, 1), "too few to matter");
        pages.measured(10_000, 0, 20_000);
        pages.due_ns.store(1_000, Ordering::Relaxed);
        pages.pause_ns.store(PAUSE_NS[2], Ordering::Relaxed);
        assert!(!pages.are_in_the_way(true, PAUSE_NS[1] + 1_000));
        assert!(pages.are_in_the_way(true, PAUSE_NS[2] + 1_000));
        pages.measured(10_000, 1, 20_000);
        assert!(pages.are_in_the_way(true, PAUSE_NS[1] + 1_000));
    }
}
