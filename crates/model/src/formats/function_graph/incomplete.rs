//! Calls that are left out, by cause.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Why a call is not among the complete ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Incomplete {
    /// It began before the trace did: calls below the top level without one around them.
    BeganEarlier,
    /// A close without its open.
    UnmatchedClose,
    /// A call was still open when one of its callers ended or the next one began.
    NeverClosed,
    /// The function that ended is not the one that began.
    NameMismatch,
    /// Events were lost meanwhile on its CPU.
    LostEvents,
    /// Still open at the end of the trace.
    OpenAtEnd,
    /// Its task was switched away, and the trace has no times to say for how long.
    SwitchWithoutTime,
    /// More calls within one than memory is set aside for ([`super::LARGEST_TREE`]).
    TooLarge,
}

impl Incomplete {
    /// Plain words for a person.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::BeganEarlier => "calls that started before the trace",
            Self::UnmatchedClose => "ends of calls without a start",
            Self::NeverClosed => "calls that never ended",
            Self::NameMismatch => "calls that ended under another name",
            Self::LostEvents => "calls during which the tracer lost events",
            Self::OpenAtEnd => "calls still open at the end of the trace",
            Self::SwitchWithoutTime => "calls interrupted by other tasks for an unknown time",
            Self::TooLarge => "calls with more than a million calls inside",
        }
    }
}

/// How many calls are missing, and why. Mergeable by adding.
pub type IncompleteCounts = BTreeMap<Incomplete, u64>;
