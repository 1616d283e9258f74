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
