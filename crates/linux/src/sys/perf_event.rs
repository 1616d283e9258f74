//! `perf_event_open(2)`, the ioctls on its descriptors, and the attribute as bytes.

use pagewise_model::units::Nanos;
use perf_event_open_sys::bindings::{self, perf_event_attr};
use std::ffi::CStr;
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// `PERF_FLAG_FD_CLOEXEC` of include/uapi/linux/perf_event.h.
const FLAG_FD_CLOEXEC: libc::c_ulong = 8;

/// One open perf event: an instance of a source for one thread (or all) on one CPU.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

/// Result of `read(2)` on an event with the `read_format` of [`read_format`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// How often the event fired while enabled.
    pub count: u64,
    /// Records lost because the ring was full; `None` before Linux 6.0.
    pub lost: Option<u64>,
}

/// A counting event's value, with the nanoseconds that it was enabled and that it really counted:
/// the latter is less if more events are open than the CPU has counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counted {
    /// Events while it counted.
    pub count: u64,
    /// Nanoseconds enabled.
    pub enabled: u64,
    /// Nanoseconds counting.
    pub running: u64,
}

impl Counted {
    /// The count scaled up to the whole time; `None` if it never counted.
    #[must_use]
    pub fn scaled(self) -> Option<f64> {
        match (self.enabled, self.running) {
            // The thread did not run meanwhile.
            (0, _) => Some(0.0),
            (_, 0) => None,
            (enabled, running) => Some(self.count as f64 * (enabled as f64 / running as f64)),
        }
    }
}

/// `read_format` that [`EventFd::read`] understands: the id, and lost records where supported.
#[must_use]
pub fn read_format(with_lost: bool) -> u64 {
    let lost = if with_lost {
        bindings::PERF_FORMAT_LOST
    } else {
        0
    };
    u64::from(bindings::PERF_FORMAT_ID | lost)
}

/// `read_format` that [`EventFd::read_scaled`] understands: times enabled and running.
pub const SCALED_FORMAT: u64 =
    (bindings::PERF_FORMAT_TOTAL_TIME_ENABLED | bindings::PERF_FORMAT_TOTAL_TIME_RUNNING) as u64;

/// Opens `attr` for thread `pid` (-1 for all, 0 for the caller) on `cpu` (-1 for any), in the
/// group that `leader` leads. `attr.size` is set here.
///
/// # Errors
/// The kernel's refusal, as perf_event_open(2) lists them.
pub fn open(
    attr: &mut perf_event_attr,
    pid: i32,
    cpu: i32,
    leader: Option<&EventFd>,
) -> io::Result<EventFd> {
    attr.size = u32::try_from(mem::size_of::<perf_event_attr>()).unwrap_or(u32::MAX);
    let group = leader.map_or(-1, EventFd::raw);
    // SAFETY: `attr` is an exclusively borrowed attribute whose `size` was just set to its own
    // size, so the kernel reads (and on E2BIG writes) only inside it.
    let fd =
        unsafe { perf_event_open_sys::perf_event_open(attr, pid, cpu, group, FLAG_FD_CLOEXEC) };
    check(fd)?;
    // SAFETY: the call succeeded, so `fd` is a new descriptor that nothing else owns.
    Ok(EventFd(unsafe { OwnedFd::from_raw_fd(fd) }))
}

/// Whether this machine supports the event of `attr`: opens it for the caller, and closes it.
#[must_use]
pub fn counts(attr: &perf_event_attr) -> bool {
    let mut attr = *attr;
    attr.set_disabled(1);
    open(&mut attr, 0, -1, None).is_ok()
}

/// The attribute's bytes, as a perf.data file stores them.
#[must_use]
pub fn attr_bytes(attr: &perf_event_attr) -> Vec<u8> {
    let start = std::ptr::from_ref(attr).cast::<u8>();
    // SAFETY: the attribute is `repr(C)` without padding (bindgen asserts its layout), made of
    // integers only, so each of its bytes is initialised; the borrow keeps it alive and unchanged.
    unsafe { std::slice::from_raw_parts(start, mem::size_of::<perf_event_attr>()) }.to_vec()
}

impl EventFd {
    /// Enables the event and the group that it leads.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: the descriptor is an open perf event; the argument is a plain flag word.
        check(unsafe { perf_event_open_sys::ioctls::ENABLE(self.raw(), 0) })
    }

    /// Disables the event and the group that it leads.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: as in `enable`.
        check(unsafe { perf_event_open_sys::ioctls::DISABLE(self.raw(), 0) })
    }

    /// Sends this event's records to the ring of `owner`, which is on the same CPU.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn redirect_to(&self, owner: RawFd) -> io::Result<()> {
        // SAFETY: the argument is a descriptor number that the kernel checks.
        check(unsafe { perf_event_open_sys::ioctls::SET_OUTPUT(self.raw(), owner) })
    }

    /// Records only tracepoint hits that pass `filter`.
    ///
    /// # Errors
    /// The kernel's refusal, such as a field that the tracepoint does not have.
    pub fn set_filter(&self, filter: &CStr) -> io::Result<()> {
        // SAFETY: the kernel copies a NUL-terminated string, which a `CStr` is, and writes none.
        check(unsafe {
            perf_event_open_sys::ioctls::SET_FILTER(self.raw(), filter.as_ptr().cast_mut())
        })
    }

    /// The id in samples of this event and of events inherited from it.
    ///
    /// # Errors
    /// The kernel's refusal.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0_u64;
        // SAFETY: the kernel writes one u64 through the pointer to the live local.
        check(unsafe { perf_event_open_sys::ioctls::ID(self.raw(), &raw mut id) })?;
        Ok(id)
    }

    /// The event's count, inherited events included, and what it lost.
    ///
    /// # Errors
    /// The kernel's refusal, or a short read.
    pub fn read(&self) -> io::Result<Reading> {
        let mut words = [0_u64; 3];
        let capacity = mem::size_of_val(&words);
        // SAFETY: the kernel writes at most `capacity` bytes into the live local array of integers.
        let got = unsafe { libc::read(self.raw(), words.as_mut_ptr().cast(), capacity) };
        match got {
            24 => Ok(Reading {
                count: words[0],
                lost: Some(words[2]),
            }),
            16 => Ok(Reading {
                count: words[0],
                lost: None,
            }),
            0.. => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The count of an event opened with [`SCALED_FORMAT`], scaled up for the time in which other
    /// events used its counter; `None` if it was enabled but never got one.
    ///
    /// # Errors
    /// The kernel's refusal, or a short read.
    pub fn read_scaled(&self) -> io::Result<Option<f64>> {
        Ok(self.read_counted()?.scaled())
    }

    /// The count of an event opened with [`SCALED_FORMAT`], with its times.
    ///
    /// # Errors
    /// The kernel's refusal, or a short read.
    pub fn read_counted(&self) -> io::Result<Counted> {
        let mut words = [0_u64; 3];
        let capacity = mem::size_of_val(&words);
        // SAFETY: the kernel writes at most `capacity` bytes into the live local array of integers.
        let got = unsafe { libc::read(self.raw(), words.as_mut_ptr().cast(), capacity) };
        match got {
            24 => {}
            0.. => return Err(io::ErrorKind::UnexpectedEof.into()),
            _ => return Err(io::Error::last_os_error()),
        }
        let [count, enabled, running] = words;
        Ok(Counted {
            count,
            enabled,
            running,
        })
    }

    /// The descriptor's number, for poll and [`EventFd::redirect_to`].
    #[must_use]
    pub fn raw(&self) -> RawFd {
        self.0.as_raw_fd()
    }
}

/// `CLOCK_MONOTONIC` now: the clock of all recordings.
#[must_use]
pub fn monotonic_now() -> Nanos {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec through the pointer to the live local. The call cannot
    // fail: the clock exists since Linux 2.6 and the pointer is valid.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Nanos(seconds * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0))
}

/// Whether this process runs with effective user id 0.
#[must_use]
pub fn is_root() -> bool {
    // SAFETY: geteuid has no preconditions and cannot fail.
    unsafe { libc::geteuid() == 0 }
}

/// Raises the soft limit of open files to the hard one, or, if allowed, to `wanted`. Returns the
/// resulting soft limit.
///
/// # Errors
/// When the limit cannot be read.
pub fn raise_open_files(wanted: u64) -> io::Result<u64> {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: the kernel writes one rlimit through the pointer to the live local.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    if limit.rlim_cur >= wanted {
        return Ok(limit.rlim_cur);
    }
    for ceiling in [limit.rlim_max.max(wanted), limit.rlim_max] {
        let raised = libc::rlimit {
            rlim_cur: wanted.min(ceiling),
            rlim_max: ceiling,
        };
        // SAFETY: the kernel reads one rlimit through the pointer to the live local.
        if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } == 0 {
            return Ok(raised.rlim_cur);
        }
    }
    Ok(limit.rlim_cur)
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_moves_on() {
        let first = monotonic_now();
        assert!(first.0 > 0);
        assert!(monotonic_now() >= first);
    }

    #[test]
    fn attribute_bytes_begin_with_type_and_size() {
        let mut attr = perf_event_attr::default();
        attr.type_ = 1;
        attr.size = 136;
        let bytes = attr_bytes(&attr);
        assert_eq!(bytes[..8], [1, 0, 0, 0, 136, 0, 0, 0]);
        assert_eq!(bytes.len(), mem::size_of::<perf_event_attr>());
    }

    #[test]
    fn an_impossible_event_is_an_error() {
        let mut attr = perf_event_attr::default();
        attr.type_ = u32::MAX;
        assert!(open(&mut attr, 0, -1, None).is_err());
    }
}
