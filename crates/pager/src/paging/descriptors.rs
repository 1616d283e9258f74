//! The pager's own descriptors: how its userfaultfds are opened, and which descriptors the program
//! must not close.

use super::{Pager, discard, files, scan};
use crate::figures::{places, recorder};
use crate::sys::high;
use crate::sys::uffd::{self, Uffd, feature};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use pagewise_wire::shared::capability;

/// Whether a test denies faults of the kernel; kept because the child of a fork needs it again.
pub static NO_KERNEL_FAULTS: AtomicBool = AtomicBool::new(false);

/// Number of descriptors that are not of mapped files.
const FIXED: usize = 12 + crate::store::DESCRIPTORS;
/// Number of descriptors that the pager may have.
pub const OURS: usize = FIXED + files::MOST;

/// Whether the userfaultfds are still the parent's.
static OUTDATED: AtomicBool = AtomicBool::new(false);

/// The error with which the kernel last refused one.
static REFUSED_WITH: AtomicI32 = AtomicI32::new(0);

/// The descriptor, or -1 and a note of the error.
fn noted(opened: Result<i32, i32>) -> i32 {
    opened.unwrap_or_else(|errno| {
        REFUSED_WITH.store(errno, Ordering::Relaxed);
        -1
    })
}

/// By what faults arrive. The child of a fork opens its own before it has a second thread.
#[derive(Debug)]
pub struct Uffds {
    /// Faults that handler threads read.
    pub by_handler: Uffd,
    /// Faults that raise SIGBUS.
    pub by_signal: Uffd,
    /// The tray's own.
    pub for_tray: Uffd,
}

impl Uffds {
    /// None yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            by_handler: Uffd::none(),
            by_signal: Uffd::none(),
            for_tray: Uffd::none(),
        }
    }
}

impl Default for Uffds {
    fn default() -> Self {
        Self::new()
    }
}

impl Pager {
    /// Reports the store's rings, once they have been requested.
    pub(super) fn tell_of_rings(&self) {
        // The store's file is the first descriptor, its rings follow.
        if self.store().descriptors()[1] >= 0 {
            self.add_capability(capability::IO_URING);
        }
    }

    /// This is the child of a fork.
    pub(super) fn outdate_uffds(&self) {
        OUTDATED.store(true, Ordering::Relaxed);
    }

    /// Reopens them, and the tray's, if they are the parent's. Returns whether they are now this
    /// process's own.
    ///
    /// The parent's are closed first, so that a program that uses all its descriptors leaves room
    /// for as many. The tray's is needed no sooner than threads are, but a child may have used all
    /// its descriptors by then.
    pub(super) fn renew_uffds(&self) -> bool {
        if !OUTDATED.swap(false, Ordering::Relaxed) {
            return true;
        }
        for of_parent in [
            &self.uffds.by_handler,
            &self.uffds.by_signal,
            &self.uffds.for_tray,
        ] {
            of_parent.close();
        }
        self.open_uffds() && self.open_tray()
    }

    /// Opens the userfaultfds of the program's memory; at start, and again in the child of a fork.
    pub fn open_uffds(&self) -> bool {
        let basic = feature::PAGEFAULT_FLAG_WP;
        let moving = match self.can(capability::MOVE) {
            true => feature::MOVE,
            false => 0,
        };
        let full = match NO_KERNEL_FAULTS.load(Ordering::Relaxed) {
            true => Err(libc::EPERM),
            false => uffd::open(0, basic | feature::THREAD_ID | moving),
        };
        let raised = match self.can(capability::SIGBUS) {
            true => uffd::open(uffd::USER_MODE_ONLY, basic | feature::SIGBUS | moving),
            false => Err(libc::EINVAL),
        };
        self.uffds.by_handler.set(high(noted(full)));
        self.uffds.by_signal.set(high(noted(raised)));
        self.uffds.by_handler.is_open() || self.uffds.by_signal.is_open()
    }

    /// Opens the tray's userfaultfd, and registers the tray there: once in a process, before pages
    /// are evicted.
    pub(super) fn open_tray(&self) -> bool {
        if self.uffds.for_tray.is_open() {
            return true;
        }
        let moving = match self.can(capability::MOVE) {
            true => feature::MOVE,
            false => 0,
        };
        let features = feature::PAGEFAULT_FLAG_WP | moving;
        let tray = uffd::open(uffd::USER_MODE_ONLY, features);
        self.uffds.for_tray.set(high(noted(tray)));
        self.uffds.for_tray.is_open() && self.tray.register(self)
    }

    /// The error with which the kernel last refused a userfaultfd; 0 if it did not.
    pub(super) fn uffd_refused_with(&self) -> i32 {
        REFUSED_WITH.load(Ordering::Relaxed)
    }

    /// Whether the program must not close the descriptor.
    #[must_use]
    pub fn is_ours(&self, fd: i32) -> bool {
        let files = || self.files.are_in_use() && self.files.descriptors().contains(&fd);
        fd >= 0 && self.is_started() && (self.fixed().contains(&fd) || files())
    }

    /// Descriptors that the program must not close, -1 for those that do not exist. Only once the
    /// pager has started.
    #[must_use]
    pub fn ours(&self) -> [i32; OURS] {
        let mut all = [-1; OURS];
        all[..FIXED].copy_from_slice(&self.fixed());
        all[FIXED..].copy_from_slice(&self.files.descriptors());
        all
    }

    /// Those of them that are not of mapped files.
    fn fixed(&self) -> [i32; FIXED] {
        let mut all = [-1; FIXED];
        all[..7].copy_from_slice(&[
            uffd::maker(),
            self.uffds.by_handler.fd(),
            self.uffds.by_signal.fd(),
            self.uffds.for_tray.fd(),
            recorder::descriptor(),
            places::descriptor(),
            discard::descriptor(),
        ]);
        all[7..12].copy_from_slice(&scan::descriptors());
        all[12..].copy_from_slice(&self.store().descriptors());
        all
    }
}
