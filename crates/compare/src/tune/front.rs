//! Time against memory: the settings that no other beats in both.

use pagewise_model::tuning::Point;

/// Differences below this share are noise, and do not count.
const SAME: f64 = 0.01;

/// Marks the points that no other beats: from the fastest on, those that need less memory than all
/// faster ones.
pub fn front(points: &mut [Point]) {
    let mut order: Vec<usize> = (0..points.len())
        .filter(|&at| points[at].told_apart)
        .collect();
    order.sort_by(|&a, &b| points[a].seconds.total_cmp(&points[b].seconds));
    let mut least = f64::MAX;
    for at in order {
        points[at].on_front = points[at].peak_bytes < least * (1.0 - SAME);
        least = least.min(points[at].peak_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(places: &[(f64, f64)]) -> Vec<bool> {
        let point = |&(seconds, peak_bytes): &(f64, f64)| Point {
            arm: String::new(),
            seconds,
            peak_bytes,
            told_apart: true,
            on_front: false,
        };
        let mut points: Vec<Point> = places.iter().map(point).collect();
        front(&mut points);
        points.into_iter().map(|point| point.on_front).collect()
    }

    #[test]
    fn only_unbeaten_points_are_on_the_front() {
        // Slow and small, fast and large, in between, and one beaten by the latter.
        let places = [(8.0, 10.0), (1.0, 80.0), (4.0, 20.0), (5.0, 30.0)];
        assert_eq!(marked(&places), [true, true, true, false]);
    }

    #[test]
    fn less_memory_by_noise_alone_is_no_merit() {
        assert_eq!(marked(&[(1.0, 10.0), (1.001, 9.99)]), [true, false]);
    }

    #[test]
    fn points_that_cannot_be_told_from_the_baseline_stay_out() {
        let point = |seconds, told_apart| Point {
            arm: String::new(),
            seconds,
            peak_bytes: 1.0,
            told_apart,
            on_front: false,
        };
        let mut points = vec![point(1.0, true), point(0.9, false)];
        front(&mut points);
        assert!(points[0].on_front && !points[1].on_front);
    }
}
