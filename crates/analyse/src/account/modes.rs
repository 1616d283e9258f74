//! CPU time in user mode and in the kernel.
//!
//! wait4(2) reports the sum to the nanosecond and splits it by the timer's ticks: time counts as
//! user time unless a tick found the process in the kernel (cputime_adjust() in
//! kernel/sched/cputime.c). So for processes that end within a tick or two, all of it is user time.
//! Samples are more frequent, but are not split by process.

use super::combined;
use crate::attribute::wilson;
use pagewise_model::run::RunCost;
use pagewise_model::units::Estimate;

/// Ticks per second, the lowest rate that kernels are built with.
const TICKS: f64 = 100.0;
/// Threads that use fewer ticks than this on average are misjudged; with more, the count is right
/// on average.
const FEW: f64 = 3.0;

/// Nanoseconds in each mode; the sum is the CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Modes {
    pub user: Estimate,
    pub kernel: Estimate,
}

impl Modes {
    /// The split that wait4(2) reported for `tasks`, unless they are short and `samples`, of which
    /// the share `in_user` was in user mode, show more time in the kernel than ticks miss by
    /// chance.
    #[allow(clippy::cast_precision_loss, reason = "2^53 ns is 104 days")]
    pub(super) fn of(cost: &RunCost, tasks: usize, in_user: f64, samples: f64) -> Self {
        let cpu = cost.cpu().0 as f64;
        let exact = cost.user.0 as f64 / cpu.max(1.0);
        let ticks = cpu * 1e-9 * TICKS;
        let are_short = ticks < FEW * tasks as f64;
        let ticked = wilson(exact, ticks);
        let sampled = wilson(in_user, samples);
        let user = match are_short && sampled.high < ticked.low {
            true => combined(Estimate::exact(exact), sampled).0,
            false => Estimate::exact(exact),
        };
        Self {
            user: user.scaled(cpu),
            kernel: Estimate {
                value: (1.0 - user.value) * cpu,
                low: (1.0 - user.high) * cpu,
                high: (1.0 - user.low) * cpu,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Nanos;

    fn cost(user_ms: u64, system_ms: u64) -> RunCost {
        RunCost {
            user: Nanos(user_ms * 1_000_000),
            system: Nanos(system_ms * 1_000_000),
            ..RunCost::default()
        }
    }

    /// shell-tools of bench/programs: 0.42 s in many processes, 71 % of it user time according to
    /// wait4(2), 36 % according to perf.
    #[test]
    fn of_short_processes_samples_tell_the_modes_and_ticks_bound_them() {
        let cost = cost(298, 122);
        let modes = Modes::of(&cost, 300, 0.36, 400.0);
        assert!((modes.user.value - 0.36 * 420e6).abs() < 1e3);
        assert!(modes.user.low <= 0.36 * 420e6 && modes.user.high >= 298e6 - 1.0);
        assert!((modes.user.value + modes.kernel.value - 420e6).abs() < 1.0);
    }

    #[test]
    fn what_chance_explains_and_what_ticks_do_not_miss_stays_as_it_was_counted() {
        let cost = cost(298, 122);
        let of_long_ones = (1, 0.36, 400.0);
        for (tasks, in_user, samples) in [
            (300, 0.65, 400.0),
            (300, 0.36, 8.0),
            (300, 0.95, 400.0),
            of_long_ones,
        ] {
            let modes = Modes::of(&cost, tasks, in_user, samples);
            assert!((modes.user.value - 298e6).abs() < 1.0, "{in_user}");
            assert!(modes.user.high - modes.user.low < 1.0, "{in_user}");
        }
    }
}
