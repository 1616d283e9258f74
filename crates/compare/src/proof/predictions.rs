//! Whether predictions were right: reported for each measured setting, whatever the result.

use crate::FEWEST_PAIRS;
use pagewise_model::advice::Advice;
use pagewise_model::proof::{Comparison, Proof, Verdict};
use pagewise_model::quantity::shown_factor;
use pagewise_model::ratio::Ratio;

/// Adds to the summary whether the prediction reported there was right, and to the notes the same
/// for the other settings.
pub fn judge(proof: &mut Proof, advice: &[Advice]) {
    let measured = |name: &str| {
        let again = proof.confirmation.as_ref().filter(|one| one.arm == name);
        again.or_else(|| proof.comparisons.iter().find(|one| one.arm == name))
    };
    let mut message = Vec::new();
    for advice in advice {
        let name = advice.name();
        if let Some(words) = measured(&name).and_then(|found| words(advice, found)) {
            message.push((name, words));
        }
    }
    let main = match (&proof.winner, message.as_slice()) {
        (Some(winner), message) => message.iter().position(|(name, _)| name == winner),
        (None, [_only]) => Some(0),
        (None, _) => None,
    };
    for (at, (name, words)) in message.into_iter().enumerate() {
        match Some(at) == main {
            true => proof.summary = format!("{} {words}", proof.summary),
            false => proof.notes.push(format!("'{name}': {words}")),
        }
    }
}

/// "The prediction failed: ×3.2 [2.8, 3.6] was predicted, ×1.4 [1.3, 1.5] measured in CPU time."
fn words(advice: &Advice, found: &Comparison) -> Option<String> {
    let predicted = advice.predicted_speedup;
    let measured = found.cpu_speedup;
    if found.pairs < FEWEST_PAIRS && found.verdict != Verdict::Faster {
        return None;
    }
    // An end that is not shown bounds nothing.
    let (at_least, at_most) = match Ratio::from_estimate(&predicted) {
        Ratio::AtLeast(least) => (least, f64::INFINITY),
        Ratio::AtMost(most) => (0.0, most),
        Ratio::Measured(_) | Ratio::Unknown => (predicted.low, predicted.high),
    };
    let held = at_least <= measured.high && measured.low <= at_most;
    let (expected, came) = (shown_factor(&predicted)?, shown_factor(&measured)?);
    Some(match held {
        true => {
            format!("The prediction held: {expected} was predicted, {came} measured in CPU time.")
        }
        false => {
            format!("The prediction failed: {expected} was predicted, {came} measured in CPU time.")
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::advice::{Setting, Settings};
    use pagewise_model::units::{Bytes, Estimate};

    fn advice(predicted: Estimate) -> Advice {
        Advice {
            rule: "x".to_owned(),
            headline: "x".to_owned(),
            reason: String::new(),
            settings: Settings(vec![Setting::Env {
                name: "X".to_owned(),
                value: "1".to_owned(),
            }]),
            manual: None,
            predicted_speedup: predicted,
            faults_avoided: 0.5,
            rss_price: Bytes(0),
            risk: pagewise_model::advice::Risk::Low,
            caveat: None,
            cures: Vec::new(),
        }
    }

    fn estimate(low: f64, high: f64) -> Estimate {
        Estimate {
            value: f64::midpoint(low, high),
            low,
            high,
        }
    }

    fn judged(low: f64, high: f64, pairs: u32, winner: bool) -> Proof {
        judged_against(estimate(2.8, 3.6), low, high, pairs, winner)
    }

    fn judged_against(predicted: Estimate, low: f64, high: f64, pairs: u32, winner: bool) -> Proof {
        let advice = advice(predicted);
        let mut proof = Proof {
            arms: Vec::new(),
            comparisons: vec![Comparison {
                arm: advice.name(),
                wall_speedup: estimate(low, high),
                cpu_speedup: estimate(low, high),
                fault_ratio: Estimate::exact(0.1),
                rss_change_bytes: 0.0,
                p_adjusted: 0.01,
                pairs,
                verdict: if winner {
                    Verdict::Faster
                } else {
                    Verdict::NoDifference
                },
            }],
            winner: winner.then(|| advice.name()),
            confirmation: None,
            summary: "Summary.".to_owned(),
            notes: Vec::new(),
        };
        judge(&mut proof, &[advice]);
        proof
    }

    #[test]
    fn a_prediction_that_failed_stands_where_one_that_held_does() {
        let summary = |low, high, pairs, winner| judged(low, high, pairs, winner).summary;
        assert!(summary(2.9, 3.1, 8, true).starts_with("Summary. The prediction held: "));
        assert!(summary(1.3, 1.5, 8, true).starts_with("Summary. The prediction failed: "));
        assert!(summary(0.99, 1.01, 8, false).starts_with("Summary. The prediction failed: "));
        assert_eq!(summary(0.99, 1.01, 3, false), "Summary.");
        assert_eq!(summary(0.0, f64::MAX, 8, false), "Summary.");
    }

    #[test]
    fn a_prediction_without_an_upper_end_can_fail_too() {
        let summary = |low, high| judged_against(estimate(4.5, 75.0), low, high, 8, true).summary;
        assert_eq!(
            summary(6.0, 17.0),
            "Summary. The prediction held: more than ×4.5 was predicted, ×11.5 [6.0, 17.0] \
             measured in CPU time."
        );
        assert!(summary(1.1, 1.3).starts_with("Summary. The prediction failed: more than ×4.5"));
        // Beyond the model's own upper end, which was not shown.
        assert!(summary(190.0, 200.0).starts_with("Summary. The prediction held: more than ×4.5"));
    }
}
