//! The live recorder: page faults and the data that explains them, from `perf_event_open(2)` into a
//! perf.data file.
//!
//! What is recorded is a [`plan`] made from the wanted [`Mode`] and the kernel's permissions; each
//! refusal becomes a note, and the rest goes on. The plan's units are switched together:
//!
//! ```text
//!                 sampled mode                                full mode
//! always          lifetimes; mappings*; calls*; locks*        the same
//! one at a time   each n-th fault with its stack, n by the    each fault, start and end
//!                 rate; in a storm a sixth of the time        each fault with chain (a tenth)
//!                 each fault, start and end (rare)
//! * paused by the governor when too costly (sampled mode only)
//! ```
//! In sampled mode sources of faults are open only while it is their turn, see [`turns`]. Each
//! opening gets new ids from the kernel; [`account`] replaces them by one id for each source.
//!
//! No two sources of the same software event are ever on together in one thread. Since Linux 6.3
//! the kernel fills a sample's id and time once for all events of the same kind that fire together
//! (`data->sample_flags` in `perf_prepare_sample`, kernel/events/core.c), so the second record
//! would carry the first's. Hence the rotation.
//!
//! Where whole CPUs may be watched, all that is always on is opened once for each CPU, and [`account`]
//! drops other processes' records before they are written. Sources that take turns are opened for
//! each thread on each CPU with `inherit`, because inherited events cannot share a ring across CPUs;
//! for a crowd or a storm of new threads, whose events the kernel would have to copy, they watch
//! CPUs as well. All times are `CLOCK_MONOTONIC`.

mod access;
mod account;
mod ballast;
mod build_ids;
mod chains;
mod closing;
mod counters;
mod cpu_clock;
mod drain;
mod existing;
mod governor;
mod kernel_text;
mod kin;
mod ladder;
mod notes;
mod opening;
mod plan;
mod record_bytes;
mod recorder;
mod registers;
mod role;
mod rotation;
mod side_band;
mod source;
mod switches;
mod threads;
mod turns;

pub use account::EventCount;
pub use closing::{leave_to_successor, wait_until_closed};
pub use counters::Counters;
pub use cpu_clock::CpuClock;
pub use notes::Note;
pub use recorder::{Recorded, Recorder, Recording};

use std::io;

/// How much detail is recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Samples, with short windows of full detail; `bench/overhead/run` measures the cost.
    #[default]
    Sampled,
    /// Each fault with start and end, each memory system call. Slow, exact.
    Full,
}

impl Mode {
    /// Its name in a sidecar file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sampled => "sampled",
            Self::Full => "full",
        }
    }
}

/// The observed processes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A child that waits before `execve(2)`; recording starts with its exec.
    Gated(i32),
    /// Running processes with all their threads and descendants, and what those start later.
    Pids(Vec<i32>),
    /// Everything on this machine.
    System,
}

/// How stacks of CPU time are recorded. A copy has 8 KiB and is unwound later.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CpuStacks {
    /// By frame pointers.
    Chains,
    /// Copied at first, then by frame pointers; copied again once these turn out to break, for a
    /// share of the time if many CPUs are busy.
    #[default]
    CopiesWhereChainsBreak,
    /// Copied with each sample.
    Copies,
}

/// What to record. The default is what `doctor` uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How much detail.
    pub mode: Mode,
    /// Approximate number of sampled faults per second: one of a few fixed periods is chosen by the
    /// rate.
    pub frequency: u64,
    /// Sample each n-th fault instead.
    pub period: Option<u64>,
    /// Copy the stack with each sample of the fixed period, for few samples that must show their
    /// callers.
    pub period_stacks: bool,
    /// Record faults.
    pub faults: bool,
    /// Record where CPU time goes, with this many samples per second on each busy CPU.
    pub cpu: Option<u64>,
    /// Sample CPU time more often until a short program has been seen well enough. The weights of
    /// samples differ then. Only where whole CPUs may be watched.
    pub cpu_dense_at_first: bool,
    /// How stacks of CPU time are recorded.
    pub cpu_stacks: CpuStacks,
    /// Record where threads leave the CPU, and when they come back.
    pub off_cpu: bool,
    /// Record requests to block devices.
    pub block_io: bool,
    /// Record mappings of data.
    pub mappings: bool,
    /// Record how long faults take.
    pub latency: bool,
    /// Record memory system calls.
    pub calls: bool,
    /// Record waits for sleeping reader-writer locks such as mmap_lock.
    pub locks: bool,
    /// Copy stacks of samples, for unwinding code without frame pointers.
    pub dwarf_stacks: bool,
}

/// Samples per second: odd, so that it does not stay in step with a program's own rhythm. Each
/// copies 8 KiB of stack, so the file grows by some 2 MB per second.
pub const DEFAULT_FREQUENCY: u64 = 199;

/// Default samples of CPU time per second: not in step with timers that tick 100 times.
pub const DEFAULT_CPU_FREQUENCY: u64 = 99;

impl Options {
    fn stacks_of_cpu(&self) -> CpuStacks {
        match self.dwarf_stacks {
            true => self.cpu_stacks,
            false => CpuStacks::Chains,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            mode: Mode::Sampled,
            frequency: DEFAULT_FREQUENCY,
            period: None,
            period_stacks: false,
            faults: true,
            cpu: None,
            cpu_dense_at_first: false,
            cpu_stacks: CpuStacks::default(),
            off_cpu: false,
            block_io: false,
            mappings: true,
            latency: true,
            calls: true,
            locks: true,
            dwarf_stacks: true,
        }
    }
}

/// Why nothing could be recorded.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The process is gone.
    #[error("there is no process {pid}: it may just have ended. `ps -e` lists what runs")]
    NoSuchProcess {
        /// Its id.
        pid: i32,
    },
    /// The process belongs to another user.
    #[error("not allowed to observe process {pid}: run as root, or as the process's own user")]
    NotAllowed {
        /// Its id.
        pid: i32,
    },
    /// The whole machine needs privileges.
    #[error(
        "not allowed to observe all processes: run as root, or sudo sysctl \
         kernel.perf_event_paranoid=0"
    )]
    SystemNotAllowed,
    /// The file of the recording could not be started.
    #[error(transparent)]
    Write(#[from] pagewise_formats::perf_data::WriteError),
    /// Something that the recorder itself needs failed.
    #[error("cannot {action}: {cause}")]
    System {
        /// The attempted action.
        action: &'static str,
        /// The kernel's reason.
        cause: io::Error,
    },
}
