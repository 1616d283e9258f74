//! The answer in one or two sentences.

use super::diagnose::percent;
use pagewise_model::advice::Advice;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::proof::Proof;

/// The verdict: what is wrong and whether something can be done.
pub(super) fn verdict(findings: &Findings) -> String {
    match findings.diagnoses.first() {
        Some(gravest) if gravest.severity >= Severity::Costly => {
            format!("{} {}", trouble(gravest), remedy(findings))
        }
        _ if findings
            .advice
            .iter()
            .any(|advice| !advice.settings.0.is_empty()) =>
        {
            format!(
                "Memory management costs this program little. {}",
                remedy(findings)
            )
        }
        _ => "Nothing to gain here: memory management is not what slows this program down."
            .to_string(),
    }
}

fn trouble(gravest: &Diagnosis) -> String {
    match gravest.share_of_cpu {
        Some(share) => format!(
            "{}: this takes about {} of the CPU time.",
            gravest.headline,
            percent(share.value)
        ),
        None => format!("{}.", gravest.headline),
    }
}

fn remedy(findings: &Findings) -> String {
    if let Some(proof) = &findings.proof {
        return by_proof(proof, &findings.advice);
    }
    match findings.advice.first() {
        Some(advice) if !advice.settings.0.is_empty() => by_settings(advice),
        Some(_) => "No setting cures that; what can be done by hand stands below.".to_string(),
        None => "There is no setting to cure that.".to_string(),
    }
}

/// What the runs have shown takes the place of what was predicted.
fn by_proof(proof: &Proof, advice: &[Advice]) -> String {
    let Some(name) = &proof.winner else {
        return "The advised settings did not make it faster beyond doubt; see the proof."
            .to_string();
    };
    let settings = advice
        .iter()
        .find(|one| one.name() == *name)
        .map_or(1, |one| one.settings.0.len());
    let measured = proof.comparisons.iter().find(|one| one.arm == *name);
    match proof.confirmation.as_ref().or(measured) {
        Some(shown) => format!(
            "{}, no rebuild: proved {} times as fast in CPU time (95 % interval {} to {}).",
            count(settings),
            times(shown.cpu_speedup.value),
            times(shown.cpu_speedup.low),
            times(shown.cpu_speedup.high)
        ),
        None => format!("{}, no rebuild: proved faster.", count(settings)),
    }
}

fn count(settings: usize) -> String {
    match settings {
        1 => "One setting".to_string(),
        2 => "Two settings".to_string(),
        n => format!("{n} settings"),
    }
}

fn by_settings(advice: &Advice) -> String {
    let gain = advice.predicted_speedup;
    let settings = count(advice.settings.0.len());
    format!(
        "{settings}, no rebuild: about {} times as fast in CPU time (predicted {} to {}).",
        times(gain.value),
        times(gain.low),
        times(gain.high)
    )
}

/// A ratio in no more digits than its interval bears out: `3.2`, `31`.
fn times(ratio: f64) -> String {
    match ratio < 19.95 {
        true => format!("{ratio:.1}"),
        false => format!("{ratio:.0}"),
    }
}
