//! How much a program shared the CPUs while it was observed: sharing makes the same work take more
//! CPU time (caches, hyper-threads, a hypervisor) although the program is no different.

use serde::{Deserialize, Serialize};

/// Signs of other work on the same CPUs. Each is absent where it was not available.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Contention {
    /// Share of the elapsed time in which some task of the machine waited for a CPU (0 to 1; PSI
    /// `cpu some`, Documentation/accounting/psi.rst).
    pub waiting: Option<f64>,
    /// Share of the CPUs' time that a hypervisor gave to others (`steal` of proc_stat(5)).
    pub stolen: Option<f64>,
    /// How often what was observed was preempted, per second of its CPU time.
    #[serde(default)]
    pub preemptions: Option<f64>,
}

/// Preemptions per second of CPU time at which a CPU counts as wholly shared: a time slice between
/// equals is 3 to 20 ms (kernel/sched/fair.c, Linux 6.1 to 6.12).
const ALWAYS_PREEMPTED: f64 = 100.0;
/// Share of stolen time at which a CPU counts as wholly shared. A hypervisor that steals any time
/// has more work than CPUs: the cores and caches that it does provide are shared, too.
const MUCH_STOLEN: f64 = 0.05;

impl Contention {
    /// From 0, alone, to 1, always with others; `None` without any evidence.
    #[must_use]
    pub fn degree(&self) -> Option<f64> {
        let signs = [
            self.waiting,
            self.stolen.map(|share| share / MUCH_STOLEN),
            // Pressure, where known, is better evidence than the scheduler's preemptions.
            self.preemptions
                .filter(|_| self.waiting.is_none())
                .map(|rate| rate / ALWAYS_PREEMPTED),
        ];
        let known = signs.into_iter().flatten().filter(|sign| sign.is_finite());
        known.reduce(f64::max).map(|degree| degree.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_strongest_sign_counts_and_none_is_unknown() {
        let none = Contention::default();
        assert_eq!(none.degree(), None);
        let degree = |waiting, stolen, preemptions| {
            Contention {
                waiting,
                stolen,
                preemptions,
            }
            .degree()
        };
        assert_eq!(degree(Some(0.1), Some(0.0), Some(900.0)), Some(0.1));
        assert_eq!(degree(Some(0.1), Some(0.025), None), Some(0.5));
        assert_eq!(degree(None, Some(0.2), Some(1.0)), Some(1.0));
        assert_eq!(degree(None, None, Some(900.0)), Some(1.0));
        assert_eq!(degree(Some(f64::NAN), None, None), None);
    }
}
