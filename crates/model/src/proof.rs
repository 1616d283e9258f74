//! The results of interleaved runs with and without a change.

use crate::advice::Settings;
use crate::run::RunCost;
use crate::units::Estimate;
use serde::{Deserialize, Serialize};

/// One way of running the command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Arm {
    /// Short name: `baseline`, `both knobs`, `jemalloc`.
    pub name: String,
    /// Settings in force; empty for the baseline.
    pub settings: Settings,
    /// Each run's cost in the order in which the rounds ran.
    pub runs: Vec<RunCost>,
    /// How the command failed with these settings, if it did: such settings are not a remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// The verdict on one arm compared with the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Faults fell and time with them, with certainty at the stated level.
    Faster,
    /// No difference beyond the noise.
    NoDifference,
    /// Slower with certainty.
    Slower,
    /// Faster, but beyond the memory budget.
    TooMuchMemory,
    /// The budget ended before the interval was narrow enough to decide.
    Undecided,
    /// The processes of a trial run show that the settings do not reach the program.
    NotReached,
    /// A trial run showed no gain that would be worth pairs of runs.
    TriedOnce,
}

/// Baseline compared with one arm, over pairs of runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Comparison {
    /// Name of the arm.
    pub arm: String,
    /// Median paired ratio baseline/arm of wall time: above 1 means the arm is faster.
    pub wall_speedup: Estimate,
    /// The same for CPU time.
    pub cpu_speedup: Estimate,
    /// Ratio arm/baseline of faults: 0.01 means 99 % fewer.
    pub fault_ratio: Estimate,
    /// Arm minus baseline of peak resident bytes, median (negative: less memory).
    pub rss_change_bytes: f64,
    /// p-value of "no change in CPU time", adjusted for the number of arms (Holm).
    pub p_adjusted: f64,
    /// Number of pairs.
    pub pairs: u32,
    /// The verdict in one word.
    pub verdict: Verdict,
}

impl Comparison {
    /// The gain that stands first wherever one figure is shown: that of CPU time, which predictions are about, or that
    /// of elapsed time where only it is certain, or it is certainly larger, as where a program waits less.
    #[must_use]
    pub fn leading(&self) -> (&Estimate, Clock) {
        let (wall, cpu) = (&self.wall_speedup, &self.cpu_speedup);
        let only_elapsed = wall.low > 1.0 && cpu.low <= 1.0;
        match only_elapsed || wall.low > cpu.high {
            true => (wall, Clock::Wall),
            false => (cpu, Clock::Cpu),
        }
    }
}

/// A finished experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Proof {
    /// All arms, the baseline first.
    pub arms: Vec<Arm>,
    /// Each arm except the first, compared with the first.
    pub comparisons: Vec<Comparison>,
    /// The chosen arm, if any.
    pub winner: Option<String>,
    /// A fresh comparison of the winner alone, with runs that were not used to choose it.
    pub confirmation: Option<Comparison>,
    /// Verdict in words.
    pub summary: String,
    /// Things a reader should know: noisy machine, failed runs, early end.
    pub notes: Vec<String>,
}

/// Which clock a claim is based on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Clock {
    /// Elapsed time.
    #[serde(rename = "elapsed")]
    Wall,
    /// User and system time.
    #[serde(rename = "cpu")]
    Cpu,
}

impl Clock {
    /// The speed-up by this clock.
    #[must_use]
    pub fn speed_up(self, comparison: &Comparison) -> &Estimate {
        match self {
            Self::Wall => &comparison.wall_speedup,
            Self::Cpu => &comparison.cpu_speedup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leads(wall: [f64; 3], cpu: [f64; 3]) -> Clock {
        let estimate = |[low, value, high]: [f64; 3]| Estimate { value, low, high };
        let comparison = Comparison {
            arm: String::new(),
            wall_speedup: estimate(wall),
            cpu_speedup: estimate(cpu),
            fault_ratio: Estimate::exact(1.0),
            rss_change_bytes: 0.0,
            p_adjusted: 0.0,
            pairs: 8,
            verdict: Verdict::Faster,
        };
        comparison.leading().1
    }

    #[test]
    fn cpu_time_leads_unless_elapsed_time_gained_more_for_certain() {
        assert_eq!(leads([1.8, 2.0, 2.2], [1.9, 2.1, 2.3]), Clock::Cpu);
        assert_eq!(leads([1.0, 1.5, 2.2], [1.3, 1.4, 1.5]), Clock::Cpu);
        assert_eq!(leads([2.8, 3.0, 3.2], [1.1, 1.2, 1.3]), Clock::Wall);
        assert_eq!(leads([1.1, 1.3, 1.5], [0.9, 1.1, 1.4]), Clock::Wall);
        assert_eq!(leads([0.9, 1.0, 1.1], [0.9, 1.0, 1.1]), Clock::Cpu);
    }
}
