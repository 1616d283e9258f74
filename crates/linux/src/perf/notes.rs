//! Every note of the recorder for its user, with the remedy, in one place so that tests and
//! documents can check them.

use crate::pseudo_file;
use std::path::{Path, PathBuf};

/// What was requested and could not be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Note {
    /// perf_event_open(2) is not available to us at all.
    NoPerf {
        /// The kernel's words.
        reason: String,
        /// Whether the kernel denied permission, rather than lacking support.
        forbidden: bool,
    },
    /// Only faults raised in user mode are recorded.
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
        /// Descriptors needed for everything.
        wanted: u64,
        /// Descriptors that may be open.
        allowed: u64,
    },
    /// Threads were left out because there are not enough file descriptors.
    ThreadsUnobserved {
        /// How many.
        count: usize,
    },
    /// Threads of descendants were left out because they belong to other users.
    ThreadsForbidden {
        /// How many.
        count: usize,
    },
    /// The rings are smaller than wanted.
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
    /// The program changed its identity, and the kernel detached us.
    Detached,
    /// The disk was full.
    DiskFull {
        /// The recording's file.
        path: PathBuf,
        /// The kernel's words.
        reason: String,
    },
    /// Mappings of a process could not be read when recording started.
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
            Self::NoPerf { reason, forbidden } => no_perf(reason, *forbidden, &paranoid()),
            Self::UserOnly => format!(
                "Faults inside system calls, such as read(2) into fresh memory, are not sampled \
                 (kernel.perf_event_paranoid is {}). Remedy: {}, or sudo sysctl \
                 kernel.perf_event_paranoid=1.",
                paranoid(),
                more_rights()
            ),
            Self::NoCalls { reason } => format!(
                "Memory system calls (mmap, munmap, brk, madvise, mremap, mprotect) are not \
                 traced: {reason}. New mappings are still seen; returned memory is not. \
                 Remedy: {} on a kernel with tracepoints (CONFIG_FTRACE_SYSCALLS).",
                more_rights()
            ),
            Self::NoLocks { reason } => format!(
                "Waits for locks are not traced: {reason}. Remedy: {} on Linux 5.19 or later.",
                more_rights()
            ),
            Self::Refused { part, reason } => format!(
                "The kernel refused {part}: {reason}. `pagewise check` shows what this machine \
                 allows."
            ),
            Self::TooManyFiles {
                part,
                wanted,
                allowed,
            } => format!(
                "Left out {part}: with this many threads and CPUs, everything would need {wanted} \
                 open files, but only {allowed} are allowed. Remedy: ulimit -n {wanted}."
            ),
            Self::ThreadsUnobserved { count } => format!(
                "{count} threads are not observed, for lack of file descriptors. Remedy: raise \
                 `ulimit -n`."
            ),
            Self::ThreadsForbidden { count } => format!(
                "{count} threads of its descendants belong to other users and are not observed. \
                 Remedy: {}.",
                more_rights()
            ),
            Self::SmallRings { kib } => format!(
                "Ring buffers are only {kib} KiB per CPU, so bursts may be lost. Remedy: raise \
                 kernel.perf_event_mlock_kb or `ulimit -l`."
            ),
            Self::Paused { part, percent_on } => format!(
                "To keep the program's slowdown small, {part} were recorded only {percent_on} % \
                 of the time. Remedy, if you need them all: --full."
            ),
            Self::Detached => "The kernel stopped the recording when the program changed its \
                 identity (set-user-ID, set-group-ID or file capabilities). Remedy: run pagewise \
                 as root."
                .to_owned(),
            Self::DiskFull { path, reason } => format!(
                "The recording {} stopped growing before the end: {reason}. What was written \
                 before is kept. Remedy: free some space, or write elsewhere with -o.",
                path.display()
            ),
            Self::MapsUnreadable { pid, reason } => format!(
                "The mappings of process {pid} could not be read ({reason}), so addresses in them \
                 have no names. Remedy: run as root or as the process's own user."
            ),
        }
    }
}

/// What gives the rights that are missing: root may lack them too, in a container.
fn more_rights() -> &'static str {
    match crate::process::effective_user() {
        0 => "start the container with CAP_PERFMON and CAP_SYS_ADMIN",
        _ => "run as root",
    }
}

/// Highest `kernel.perf_event_paranoid` that lets any user sample their own programs in user mode
/// (Documentation/admin-guide/sysctl/kernel.rst).
const PARANOID_ALLOWS: i32 = 2;

/// Faults cannot be sampled: why, and the remedy. If the sysctl allows it and the call is still
/// refused, a seccomp filter refuses it before the kernel does: those of containers (such as
/// Docker's default profile) return EPERM.
fn no_perf(reason: &str, forbidden: bool, paranoid: &str) -> String {
    let allows = paranoid
        .trim()
        .parse::<i32>()
        .is_ok_and(|level| level <= PARANOID_ALLOWS);
    let remedy = match (forbidden, allows) {
        (true, true) => {
            "This setting allows it, so a seccomp filter or a security module forbids it, as containers do by default. Remedy: allow perf_event_open in the container's seccomp profile, as in docker run --cap-add PERFMON --security-opt seccomp=FILE, or run \
             outside the container."
        }
        (true, false) => {
            "Remedy: sudo sysctl kernel.perf_event_paranoid=2, or run as root; in a container, \
             allow perf_event_open in its seccomp profile."
        }
        (false, _) => {
            "Here perf_event_open does not exist. Remedy: a kernel with CONFIG_PERF_EVENTS; some \
             sandboxes and seccomp profiles hide it."
        }
    };
    format!(
        "Faults could not be sampled (perf_event_open: {reason}; kernel.perf_event_paranoid is \
         {paranoid}): only totals are known. {remedy}"
    )
}

/// `kernel.perf_event_paranoid`, or a question mark.
fn paranoid() -> String {
    pseudo_file::setting(Path::new("/proc/sys/kernel/perf_event_paranoid"))
        .unwrap_or_else(|| "unknown".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_never_what_is_so_already() {
        let message = |forbidden, paranoid| no_perf("Operation not permitted", forbidden, paranoid);
        for level in ["2", "1", "-1"] {
            let note = message(true, level);
            assert!(!note.contains("sysctl"), "{note}");
            assert!(note.contains("seccomp"), "{note}");
        }
        assert!(message(true, "3").contains("sudo sysctl kernel.perf_event_paranoid=2"));
        assert!(message(true, "unknown").contains("sudo sysctl"));
        let absent = message(false, "unknown");
        assert!(absent.contains("CONFIG_PERF_EVENTS"), "{absent}");
    }
}
