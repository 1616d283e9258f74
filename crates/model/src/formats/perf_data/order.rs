//! Records in time order, with bounded memory.
//!
//! Rings are drained one after the other, so a file holds stretches of each CPU's records. perf
//! writes `FINISHED_ROUND` after each turn through the rings, which guarantees that what comes
//! later is newer than everything that was there at the end of the round *before*:
//!
//! ```text
//! cpu0: 1 4 | cpu1: 2 6 | ROUND | cpu0: 5 9 | cpu1: 7 8 | ROUND | …
//!                 newest: 6 ──────────────────────────────┘ hands out 1 2 4 5 6
//! ```
//!
//! Only (time, place) pairs wait, 16 bytes a record, so the memory is that of two rounds. A file
//! without rounds is sorted as one.

/// Where a record lies: in the file, or in the buffer of unpacked records.
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

/// Records that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    pairs: Vec<(u64, Place)>,
    newest: u64,
    newest_at_last_round: u64,
    handed_out: u64,
    late: u64,
}

impl Waiting {
    /// Adds a record.
    #[inline]
    pub fn push(&mut self, time: u64, place: Place) {
        self.newest = self.newest.max(time);
        self.late += u64::from(time < self.handed_out);
        self.pairs.push((time, place));
    }

    /// Ends a round. Returns how many records from the front of [`Self::pairs`] are due.
    pub fn finish_round(&mut self) -> usize {
        let limit = self.newest_at_last_round;
        self.newest_at_last_round = self.newest;
        self.sort();
        self.pairs.partition_point(|&(time, _)| time <= limit)
    }

    /// Ends the file: all are due.
    pub fn finish(&mut self) -> usize {
        self.sort();
        self.pairs.len()
    }

    /// Waiting records, oldest first up to what was last found due.
    pub fn pairs(&self) -> &[(u64, Place)] {
        &self.pairs
    }

    /// Forgets the first `count` records, which were handed out.
    pub fn remove(&mut self, count: usize) {
        if let Some(last) = count.checked_sub(1).and_then(|last| self.pairs.get(last)) {
            self.handed_out = self.handed_out.max(last.0);
        }
        self.pairs.drain(..count);
    }

    /// The time of the newest record that was handed out.
    pub fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Records that came after newer ones had been handed out.
    pub fn late(&self) -> u64 {
        self.late
    }

    /// Stable, and fast on the long ascending stretches that rings give.
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
        // A round that brings nothing newer hands out all up to the round before it.
        assert_eq!(due(&[2]), 2);
    }
}
