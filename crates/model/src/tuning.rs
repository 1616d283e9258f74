//! The results of trying settings on a command.

use crate::advice::Settings;
use crate::proof::{Arm, Clock, Comparison};
use crate::units::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything that was tried, and the best of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Tuning {
    /// The best setting, if fresh runs show with certainty that it is faster.
    pub winner: Option<Winner>,
    /// Whether the best setting did no better than a placebo of the same length.
    pub luck: bool,
    /// Each arm that was not rejected, compared with the baseline.
    pub comparisons: Vec<Comparison>,
    /// The clock of `time_and_memory`: elapsed time, or CPU time on a machine too noisy for that.
    pub clock: Clock,
    /// Time against memory, the baseline included.
    pub time_and_memory: Vec<Point>,
    /// Baseline first.
    pub arms: Vec<Arm>,
}

/// The setting to use.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Winner {
    /// Its name.
    pub name: String,
    /// Its settings, at the smallest sufficient value.
    pub settings: Settings,
    /// What fresh runs showed, in a sentence.
    pub summary: String,
    /// The value that won.
    pub won_at_value: Option<Bytes>,
    /// The smallest value that is as good.
    pub smallest_sufficient_value: Option<Bytes>,
    /// Fresh runs compared with the baseline.
    pub confirmation: Comparison,
    /// What it costs, in words.
    pub price: String,
    /// The settings for a shell, systemd, Docker and Kubernetes, by label.
    pub exports: BTreeMap<String, String>,
}

/// One setting's position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Point {
    /// Arm.
    pub arm: String,
    /// Seconds, typical.
    pub seconds: f64,
    /// Peak resident bytes, typical.
    pub peak_bytes: f64,
    /// Whether it differs from the baseline with certainty, or is the baseline. Others are noise.
    pub told_apart: bool,
    /// Whether it differs and no other such setting is better in one figure and no worse in the
    /// other.
    pub on_front: bool,
}
