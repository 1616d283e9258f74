//! The CPU time that fewer faults would save.
//!
//! Kernel time alone is too low an estimate: each fault also costs user time, for the way into the
//! kernel and back and for the cache lines that zeroing a page evicts. `bench/programs/truth`
//! measured ten programs with and without their fix (Linux 6.18, glibc 2.36, x86-64): the CPU time
//! saved was 1.00 to 1.13 times the system time of the avoided faults, whatever the language,
//! allocator or size of block. The test below checks this model against those ten. On another day,
//! when the host had pages at hand and faults cost half as much, proofs of nine of them saved 0.82
//! to 1.37 times that time.
//!
//! Deliberately absent: gains other than CPU time (waiting for `mmap_lock`, for disks). They are
//! measured by `--prove`, not predicted.

use pagewise_model::run::RunCost;
use pagewise_model::units::Estimate;

/// CPU time saved per second of avoided kernel time.
const SAVED_PER_KERNEL_TIME: Estimate = Estimate {
    value: 1.06,
    low: 0.85,
    high: 1.35,
};

/// Largest share of user time that can be saved along with faults (0.6 was the largest measured).
const MOST_USER_SHARE: f64 = 0.7;

/// Predicted ratio of CPU time before to after when `avoided` of the run's faults are avoided.
///
/// `kernel_ns` is the kernel time of one fault in nanoseconds, including the cost of freeing the
/// page. Without it, the run's system time is spread evenly over its faults, which is an upper
/// bound if the kernel did other work too, and the interval then extends down to half.
#[must_use]
pub fn predicted_speedup(
    cost: &RunCost,
    avoided: Estimate,
    kernel_ns: Option<Estimate>,
) -> Estimate {
    let Some(run) = Run::from_cost(cost) else {
        return Estimate::exact(1.0);
    };
    let kernel_ns = kernel_ns.unwrap_or_else(|| run.even_spread());
    let saved = |avoided: f64, kernel_ns: f64, factor: f64| {
        let kernel = (avoided.clamp(0.0, run.faults) * kernel_ns).clamp(0.0, run.system_ns);
        kernel * factor
    };
    Estimate {
        value: run.speedup(saved(
            avoided.value,
            kernel_ns.value,
            SAVED_PER_KERNEL_TIME.value,
        )),
        low: run.speedup(saved(avoided.low, kernel_ns.low, SAVED_PER_KERNEL_TIME.low)),
        high: run.speedup(saved(
            avoided.high,
            kernel_ns.high,
            SAVED_PER_KERNEL_TIME.high,
        )),
    }
}

/// The figures of a run that the model uses.
struct Run {
    cpu_ns: f64,
    system_ns: f64,
    faults: f64,
}

impl Run {
    /// `None` for a run without faults or without measurable CPU time: nothing can be gained.
    fn from_cost(cost: &RunCost) -> Option<Self> {
        let run = Self {
            cpu_ns: cost.cpu().0 as f64,
            system_ns: cost.system.0 as f64,
            faults: cost.faults() as f64,
        };
        (run.cpu_ns > 0.0 && run.faults > 0.0).then_some(run)
    }

    fn even_spread(&self) -> Estimate {
        let each = self.system_ns / self.faults;
        Estimate {
            value: each,
            low: each / 2.0,
            high: each,
        }
    }

    fn speedup(&self, saved_ns: f64) -> f64 {
        let most = self.system_ns + MOST_USER_SHARE * (self.cpu_ns - self.system_ns);
        self.cpu_ns / (self.cpu_ns - saved_ns.min(most)).max(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Nanos;

    /// Program, CPU and system milliseconds and faults by default, faults with the fix, measured
    /// ratio of CPU time: medians of five interleaved runs by `bench/programs/truth`.
    const MEASURED: [(&str, u64, u64, u64, u32, f64); 10] = [
        ("python-zlib", 1259, 909, 540_458, 2_335, 4.05),
        ("gfortran-arrays", 2657, 1830, 1_181_787, 39_164, 4.10),
        ("ezolt-dgemm", 1794, 1037, 697_828, 17_319, 2.70),
        ("numpy-temporaries", 1220, 908, 598_322, 66_827, 3.05),
        ("r-vectors", 1242, 510, 317_547, 52_505, 1.61),
        ("cpp-matrices", 799, 640, 393_364, 49_267, 3.82),
        ("cpp-thread-requests", 3517, 3182, 2_117_969, 3_451, 25.37),
        ("cpp-thread-frames", 1428, 1158, 819_373, 33_024, 4.47),
        ("jemalloc-frames", 806, 650, 393_464, 49_353, 3.91),
        ("python-bz2", 953, 68, 41_242, 2_592, 1.07),
    ];

    fn cost(cpu_ms: u64, system_ms: u64, faults: u64) -> RunCost {
        RunCost {
            user: Nanos((cpu_ms - system_ms) * 1_000_000),
            system: Nanos(system_ms * 1_000_000),
            minor_faults: faults,
            ..RunCost::default()
        }
    }

    #[test]
    fn covers_every_measured_gain_within_a_useful_interval() {
        for (name, cpu, system, faults, left, gain) in MEASURED {
            let cost = cost(cpu, system, faults);
            let all = f64::from(u32::try_from(faults).unwrap());
            let kernel_ns = Estimate::exact(f64::from(u32::try_from(system).unwrap()) * 1e6 / all);
            let avoided = Estimate::exact(all - f64::from(left));
            let predicted = predicted_speedup(&cost, avoided, Some(kernel_ns));
            assert!(
                predicted.covers(gain),
                "{name}: {gain} not in {predicted:?}"
            );
            let saved = |gain: f64| 1.0 - 1.0 / gain;
            let width = saved(predicted.high) - saved(predicted.low);
            assert!(
                width < 0.35,
                "{name}: {width} of the CPU time is no prediction"
            );
        }
    }

    #[test]
    fn nothing_avoided_is_no_gain() {
        let none = predicted_speedup(&cost(1000, 500, 100_000), Estimate::exact(0.0), None);
        assert_eq!(none, Estimate::exact(1.0));
        let no_faults = predicted_speedup(&cost(1000, 500, 0), Estimate::exact(5.0), None);
        assert_eq!(no_faults, Estimate::exact(1.0));
    }

    #[test]
    fn never_promises_more_than_kernel_time_and_most_of_user_time() {
        let wild = Estimate::exact(1e6);
        let predicted =
            predicted_speedup(&cost(1000, 100, 1000), Estimate::exact(1000.0), Some(wild));
        assert!(
            predicted.high <= 1.0 / (1.0 - 0.135) + 1e-9,
            "{predicted:?}"
        );
    }

    #[test]
    fn without_a_measured_cost_the_interval_is_wider() {
        let run = cost(1000, 600, 400_000);
        let avoided = Estimate::exact(390_000.0);
        let even = predicted_speedup(&run, avoided, None);
        let measured = predicted_speedup(&run, avoided, Some(Estimate::exact(1500.0)));
        assert!(even.low < measured.low && even.high >= measured.high);
    }
}
