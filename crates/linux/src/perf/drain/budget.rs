//! What governed units may cost, and of which time that is a share.

use super::super::governor::{Bound, Governor};
use super::super::role::Role;
use super::Drain;
use pagewise_model::units::Nanos;

/// Bounds of what memory calls and waits for locks cost. Memory calls have the largest, because causes of
/// faults cannot be determined well without them.
pub(super) const GOVERNED: [(Role, Bound); 3] = [
    (Role::Mappings, bound(10_000, 10_000_000)),
    (Role::Calls, bound(20_000, 20_000_000)),
    (Role::Locks, bound(3_000, 3_000_000)),
];
/// The same for timers of threads beside records of faults; a profile that was asked for is not
/// paused.
pub(super) const TIMERS: Bound = bound(10_000, 10_000_000);
/// The same for copies of the stack: some 400 per second, 3 MB. With many busy CPUs, chains by frame
/// pointers take the rest of the time.
pub(super) const COPIES: Bound = bound(3_200, 3_200_000);

/// The least part of the elapsed time that counts as the program's CPU time: one that hardly runs is
/// recorded in full.
const IDLE: u64 = 8;
/// A paused unit is looked at no more often than this, however little is missing.
const SHORTEST_WAIT: Nanos = Nanos(5_000_000);

const fn bound(share_ppm: u64, head_start: u64) -> Bound {
    Bound {
        share_ppm,
        head_start: Nanos(head_start),
    }
}

impl Drain {
    pub(super) fn governor(&self, role: Role, bound: Bound, now: Nanos) -> (Role, Governor) {
        (role, Governor::new(bound, now, self.passed(role, now)))
    }

    /// The time of which a unit has a share. Records of the program's calls cost it CPU time, so that is
    /// what they have a share of, where all of it is sampled: a program that waits for a busy CPU does not
    /// pay for the wait. Copies are bounded by what is written in a second.
    pub(super) fn passed(&self, role: Role, now: Nanos) -> Nanos {
        let elapsed = now - self.running_since.unwrap_or(now);
        match role {
            Role::Cpu | Role::CpuStacks => elapsed,
            _ => counted(elapsed, self.account.cpu_time()),
        }
    }

    /// How long until a paused unit may be due. The rest of its time passes as the program runs, which
    /// nothing wakes the recorder for.
    pub(super) fn next_resume(&self, now: Nanos) -> Option<Nanos> {
        let waits = self
            .governors
            .iter()
            .filter_map(|(role, governor)| governor.resumes_in(self.passed(*role, now)));
        waits.min().map(|wait| wait.max(SHORTEST_WAIT))
    }
}

/// The share of a time that windows cover.
pub(super) fn percent_on(windows: &[(Nanos, Nanos)], elapsed: Nanos) -> u64 {
    let on: Nanos = windows.iter().map(|&(from, to)| to - from).sum();
    on.0.saturating_mul(100) / elapsed.0.max(1)
}

fn counted(elapsed: Nanos, cpu: Option<Nanos>) -> Nanos {
    cpu.map_or(elapsed, |cpu| cpu.max(Nanos(elapsed.0 / IDLE)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_hardly_runs_has_a_budget_and_a_busy_one_that_of_its_cpus() {
        let second = Nanos(1_000_000_000);
        assert_eq!(counted(second, None), second);
        assert_eq!(counted(second, Some(Nanos(0))), Nanos(125_000_000));
        assert_eq!(
            counted(second, Some(Nanos(3_000_000_000))),
            Nanos(3_000_000_000)
        );
    }

    #[test]
    fn percentages_are_of_the_whole_time() {
        let windows = [(Nanos(0), Nanos(10)), (Nanos(50), Nanos(65))];
        assert_eq!(percent_on(&windows, Nanos(100)), 25);
        assert_eq!(percent_on(&windows, Nanos(0)), 2_500);
    }
}
