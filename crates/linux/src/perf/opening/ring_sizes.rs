//! How large the rings are that records pass through.

use super::super::Mode;
use super::super::role::RingClass;
use crate::sys::{machine, perf_event};

/// Pages of records in the rings of one CPU.
#[derive(Clone, Copy, Debug)]
pub(super) struct RingSizes {
    side: usize,
    faults: usize,
    calls: usize,
    cpu: usize,
}

impl RingSizes {
    /// With privileges up to 64 MiB in all; without, as much as `kernel.perf_event_mlock_kb` (516
    /// KiB for each CPU unless changed) allows, control pages included. The kernel clears each page
    /// before the program may start, 0.3 ms for a MiB, so rings of samples are half as large as
    /// those that get a record of each fault.
    pub fn for_us(cpus: usize, mode: Mode) -> Self {
        let pages = |kib: usize| (kib * 1024 / page_size()).max(1);
        if !perf_event::is_root() {
            return Self {
                side: pages(64),
                faults: pages(256),
                calls: pages(128),
                cpu: pages(128),
            };
        }
        let most = (64 * 1024 / cpus.max(1)).clamp(256, 4_096);
        let most = 1 << most.ilog2();
        let of_samples = match mode {
            Mode::Sampled => most / 2,
            Mode::Full => most,
        };
        Self {
            side: pages(most / 4),
            faults: pages(of_samples),
            calls: pages(most / 4),
            cpu: pages(of_samples / 2),
        }
    }

    pub fn size_mut(&mut self, class: RingClass) -> &mut usize {
        match class {
            RingClass::Side => &mut self.side,
            RingClass::Faults => &mut self.faults,
            RingClass::Calls => &mut self.calls,
            RingClass::Cpu => &mut self.cpu,
        }
    }
}

/// The recorder is woken when this part of a ring is full. Units that are governed or adapt to the
/// rate must be noticed early: after some 1,000 records.
pub(super) fn watermark_part(class: RingClass, mode: Mode) -> usize {
    match (class, mode) {
        (_, Mode::Sampled) => 16,
        (_, Mode::Full) => 4,
    }
}

pub(super) fn page_size() -> usize {
    usize::try_from(machine::page_size()).unwrap_or(4096)
}
