//! From findings to an answer: what is wrong, what to change, what to report first.
//!
//! Symptoms ([`symptom`]) are derived from the figures ([`symptoms`]), described in plain words
//! ([`diagnose`], [`mod@evidence`], [`mod@verdict`]), and matched with rules that turn them into
//! advice ([`advise`]) with a predicted gain ([`crate::gain`]). Rules and words are data,
//! `crates/answer/rules/*.toml` ([`rules`], [`wording`], [`say`]). If a prediction is too small to
//! matter, nothing is advised: a setting that does not help can hurt.

mod advise;
mod callers;
mod case;
mod diagnose;
mod doing;
mod elapsed;
mod evidence;
mod filling;
mod fitting;
mod grade;
mod kernel;
mod numa;
mod open;
mod overridden;
mod own_settings;
mod prediction;
mod reads;
mod refuted;
mod rules;
mod say;
mod symptom;
mod symptoms;
mod trials;
mod verdict;
mod waits;
mod wording;
mod works;

pub use reads::is_read_at_random;
pub use rules::{Rule, Rules};
pub use symptom::Symptom;

use crate::{conservation, page_sizes};
use pagewise_model::advice::Advice;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::proof::Proof;
use pagewise_model::recording::Surroundings;

/// Completes findings: fills `diagnoses`, `advice` and `verdict` from all other parts. A note on
/// page sizes is kept, after all others.
#[must_use]
pub fn conclude(mut findings: Findings, rules: &Rules, around: &Surroundings) -> Findings {
    let symptoms = symptoms::of(&findings);
    findings.advice = advise::advice(&findings, &symptoms, rules, around);
    findings.diagnoses.retain(page_sizes::is_note);
    let found = diagnose::diagnoses(&findings, &symptoms);
    let notes = std::mem::replace(&mut findings.diagnoses, found);
    conservation::enforce(&mut findings);
    lead_with_the_cured(&mut findings);
    findings.diagnoses.extend(notes);
    let trials = trials::likely(&findings, &symptoms, rules, around);
    findings.verdict = verdict::verdict(&findings, &trials);
    findings
}

/// What a proof tries in addition to the advice, in the order of promise: everything that can be applied
/// to the program, whether or not a symptom asks for it.
#[must_use]
pub fn trials(findings: &Findings, rules: &Rules, around: &Surroundings) -> Vec<Advice> {
    trials::all(findings, &symptoms::of(findings), rules, around)
}

/// Findings that cost at least this share of the largest are about as large: shares of one program differ
/// as much between two runs on a busy machine.
const LIKE_MOST: f64 = 0.75;

/// Moves the finding that the best setting fixes to the front where it is about as large as the
/// first one, so that headline and advice are about the same thing.
fn lead_with_the_cured(findings: &mut Findings) {
    let is_killed = |one: &Diagnosis| one.id == Symptom::Killed.id();
    if findings.diagnoses.first().is_some_and(is_killed) {
        return;
    }
    let Some(best) = findings
        .advice
        .first()
        .filter(|best| !best.settings.0.is_empty())
    else {
        return;
    };
    let costly = |one: &Diagnosis| one.severity >= Severity::Costly;
    let any_costly = findings.diagnoses.iter().any(costly);
    let lost = |one: &Diagnosis| grade::at_least(findings, one);
    let most = findings.diagnoses.first().map_or(0.0, lost);
    let is_cured = |one: &Diagnosis| {
        best.cures.contains(&one.id) && costly(one) == any_costly && lost(one) >= LIKE_MOST * most
    };
    if let Some(at) = findings.diagnoses.iter().position(is_cured) {
        findings.diagnoses[..=at].rotate_right(1);
    }
}

/// The same findings with the results of runs with and without the advice. What won comes first;
/// settings that the runs refuted are no longer advised.
#[must_use]
pub fn proved(mut findings: Findings, mut proof: Proof) -> Findings {
    let refuted = refuted::take_out(&mut findings.advice, &proof);
    proof.notes.extend(refuted);
    if let Some(won) = proof.winner.as_ref()
        && let Some(at) = findings.advice.iter().position(|one| one.name() == *won)
    {
        findings.advice[..=at].rotate_right(1);
        lead_with_the_cured(&mut findings);
    }
    findings.proof = Some(proof);
    findings.verdict = verdict::verdict(&findings, &[]);
    findings
}

#[cfg(test)]
pub(crate) mod tests;
