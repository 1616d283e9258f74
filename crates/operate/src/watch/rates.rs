//! Rates between readings, as rows of a table.

use pagewise_model::timeline::TimelinePoint;
use pagewise_model::units::Nanos;
use pagewise_model::watch::Row;

/// A rate needs a longer time than one clock tick of the counters: shorter times would turn a few
/// faults into billions per second.
const SHORTEST_STRETCH: Nanos = Nanos(10_000_000);

/// The points from which rates are computed.
#[derive(Debug, Default)]
pub struct Rates {
    /// The newest point, and the newest one that was long enough before it.
    newest: Option<TimelinePoint>,
    base: Option<TimelinePoint>,
}

impl Rates {
    /// Whether there has been no row yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.newest.is_none()
    }

    /// The row of `point`, the next in time. Rates are 0 if there is no point long enough before
    /// it.
    pub fn row(&mut self, point: &TimelinePoint) -> Row {
        let is_before = |before: &&TimelinePoint| point.time - before.time >= SHORTEST_STRETCH;
        let base = [self.newest, self.base];
        let base = base.iter().flatten().find(is_before).copied();
        self.base = base.or(self.base);
        self.newest = Some(*point);
        Row::between(base.as_ref().unwrap_or(point), point)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_told_only_over_a_stretch_that_can_hold_them() {
        let at = |time: u64, minor_faults: u64| TimelinePoint {
            time: Nanos(time),
            minor_faults,
            ..TimelinePoint::default()
        };
        let mut rates = Rates::default();
        let mut rate = |time, faults| rates.row(&at(time, faults)).minor_faults_per_s;
        // A microsecond after the start: 1,900 faults are not a rate of 1.9·10⁹.
        assert_eq!((rate(0, 0), rate(1_000, 1_900)), (0.0, 0.0));
        assert!((rate(100_000_000, 11_900) - 100_001.0).abs() < 1e-3);
        // The end, just after a reading: the time before it counts too.
        assert!((rate(100_001_000, 11_901) - 100_010.0).abs() < 1e-3);
        assert!((rate(200_001_000, 21_901) - 100_000.0).abs() < 1e-3);
    }
}
