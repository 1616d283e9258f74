//! What this machine allows, what is missing, and how to get it.

use crate::answer::{Evidence, Kind};
use serde::{Deserialize, Serialize};

/// What a machine allows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check {
    /// Release of the running kernel.
    pub kernel: String,
    /// Most important for `doctor` first.
    pub capabilities: Vec<Capability>,
}

impl Evidence for Check {
    const KIND: Kind = Kind::Check;

    fn verdict(&self) -> String {
        let all = &self.capabilities;
        let count = |state| all.iter().filter(|one| one.state == state).count();
        format!(
            "Linux {}: {} of {} available, {} partial, {} missing.",
            self.kernel,
            count(Availability::Available),
            all.len(),
            count(Availability::Limited),
            count(Availability::Missing)
        )
    }
}

/// State of one capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Availability {
    /// Works.
    Available,
    /// Works in part.
    Limited,
    /// Does not work.
    Missing,
}

/// One thing that Pagewise can use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Capability {
    /// Stable name: `perf.software`, `tracepoints.syscalls`, `proc.smaps_rollup`…
    pub name: String,
    /// Whether it works.
    pub state: Availability,
    /// What was tried and found, with the kernel's own words where there are any.
    pub finding: String,
    /// What Pagewise uses it for, or does instead.
    pub consequence: String,
    /// The exact command or setting that enables it, where there is one.
    pub remedy: Option<String>,
}
