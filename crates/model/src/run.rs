//! The resources used by one run of a program, as accounted by `wait4(2)`.

use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Resources of one finished or observed run, children that were waited for included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct RunCost {
    /// Elapsed time.
    pub wall: Nanos,
    /// CPU time in user mode.
    pub user: Nanos,
    /// CPU time in the kernel.
    pub system: Nanos,
    /// Faults that needed no I/O (`ru_minflt`).
    pub minor_faults: u64,
    /// Faults that needed I/O (`ru_majflt`).
    pub major_faults: u64,
    /// Peak resident memory of any one process (`ru_maxrss`).
    pub max_rss: Bytes,
    /// Voluntary context switches.
    pub voluntary_switches: u64,
    /// Involuntary context switches.
    pub involuntary_switches: u64,
}

impl RunCost {
    /// Resources used since an earlier reading of the same counts, in `wall` of elapsed time.
    #[must_use]
    pub fn since(&self, before: &Self, wall: Nanos) -> Self {
        Self {
            wall,
            user: self.user - before.user,
            system: self.system - before.system,
            minor_faults: self.minor_faults.saturating_sub(before.minor_faults),
            major_faults: self.major_faults.saturating_sub(before.major_faults),
            max_rss: self.max_rss,
            voluntary_switches: self
                .voluntary_switches
                .saturating_sub(before.voluntary_switches),
            involuntary_switches: self
                .involuntary_switches
                .saturating_sub(before.involuntary_switches),
        }
    }

    /// User and system CPU time together.
    #[must_use]
    pub fn cpu(&self) -> Nanos {
        self.user + self.system
    }

    /// Minor and major faults together.
    #[must_use]
    pub fn faults(&self) -> u64 {
        self.minor_faults + self.major_faults
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// It exited with this status.
    Exited(i32),
    /// A signal killed it.
    Killed(i32),
    /// It was still running when observation ended.
    #[default]
    Running,
}

/// Display name of a signal, such as `SIGSEGV (signal 11)`; only the number where Linux
/// architectures differ or the signal is rare.
#[must_use]
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        _ => return format!("signal {signal}"),
    };
    format!("{name} (signal {signal})")
}

impl Ending {
    /// How a command ended, to follow "the command".
    #[must_use]
    pub fn clause(self) -> String {
        match self {
            Self::Exited(status) => format!("ends with status {status}"),
            Self::Killed(signal) => format!("is killed by signal {signal}"),
            Self::Running => "does not end".to_owned(),
        }
    }

    /// How it ended, to follow "the program": `exited with status 3`.
    #[must_use]
    pub fn words(self) -> String {
        match self {
            Self::Exited(status) => format!("exited with status {status}"),
            Self::Killed(signal) => format!("was killed by {}", signal_name(signal)),
            Self::Running => "was still running".to_owned(),
        }
    }

    /// The status that a shell would report (128 + signal for a kill, 0 while running).
    #[must_use]
    pub fn shell_status(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Killed(signal) => 128 + signal,
            Self::Running => 0,
        }
    }
}
