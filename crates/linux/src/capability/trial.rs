//! Trials: how the kernel responds to an attempt.

use crate::proc::ProcRoot;
use crate::sys::perf_event;
use perf_event_open_sys::bindings::{
    PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_SW_PAGE_FAULTS, PERF_SAMPLE_CALLCHAIN, PERF_TYPE_HARDWARE,
    PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT, perf_event_attr,
};
use std::io;
use std::path::{Path, PathBuf};

/// A machine to test: its pseudo file systems.
#[derive(Clone, Debug)]
pub struct Machine {
    /// procfs.
    pub proc: ProcRoot,
    /// sysfs.
    pub sys: PathBuf,
}

impl Machine {
    /// The machine that Pagewise runs on.
    #[must_use]
    pub fn this() -> Self {
        Self::at(Path::new("/"))
    }

    /// A machine whose root folder is `root`.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self {
            proc: ProcRoot::at(root.join("proc")),
            sys: root.join("sys"),
        }
    }
}

/// An event to open on this process.
pub(super) enum Event {
    /// Page faults, with or without those inside the kernel.
    Faults { kernel: bool, callchain: bool },
    /// CPU cycles, by the hardware counters.
    Cycles,
    /// A tracepoint by number.
    Tracepoint(u64),
}

/// Opens an event on this process and closes it.
pub(super) fn open(event: &Event) -> io::Result<()> {
    let mut attr = perf_event_attr::default();
    attr.set_disabled(1);
    attr.set_exclude_hv(1);
    match event {
        Event::Faults { kernel, callchain } => {
            attr.type_ = PERF_TYPE_SOFTWARE;
            attr.config = u64::from(PERF_COUNT_SW_PAGE_FAULTS);
            attr.set_exclude_kernel(u64::from(!kernel));
            if *callchain {
                attr.sample_type = u64::from(PERF_SAMPLE_CALLCHAIN);
                attr.__bindgen_anon_1.sample_period = 1;
            }
        }
        Event::Cycles => {
            attr.type_ = PERF_TYPE_HARDWARE;
            attr.config = u64::from(PERF_COUNT_HW_CPU_CYCLES);
            attr.set_exclude_kernel(1);
        }
        Event::Tracepoint(id) => {
            attr.type_ = PERF_TYPE_TRACEPOINT;
            attr.config = *id;
        }
    }
    perf_event::open(&mut attr, 0, -1, None).map(drop)
}

/// The kernel's own words for a refusal, without the number that Rust appends.
pub(super) fn words(error: &io::Error) -> String {
    let text = error.to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_string(),
        None => text,
    }
}
