//! What a figure is missing. Shown next to every number that it touches.

use crate::quantity::count;
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
    /// Records of a type that this version does not know, or lines of no known form.
    UnknownRecord,
    /// Records that contradict themselves (a size past the end, a string without end).
    MalformedRecord,
    /// Bytes missing at the end of a file.
    Truncated,
    /// Files whose recorder was killed, or still runs: they have no end.
    Unfinished,
    /// Records out of time order beyond what sorting in rounds allows.
    OutOfOrder,
    /// Fault entries without the matching end, or ends without entry.
    UnpairedFault,
    /// Faults inside the kernel, which an unprivileged recording does not contain.
    KernelFaultsInvisible,
    /// Faults that the kernel counted without an event: before the program's exec, pages brought in
    /// by a call (`MAP_POPULATE`, pinning), lost records, and, in an unprivileged recording that
    /// lost records, faults inside the kernel.
    FaultsWithoutEvent,
    /// Samples whose process was unknown when they were taken.
    UnknownProcess,
    /// Timeline samples that could not be taken (the process was gone or unreadable).
    TimelineGap,
    /// Bytes that could not be written, because the disk was full.
    WriteFailed,
    /// Earlier recordings that were dropped before they could be sent.
    UnsentRecordings,
    /// Records whose time cannot be right, because it is far from all others.
    ImpossibleTime,
    /// Samples whose weight cannot be right: far beyond what their time allows, or the sum of all
    /// weights would overflow.
    ImpossibleWeight,
    /// Samples whose user stack comes in a record that the file does not contain.
    UserStackMissing,
    /// Stretches that a trace repeats, as in the trace file of kernels up to 4.18.
    Repeats,
    /// Lines in such repeats.
    RepeatedLines,
    /// Places where the time of a CPU goes back.
    TimesBack,
    /// Events that the tracer reports as lost.
    TracerEvents,
    /// Places where the tracer reports lost events.
    TracerGaps,
    /// Bytes of a last line that was cut off.
    CutLine,
    /// Functions that are not in trace.dat's list of names.
    UnnamedFunctions,
    /// Further buffers of trace.dat, which are not read.
    OtherBuffers,
    /// Calls that began before the trace did.
    BeganEarlier,
    /// Ends of calls that did not start.
    UnmatchedClose,
    /// Calls that never ended.
    NeverClosed,
    /// Calls that ended under another name.
    NameMismatch,
    /// Calls during which the tracer lost events.
    LostEvents,
    /// Calls still open at the end of the trace.
    OpenAtEnd,
    /// Calls interrupted by other tasks, in a trace without times.
    SwitchWithoutTime,
    /// Calls with more calls inside than memory is reserved for.
    TooLarge,
    /// Faults traced with only the root function that cannot be used to measure the tracer's cost.
    Unmeasured,
}

impl LossKind {
    /// The words after the number 1, and after any other.
    fn words(self) -> [&'static str; 2] {
        match self {
            Self::RingOverrun => [
                "record lost because the ring buffer was full",
                "records lost because the ring buffer was full",
            ],
            Self::Throttled => [
                "pause by the kernel's sampling throttle",
                "pauses by the kernel's sampling throttle",
            ],
            Self::UnknownRecord => [
                "line or record of an unknown form",
                "lines or records of an unknown form",
            ],
            Self::MalformedRecord => ["malformed record", "malformed records"],
            Self::Truncated => [
                "byte missing at the end of the file",
                "bytes missing at the end of the file",
            ],
            Self::Unfinished => [
                "file that its recorder did not finish",
                "files that their recorders did not finish",
            ],
            Self::OutOfOrder => ["record out of time order", "records out of time order"],
            Self::UnpairedFault => [
                "fault whose start or end was not seen",
                "faults whose start or end was not seen",
            ],
            Self::KernelFaultsInvisible => [
                "fault inside a system call that needs privileges to see",
                "faults inside system calls that need privileges to see",
            ],
            Self::FaultsWithoutEvent => [
                "fault that was counted but not recorded (lost, before exec, or inside the kernel)",
                "faults that were counted but not recorded (lost, before exec, or inside the kernel)",
            ],
            Self::UnknownProcess => [
                "sample of a process without a start record",
                "samples of a process without a start record",
            ],
            Self::TimelineGap => [
                "timeline point that could not be read",
                "timeline points that could not be read",
            ],
            Self::WriteFailed => [
                "byte that could not be written",
                "bytes that could not be written",
            ],
            Self::UnsentRecordings => [
                "earlier recording dropped before it could be sent",
                "earlier recordings dropped before they could be sent",
            ],
            Self::ImpossibleTime => [
                "record left out because of an impossible time",
                "records left out because of an impossible time",
            ],
            Self::ImpossibleWeight => [
                "sample left out because of an impossible weight",
                "samples left out because of an impossible weight",
            ],
            Self::UserStackMissing => [
                "sample whose user stack is not in the file",
                "samples whose user stack is not in the file",
            ],
            Self::Repeats => [
                "section that the trace repeats, as the trace file of kernels up to 4.18 does",
                "sections that the trace repeats, as the trace file of kernels up to 4.18 does",
            ],
            Self::RepeatedLines => ["line in such repeats", "lines in such repeats"],
            Self::TimesBack => [
                "place where the time of a CPU goes back",
                "places where the time of a CPU goes back",
            ],
            Self::TracerEvents => ["event lost by the tracer", "events lost by the tracer"],
            Self::TracerGaps => [
                "place where the tracer lost events",
                "places where the tracer lost events",
            ],
            Self::CutLine => [
                "byte of a truncated last line",
                "bytes of a truncated last line",
            ],
            Self::UnnamedFunctions => [
                "function without a name in the file",
                "functions without a name in the file",
            ],
            Self::OtherBuffers => [
                "further buffer in the file, not read",
                "further buffers in the file, not read",
            ],
            Self::BeganEarlier => [
                "call that started before the trace",
                "calls that started before the trace",
            ],
            Self::UnmatchedClose => [
                "end of a call without a start",
                "ends of calls without a start",
            ],
            Self::NeverClosed => ["call that never ended", "calls that never ended"],
            Self::NameMismatch => [
                "call that ended under another name",
                "calls that ended under another name",
            ],
            Self::LostEvents => [
                "call during which the tracer lost events",
                "calls during which the tracer lost events",
            ],
            Self::OpenAtEnd => [
                "call still open at the end of the trace",
                "calls still open at the end of the trace",
            ],
            Self::SwitchWithoutTime => [
                "call interrupted by other tasks for an unknown time",
                "calls interrupted by other tasks for an unknown time",
            ],
            Self::TooLarge => [
                "call with more than a million calls inside",
                "calls with more than a million calls inside",
            ],
            Self::Unmeasured => [
                "fault with the root alone: too few, or too different from the others, to measure \
                 the tracer's cost by",
                "faults with the root alone: too few, or too different from the others, to measure \
                 the tracer's cost by",
            ],
        }
    }

    /// A number of them, in words: `1 call that never ended`.
    #[must_use]
    pub fn counted(self, number: u64) -> String {
        let words = self.words()[usize::from(number != 1)];
        format!("{} {words}", count(number))
    }
}

/// Counted losses, mergeable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Losses(BTreeMap<LossKind, u64>);

impl Losses {
    /// Counts `count` more of `kind`; zero is not recorded.
    pub fn add(&mut self, kind: LossKind, count: u64) {
        if count > 0 {
            let held = self.0.entry(kind).or_default();
            *held = held.saturating_add(count);
        }
    }

    /// How many of `kind`.
    #[must_use]
    pub fn count(&self, kind: LossKind) -> u64 {
        self.0.get(&kind).copied().unwrap_or(0)
    }

    /// Adds another recording's losses.
    pub fn merge(&mut self, other: &Self) {
        for (&kind, &count) in &other.0 {
            self.add(kind, count);
        }
    }

    /// Merges another count of the same stream: for each kind the larger number, since both saw the
    /// same losses.
    pub fn take_in(&mut self, recount: &Self) {
        for (&kind, &count) in &recount.0 {
            self.add(kind, count.saturating_sub(self.count(kind)));
        }
    }

    /// Whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Each kind with its count in words, in a fixed order.
    pub fn descriptions(&self) -> impl Iterator<Item = String> + '_ {
        self.iter().map(|(kind, number)| kind.counted(number))
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
    fn one_is_told_in_the_singular() {
        let mut losses = Losses::default();
        losses.add(LossKind::TimelineGap, 1);
        losses.add(LossKind::NeverClosed, 2_000);
        let message: Vec<String> = losses.descriptions().collect();
        let expected = [
            "1 timeline point that could not be read",
            "2,000 calls that never ended",
        ];
        assert_eq!(message, expected);
    }

    #[test]
    fn what_two_saw_of_one_stream_counts_once() {
        let losses = |overrun, throttled, gaps| {
            let mut losses = Losses::default();
            losses.add(LossKind::RingOverrun, overrun);
            losses.add(LossKind::Throttled, throttled);
            losses.add(LossKind::TimelineGap, gaps);
            losses
        };
        let mut message = losses(7, 1, 2);
        message.take_in(&losses(5, 3, 0));
        assert_eq!(message, losses(7, 3, 2));
    }
}
