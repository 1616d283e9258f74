//! Stacks of CPU time: copied at first, then by frame pointers, and copied again where these break.
//! A short program thus has whole stacks, and one with frame pointers costs no copies for long.

use super::super::governor::Governor;
use super::super::role::Role;
use super::{Drain, TIMERS};
use crate::sys::perf_event::monotonic_now;

/// How stacks of CPU time are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stacks {
    CopiedAtFirst,
    /// By frame pointers, while these lead to callers.
    Chains,
    Copied,
}

/// So many copies come before the first chains by frame pointers: if these break, few samples of
/// the whole have no callers.
const AT_FIRST: u64 = 100;
/// The share of the elapsed time, in millionths, that copies may cost the program: some 400 copies
/// per second, 3 MB. With many busy CPUs, chains by frame pointers take the rest of the time.
pub(super) const SHARE: u64 = 3_200;

impl Drain {
    /// Changes to chains once enough was copied, and back if these break.
    pub(super) fn change_stacks(&mut self) {
        match self.stacks {
            Some(Stacks::CopiedAtFirst) if self.account.samples_of(Role::CpuStacks) >= AT_FIRST => {
                self.record_stacks(Stacks::Chains, Role::CpuStacks, Role::Cpu);
            }
            Some(Stacks::Chains) if self.account.chains_break() => {
                self.record_stacks(Stacks::Copied, Role::Cpu, Role::CpuStacks);
            }
            _ => {}
        }
    }

    /// Copies have a governor; timers of threads always have one.
    fn record_stacks(&mut self, stacks: Stacks, before: Role, after: Role) {
        self.governors.retain(|(role, _)| *role != before);
        let now = monotonic_now();
        match (self.has_timers, after) {
            (true, _) => self.governors.push((after, Governor::new(TIMERS, now))),
            (false, Role::CpuStacks) => self.governors.push((after, Governor::new(SHARE, now))),
            _ => {}
        }
        // They may pause, with chains in their place.
        self.set(before, false);
        self.change_cpu(|drain| drain.stacks = Some(stacks));
    }

    /// Makes a change to how CPU time is sampled, and switches to the source that this calls for.
    pub(super) fn change_cpu(&mut self, change: impl FnOnce(&mut Self)) {
        let before = self.cpu_role();
        change(self);
        let after = self.cpu_role();
        if after != before {
            self.set(after, true);
            self.set(before, false);
        }
    }

    /// Switches chains on while copies pause, and off again. Timers of threads pause as a whole.
    pub(super) fn set_substitute(&self, role: Role, on: bool) {
        if role == Role::CpuStacks && !self.has_timers {
            self.set(Role::Cpu, on);
        }
    }

    /// The source that samples CPU time.
    pub(super) fn cpu_role(&self) -> Role {
        let copies = matches!(self.stacks, Some(Stacks::CopiedAtFirst | Stacks::Copied));
        match (self.dense_samples_left, copies) {
            (Some(_), true) => Role::DenseCpuStacks,
            (Some(_), false) => Role::DenseCpu,
            (None, true) => Role::CpuStacks,
            (None, false) => Role::Cpu,
        }
    }
}
