//! The smallest memory limit at which a program does not wait for memory.

use crate::answer::{Evidence, Kind};
use crate::quantity::percent;
use crate::units::{Bytes, Nanos};
use serde::{Deserialize, Serialize};

/// Runs of a program under memory limits, and the smallest that it fits into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MemoryLimit {
    /// The smallest limit under which all runs fitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub smallest: Option<Bytes>,
    /// The largest limit below it under which a run did not fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub too_small: Option<Bytes>,
    /// Share of the elapsed time that a run that fits may wait for memory.
    pub stall_allowed: f64,
    /// How waiting was measured.
    pub measure: StallMeasure,
    /// All runs in order; the first had no limit of its own.
    pub runs: Vec<LimitRun>,
}

/// How it was measured for which part of the time tasks waited for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum StallMeasure {
    /// By `memory.pressure` of the cgroup: time in which at least one task waited.
    Pressure,
    /// By the delays of all tasks (taskstats), added up.
    Delays,
    /// Not at all: a run fits if it takes at most a tenth longer than without a limit.
    Time,
}

/// One run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LimitRun {
    /// Its limit; absent in the first run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<Bytes>,
    /// How it went.
    pub outcome: LimitOutcome,
    /// Share of the elapsed time that tasks waited for memory; with several tasks it can exceed 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled: Option<f64>,
    /// Elapsed time.
    pub elapsed_ns: u64,
    /// The most memory that was charged, page cache included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<Bytes>,
}

/// How a run under a limit went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitOutcome {
    /// It ended as without a limit, and did not wait too long.
    Fits,
    /// It waited too long for memory.
    Stalled,
    /// The kernel killed a process of it (out of memory).
    Killed,
    /// It ended in another way than without a limit.
    Failed,
    /// It took several times as long, and was ended.
    Endless,
}

impl Evidence for MemoryLimit {
    const KIND: Kind = Kind::MemoryLimit;

    fn verdict(&self) -> String {
        let most = self.runs.iter().find(|run| run.limit.is_none());
        let peak = most.and_then(|run| run.peak);
        let without = peak.map_or_else(String::new, |peak| {
            format!(" It takes up to {peak} without a limit.")
        });
        let Some(smallest) = self.smallest else {
            return format!("No limit that was tried is enough.{without}");
        };
        let below = self
            .runs
            .iter()
            .rfind(|run| run.limit == self.too_small && run.limit.is_some());
        let below = below.map_or_else(String::new, |run| {
            let limit = run.limit.unwrap_or_default();
            match (run.outcome, run.stalled) {
                (LimitOutcome::Stalled, Some(stalled)) => {
                    format!(
                        " With {limit} it waits for memory {} of the time.",
                        percent(stalled)
                    )
                }
                (LimitOutcome::Stalled, None) => format!(" With {limit} it takes longer."),
                (LimitOutcome::Killed, _) => format!(" With {limit} it is killed."),
                (LimitOutcome::Endless, _) => {
                    format!(" With {limit} it takes several times as long.")
                }
                _ => format!(" With {limit} it fails."),
            }
        });
        format!("The smallest limit that it fits into is {smallest}.{below}{without}")
    }
}

impl LimitRun {
    /// Elapsed time.
    #[must_use]
    pub fn elapsed(&self) -> Nanos {
        Nanos(self.elapsed_ns)
    }
}
