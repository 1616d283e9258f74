//! The tray: where pages wait while they are being written.
//!
//! A page that shall go is moved here whole (`UFFDIO_MOVE`): out of the program's reach, so that it
//! can neither change nor be missed while its bytes go to the store; and the kernel refuses to move
//! a page that a device or another call holds on to, so that none of these can lose what they write.

use super::Pager;
use super::scan::{self, Look};
use crate::page::PAGE_BYTES;
use crate::sys;
use crate::sys::uffd::{Progress, Uffd};
use core::sync::atomic::{AtomicU64, Ordering};

/// Pages that fit.
pub const TRAY_PAGES: usize = 256;

/// How a page came back from its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// Whole; its place is empty.
    Moved,
    /// As a copy: somebody holds on to the page at its place, which has the bytes still.
    Copied,
    /// A page is there already: this one, which the kernel has moved all the same ([`Tray::take_in`]), or
    /// one that came behind the pager's back. Its place may have nothing.
    Occupied,
    /// The kernel takes none there, with this `errno`. Its place has the bytes still.
    Refused(i32),
}

/// Where it is.
#[derive(Debug)]
pub struct Tray {
    start: AtomicU64,
    /// Places, with those of pages on probation behind it.
    places: AtomicU64,
}

impl Tray {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            start: AtomicU64::new(0),
            places: AtomicU64::new(0),
        }
    }

    /// Maps it, with `probation` places behind it. It is registered with [`Tray::register`].
    pub fn prepare(&self, probation: usize) -> bool {
        match sys::map((TRAY_PAGES + probation) * PAGE_BYTES) {
            Some(place) => {
                let places = (TRAY_PAGES + probation) as u64;
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

    /// Lets the kernel move pages here. Only write protection is registered: a hole that is read
    /// (a page fetched back at that moment) gives zeros, and does not wait for anyone.
    pub fn register(&self, pager: &Pager) -> bool {
        let end = self.address(self.places.load(Ordering::Relaxed) as usize);
        pager.for_tray.register_for_moves(self.address(0), end) == 0
    }

    /// The bytes of places `[from, to)`. A page that its owner fetches back meanwhile reads as
    /// zeros; nothing that was read of it is kept then.
    #[must_use]
    pub fn bytes(&self, from: usize, to: usize) -> &[u8] {
        let place = self.address(from) as *const u8;
        // SAFETY: tray: it is mapped for good. Its pages change only by being moved out, by the
        // kernel, after which the reader's result is thrown away.
        unsafe { core::slice::from_raw_parts(place, (to - from) * PAGE_BYTES) }
    }

    /// Moves `pages` pages from `from` to `place` and behind, which are empty. The caller has their locks.
    ///
    /// Where the kernel swaps, it may move a page, lose sight of that and try again, which finds the
    /// page in its own way (`EEXIST`, Linux 6.18): a page that is gone from its address is at the place.
    pub fn take_in(&self, uffd: &Uffd, place: usize, from: u64, pages: usize) -> Progress {
        let to = self.address(place);
        let moved = uffd.relocate(to, from, (pages * PAGE_BYTES) as u64);
        let unsure = moved.bytes == 0 && moved.errno == libc::EEXIST;
        match unsure && is_there(to) && !is_there(from) {
            true => Progress {
                bytes: PAGE_BYTES as u64,
                errno: libc::EAGAIN,
            },
            false => moved,
        }
    }

    /// Puts the page at `place` back to `address`, which `uffd` manages. The caller has its lock.
    pub fn put_back(&self, uffd: &Uffd, address: u64, place: usize) -> Return {
        let (from, bytes) = (self.address(place), PAGE_BYTES as u64);
        loop {
            match uffd.relocate(address, from, bytes).errno {
                0 => return Return::Moved,
                libc::EAGAIN => continue,
                // The disk reads it at this moment, or another process has it as well (EBUSY): it
                // cannot be moved, but copied.
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
            // SAFETY: own memory: the pages are the tray's, and no one waits for them any more.
            unsafe { sys::advise(self.address(from), self.address(to), libc::MADV_DONTNEED) };
        }
    }
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
