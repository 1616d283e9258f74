//! Time against memory: which settings are not beaten in both.

use serde::Serialize;

/// One setting's place.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point {
    /// Arm.
    pub arm: String,
    /// Elapsed seconds, typical.
    pub seconds: f64,
    /// Peak resident bytes, typical.
    pub peak_bytes: f64,
    /// Whether no other setting is better in one and no worse in the other.
    pub on_front: bool,
}

/// Differences below this share are noise: they beat nobody.
const SAME: f64 = 0.01;

/// Marks the points that no other beats.
pub fn front(points: &mut [Point]) {
    let beaten: Vec<bool> = points
        .iter()
        .map(|point| points.iter().any(|other| beats(other, point)))
        .collect();
    for (point, beaten) in points.iter_mut().zip(beaten) {
        point.on_front = !beaten;
    }
}

/// Better in one beyond noise, and no worse in the other.
fn beats(a: &Point, b: &Point) -> bool {
    let better = |a: f64, b: f64| a < b * (1.0 - SAME);
    let no_worse = |a: f64, b: f64| a <= b;
    (better(a.seconds, b.seconds) && no_worse(a.peak_bytes, b.peak_bytes))
        || (better(a.peak_bytes, b.peak_bytes) && no_worse(a.seconds, b.seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(places: &[(f64, f64)]) -> Vec<bool> {
        let point = |&(seconds, peak_bytes): &(f64, f64)| Point {
            arm: String::new(),
            seconds,
            peak_bytes,
            on_front: false,
        };
        let mut points: Vec<Point> = places.iter().map(point).collect();
        front(&mut points);
        points.into_iter().map(|point| point.on_front).collect()
    }

    #[test]
    fn only_unbeaten_points_are_on_the_front() {
        // Slow and small, fast and large, in between, and one beaten by that.
        let places = [(8.0, 10.0), (1.0, 80.0), (4.0, 20.0), (5.0, 30.0)];
        assert_eq!(marked(&places), [true, true, true, false]);
    }

    #[test]
    fn points_that_differ_by_noise_do_not_beat_each_other() {
        assert_eq!(marked(&[(1.0, 10.0), (1.001, 10.01)]), [true, true]);
    }
}
