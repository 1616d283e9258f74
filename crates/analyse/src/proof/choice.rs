//! Which of several compared settings to choose.

use crate::compare::{Clock, Criteria, faster_by};
use pagewise_model::proof::{Comparison, Verdict};

/// The best arm that is certainly faster: the one whose interval begins highest.
#[must_use]
pub fn best<'a>(comparisons: &'a [Comparison], criteria: &Criteria) -> Option<&'a Comparison> {
    highest(comparisons, criteria, Verdict::Faster)
}

/// The best arm, or if none is certain, the most promising one so far. Fresh runs must confirm it;
/// since they are of one arm chosen in advance, they need no correction for multiple tests.
#[must_use]
pub fn most_promising<'a>(
    comparisons: &'a [Comparison],
    criteria: &Criteria,
) -> Option<&'a Comparison> {
    best(comparisons, criteria).or_else(|| highest(comparisons, criteria, Verdict::Undecided))
}

/// Arms whose intervals begin at this part of the highest start or above are alike.
const ALIKE: f64 = 0.97;

/// The arm with the highest interval start among those with this verdict and an interval above 1; of
/// arms that are alike the first, since arms come in the order of their risk.
fn highest<'a>(
    comparisons: &'a [Comparison],
    criteria: &Criteria,
    verdict: Verdict,
) -> Option<&'a Comparison> {
    let floor = |comparison: &&Comparison| match faster_by(comparison, criteria) {
        Some(Clock::Wall) => comparison.wall_speedup.low,
        Some(Clock::Cpu) => comparison.cpu_speedup.low,
        None => 0.0,
    };
    let fitting = || {
        let of_verdict = comparisons.iter().filter(|one| one.verdict == verdict);
        of_verdict.filter(|one| floor(one) > 1.0)
    };
    let most = fitting().map(|one| floor(&one)).fold(0.0, f64::max);
    fitting().find(|one| floor(one) >= ALIKE * most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{compare, correct_for_many};
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
}
