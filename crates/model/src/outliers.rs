//! Impossible times and weights: a flipped bit, a misread clock.
//!
//! A record that claims to be years away from all others would stretch every figure and every axis
//! measured from the first moment to the last. A recording may well pause for hours, but then many
//! records follow the pause: a process that continues runs, maps, exits.

use crate::units::Nanos;
use std::ops::Range;

/// With fewer records it is impossible to decide which of them are wrong.
const FEWEST: usize = 8;
/// Outliers are at most one in this many records, but one is always possible.
const ONE_IN: usize = 1_000;
/// A recording counts as at least this long, in nanoseconds, when a pause is compared with it.
const SHORTEST: u64 = 6_000_000_000;

/// Largest sum of a profile's weights, so that no partial sum overflows.
const LARGEST_SUM: u64 = 1 << 62;

/// The sum of a profile's weights while it is read.
#[derive(Clone, Copy, Debug, Default)]
pub struct WeightSum(u64);

impl WeightSum {
    /// Whether a sample may have this weight; if so, it is counted.
    #[inline]
    pub fn admits(&mut self, weight: u64) -> bool {
        let sum = self.0.saturating_add(weight);
        let admitted = sum <= LARGEST_SUM;
        if admitted {
            self.0 = sum;
        }
        admitted
    }

    /// Whether samples of all these weights may be.
    pub fn admits_all(mut self, mut weights: impl Iterator<Item = u64>) -> bool {
        weights.all(|weight| self.admits(weight))
    }
}

/// How many times longer than all the rest a pause must be for the few records after it to be
/// considered wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// For all kinds of records: a real pause is followed by more than one.
    TenTimes,
    /// For samples only: a real pause may be followed by a single one.
    HundredTimes,
}

impl Pause {
    /// Whether a gap is such a pause, given the duration of the rest.
    fn parts(self, gap: u64, rest: u64) -> bool {
        let times = match self {
            Self::TenTimes => 10,
            Self::HundredTimes => 100,
        };
        gap / times > rest.max(SHORTEST)
    }
}

/// The records before the times that are judged, all of them credible.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    /// How many records.
    pub count: usize,
    /// Time of the first.
    pub first: u64,
    /// Time of the last.
    pub last: u64,
}

/// The part of these sorted times that can be right. The times left out at either end are few, and
/// separated by a pause many times as long as everything kept.
#[must_use]
pub fn credible<T>(sorted: &[T], time: impl Fn(&T) -> u64, pause: Pause) -> Range<usize> {
    let most = most_of(sorted.len());
    let Some(low) = sorted.get(most).map(&time) else {
        return 0..sorted.len();
    };
    // Outliers at the other end must not make the rest look long.
    let before = Before {
        count: 0,
        first: low,
        last: low,
    };
    let end = end_of_credible(sorted, &time, pause, before);
    start_of_credible(sorted, &time, pause, end)..end
}

/// How many of these sorted times can be right, given those before.
#[must_use]
pub fn end_of_credible<T>(
    sorted: &[T],
    time: impl Fn(&T) -> u64,
    pause: Pause,
    before: Before,
) -> usize {
    let all = before.count + sorted.len();
    if all < FEWEST {
        return sorted.len();
    }
    let doubtful = sorted.len().saturating_sub(most_of(all));
    let mut last = doubtful
        .checked_sub(1)
        .map_or(before.last, |at| time(&sorted[at]));
    for (at, here) in sorted.iter().map(&time).enumerate().skip(doubtful) {
        if pause.parts(here.saturating_sub(last), last.saturating_sub(before.first)) {
            return at;
        }
        last = here;
    }
    sorted.len()
}

/// How many of these sorted times, `end` of which can be right, are too early.
#[must_use]
pub fn start_of_credible<T>(
    sorted: &[T],
    time: impl Fn(&T) -> u64,
    pause: Pause,
    end: usize,
) -> usize {
    let Some(last) = end.checked_sub(1).filter(|_| sorted.len() >= FEWEST) else {
        return 0;
    };
    let (last, most) = (time(&sorted[last]), most_of(sorted.len()).min(end - 1));
    let parts = |first: usize| {
        let (before, here) = (time(&sorted[first - 1]), time(&sorted[first]));
        pause.parts(here - before, last - here)
    };
    (1..=most).rev().find(|&first| parts(first)).unwrap_or(0)
}

/// How many of this many records may be outliers.
fn most_of(count: usize) -> usize {
    (count / ONE_IN).max(1)
}

/// What was left out, in words: the distance of the first of `count` outliers from all others.
#[must_use]
pub fn describe(count: u64, outlier: Nanos, kept: Range<Nanos>) -> String {
    let (distance, side) = match outlier < kept.start {
        true => ((kept.start - outlier).as_secs_f64(), "before"),
        false => ((outlier - kept.end).as_secs_f64(), "after"),
    };
    let (what, lies) = match count {
        1 => ("1 record was".to_owned(), "It lies"),
        _ => (format!("{count} records were"), "The first lies"),
    };
    format!(
        "{what} left out because of an impossible time. {lies} {distance:.0} s {side} all others, which span {:.1} s.",
        (kept.end - kept.start).as_secs_f64()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn kept(mut times: Vec<u64>) -> (Range<usize>, usize) {
        times.sort_unstable();
        (credible(&times, |&time| time, Pause::TenTimes), times.len())
    }

    #[test]
    fn one_record_years_away_is_left_out_at_either_end() {
        let steady = || (0..100_u64).map(|at| 5_000 * SECOND + at * SECOND / 50);
        assert_eq!(kept(steady().collect()), (0..100, 100));
        assert_eq!(
            kept(steady().chain([9_000_000_000 * SECOND]).collect()),
            (0..100, 101)
        );
        assert_eq!(kept(steady().chain([SECOND]).collect()), (1..101, 101));
        assert_eq!(kept(steady().chain([u64::MAX, 1]).collect()), (1..101, 102));
    }

    #[test]
    fn work_after_a_long_sleep_is_kept() {
        let woken = (0..3).map(|at| 90_000 * SECOND + at);
        let times: Vec<u64> = (0..100).map(|at| at * SECOND / 50).chain(woken).collect();
        assert_eq!(kept(times), (0..103, 103));
        // One record after a pause of moderate length is kept, too.
        let times: Vec<u64> = (0..100)
            .map(|at| at * SECOND / 5)
            .chain([199 * SECOND])
            .collect();
        assert_eq!(kept(times), (0..101, 101));
    }

    #[test]
    fn few_records_are_all_kept() {
        assert_eq!(kept(vec![1, 2, u64::MAX]), (0..3, 3));
        assert_eq!(kept(Vec::new()), (0..0, 0));
    }
}
