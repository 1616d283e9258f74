//! What this machine allows, what is missing, and how to get it.

use serde::{Deserialize, Serialize};

/// State of one capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
