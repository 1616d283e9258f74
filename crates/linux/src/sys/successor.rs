//! A child that closes this process's files in its place.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A process closes its files in the order of their numbers (`close_files`, fs/file.c): the pipe that
/// tells of its end has a number above those of files that are slow to close.
const ABOVE: libc::c_int = 512;

/// A child that does nothing but keep open what is open now, until this value is dropped. Whatever is
/// slow to close then keeps no one waiting for this process.
#[derive(Debug)]
pub struct Successor {
    /// Closing it ends the child.
    _alive: OwnedFd,
}

impl Successor {
    /// Starts the child.
    ///
    /// # Errors
    /// If there can be no pipe or no child.
    pub fn start() -> io::Result<Self> {
        let (over, below) = io::pipe()?;
        let alive = renumbered(&below)?;
        drop(below);
        // SAFETY: the child calls close, read and _exit alone, which are async-signal-safe, and uses
        // no memory but its own stack.
        match unsafe { libc::fork() } {
            ..0 => Err(io::Error::last_os_error()),
            // SAFETY: this is the child; both descriptors are open in it.
            0 => unsafe { wait_for_end(over.as_raw_fd(), alive.as_raw_fd()) },
            _ => Ok(Self { _alive: alive }),
        }
    }

    /// Lets the child live as long as this process.
    pub fn until_the_end(self) {
        std::mem::forget(self);
    }
}

/// The same pipe's end under a high number, if that many files may be open, or else under any.
fn renumbered(file: &impl AsRawFd) -> io::Result<OwnedFd> {
    let copy = |least: libc::c_int| {
        // SAFETY: plain numbers; the result is checked.
        match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, least) } {
            ..0 => Err(io::Error::last_os_error()),
            // SAFETY: the descriptor is new and nothing else owns it.
            new => Ok(unsafe { OwnedFd::from_raw_fd(new) }),
        }
    };
    copy(ABOVE).or_else(|_| copy(0))
}

/// The child's life. Standard streams are closed, so that whoever reads them sees their end.
///
/// # Safety
/// Only in the child of a fork.
unsafe fn wait_for_end(over: libc::c_int, alive: libc::c_int) -> ! {
    // SAFETY: plain system calls; one byte on the stack is passed with its size.
    unsafe {
        for file in [alive, 0, 1, 2] {
            libc::close(file);
        }
        let mut byte = 0_u8;
        libc::read(over, (&raw mut byte).cast(), 1);
        libc::_exit(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    /// The last copy of a pipe's end is the child's.
    #[test]
    fn a_file_stays_open_until_the_owner_of_its_successor_is_gone() {
        let (mut kept, file) = io::pipe().expect("a pipe");
        let successor = Successor::start().expect("a child");
        drop(file);
        let mut asked = libc::pollfd {
            fd: kept.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one structure is passed, which lives through the call.
        assert_eq!(unsafe { libc::poll(&raw mut asked, 1, 0) }, 0);
        drop(successor);
        assert_eq!(kept.read(&mut [0]).expect("its end"), 0);
    }
}
