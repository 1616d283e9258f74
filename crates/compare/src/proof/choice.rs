//! Which of several compared settings to choose.

use crate::{Criteria, faster_by};
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::units::Estimate;

/// The best arm that is certainly faster.
#[must_use]
pub fn best<'a>(comparisons: &'a [Comparison], criteria: &Criteria) -> Option<&'a Comparison> {
    // Each is faster for certain, so the middle of its interval tells by how much.
    highest(comparisons, criteria, Verdict::Faster, |gain| gain.value)
}

/// The best arm, or if none is certain, the most promising one so far: the one whose interval begins
/// highest. Fresh runs must confirm it; since they are of one arm chosen in advance, they need no
/// correction for multiple tests.
#[must_use]
pub fn most_promising<'a>(
    comparisons: &'a [Comparison],
    criteria: &Criteria,
) -> Option<&'a Comparison> {
    let promising = || highest(comparisons, criteria, Verdict::Undecided, |gain| gain.low);
    best(comparisons, criteria).or_else(promising)
}

/// Arms with this part of the highest gain or more are alike.
const ALIKE: f64 = 0.95;

/// The arm with the highest gain among those with this verdict and an interval above 1; of arms that
/// are alike the first, since arms come in the order of their risk.
fn highest<'a>(
    comparisons: &'a [Comparison],
    criteria: &Criteria,
    verdict: Verdict,
    gain: fn(&Estimate) -> f64,
) -> Option<&'a Comparison> {
    let speed_up = |one: &Comparison| faster_by(one, criteria).map(|clock| *clock.speed_up(one));
    let fitting = comparisons.iter().filter(|one| one.verdict == verdict);
    let gains = fitting.filter_map(|one| Some((one, speed_up(one)?)));
    let gains: Vec<_> = gains.filter(|(_, gain)| gain.low > 1.0).collect();
    let most = gains.iter().map(|(_, of)| gain(of)).fold(0.0, f64::max);
    let mut alike = gains.into_iter();
    alike
        .find(|(_, of)| gain(of) >= ALIKE * most)
        .map(|(one, _)| one)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{compare, correct_for_many};
    use pagewise_model::run::RunCost;
    use pagewise_model::units::Nanos;

    #[test]
    fn what_looks_best_is_not_proved_before_it_is_confirmed() {
        let criteria = Criteria {
            fewer_faults: false,
            ..Criteria::default()
        };
        let runs = |seconds: [f64; 3]| {
            seconds.map(|wall| RunCost {
                wall: Nanos::from_secs_f64(wall),
                user: Nanos::from_secs_f64(wall),
                ..RunCost::default()
            })
        };
        let baseline = runs([2.0, 2.01, 1.99]);
        let arm = |name: &str, speed: f64| {
            let faster = runs([2.0 / speed, 2.0 / speed, 2.01 / speed]);
            compare(name, &baseline, &faster, &criteria)
        };
        let mut three = vec![arm("good", 2.0), arm("best", 3.0), arm("worse", 0.5)];
        correct_for_many(&mut three, &criteria);
        assert_eq!(best(&three, &criteria), None);
        let chosen = most_promising(&three, &criteria).map(|one| one.arm.as_str());
        assert_eq!(chosen, Some("best"));
        assert_eq!(most_promising(&three[2..], &criteria), None);
    }

    #[test]
    fn the_faster_certain_arm_wins_or_the_first_of_equals() {
        let criteria = Criteria {
            fewer_faults: false,
            ..Criteria::default()
        };
        let arm = |name: &str, value: f64, low: f64| {
            let gain = Estimate {
                value,
                low,
                high: value + 0.2,
            };
            Comparison {
                cpu_speedup: gain,
                wall_speedup: gain,
                verdict: Verdict::Faster,
                ..compare(name, &[], &[], &criteria)
            }
        };
        let chosen = |arms: [Comparison; 2]| best(&arms, &criteria).map(|one| one.arm.clone());
        let narrow = || arm("thresholds", 6.97, 6.91);
        assert_eq!(
            chosen([narrow(), arm("allocator", 7.89, 6.64)]).as_deref(),
            Some("allocator")
        );
        assert_eq!(
            chosen([narrow(), arm("allocator", 7.2, 7.1)]).as_deref(),
            Some("thresholds")
        );
    }
}
