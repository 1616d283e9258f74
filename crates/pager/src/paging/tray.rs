//! The tray: where pages wait while they are being written.
//!
//! A page to be evicted is moved here as a whole (`UFFDIO_MOVE`): out of the program's reach, so
//! that it can neither change nor be missed while its bytes go to the store. The kernel refuses to
//! move a page that a device or another call has pinned, so none of these can lose what they write.

use super::Pager;
use super::scan::{self, Look};
use crate::page::PAGE_BYTES;
use crate::sys::progress::Progress;
use crate::sys::uffd::Uffd;
use crate::sys::{self, call3, maps};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Capacity in pages.
pub const TRAY_PAGES: usize = 256;
/// First of as many places for pages of memory that is executable as well as writable. The kernel moves
/// pages only between mappings of the same protection (mm/userfaultfd.c, `validate_move_areas`,
/// Linux 6.8), so these places have that protection.
pub const EXECUTABLE: usize = TRAY_PAGES;
/// First place for pages on probation.
pub const ON_PROBATION: usize = EXECUTABLE + TRAY_PAGES;

/// How a page came back from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// Moved as a whole; its place is empty.
    Moved,
    /// As a copy: the page at its place is pinned and still has the bytes.
    Copied,
    /// A page is already there: this one, which the kernel has moved without telling
    /// ([`Tray::take_in`]), or one that appeared without the pager's notice. Its place may be
    /// empty.
    Occupied,
    /// The kernel accepts no page there, with this `errno`. Its place still has the bytes.
    Refused(i32),
}

/// The location of the tray.
#[derive(Debug)]
pub struct Tray {
    start: AtomicU64,
    /// Number of places, including those for pages on probation after it.
    places: AtomicU64,
    /// Whether the places from [`EXECUTABLE`] on are ready.
    takes_executable: AtomicBool,
    /// When it was last looked whether they are needed, in nanoseconds.
    looked_ns: AtomicU64,
}

impl Tray {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            start: AtomicU64::new(0),
            places: AtomicU64::new(0),
            takes_executable: AtomicBool::new(false),
            looked_ns: AtomicU64::new(0),
        }
    }

    /// Maps it, with `probation` places after it. It is registered with [`Tray::register`].
    pub fn prepare(&self, probation: usize) -> bool {
        let places = ON_PROBATION + probation;
        match sys::map(places * PAGE_BYTES) {
            Some(place) => {
                let places = places as u64;
                self.places.store(places, Ordering::Relaxed);
                self.start.store(place as u64, Ordering::Release);
                true
            }
            None => false,
        }
    }

    /// Address of place `index`.
    #[must_use]
    pub fn address(&self, index: usize) -> u64 {
        self.start.load(Ordering::Relaxed) + (index * PAGE_BYTES) as u64
    }

    /// Lets the kernel move pages here. Only write protection is registered: a hole that is read (a
    /// page fetched back at that moment) yields zeros, and does not block.
    pub fn register(&self, pager: &Pager) -> bool {
        let end = self.address(self.places.load(Ordering::Relaxed) as usize);
        pager
            .uffds
            .for_tray
            .register_for_moves(self.address(0), end)
            == 0
    }

    /// Whether pages of executable memory can be moved to the places from [`EXECUTABLE`] on.
    #[must_use]
    pub fn takes_executable(&self) -> bool {
        self.takes_executable.load(Ordering::Relaxed)
    }

    /// The kernel has refused to move the page at `address`: prepares the places from [`EXECUTABLE`] on
    /// if that is why. Only a process that has such memory itself gets them. The caller holds the lock of
    /// evictions.
    pub fn consider_executable(&self, address: u64) {
        /// Nanoseconds between two looks: memory that may only be read is refused as well.
        const PAUSE_NS: u64 = 200_000_000;
        let (now, looked) = (sys::now_ns(), self.looked_ns.load(Ordering::Relaxed));
        if self.takes_executable() || (looked != 0 && now < looked + PAUSE_NS) {
            return;
        }
        self.looked_ns.store(now, Ordering::Relaxed);
        if !maps::is_writable_code(scan::maps_of_evictions(), address) {
            return;
        }
        let (start, bytes) = (self.address(EXECUTABLE), TRAY_PAGES * PAGE_BYTES);
        let all = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
        // SAFETY: own memory, which nothing uses yet.
        let answer = unsafe { call3(libc::SYS_mprotect, start as usize, bytes, all as usize) };
        self.takes_executable.store(answer == 0, Ordering::Relaxed);
    }

    /// The bytes of places `[from, to)`. A page that its owner fetches back meanwhile reads as
    /// zeros; what was read of it is then discarded.
    #[must_use]
    pub fn bytes(&self, from: usize, to: usize) -> &[u8] {
        let place = self.address(from) as *const u8;
        // SAFETY: tray: it remains mapped. Its pages change only by being moved out, by the kernel,
        // after which the reader's result is discarded.
        unsafe { core::slice::from_raw_parts(place, (to - from) * PAGE_BYTES) }
    }

    /// Moves `pages` pages from `from` to `place` and the places after it, which are empty. The
    /// caller has their locks.
    ///
    /// When the kernel swaps, it may move a page, fail to record that and try again, when the page
    /// itself is in the way (`EEXIST`, Linux 6.18). So a move that ended early is followed by a look:
    /// pages that are gone from their address and at their place were moved.
    pub fn take_in(&self, uffd: &Uffd, place: usize, from: u64, pages: usize) -> Progress {
        let to = self.address(place);
        let wanted = (pages * PAGE_BYTES) as u64;
        let message = uffd.relocate(to, from, wanted);
        with_untold(message, wanted, |offset| {
            !is_there(from + offset) && is_there(to + offset)
        })
    }

    /// Puts the page at `place` back to `address`, which `uffd` manages. The caller has its lock.
    pub fn put_back(&self, uffd: &Uffd, address: u64, place: usize) -> Return {
        let (from, bytes) = (self.address(place), PAGE_BYTES as u64);
        loop {
            match uffd.relocate(address, from, bytes).errno {
                0 => return Return::Moved,
                libc::EAGAIN => continue,
                // The disk is reading it, or another process has it as well (EBUSY): it cannot be
                // moved, only copied.
                _ => {}
            }
            match uffd.copy(address, from, bytes, 0).errno {
                0 => return Return::Copied,
                libc::EAGAIN => {}
                libc::EEXIST => return Return::Occupied,
                errno => return Return::Refused(errno),
            }
        }
    }

    /// Empties places `[from, to)`.
    pub fn clear(&self, from: usize, to: usize) {
        if from < to {
            // SAFETY: own memory: the pages belong to the tray, and nothing waits for them any
            // more.
            unsafe { sys::advise(self.address(from), self.address(to), libc::MADV_DONTNEED) };
        }
    }
}

/// What was moved of `wanted` bytes, with the pages behind those that were `told` for which
/// `has_moved` is true of their offset.
fn with_untold(message: Progress, wanted: u64, has_moved: impl Fn(u64) -> bool) -> Progress {
    let mut bytes = message.bytes;
    while bytes < wanted && has_moved(bytes) {
        bytes += PAGE_BYTES as u64;
    }
    let errno = match bytes {
        _ if bytes == message.bytes => message.errno,
        _ if bytes == wanted => 0,
        _ => libc::EAGAIN,
    };
    Progress { bytes, errno }
}

/// Whether the kernel has a page at `address`, in memory or in its swap.
fn is_there(address: u64) -> bool {
    let mut look = [Look::Unknown];
    scan::look(address, &mut look);
    look != [Look::Absent]
}

impl Default for Tray {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u64 = PAGE_BYTES as u64;

    /// What [`with_untold`] makes of a move of five pages that told `told` of them and ended with
    /// `errno`, where `moved` are at their place.
    fn found(message: u64, errno: i32, moved: &[u64]) -> (u64, i32) {
        let message = Progress {
            bytes: message * PAGE,
            errno,
        };
        let all = with_untold(message, 5 * PAGE, |offset| moved.contains(&(offset / PAGE)));
        (all.bytes / PAGE, all.errno)
    }

    #[test]
    fn a_page_that_was_moved_and_not_told_counts_as_moved() {
        let (again, there) = (libc::EAGAIN, libc::EEXIST);
        assert_eq!(found(5, 0, &[0, 1, 2, 3, 4]), (5, 0));
        assert_eq!(found(4, again, &[0, 1, 2, 3, 4]), (5, 0), "the last one");
        assert_eq!(found(2, again, &[0, 1, 2]), (3, again), "one in the middle");
        assert_eq!(found(0, there, &[0]), (1, again), "the first one");
    }

    #[test]
    fn what_stayed_at_its_address_was_not_moved() {
        for errno in [libc::EAGAIN, libc::EBUSY, libc::EEXIST, libc::ENOENT] {
            assert_eq!(found(0, errno, &[]), (0, errno));
            assert_eq!(found(3, errno, &[0, 1, 2]), (3, errno));
        }
    }
}
