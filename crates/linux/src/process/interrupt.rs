//! Ctrl-C ends the observed program, but keeps the data gathered so far.
//!
//! The terminal sends SIGINT to the whole foreground group, so the observed program receives it
//! directly; what a process sends to us alone is passed on. Our process only notes it, and commands check [`requested`] between two steps. The
//! third unhandled request ends the process, as a way out of a hang.

use super::Error;
use crate::sys::process as sys;

/// Notes SIGINT, SIGTERM and SIGHUP instead of being ended by them. A signal that our parent
/// ignores stays ignored. Blocking system calls then end with `EINTR`.
///
/// # Errors
/// If the kernel refuses a handler.
pub fn install() -> Result<(), Error> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
        .into_iter()
        .try_for_each(|signal| sys::note_signal(signal).map_err(Error::Handler))
}

/// The signal that requested our end, if there was one since [`clear`].
#[must_use]
pub fn requested() -> Option<i32> {
    sys::noted_signal()
}

/// Whether the observed program has the requested signal, too: that of the terminal's Ctrl-C.
#[must_use]
pub fn is_of_terminal() -> bool {
    requested() == Some(libc::SIGINT) && !sys::was_sent()
}

/// Marks a request as handled: the phase that it ended is over.
pub fn clear() {
    sys::forget_requests();
}
