//! CPU time of a process and all its descendants, even those that no process waits for.
//!
//! `/proc` includes the CPU time of ended processes only if their parent waits for them. For a
//! server that ignores `SIGCHLD` it has no such figure of the children that it forks for each
//! connection; the kernel's task clock, which each of them inherits, adds up all.

use crate::sys::perf_event::{self, EventFd, SCALED_FORMAT};
use pagewise_model::units::Nanos;
use perf_event_open_sys::bindings::{self, perf_event_attr};

/// A running clock.
#[derive(Debug)]
pub struct CpuClock(EventFd);

impl CpuClock {
    /// Starts to count for a process that has no threads or children yet, such as one that waits at
    /// its gate. `None` if perf events are not allowed.
    #[must_use]
    pub fn for_process(pid: i32) -> Option<Self> {
        let mut attr = perf_event_attr::default();
        attr.type_ = bindings::PERF_TYPE_SOFTWARE;
        attr.config = u64::from(bindings::PERF_COUNT_SW_TASK_CLOCK);
        attr.read_format = SCALED_FORMAT;
        attr.set_inherit(1);
        attr.set_exclude_hv(1);
        // The task clock counts the kernel's time even when it is excluded, but without privileges
        // the exclusion is required.
        attr.set_exclude_kernel(1);
        perf_event::open(&mut attr, pid, -1, None).ok().map(Self)
    }

    /// CPU time until now.
    #[must_use]
    pub fn read(&self) -> Option<Nanos> {
        let counted = self.0.read_counted().ok()?;
        Some(Nanos(counted.count))
    }
}
