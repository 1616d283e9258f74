//! Records in time order, with bounded memory.
//!
//! Rings are drained one after the other, so a file contains stretches of each CPU's records. perf
//! writes `FINISHED_ROUND` after each turn through the rings, which guarantees that later records
//! are newer than everything present at the end of the round *before*:
//!
//! ```text
//! cpu0: 1 4 | cpu1: 2 6 | ROUND | cpu0: 5 9 | cpu1: 7 8 | ROUND | …
//!                 newest: 6 ──────────────────────────────┘ hands out 1 2 4 5 6
//! ```
//!
//! Only (time, place) pairs wait, 16 bytes per record, so the memory is that of two rounds. A file
//! without rounds is sorted as one.
//!
//! A wrong time must neither end a round early for all others nor reach an analysis: records far
//! ahead of everything wait until others catch up with them, and are left out if none do; records
//! far behind are left out at once.

use pagewise_model::outliers::{self, Before, Pause, credible, end_of_credible, start_of_credible};
use pagewise_model::units::Nanos;
use std::ops::Range;

/// The position of a record: in the file, or in the buffer of unpacked records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place(u64);

const UNPACKED: u64 = 1 << 63;

impl Place {
    pub fn in_file(offset: usize) -> Self {
        Self(offset as u64)
    }

    pub fn unpacked(offset: u64) -> Self {
        Self(offset | UNPACKED)
    }

    /// The offset in the file, or the offset in the stream of unpacked bytes.
    pub fn offset(self) -> Result<usize, u64> {
        if self.0 & UNPACKED == 0 {
            Ok(usize::try_from(self.0).unwrap_or(usize::MAX))
        } else {
            Err(self.0 & !UNPACKED)
        }
    }
}

/// A record this far, in nanoseconds, ahead of all others waits for others: rings are drained many
/// times per second. A record this far behind the output is not one that a round could have
/// delayed.
const LEAP: u64 = 60_000_000_000;

/// Records that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pairs: Vec<(u64, Place)>,
    newest_at_last_round: u64,
    handed_out: Before,
    late: u64,
    outliers: Outliers,
}

/// Records that were left out because of their times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outliers {
    /// How many.
    pub count: u64,
    /// The time of one.
    pub example: Nanos,
    /// From the first to the last time of the records that were kept.
    pub kept: Range<Nanos>,
}

impl Outliers {
    /// What happened, for a reader; `None` if nothing was left out.
    #[must_use]
    pub fn description(&self) -> Option<String> {
        (self.count > 0).then(|| outliers::describe(self.count, self.example, self.kept.clone()))
    }

    fn add(&mut self, time: u64) {
        self.count += 1;
        self.example = Nanos(time);
    }
}

impl Waiting {
    /// Adds a record.
    #[inline]
    pub fn push(&mut self, time: u64, place: Place) {
        if time < self.handed_out.last {
            if self.handed_out.last - time > LEAP {
                return self.outliers.add(time);
            }
            self.late += 1;
        }
        self.pairs.push((time, place));
    }

    /// Ends a round. Returns how many records from the front of [`Self::pairs`] are due for output.
    pub fn finish_round(&mut self) -> usize {
        let limit = self.newest_at_last_round;
        self.sort();
        self.newest_at_last_round = self.newest();
        let due = self.pairs.partition_point(|&(time, _)| time <= limit);
        match self.handed_out.count {
            0 => due - self.leave_out_early(due),
            _ => due,
        }
    }

    /// Ends the file: all credible records are due.
    pub fn finish(&mut self) -> usize {
        self.sort();
        let end = match self.handed_out.count {
            0 => credible(&self.pairs, |pair| pair.0, Pause::TenTimes).end,
            _ => end_of_credible(&self.pairs, |pair| pair.0, Pause::TenTimes, self.handed_out),
        };
        for (time, _) in self.pairs.drain(end..) {
            self.outliers.add(time);
        }
        match self.handed_out.count {
            0 => end - self.leave_out_early(end),
            _ => end,
        }
    }

    /// Leaves out records that cannot be the beginning of the recording, of which `end` records are
    /// known.
    fn leave_out_early(&mut self, end: usize) -> usize {
        let pause = Pause::HundredTimes;
        let early = start_of_credible(&self.pairs, |pair| pair.0, pause, end);
        for (time, _) in self.pairs.drain(..early) {
            self.outliers.add(time);
        }
        early
    }

    /// The newest time that is not far ahead of all others.
    fn newest(&self) -> u64 {
        let doubtful = self.pairs.len() - (self.pairs.len() / 1_000).max(1).min(self.pairs.len());
        let (sure, doubtful) = self.pairs.split_at(doubtful);
        let mut newest = self
            .newest_at_last_round
            .max(sure.last().map_or(0, |pair| pair.0));
        for &(time, _) in doubtful {
            if newest > 0 && time.saturating_sub(newest) > LEAP {
                break;
            }
            newest = newest.max(time);
        }
        newest
    }

    /// Waiting records, oldest first up to what was last found due.
    pub fn pairs(&self) -> &[(u64, Place)] {
        &self.pairs
    }

    /// Removes the first `count` records, which were passed on.
    pub fn remove(&mut self, count: usize) {
        let handed_out = &self.pairs[..count];
        if let Some((first, last)) = handed_out.first().zip(handed_out.last()) {
            let known = &mut self.handed_out;
            if known.count == 0 {
                known.first = first.0;
            }
            known.last = known.last.max(last.0);
            known.count += count;
        }
        self.pairs.drain(..count);
    }

    /// The time of the newest record that was passed on.
    pub fn handed_out(&self) -> u64 {
        self.handed_out.last
    }

    /// Records that came after newer ones had been passed on.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Records that were left out because of their times.
    pub fn outliers(&self) -> Outliers {
        let kept = Nanos(self.handed_out.first)..Nanos(self.handed_out.last);
        Outliers {
            kept,
            ..self.outliers.clone()
        }
    }

    /// Stable, and fast on the long ascending stretches that rings yield.
    fn sort(&mut self) {
        self.pairs.sort_by_key(|&(time, _)| time);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_picture_above_is_what_happens() {
        let mut waiting = Waiting::default();
        let mut turn = |times: &[u64]| {
            for &time in times {
                waiting.push(time, Place::in_file(0));
            }
            let due = waiting.finish_round();
            let out: Vec<u64> = waiting.pairs()[..due].iter().map(|p| p.0).collect();
            waiting.remove(due);
            out
        };
        assert!(turn(&[1, 4, 2, 6]).is_empty());
        assert_eq!(turn(&[5, 9, 7, 8]), [1, 2, 4, 5, 6]);
        assert_eq!(turn(&[]), [7, 8, 9]);
    }

    /// Rounds of ten records, ten milliseconds apart, each 100 ms after the one before.
    fn steady(rounds: u64) -> Vec<Vec<u64>> {
        let start = 5_000_000_000_000;
        let round = |at: u64| {
            (0..10)
                .map(|i| start + at * 100_000_000 + i * 10_000_000)
                .collect()
        };
        (0..rounds).map(round).collect()
    }

    fn handed_out(rounds: &[Vec<u64>]) -> (Vec<u64>, Waiting) {
        let (mut waiting, mut out) = (Waiting::default(), Vec::new());
        let mut hand_out = |waiting: &mut Waiting, due: usize| {
            out.extend(waiting.pairs()[..due].iter().map(|pair| pair.0));
            waiting.remove(due);
        };
        for round in rounds {
            round
                .iter()
                .for_each(|&time| waiting.push(time, Place::in_file(0)));
            let due = waiting.finish_round();
            hand_out(&mut waiting, due);
        }
        let due = waiting.finish();
        hand_out(&mut waiting, due);
        (out, waiting)
    }

    #[test]
    fn one_impossible_time_is_left_out_alone() {
        let year = 31_536_000_000_000_000;
        for (round, time) in [
            (3, 300 * year),
            (0, 2 * year),
            (9, 2 * year),
            (5, 17),
            (0, 17),
        ] {
            let mut rounds = steady(10);
            rounds[round].push(time);
            let (out, waiting) = handed_out(&rounds);
            assert_eq!(out, steady(10).concat(), "{time} in round {round}");
            let outliers = waiting.outliers();
            assert_eq!((outliers.count, outliers.example), (1, Nanos(time)));
            assert_eq!(waiting.late(), 0);
            assert!(
                outliers
                    .description()
                    .is_some_and(|text| text.starts_with("1 record was left out"))
            );
        }
    }

    #[test]
    fn a_recording_may_pause_for_days() {
        let days = 2 * 86_400_000_000_000;
        let later = steady(3)
            .into_iter()
            .map(|round| round.iter().map(|t| t + days).collect());
        let rounds: Vec<Vec<u64>> = steady(3).into_iter().chain(later).collect();
        let (out, waiting) = handed_out(&rounds);
        assert_eq!((out, waiting.outliers().count), (rounds.concat(), 0));
        assert_eq!(waiting.outliers().description(), None);
    }

    #[test]
    fn a_time_a_minute_before_what_was_handed_out_cannot_be_right() {
        let mut waiting = Waiting::default();
        let last = 3 * LEAP;
        for time in [last, last + 1] {
            waiting.push(time, Place::in_file(0));
        }
        waiting.finish();
        waiting.remove(1);
        waiting.push(last - LEAP, Place::in_file(0));
        assert_eq!((waiting.late(), waiting.outliers().count), (1, 0));
        waiting.push(last - LEAP - 1, Place::in_file(0));
        assert_eq!((waiting.late(), waiting.outliers().count), (1, 1));
    }

    #[test]
    fn places_keep_their_kind() {
        assert_eq!(Place::in_file(7).offset(), Ok(7));
        assert_eq!(Place::unpacked(7).offset(), Err(7));
    }

    #[test]
    fn a_record_is_late_when_it_is_older_than_the_newest_handed_out() {
        let mut waiting = Waiting::default();
        for time in [1, 5, 9] {
            waiting.push(time, Place::in_file(0));
        }
        waiting.finish();
        waiting.remove(2);
        assert_eq!(waiting.handed_out(), 5);
        waiting.push(5, Place::in_file(0));
        assert_eq!(waiting.late(), 0, "of the same time");
        waiting.push(4, Place::in_file(0));
        assert_eq!(waiting.late(), 1, "older than one that has gone");
        waiting.finish();
        waiting.remove(1);
        assert_eq!(waiting.handed_out(), 5, "what came late sets nothing back");
    }

    #[test]
    fn a_round_hands_out_up_to_the_newest_of_the_round_before_whole() {
        let mut waiting = Waiting::default();
        let mut due = |times: &[u64]| {
            times
                .iter()
                .for_each(|&time| waiting.push(time, Place::in_file(0)));
            let due = waiting.finish_round();
            waiting.remove(due);
            due
        };
        assert_eq!(due(&[3, 3, 3]), 0);
        assert_eq!(due(&[4]), 3, "equal times go together");
        // A round that brings nothing newer passes on everything up to the round before it.
        assert_eq!(due(&[2]), 2);
    }
}
