//! A generic netlink socket (netlink(7)).

use std::io;
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
        let mut asked = libc::pollfd {
            fd: self.0.as_raw_fd(),
            events: libc::POLLIN,
            revents: 0,
        };
        let wait = i32::try_from(patience.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: one structure is passed, which lives through the call.
        let ready = unsafe { libc::poll(&raw mut asked, 1, wait) };
        if ready <= 0 {
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
