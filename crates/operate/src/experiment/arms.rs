//! The competing candidates, and what their runs have shown so far.

use super::larger_limit::LargerLimit;
use super::reach::Reach;
use pagewise_model::advice::Settings;
use pagewise_model::proof::Arm;
use pagewise_model::run::RunCost;
use pagewise_model::units::{Bytes, Nanos};
use std::ffi::OsString;

/// Settings to try.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Candidate {
    /// Short name for tables.
    pub name: String,
    /// Settings on top of the environment.
    pub settings: Settings,
    /// A program with options that runs the command, given as its arguments.
    pub under: Vec<OsString>,
    /// The control group for each run.
    pub larger_limit: Option<LargerLimit>,
    /// Whether it is meant to work by avoiding faults; then a gain without fewer faults is luck.
    pub fewer_faults: bool,
}

impl Candidate {
    /// The command as it is, in a control group with this limit.
    pub(super) fn with(limit: LargerLimit) -> Self {
        Self {
            name: limit.name(),
            larger_limit: Some(limit),
            ..Self::default()
        }
    }
}

#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub(super) candidate: Candidate,
    /// The run that decided whether it deserves pairs. It chose the arm, so it is no part of them.
    pub(super) trial: Option<RunCost>,
    pub(super) runs: Vec<RunCost>,
    /// How the command failed with it.
    pub(super) failed: Option<String>,
    /// Whether it gets no more runs, although it did not fail.
    pub(super) left_out: bool,
    /// What its processes showed of its settings.
    pub(super) reach: Reach,
    /// Whether it got no more runs because they would hardly have shown a gain.
    pub(super) given_up: bool,
}

impl Contender {
    pub(super) fn new(candidate: Candidate) -> Self {
        Self {
            candidate,
            trial: None,
            runs: Vec::new(),
            failed: None,
            left_out: false,
            reach: Reach::Unseen,
            given_up: false,
        }
    }
}

impl From<Contender> for Arm {
    fn from(contender: Contender) -> Self {
        let Candidate { name, settings, .. } = contender.candidate;
        let mut runs = contender.runs;
        if runs.is_empty() {
            runs.extend(contender.trial);
        }
        Self {
            name,
            settings,
            runs,
            failed: contender.failed,
        }
    }
}

/// The mean cost of a few runs, and their highest peak.
pub(super) fn mean(costs: &[RunCost]) -> RunCost {
    let count = u64::try_from(costs.len()).unwrap_or(1).max(1);
    let of = |part: fn(&RunCost) -> u64| costs.iter().map(part).sum::<u64>() / count;
    RunCost {
        wall: Nanos(of(|cost| cost.wall.0)),
        user: Nanos(of(|cost| cost.user.0)),
        system: Nanos(of(|cost| cost.system.0)),
        minor_faults: of(|cost| cost.minor_faults),
        major_faults: of(|cost| cost.major_faults),
        max_rss: costs
            .iter()
            .map(|cost| cost.max_rss)
            .max()
            .unwrap_or(Bytes(0)),
        voluntary_switches: of(|cost| cost.voluntary_switches),
        involuntary_switches: of(|cost| cost.involuntary_switches),
    }
}
