//! CPU time in user mode and in the kernel.
//!
//! wait4(2) reports the sum to the nanosecond and splits it by the timer's ticks: time counts as
//! user time unless a tick found the process in the kernel (cputime_adjust() in
//! kernel/sched/cputime.c). So for processes that end within a tick or two, all of it is user time,
//! and of a program of a tenth of a second ten ticks divide the time. Samples are more frequent, but
//! are not split by process.

use super::combined;
use crate::attribute::wilson;
use pagewise_model::run::RunCost;
use pagewise_model::units::Estimate;

/// Ticks per second, the lowest rate that kernels are built with.
const TICKS: f64 = 100.0;

/// Nanoseconds in each mode; the sum is the CPU time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Modes {
    pub user: Estimate,
    pub kernel: Estimate,
}

impl Modes {
    /// The split that wait4(2) reported, where `samples`, of which the share `in_user` was in user
    /// mode, agree; otherwise theirs, with an interval that spans both.
    pub(super) fn new(cost: &RunCost, in_user: f64, samples: f64) -> Self {
        let cpu = cost.cpu().0 as f64;
        let counted = cost.user.0 as f64 / cpu.max(1.0);
        let ticked = wilson(counted, cpu * 1e-9 * TICKS);
        let sampled = wilson(in_user, samples);
        let user = match combined(ticked, sampled) {
            (_, true) => Estimate {
                value: sampled.value,
                low: sampled.low.min(counted),
                high: sampled.high.max(counted),
            },
            (narrower, false) => Estimate {
                value: counted.clamp(narrower.low, narrower.high),
                ..narrower
            },
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

    /// The split that wait4(2) reported, where nothing else tells of the kernel.
    pub(super) fn counted(cost: &RunCost) -> Self {
        Self {
            user: Estimate::exact(cost.user.0 as f64),
            kernel: Estimate::exact(cost.system.0 as f64),
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
    fn where_samples_and_ticks_differ_the_interval_spans_both() {
        let modes = Modes::new(&cost(298, 122), 0.36, 400.0);
        assert!((modes.user.value - 0.36 * 420e6).abs() < 1e3);
        assert!(modes.user.low <= 0.36 * 420e6 && modes.user.high >= 298e6 - 1.0);
        assert!((modes.user.value + modes.kernel.value - 420e6).abs() < 1.0);
    }

    #[test]
    fn ticks_and_samples_that_agree_give_the_counted_time() {
        // 42 ticks, so off by up to 14 percentage points; 400 samples are off by up to 5.
        for (in_user, expected) in [(0.71, 0.7095), (0.68, 0.7095), (0.62, 0.6664)] {
            let user = Modes::new(&cost(298, 122), in_user, 400.0).user;
            assert!((user.value / 420e6 - expected).abs() < 1e-3, "{user:?}");
            let wide = (user.high - user.low) / 420e6;
            assert!((0.085..0.1).contains(&wide), "{user:?}");
        }
        // 42 s are 4,200 ticks.
        let user = Modes::new(&cost(29_800, 12_200), 0.70, 400.0).user;
        assert!((user.value - 29_800e6).abs() < 1.0);
        assert!(user.high - user.low < 0.03 * 42e9, "{user:?}");
    }
}
