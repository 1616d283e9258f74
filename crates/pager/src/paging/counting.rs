//! Where the process keeps its counters.

use super::{Pager, limit};
use crate::figures::{places, recorder};
use crate::sys;
use core::sync::atomic::Ordering;
use pagewise_wire::shared::Process;

impl Pager {
    /// This is the child of a fork: it keeps its own counters.
    pub(super) fn count_as_child(&self) {
        recorder::adjust_after_fork();
        places::forked();
        self.region_counts.forked();
        self.heat.forked();
        let inherited_bytes = match places::share() {
            Some(_) => limit::resident_bytes(),
            None => 0,
        };
        self.count_as_process(inherited_bytes);
    }

    /// Takes a place for this process's figures; `inherited_bytes` are shared with its parent.
    pub fn count_as_process(&self, inherited_bytes: u64) {
        self.equipment
            .process
            .store(sys::process_id(), Ordering::Relaxed);
        let Some((place, own)) = places::take(inherited_bytes) else {
            return;
        };
        self.counters.use_place(place);
        if own {
            self.describe(place);
        }
    }

    fn describe(&self, place: &Process) {
        let mut name = [0_u8; 16];
        // SAFETY: PR_GET_NAME writes 16 bytes.
        unsafe {
            sys::call3(
                libc::SYS_prctl,
                libc::PR_GET_NAME as usize,
                name.as_mut_ptr() as usize,
                0,
            );
        }
        let half = |from: usize| u64::from_le_bytes(core::array::from_fn(|i| name[from + i]));
        place.name[0].store(half(0), Ordering::Relaxed);
        place.name[1].store(half(8), Ordering::Relaxed);
        place.budget_bytes.store(
            self.measured.total_bytes.load(Ordering::Relaxed),
            Ordering::Relaxed,
        );
        place.capabilities.store(
            self.choices.capabilities.load(Ordering::Relaxed),
            Ordering::Relaxed,
        );
    }
}
