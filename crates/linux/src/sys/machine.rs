//! Constants of the running machine and the CPU time of the calling thread.

use pagewise_model::units::Nanos;

/// Bytes in a base page (`sysconf(_SC_PAGESIZE)`).
#[must_use]
pub fn page_size() -> u64 {
    // SAFETY: sysconf reads a constant and takes no pointers.
    let bytes = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    // POSIX lets sysconf fail with -1 only for unknown names, and this one is mandatory.
    u64::try_from(bytes).unwrap_or(4096)
}

/// Clock ticks per second in `/proc/PID/stat` (`sysconf(_SC_CLK_TCK)`).
#[must_use]
pub fn ticks_per_second() -> u64 {
    // SAFETY: sysconf reads a constant and takes no pointers.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).map_or(100, |ticks| ticks.max(1))
}

/// Gives the calling thread priority over ordinary ones (nice -10, setpriority(2)). Returns whether
/// it was granted: that requires privileges.
pub fn prefer_this_thread() -> bool {
    // SAFETY: setpriority takes numbers only; 0 names the calling thread.
    unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -10) == 0 }
}

/// CPU time that the calling thread has used (`CLOCK_THREAD_CPUTIME_ID`).
#[must_use]
pub fn thread_cpu_time() -> Nanos {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: `time` is a live, writable timespec for the duration of the call, as clock_gettime
    // requires.
    let status = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    if status != 0 {
        return Nanos(0);
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}

/// CPU time of all threads of a process so far, ended ones included, to the nanosecond: the
/// process's CPU clock (clock_getcpuclockid(3)).
///
/// # Errors
/// `EINVAL` if there is no such process.
pub fn process_cpu_time(pid: i32) -> std::io::Result<Nanos> {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // include/linux/posix-timers_types.h: the complement of the id shifted by three bits, of which
    // 2 selects the scheduler's clock (CPUCLOCK_SCHED) of a whole process.
    let clock = (!pid << 3) | 2;
    // SAFETY: `time` is a live, writable timespec; the kernel checks the clock's number.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Ok(Nanos(seconds * 1_000_000_000 + nanos))
}
