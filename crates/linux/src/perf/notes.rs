//! Every note that the recorder leaves for its user, each with its remedy, in one place so that
//! tests and documents can hold them.

use crate::pseudo_file;
use std::path::Path;

/// What was asked for and could not be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// perf_event_open(2) is closed to us altogether.
    NoPerf {
        /// The kernel's words.
        reason: String,
    },
    /// Only faults raised in user mode are seen.
    UserOnly,
    /// System calls are not traced.
    NoCalls {
        /// Why.
        reason: String,
    },
    /// Lock waits are not traced.
    NoLocks {
        /// Why.
        reason: String,
    },
    /// One part was refused by the kernel.
    Refused {
        /// The part, in words.
        part: &'static str,
        /// The kernel's words.
        reason: String,
    },
    /// Parts were left out because there are not enough file descriptors.
    TooManyFiles {
        /// The part, in words.
        part: &'static str,
        /// Descriptors that everything would have needed.
        wanted: u64,
        /// Descriptors that may be open.
        allowed: u64,
    },
    /// Threads were left out because there are not enough file descriptors.
    ThreadsUnobserved {
        /// How many.
        count: usize,
    },
    /// The rings are smaller than wished.
    SmallRings {
        /// KiB for each CPU.
        kib: u64,
    },
    /// A source was paused because it became too costly.
    Paused {
        /// The part, in words.
        part: &'static str,
        /// Share of the time during which it was on, in percent.
        percent_on: u64,
    },
    /// The program changed its identity, and the kernel cut us off.
    Detached,
    /// The disk was full.
    DiskFull {
        /// The kernel's words.
        reason: String,
    },
    /// Mappings of a process could not be read when recording began.
    MapsUnreadable {
        /// The process.
        pid: i32,
        /// Why.
        reason: String,
    },
}

impl Note {
    /// The note in words.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::NoPerf { reason } => format!(
                "Faults could not be sampled ({reason}; kernel.perf_event_paranoid is {}): only \
                 totals are known. Remedy: sudo sysctl kernel.perf_event_paranoid=2, or run as \
                 root; in a container, allow perf_event_open in its seccomp profile.",
                paranoid()
            ),
            Self::UserOnly => format!(
                "Faults inside system calls, such as read(2) into fresh memory, are not sampled \
                 (kernel.perf_event_paranoid is {}). Remedy: run as root, or sudo sysctl \
                 kernel.perf_event_paranoid=1.",
                paranoid()
            ),
            Self::NoCalls { reason } => format!(
                "Memory system calls (mmap, munmap, brk, madvise, mremap, mprotect) are not \
                 traced: {reason}. New mappings are seen all the same; what is given back is not. \
                 Remedy: run as root on a kernel with tracepoints (CONFIG_FTRACE_SYSCALLS)."
            ),
            Self::NoLocks { reason } => format!(
                "Waits for locks are not traced: {reason}. Remedy: run as root on Linux 5.19 or \
                 later."
            ),
            Self::Refused { part, reason } => format!(
                "The kernel refused {part}: {reason}. `pagewise check` tells what this machine \
                 allows."
            ),
            Self::TooManyFiles {
                part,
                wanted,
                allowed,
            } => format!(
                "Left out {part}: with this many threads and CPUs everything would need {wanted} \
                 open files, and {allowed} are allowed. Remedy: ulimit -n {wanted}, or run as \
                 root."
            ),
            Self::ThreadsUnobserved { count } => format!(
                "{count} threads are not observed, for want of file descriptors. Remedy: raise \
                 `ulimit -n`, or run as root."
            ),
            Self::SmallRings { kib } => format!(
                "Ring buffers are only {kib} KiB for each CPU, so bursts may be lost. Remedy: run \
                 as root, or raise kernel.perf_event_mlock_kb or `ulimit -l`."
            ),
            Self::Paused { part, percent_on } => format!(
                "To keep the program's slowdown small, {part} were recorded only {percent_on} % \
                 of the time. Remedy, if you need them all: --full."
            ),
            Self::Detached => "The kernel stopped the recording when the program changed its \
                 identity (set-user-ID, set-group-ID or file capabilities). Remedy: run pagewise \
                 as root."
                .to_owned(),
            Self::DiskFull { reason } => format!(
                "The recording stopped growing before the end: {reason}. What was written before \
                 is kept. Remedy: free some space, or write elsewhere with -o."
            ),
            Self::MapsUnreadable { pid, reason } => format!(
                "The mappings of process {pid} could not be read ({reason}), so addresses in them \
                 have no names. Remedy: run as root or as the process's own user."
            ),
        }
    }
}

/// `kernel.perf_event_paranoid`, or a question mark.
fn paranoid() -> String {
    pseudo_file::setting(Path::new("/proc/sys/kernel/perf_event_paranoid"))
        .unwrap_or_else(|| "unknown".to_owned())
}
