//! Fatal errors: a clear message, and the same way to end each time.
//!
//! A page that cannot be recovered ends the process by SIGBUS (status 135 in a shell), as the
//! kernel does for a page of a mapped file that cannot be read. The program never continues with
//! bytes other than those it wrote.

use crate::store::{Slot, StoreError};
use crate::sys::line::Line;
use crate::sys::{self, signals};
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, Ordering};

/// Prints a line to standard error.
pub fn say(arguments: fmt::Arguments<'_>) {
    let mut line = Line::new();
    let process = sys::process_id();
    let _ = writeln!(line, "pagewise: process {process}: {arguments}");
    sys::complain(line.text());
}

/// The error in words.
#[must_use]
pub fn words(error: StoreError) -> &'static str {
    match error {
        StoreError::Full => "the store is full",
        StoreError::Io(libc::EIO) => "I/O error (EIO)",
        StoreError::Io(libc::ENOSPC) => "no space left on the device (ENOSPC)",
        StoreError::Io(libc::EDQUOT) => "disk quota exceeded (EDQUOT)",
        StoreError::Io(libc::EFBIG) => "it has reached the file size limit (ulimit -f)",
        StoreError::Io(libc::EBADF) => "its file was closed by the program (EBADF)",
        StoreError::Io(_) => "the store's file failed",
        StoreError::Short => "fewer bytes were read than were written",
        StoreError::Damaged => "the bytes read are not those written (checksum)",
        StoreError::Unowned => "its place there is nobody's",
    }
}

/// The page at `address` cannot be read back.
pub fn page_lost(address: u64, error: StoreError) -> ! {
    let why = words(error);
    say(format_args!(
        "the page at {address:#x} cannot be read back from the store: {why}. The program cannot continue without it and ends with SIGBUS."
    ));
    signals::die_by(libc::SIGBUS)
}

/// The child of a fork cannot share `slot`, which the page at `address` has.
pub fn page_not_shared(address: u64, slot: Slot, error: StoreError) -> ! {
    match error {
        StoreError::Full => say(format_args!(
            "too many processes share one page of the store (slot {slot}, memory at {address:#x}); the child would lose it. The program ends with SIGBUS."
        )),
        _ => say(format_args!(
            "an error in pagewise itself, found at a fork: the page at {address:#x} is in slot {slot} of the store, which is nobody's and may have other bytes. The program cannot continue and ends with SIGBUS; please report this line."
        )),
    }
    signals::die_by(libc::SIGBUS)
}

/// The kernel does not let the memory at `address`, of which parts are in the store, be managed any longer.
pub fn memory_lost(address: u64) -> ! {
    say(format_args!(
        "the kernel refuses to have the memory at {address:#x}, which was moved, managed again (userfaultfd), and parts of it are in the store. The program cannot continue without them and ends with SIGBUS."
    ));
    signals::die_by(libc::SIGBUS)
}

/// Whether room may become available again, by itself or through an administrator.
#[must_use]
pub const fn is_full(error: StoreError) -> bool {
    const FULL: [i32; 3] = [libc::ENOSPC, libc::EDQUOT, libc::EFBIG];
    match error {
        StoreError::Full => true,
        StoreError::Io(errno) => errno == FULL[0] || errno == FULL[1] || errno == FULL[2],
        _ => false,
    }
}

/// The store has no room, and the program continues: reports it once in a process.
pub fn store_full(error: StoreError, how: &str) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if !SAID.swap(true, Ordering::Relaxed) {
        let why = words(error);
        say(format_args!(
            "pages cannot be written to the store: {why}. Nothing is lost; {how} (--when-full). Give the store more room (--store-size, --store), or a larger --memory."
        ));
    }
}

/// Pages cannot be written, and there is no room to continue without writing.
pub fn store_failed(error: StoreError) -> ! {
    let why = words(error);
    say(format_args!(
        "pages cannot be written to the store: {why}. Nothing is lost so far, but the memory budget \
         is used up: the program ends with SIGBUS. Give the store more room (--store-size, --store), or a larger --memory."
    ));
    signals::die_by(libc::SIGBUS)
}
