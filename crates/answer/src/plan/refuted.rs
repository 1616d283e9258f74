//! Advice that runs of the user's own command refuted.

use super::phrases;
use pagewise_model::advice::Advice;
use pagewise_model::proof::{Proof, Verdict};

/// A ratio in one run from which it shows a gain: runs of one program differ by less.
const GAIN: f64 = 1.1;

/// Takes settings that did not help out of the advice. Returns a note that names them, unless the
/// command failed with them, which the proof says.
pub(super) fn take_out(advice: &mut Vec<Advice>, proof: &Proof) -> Option<String> {
    let fails = |name: &str| {
        let mut arms = proof.arms.iter();
        arms.any(|arm| arm.failed.is_some() && arm.name == name)
    };
    let mut refuted = Vec::new();
    advice.retain(|one| {
        let name = one.name();
        let has_settings = !one.settings.0.is_empty();
        let is_refuted = has_settings && is_refuted(proof, &name);
        if is_refuted {
            refuted.push(format!("'{name}'"));
        }
        !(is_refuted || has_settings && fails(&name))
    });
    (!refuted.is_empty()).then(|| phrases::refuted(refuted.join(", ")))
}

/// Whether runs showed that an arm does not help.
fn is_refuted(proof: &Proof, name: &str) -> bool {
    let confirmed = proof.confirmation.as_ref().filter(|one| one.arm == name);
    let compared = proof.comparisons.iter().find(|one| one.arm == name);
    let Some(found) = confirmed.or(compared) else {
        return false;
    };
    match found.verdict {
        Verdict::Slower | Verdict::NoDifference | Verdict::NotReached => true,
        // Others may have gained more; that alone refutes nothing.
        Verdict::TriedOnce => {
            !(found.cpu_speedup.value >= GAIN || found.wall_speedup.value >= GAIN)
        }
        Verdict::Faster | Verdict::TooMuchMemory | Verdict::Undecided => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_compare::proof::not_run;
    use pagewise_model::advice::{Risk, Setting, Settings};
    use pagewise_model::proof::Comparison;
    use pagewise_model::units::{Bytes, Estimate};

    fn advice(rule: &str) -> Advice {
        Advice {
            rule: rule.to_owned(),
            cures: Vec::new(),
            headline: String::new(),
            reason: String::new(),
            settings: Settings(vec![Setting::Unset { name: "A".into() }]),
            manual: None,
            predicted_speedup: Estimate::exact(2.0),
            faults_avoided: 0.0,
            rss_price: Bytes(0),
            risk: Risk::Low,
            caveat: None,
        }
    }

    fn left(verdict: Verdict) -> (Vec<String>, Option<String>) {
        left_by(verdict, 1.0)
    }

    fn left_by(verdict: Verdict, gain: f64) -> (Vec<String>, Option<String>) {
        let mut proof = not_run("");
        proof.comparisons = vec![Comparison {
            arm: "thresholds".to_owned(),
            wall_speedup: Estimate::exact(1.0),
            cpu_speedup: Estimate::exact(gain),
            fault_ratio: Estimate::exact(1.0),
            rss_change_bytes: 0.0,
            p_adjusted: 1.0,
            pairs: 1,
            verdict,
        }];
        let mut all = vec![advice("glibc.thresholds"), advice("glibc.other")];
        let note = take_out(&mut all, &proof);
        (all.into_iter().map(|one| one.name()).collect(), note)
    }

    #[test]
    fn advice_that_another_setting_surpasses_is_not_refuted() {
        assert_eq!(left_by(Verdict::TriedOnce, 12.0).0, ["thresholds", "other"]);
    }

    #[test]
    fn a_trial_that_refutes_advice_takes_it_out() {
        for verdict in [
            Verdict::TriedOnce,
            Verdict::NotReached,
            Verdict::NoDifference,
        ] {
            let (names, note) = left(verdict);
            assert_eq!(names, ["other"]);
            assert!(note.is_some_and(|note| note.contains("'thresholds'")));
        }
        for verdict in [Verdict::Faster, Verdict::Undecided] {
            assert_eq!(
                left(verdict),
                (vec!["thresholds".into(), "other".into()], None)
            );
        }
    }
}
