//! A generic netlink socket (netlink(7)).

use std::io::{self, PipeReader};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// A socket whose other end is the kernel.
#[derive(Debug)]
pub struct Netlink(OwnedFd);

impl Netlink {
    /// Opens a socket.
    ///
    /// # Errors
    /// If the kernel or a seccomp filter forbids it.
    pub fn generic() -> io::Result<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: socket takes numbers only.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor is new and nothing else owns it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Requests a receive buffer of this many bytes. If less is granted, losses are reported by
    /// [`Netlink::receive`].
    pub fn reserve(&self, bytes: i32) {
        let size = libc::socklen_t::try_from(size_of::<i32>()).unwrap_or_default();
        // SAFETY: the value lives through the call, and its size is the given one.
        unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                (&raw const bytes).cast(),
                size,
            );
        }
    }

    /// Sends a message to the kernel.
    ///
    /// # Errors
    /// The kernel's reason.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: zeros are valid for the structure.
        let mut kernel: libc::sockaddr_nl = unsafe { std::mem::zeroed() };
        kernel.nl_family = libc::sa_family_t::try_from(libc::AF_NETLINK).unwrap_or_default();
        let size = libc::socklen_t::try_from(size_of::<libc::sockaddr_nl>()).unwrap_or_default();
        // SAFETY: the buffer and the address live through the call, with the lengths given.
        let sent = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                message.as_ptr().cast(),
                message.len(),
                0,
                (&raw const kernel).cast(),
                size,
            )
        };
        match sent {
            ..0 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// The length of the next message, once it is in `buffer`; `None` if none arrived for
    /// `patience`.
    ///
    /// # Errors
    /// The kernel's reason; `ENOBUFS` once messages were lost for lack of buffer space.
    pub fn receive(&self, buffer: &mut [u8], patience: Duration) -> io::Result<Option<usize>> {
        self.receive_until(None, buffer, patience)
    }

    /// The same; `None` as well as soon as the other end of `over` is closed and no message is there.
    ///
    /// # Errors
    /// As [`Netlink::receive`].
    pub fn receive_until(
        &self,
        over: Option<&PipeReader>,
        buffer: &mut [u8],
        patience: Duration,
    ) -> io::Result<Option<usize>> {
        let asked = |fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // poll(2) passes over negative descriptors.
        let over = over.map_or(-1, AsRawFd::as_raw_fd);
        let mut asked = [asked(self.0.as_raw_fd()), asked(over)];
        let wait = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: two structures are passed, which live through the call.
        let ready = unsafe { libc::poll(asked.as_mut_ptr(), 2, wait) };
        if ready <= 0 || asked[0].revents == 0 {
            return Ok(None);
        }
        // SAFETY: the buffer lives through the call and has the length given.
        let length = unsafe {
            libc::recv(
                self.0.as_raw_fd(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                libc::MSG_DONTWAIT,
            )
        };
        match usize::try_from(length) {
            Ok(length) => Ok(Some(length)),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_ends_as_soon_as_its_owner_is_done() {
        let Ok(socket) = Netlink::generic() else {
            return skipped!("no netlink socket");
        };
        let (over, owner) = io::pipe().expect("a pipe");
        drop(owner);
        let hour = Duration::from_secs(3600);
        let received = socket.receive_until(Some(&over), &mut [0; 64], hour);
        assert_eq!(received.expect("no error"), None);
    }
}
