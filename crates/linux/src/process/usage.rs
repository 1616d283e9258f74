//! The cost of a process that has ended, from what the kernel counted (getrusage(2)).

use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Nanos};
use std::time::Duration;

pub(super) fn cost(wall: Duration, usage: &libc::rusage) -> RunCost {
    RunCost {
        wall: wall.into(),
        user: nanos(usage.ru_utime),
        system: nanos(usage.ru_stime),
        minor_faults: count(usage.ru_minflt),
        major_faults: count(usage.ru_majflt),
        // getrusage(2): kilobytes, which are KiB in the kernel.
        max_rss: Bytes(count(usage.ru_maxrss).saturating_mul(1024)),
        voluntary_switches: count(usage.ru_nvcsw),
        involuntary_switches: count(usage.ru_nivcsw),
    }
}

fn nanos(time: libc::timeval) -> Nanos {
    Nanos(count(time.tv_sec) * 1_000_000_000 + count(time.tv_usec) * 1_000)
}

/// The kernel's counters are never negative.
fn count(value: i64) -> u64 {
    u64::try_from(value).unwrap_or(0)
}

/// The cost of two parts of a run.
pub(super) fn together(one: RunCost, other: RunCost) -> RunCost {
    RunCost {
        wall: one.wall.max(other.wall),
        user: one.user + other.user,
        system: one.system + other.system,
        minor_faults: one.minor_faults + other.minor_faults,
        major_faults: one.major_faults + other.major_faults,
        max_rss: one.max_rss.max(other.max_rss),
        voluntary_switches: one.voluntary_switches + other.voluntary_switches,
        involuntary_switches: one.involuntary_switches + other.involuntary_switches,
    }
}
