//! The answer in one or two sentences.

use super::diagnose::percent;
use crate::compare::{Criteria, promised};
use pagewise_model::advice::Advice;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::proof::{Comparison, Proof, Verdict};

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
    // A proof that did not run says why, and takes no prediction's place.
    if let Some(proof) = findings
        .proof
        .as_ref()
        .filter(|proof| !proof.comparisons.is_empty())
    {
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
        return unproved(proof);
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

/// What runs that proved nothing have shown all the same.
fn unproved(proof: &Proof) -> String {
    let tried: Vec<&Comparison> = proof.comparisons.iter().filter(|c| c.pairs > 0).collect();
    let arms = tried.len();
    let likely = tried
        .iter()
        .filter_map(|one| promised(one, arms, &Criteria::default()).map(|words| (one, words)))
        .max_by(|(a, _), (b, _)| a.cpu_speedup.value.total_cmp(&b.cpu_speedup.value));
    let settled = |one: &&Comparison| one.verdict != Verdict::Undecided;
    match likely {
        _ if tried.is_empty() => proof.summary.clone(),
        _ if tried.iter().all(|one| one.verdict == Verdict::NotReached) => {
            "The advised settings do not reach this program, as a trial run showed.".to_string()
        }
        Some((one, words)) => format!("With '{}' it is {words}.", one.arm),
        None if tried.iter().all(settled) => {
            "The advised settings did not make it faster; see the proof.".to_string()
        }
        None => {
            "Whether the advised settings make it faster stays open; see the proof.".to_string()
        }
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
    match ratio {
        ratio if !(0.0..1e6).contains(&ratio) => "any number of".to_string(),
        ratio if ratio < 19.95 => format!("{ratio:.1}"),
        ratio => format!("{ratio:.0}"),
    }
}
