//! The timetable of a capture: when paths are traced, and when only the roots.
//!
//! ```text
//! survey   root   paths        root  paths                    root  …
//! 0.5 s    62 ms  0.5 s        125 ms 1 s                     250 ms
//! ```
//!
//! Stretches with only the roots are spread over the run, since a program's faults change with its
//! phases, and take up a ninth of the time. Stretches grow, so that a long run spends little time
//! on changing filters.

use std::time::Duration;

/// What is traced for some time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stretch {
    /// All functions that may matter, to find the ones that do.
    Survey,
    /// Only the roots, to measure the cost of tracing the rest.
    RootOnly,
    /// The functions that matter.
    Paths,
}

/// Time with paths per time with only the roots.
const SHARE: u32 = 8;
const FIRST_PATHS: Duration = Duration::from_millis(500);
const LONGEST_PATHS: Duration = Duration::from_secs(16);
/// A stretch is at least this many times as long as the change of filters before it.
const CHANGE_FACTOR: u32 = 4;

/// Which stretch comes next, and how long it is.
#[derive(Clone, Debug)]
pub struct Schedule {
    survey: Duration,
    calibrates: bool,
    paths: Duration,
    current: Option<Stretch>,
}

impl Schedule {
    /// A timetable that starts with a survey of this length, or without one if it is zero.
    pub fn new(survey: Duration, calibrates: bool) -> Self {
        Self {
            survey,
            calibrates,
            paths: FIRST_PATHS,
            current: None,
        }
    }

    /// The next stretch and its length, `None` for the rest of the run. `change` is the time that
    /// the last change of filters took.
    pub fn next(&mut self, change: Duration) -> (Stretch, Option<Duration>) {
        let least = change * CHANGE_FACTOR;
        let (stretch, length) = match self.current {
            None if !self.survey.is_zero() => (Stretch::Survey, Some(self.survey)),
            None | Some(Stretch::Survey | Stretch::Paths) if self.calibrates => {
                (Stretch::RootOnly, Some((self.paths / SHARE).max(least)))
            }
            _ if !self.calibrates => (Stretch::Paths, None),
            _ => {
                let length = self.paths.max(least * SHARE);
                self.paths = (self.paths * 2).min(LONGEST_PATHS);
                (Stretch::Paths, Some(length))
            }
        };
        self.current = Some(stretch);
        (stretch, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Stretch::{Paths, RootOnly, Survey};

    fn first(schedule: &mut Schedule, count: usize) -> Vec<(Stretch, Option<u128>)> {
        let next = |_| {
            let (stretch, length) = schedule.next(Duration::ZERO);
            (stretch, length.map(|length| length.as_millis()))
        };
        (0..count).map(next).collect()
    }

    #[test]
    fn roots_alone_take_a_ninth_of_the_time() {
        let mut schedule = Schedule::new(Duration::from_millis(300), true);
        let expected = [
            (Survey, Some(300)),
            (RootOnly, Some(62)),
            (Paths, Some(500)),
            (RootOnly, Some(125)),
            (Paths, Some(1000)),
        ];
        assert_eq!(first(&mut schedule, 5), expected);
        let long = first(&mut schedule, 21);
        assert_eq!(long[20], (RootOnly, Some(2000)));
    }

    #[test]
    fn without_calibration_one_stretch_lasts() {
        let mut schedule = Schedule::new(Duration::from_millis(300), false);
        assert_eq!(
            first(&mut schedule, 2),
            [(Survey, Some(300)), (Paths, None)]
        );
        assert_eq!(
            first(&mut Schedule::new(Duration::ZERO, false), 1),
            [(Paths, None)]
        );
    }

    #[test]
    fn slow_changes_of_filters_lengthen_stretches() {
        let mut schedule = Schedule::new(Duration::ZERO, true);
        let slow = Duration::from_secs(1);
        assert_eq!(schedule.next(slow), (RootOnly, Some(4 * slow)));
        assert_eq!(schedule.next(slow), (Paths, Some(32 * slow)));
    }
}
