//! Waiting for rings to fill.

use std::io;
use std::os::fd::RawFd;
use std::time::Duration;

/// Events on a descriptor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readiness {
    /// There is something to read.
    pub readable: bool,
    /// The other side is gone: for a perf event, its thread and all that inherited from it have
    /// ended.
    pub hung_up: bool,
}

/// Waits until one of `descriptors` is ready or `timeout` has passed; a signal ends the wait too.
/// The result has one entry for each descriptor, in order.
///
/// # Errors
/// The kernel's refusal, such as too many descriptors.
pub fn wait(descriptors: &[RawFd], timeout: Duration) -> io::Result<Vec<Readiness>> {
    let mut polled: Vec<libc::pollfd> = descriptors
        .iter()
        .map(|&fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        })
        .collect();
    let timeout = libc::timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: libc::c_long::from(timeout.subsec_nanos().cast_signed()),
    };
    let count = libc::nfds_t::try_from(polled.len()).unwrap_or(libc::nfds_t::MAX);
    // SAFETY: the kernel reads and writes `count` entries of the live vector, which has that many,
    // and reads the live timespec; a null signal mask changes nothing.
    let result = unsafe {
        libc::ppoll(
            polled.as_mut_ptr(),
            count,
            &raw const timeout,
            std::ptr::null(),
        )
    };
    if result < 0 {
        let error = io::Error::last_os_error();
        if error.kind() != io::ErrorKind::Interrupted {
            return Err(error);
        }
        return Ok(vec![Readiness::default(); descriptors.len()]);
    }
    Ok(polled
        .iter()
        .map(|entry| Readiness {
            readable: entry.revents & libc::POLLIN != 0,
            hung_up: entry.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn tells_readable_from_quiet_and_gone() {
        let (quiet, _quiet_end) = io::pipe().unwrap();
        let (full, mut full_end) = io::pipe().unwrap();
        let (gone, gone_end) = io::pipe().unwrap();
        full_end.write_all(b"x").unwrap();
        drop(gone_end);
        let fds = [quiet.as_raw_fd(), full.as_raw_fd(), gone.as_raw_fd()];
        let ready = wait(&fds, Duration::from_secs(5)).unwrap();
        assert_eq!(ready[0], Readiness::default());
        assert!(ready[1].readable && !ready[1].hung_up);
        assert!(ready[2].hung_up);
    }
}
