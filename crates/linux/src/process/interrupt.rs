//! Ctrl-C ends what is being observed, not what has been gathered.
//!
//! The terminal sends SIGINT to the whole foreground group, so the observed program gets it by
//! itself. Our process only notes it, and commands look at [`requested`] between two steps. The
//! third request that nobody answered ends the process, so that a hang can be left.

use super::Error;
use crate::sys::process as sys;

/// Notes SIGINT, SIGTERM and SIGHUP instead of dying of them. What our parent ignores stays
/// ignored. Blocking system calls then end with `EINTR`.
///
/// # Errors
/// When the kernel refuses a handler.
pub fn install() -> Result<(), Error> {
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP]
        .into_iter()
        .try_for_each(|signal| sys::note_signal(signal).map_err(Error::Handler))
}

/// The signal that asked us to end, if one did since [`clear`].
#[must_use]
pub fn requested() -> Option<i32> {
    sys::noted_signal()
}

/// Takes a request as answered: the phase that it ended is over.
pub fn clear() {
    sys::forget_requests();
}
