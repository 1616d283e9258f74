//! What a figure is missing. Shown beside every number that it touches.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Kinds of data that were dropped or could not be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// Records that the kernel dropped because a ring was full.
    RingOverrun,
    /// Samples paused by the kernel's own overhead guard (`kernel.perf_cpu_time_max_percent`).
    Throttled,
    /// Records of a type this version does not know.
    UnknownRecord,
    /// Records that contradict themselves (a size past the end, a string without end).
    MalformedRecord,
    /// Bytes missing at the end of a file.
    Truncated,
    /// Records out of time order beyond what sorting rounds allow.
    OutOfOrder,
    /// Fault entries without the matching end, or ends without entry.
    UnpairedFault,
    /// Faults inside the kernel that an unprivileged recording cannot see.
    KernelFaultsInvisible,
    /// Faults that the kernel counted although no event told of them: before the program's exec,
    /// pages brought in by a call (`MAP_POPULATE`, pinning), records lost, and of a recording without
    /// privileges that lost records, those inside the kernel.
    FaultsWithoutEvent,
    /// Samples whose process was unknown when they were taken.
    UnknownProcess,
    /// Timeline samples that could not be taken (the process was gone or unreadable).
    TimelineGap,
    /// Bytes that could not be written, because the disk was full.
    WriteFailed,
    /// Records whose time cannot be right, for it lies far from all others.
    ImpossibleTime,
    /// Samples whose weight cannot be right, for the sum of all weights would have no room.
    ImpossibleWeight,
}

impl LossKind {
    /// Plain words for a person.
    #[must_use]
    pub fn describe(self) -> &'static str {
        match self {
            Self::RingOverrun => "records lost because the ring buffer was full",
            Self::Throttled => "pauses by the kernel's sampling throttle",
            Self::UnknownRecord => "records of an unknown type",
            Self::MalformedRecord => "malformed records",
            Self::Truncated => "bytes missing at the end of the file",
            Self::OutOfOrder => "records out of time order",
            Self::UnpairedFault => "faults whose start or end was not seen",
            Self::KernelFaultsInvisible => "faults inside system calls that need privileges to see",
            Self::FaultsWithoutEvent => {
                "faults that were counted but not recorded (lost, before exec, or inside the kernel)"
            }
            Self::UnknownProcess => "samples of a process without a start record",
            Self::TimelineGap => "timeline points that could not be read",
            Self::WriteFailed => "bytes that could not be written",
            Self::ImpossibleTime => "records left out because of an impossible time",
            Self::ImpossibleWeight => "samples left out because of an impossible weight",
        }
    }

    /// The same behind a number, which may be 1.
    #[must_use]
    pub fn counted(self, number: u64) -> &'static str {
        if number != 1 {
            return self.describe();
        }
        match self {
            Self::RingOverrun => "record lost because the ring buffer was full",
            Self::Throttled => "pause by the kernel's sampling throttle",
            Self::UnknownRecord => "record of an unknown type",
            Self::MalformedRecord => "malformed record",
            Self::Truncated => "byte missing at the end of the file",
            Self::OutOfOrder => "record out of time order",
            Self::UnpairedFault => "fault whose start or end was not seen",
            Self::KernelFaultsInvisible => {
                "fault inside a system call that needs privileges to see"
            }
            Self::FaultsWithoutEvent => {
                "fault that was counted but not recorded (lost, before exec, or inside the kernel)"
            }
            Self::UnknownProcess => "sample of a process without a start record",
            Self::TimelineGap => "timeline point that could not be read",
            Self::WriteFailed => "byte that could not be written",
            Self::ImpossibleTime => "record left out because of an impossible time",
            Self::ImpossibleWeight => "sample left out because of an impossible weight",
        }
    }
}

/// Counted losses, mergeable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Losses(BTreeMap<LossKind, u64>);

impl Losses {
    /// Counts `count` more of `kind`; zero is not noted.
    pub fn add(&mut self, kind: LossKind, count: u64) {
        if count > 0 {
            let held = self.0.entry(kind).or_default();
            *held = held.saturating_add(count);
        }
    }

    /// How many of `kind`.
    #[must_use]
    pub fn of(&self, kind: LossKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    /// Adds another recording's losses.
    pub fn merge(&mut self, other: &Self) {
        for (&kind, &count) in &other.0 {
            self.add(kind, count);
        }
    }

    /// Takes in what another count of the same stream found: of each kind the larger number, since
    /// both saw the same losses.
    pub fn take_in(&mut self, recount: &Self) {
        for (&kind, &count) in &recount.0 {
            self.add(kind, count.saturating_sub(self.of(kind)));
        }
    }

    /// Whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each kind with its count, in a fixed order.
    pub fn iter(&self) -> impl Iterator<Item = (LossKind, u64)> + '_ {
        self.0.iter().map(|(&kind, &count)| (kind, count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_saw_of_one_stream_counts_once() {
        let losses = |overrun, throttled, gaps| {
            let mut losses = Losses::default();
            losses.add(LossKind::RingOverrun, overrun);
            losses.add(LossKind::Throttled, throttled);
            losses.add(LossKind::TimelineGap, gaps);
            losses
        };
        let mut told = losses(7, 1, 2);
        told.take_in(&losses(5, 3, 0));
        assert_eq!(told, losses(7, 3, 2));
    }
}
