//! Advice that only runs of the user's own command can decide about.

use super::Surroundings;
use super::advise::from_rule;
use super::callers::{WORTH_TRYING, runtimes};
use super::case::{Case, Owner, plain};
use super::own_settings;
use super::rules::{Rule, Rules};
use super::symptom::Symptom;
use pagewise_model::advice::Advice;
use pagewise_model::findings::Findings;
use pagewise_model::units::Estimate;
use std::collections::BTreeSet;

/// Advice that may help much or do harm, or whose symptom was not seen for certain. Advice for symptoms
/// that were seen comes first.
pub(super) fn likely(
    findings: &Findings,
    symptoms: &[Case],
    rules: &Rules,
    around: &Surroundings,
) -> Vec<Advice> {
    let mut in_doubt = runtimes(findings);
    in_doubt.extend(zeroing(findings));
    let is_advised = |rule: &Rule| findings.advice.iter().any(|one| one.rule == rule.id);
    let untold = || rules.0.iter().filter(|rule| !is_advised(rule));
    let mut trials: Vec<Advice> = untold()
        .filter_map(|rule| from_rule(findings, symptoms, rule, around))
        .collect();
    let presumed = presumed(symptoms);
    for rule in untold().filter(|rule| rule.allocator.is_some() && !rule.trial) {
        trials.extend(from_rule(findings, &presumed, rule, around));
    }
    for rule in untold() {
        if !trials.iter().any(|one| one.rule == rule.id) {
            trials.extend(from_rule(findings, &in_doubt, rule, around));
        }
    }
    trials.retain(|one| !one.settings.0.is_empty());
    let names: Vec<String> = findings
        .advice
        .iter()
        .chain(&trials)
        .map(|one| one.rule.clone())
        .collect();
    // Of two with one name, the first is nearer to the program.
    let mut known = BTreeSet::new();
    trials.retain(|one| known.insert(one.name()));
    trials.retain(|one| {
        let rule = rules.0.iter().find(|rule| rule.id == one.rule);
        !rule.is_some_and(|rule| rule.unless_beside.iter().any(|other| names.contains(other)))
    });
    trials
}

/// Everything that can be applied to the program, in the order of promise: what is likely, the user's
/// own settings taken away, and what no symptom asks for.
pub(super) fn all(
    findings: &Findings,
    symptoms: &[Case],
    rules: &Rules,
    around: &Surroundings,
) -> Vec<Advice> {
    let mut trials = likely(findings, symptoms, rules, around);
    if findings.cost.cpu() < WORTH_TRYING {
        return trials;
    }
    extend(&mut trials, findings, own_settings::without(findings));
    let in_use = Case {
        owner: Owner::Allocator,
        ..plain(findings, Symptom::Runtime, 0.0, &[])
    };
    for rule in &rules.0 {
        let mut known = findings.advice.iter().chain(&trials);
        if known.any(|one| rule.unless_beside.contains(&one.rule)) {
            continue;
        }
        let of_rule = from_rule(findings, std::slice::from_ref(&in_use), rule, around);
        let of_rule = of_rule.filter(|one| !one.settings.0.is_empty());
        extend(&mut trials, findings, of_rule);
    }
    trials
}

/// Adds an arm unless there is one like it. Of two with one name, the first is nearer to the program.
fn extend(trials: &mut Vec<Advice>, findings: &Findings, more: impl IntoIterator<Item = Advice>) {
    let settings = |advice: &Advice| advice.settings.0.iter().cloned().collect::<BTreeSet<_>>();
    for one in more {
        let is_like =
            |other: &Advice| other.name() == one.name() || settings(other) == settings(&one);
        if !findings.advice.iter().chain(trials.iter()).any(is_like) {
            trials.push(one);
        }
    }
}

/// Share of the CPU time in memset from which it may well be calloc's.
const MUCH_ZEROING: f64 = 0.2;

/// Much zeroing whose caller was not seen: a chain of frame pointers lacks calloc.
fn zeroing(findings: &Findings) -> Option<Case> {
    let own = findings.account.part("own")?;
    let mut functions = own.places.iter().zip(&own.shares);
    let zeroes = |name: &str| name.trim_start_matches('_').starts_with("memset");
    let (_, share) = functions.find(|(name, share)| zeroes(name) && **share >= MUCH_ZEROING)?;
    Some(Case {
        cost: Estimate::exact(*share),
        ..plain(findings, Symptom::CallocZeroing, 0.0, &[])
    })
}

/// Memory whose mapper was not seen, treated as if the allocator had mapped it: a run shows whether
/// its settings reach that memory.
fn presumed(symptoms: &[Case]) -> Vec<Case> {
    let unseen = symptoms.iter().filter(|one| one.owner == Owner::Unknown);
    unseen
        .map(|one| Case {
            owner: Owner::Allocator,
            ..one.clone()
        })
        .collect()
}
