//! From findings to an answer: what is wrong, what to change, what to report first.
//!
//! Symptoms ([`symptom`]) are derived from the figures ([`symptoms`]), described in plain words
//! ([`diagnose`], [`mod@evidence`], [`mod@verdict`]), and matched with rules that turn them into
//! advice ([`advise`]) with a predicted gain ([`crate::gain`]). Rules and words are data,
//! `crates/answer/rules/*.toml` ([`rules`], [`wording`], [`phrases`]). If a prediction is too small to
//! matter, nothing is advised: a setting that does not help can hurt.

mod activity;
mod advise;
mod brief;
mod callers;
mod case;
mod diagnose;
mod elapsed;
mod evidence;
mod filling;
mod fitting;
mod grade;
mod heap_limit;
mod kernel;
mod known;
mod leads;
mod numa;
mod open;
mod overridden;
mod own_settings;
mod phrases;
mod prediction;
mod reads;
mod refuted;
mod rules;
mod sparse;
mod starts;
mod symptom;
mod symptoms;
mod trials;
mod verdict;
mod waits;
mod wording;
mod works;
mod writers;

pub use reads::is_read_at_random;
pub use rules::{Rule, Rules};
pub use symptom::Symptom;

use crate::{conservation, page_sizes};
use pagewise_model::advice::Advice;
use pagewise_model::findings::Findings;
use pagewise_model::proof::Proof;
use pagewise_model::recording::Surroundings;

/// Completes findings: fills `diagnoses`, `advice` and `verdict` from all other parts. A note on
/// page sizes is kept, after all others.
#[must_use]
pub fn conclude(mut findings: Findings, rules: &Rules, around: &Surroundings) -> Findings {
    let symptoms = symptoms::cases(&findings);
    findings.advice = advise::advice(&findings, &symptoms, rules, around);
    findings.diagnoses.retain(page_sizes::is_note);
    let found = diagnose::diagnoses(&findings, &symptoms);
    let notes = std::mem::replace(&mut findings.diagnoses, found);
    conservation::enforce(&mut findings);
    leads::order(&mut findings);
    findings.diagnoses.extend(notes);
    let trials = trials::likely(&findings, &symptoms, rules, around);
    findings.verdict = verdict::verdict(&findings, &trials);
    findings
}

/// What a proof tries in addition to the advice, in the order of promise: everything that can be applied
/// to the program, whether or not a symptom asks for it.
#[must_use]
pub fn trials(findings: &Findings, rules: &Rules, around: &Surroundings) -> Vec<Advice> {
    trials::all(findings, &symptoms::cases(findings), rules, around)
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
    }
    findings.proof = Some(proof);
    findings.verdict = verdict::verdict(&findings, &[]);
    findings
}

#[cfg(test)]
pub(crate) mod tests;
