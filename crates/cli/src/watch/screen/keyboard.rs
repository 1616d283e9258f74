//! Waits for keys, and detects that the terminal is gone.
//!
//! crossterm reads a closed terminal over and over and never returns, so it is only called once the
//! kernel reports that there is something to read.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

/// The terminal that keys come from.
pub enum Keyboard {
    StandardInput(io::Stdin),
    /// If standard input is something else.
    ControllingTerminal(File),
}

/// Result of waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    Keys,
    Silence,
    /// The terminal was closed.
    Gone,
}

impl Keyboard {
    /// # Errors
    /// If there is no terminal at all.
    pub fn open() -> io::Result<Self> {
        if io::stdin().is_terminal() {
            return Ok(Self::StandardInput(io::stdin()));
        }
        File::open("/dev/tty").map(Self::ControllingTerminal)
    }

    /// Waits for a key. A signal ends the wait early.
    ///
    /// # Errors
    /// The kernel's.
    pub fn wait(&self, time: Duration) -> io::Result<Wait> {
        wait(self.as_fd(), time)
    }

    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::StandardInput(stdin) => stdin.as_fd(),
            Self::ControllingTerminal(file) => file.as_fd(),
        }
    }
}

fn wait(terminal: BorrowedFd<'_>, time: Duration) -> io::Result<Wait> {
    let mut watched = [PollFd::from_borrowed_fd(terminal, PollFlags::IN)];
    let time = Timespec::try_from(time).map_err(io::Error::other)?;
    match poll(&mut watched, Some(&time)) {
        Ok(0) | Err(Errno::INTR) => return Ok(Wait::Silence),
        Ok(_) => {}
        Err(error) => return Err(error.into()),
    }
    let happened = watched[0].revents();
    let gone = happened.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
    Ok(if gone { Wait::Gone } else { Wait::Keys })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn a_closed_other_end_is_told_from_keys_and_silence() {
        let (reader, mut writer) = io::pipe().expect("a pipe");
        assert_eq!(wait(reader.as_fd(), AT_ONCE).expect("poll"), Wait::Silence);
        writer.write_all(b"q").expect("room in the pipe");
        assert_eq!(wait(reader.as_fd(), AT_ONCE).expect("poll"), Wait::Keys);
        drop(writer);
        assert_eq!(wait(reader.as_fd(), AT_ONCE).expect("poll"), Wait::Gone);
    }
}
