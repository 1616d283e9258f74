//! Which findings the first line names. Two runs of one program measure its costs a little differently, and
//! the first line must not depend on that: findings about as large as the first are named with it, in a
//! fixed order, and what takes little of a program that computes stands beside its computing.

use super::elapsed::SHORT;
use super::grade::{COSTLY, at_least, at_most, is_vague, seconds};
use super::symptom::Symptom;
use super::wording::{When, words};
use super::writers::{self, Writer};
use super::{activity, kernel};
use pagewise_model::advice::Advice;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use std::cmp::Ordering;

/// Findings that cost at least this share of the largest are about as large: shares of one program differ
/// as much between two runs on a busy machine.
const LIKE_MOST: f64 = 0.75;
/// Findings whose intervals overlap are about as large, too, from this share of the largest on; at least
/// this share of what it costs for certain is certain.
const HALF: f64 = 0.5;
/// Most findings that are named.
const MOST_NAMED: usize = 2;
/// A finding leads before the computing of a program that mostly computes from this share of the CPU time
/// on: its interval begins there. Of programs of `bench/causes/same`, what took 3 % in one run took 12 % in
/// another on a busy machine.
const LEADS: f64 = 0.15;

/// Moves the findings that the first line names to the front, in their fixed order; if nothing is costly,
/// what the best setting fixes.
pub(super) fn order(findings: &mut Findings) {
    if costly(findings).is_empty() && large_in_little(findings).is_empty() {
        return lead_with_the_cured(findings);
    }
    let names: Vec<String> = named(findings).map(|one| one.id.clone()).collect();
    let place = |one: &Diagnosis| names.iter().position(|id| *id == one.id);
    findings
        .diagnoses
        .sort_by_key(|one| place(one).unwrap_or(names.len()));
}

fn lead_with_the_cured(findings: &mut Findings) {
    let best = findings.advice.first();
    let best = best.filter(|best| !best.settings.0.is_empty());
    let is_cured = |one: &Diagnosis| best.is_some_and(|best| best.cures.contains(&one.id));
    let at = findings.diagnoses.iter().position(is_cured);
    if let Some(at) = at.filter(|_| !activity::mostly_computes(findings)) {
        findings.diagnoses[..=at].rotate_right(1);
    }
}

/// The findings that the first line names, in their fixed order: the costliest, and those about as large;
/// of a program that computes, what stands beside.
pub(super) fn named(findings: &Findings) -> impl Iterator<Item = &Diagnosis> {
    let mut all = costly(findings);
    if all.is_empty() {
        all = beside_computing(findings, &findings.diagnoses);
    }
    if all.is_empty() {
        all = large_in_little(findings);
    }
    let is_killed = |one: &&Diagnosis| one.id == Symptom::Killed.id();
    if all.first().is_some_and(is_killed) {
        all.truncate(1);
    }
    let surely = |one: &Diagnosis| (at_least(findings, one), seconds(findings, one));
    let by_cost = |a: &&Diagnosis, b: &&Diagnosis| surely(b).partial_cmp(&surely(a));
    all.sort_by(|a, b| by_cost(a, b).unwrap_or(Ordering::Equal));
    let largest = all.first().copied();
    all.retain(|one| largest.is_some_and(|largest| is_like(findings, one, largest)));
    all.truncate(MOST_NAMED);
    all.sort_by_key(|one| rank(findings, one));
    all.into_iter()
}

/// The costly findings; what is unexplained only if there is no other.
fn costly(findings: &Findings) -> Vec<&Diagnosis> {
    let all = findings.diagnoses.iter();
    let (unexplained, explained): (Vec<&Diagnosis>, Vec<&Diagnosis>) = all
        .filter(|one| one.severity >= Severity::Costly)
        .partition(|one| one.id == Symptom::KernelUnexplained.id());
    match explained.is_empty() {
        true => unexplained,
        false => explained,
    }
}

fn is_like(findings: &Findings, one: &Diagnosis, largest: &Diagnosis) -> bool {
    let part = |of: fn(&Findings, &Diagnosis) -> f64| of(findings, one) / of(findings, largest);
    let overlaps = at_most(findings, one) >= at_least(findings, largest);
    let is_certain = part(at_least) >= HALF || at_least(findings, largest) <= 0.0;
    let is_as_large = part(seconds) >= LIKE_MOST || (part(seconds) >= HALF && overlaps);
    std::ptr::eq(one, largest) || (is_certain && is_as_large)
}

/// The place of a finding among others about as large: what settings fix comes before what is a normal
/// part of running.
fn rank(findings: &Findings, one: &Diagnosis) -> usize {
    use Symptom::*;
    match Symptom::named(&one.id) {
        Some(Limit | Thrashing | Swap) => 0,
        // Its collector is what returns that memory.
        Some(symptom) if is_by_runtime(one, symptom) && !is_cured(findings, one) => 4,
        Some(symptom) if symptom.is_churn() => 1,
        Some(FreshMemory | HugeSparse | HugeZeroing) => 2,
        Some(HotCollector) => 3,
        Some(HotAllocator) => 5,
        Some(FirstTouch | ReadFirst) => 7,
        Some(UnknownFaults | KernelWork | KernelUnexplained) | None => 8,
        Some(_) => 6,
    }
}

/// Whether this is about memory that a runtime returns to the kernel and requests again.
fn is_by_runtime(one: &Diagnosis, symptom: Symptom) -> bool {
    let headline = |when| words(symptom, when).headline.plain();
    let by_runtime = headline(Some(When::Runtime));
    symptom.is_churn() && by_runtime != headline(None) && one.headline == by_runtime
}

/// Whether settings are advised against a finding.
fn is_cured(findings: &Findings, one: &Diagnosis) -> bool {
    let mut with_settings = findings
        .advice
        .iter()
        .filter(|advice| !advice.settings.0.is_empty());
    with_settings.any(|advice| advice.cures.contains(&one.id))
}

/// Of the findings that the first line names, the one that its second sentence is about: what the best
/// setting fixes, else what a proof tries.
pub(super) fn curable<'a>(
    findings: &'a Findings,
    gravest: &'a Diagnosis,
    trials: &[Advice],
) -> &'a Diagnosis {
    let mut known = findings.advice.iter().chain(trials);
    let cured = known
        .by_ref()
        .filter(|one| !one.settings.0.is_empty())
        .find_map(|advice| named(findings).find(|one| advice.cures.contains(&one.id)));
    cured.unwrap_or(gravest)
}

/// Whether the kernel's work on files, which the program asks for, certainly takes more than a finding: that
/// work leads, as a row of the account.
pub(super) fn is_beside_files(findings: &Findings, one: &Diagnosis) -> bool {
    use Symptom::*;
    // What takes the time of calls on files themselves, or ended the run.
    let has_them = |symptom| matches!(symptom, KernelWork | ServedFaults | Limit | Killed);
    if Symptom::named(&one.id).is_none_or(has_them) {
        return false;
    }
    let largest = kernel::largest_on_files(findings).unwrap_or_default();
    largest.low * findings.cost.cpu().as_secs_f64() > at_most(findings, one)
}

/// The findings that take much of a program which uses so little CPU time that none of them is costly.
pub(super) fn large_in_little(findings: &Findings) -> Vec<&Diagnosis> {
    let is_large = |one: &Diagnosis| {
        let share = one.share_of_cpu.filter(|share| !is_vague(*share));
        share.is_some_and(|share| share.low >= LEADS)
    };
    let notes = findings.diagnoses.iter();
    let notes = notes.filter(|one| one.severity == Severity::Note && is_of_memory(one));
    let is_enough = findings.cost.cpu() >= SHORT && !activity::mostly_computes(findings);
    notes.filter(|one| is_enough && is_large(one)).collect()
}

/// Whether this is not a part of the account that tells of the kernel's work, or of the program's own.
fn is_of_memory(one: &Diagnosis) -> bool {
    use Symptom::*;
    let told = |symptom| matches!(symptom, KernelWork | KernelUnexplained | Computing);
    Symptom::named(&one.id).is_some_and(|symptom| !told(symptom))
}

/// Whether a finding takes so little of a program that mostly computes that it stands beside its computing.
fn is_beside(findings: &Findings, one: &Diagnosis) -> bool {
    let is_little = one.share_of_cpu.is_some_and(|share| share.low < LEADS);
    is_little && activity::mostly_computes(findings)
}

/// Whether the computing may be the collector's that makes the copies: of this Python its functions have no
/// names. Of two such programs, which `gc.freeze()` makes 2.6 and 3 times as fast, the copies alone took 6
/// and 14 % of the CPU time.
fn may_be_what_computes(findings: &Findings, one: &Diagnosis) -> bool {
    one.id == Symptom::ForkCopies.id()
        && writers::writer(findings) == Some(Writer::Either)
        && activity::is_mostly_unnamed(findings)
}

/// Makes notes of the findings that stand beside the computing of a program.
pub(super) fn set_beside_computing(findings: &Findings, found: &mut [Diagnosis]) {
    let stands_beside =
        |one: &&mut Diagnosis| is_beside(findings, one) && !may_be_what_computes(findings, one);
    for one in found.iter_mut().filter(stands_beside) {
        one.severity = one.severity.min(Severity::Note);
    }
}

/// The findings that stand beside the computing of a program and may be costly.
pub(super) fn beside_computing<'a>(
    findings: &Findings,
    found: &'a [Diagnosis],
) -> Vec<&'a Diagnosis> {
    let may_cost = |one: &Diagnosis| one.share_of_cpu.is_some_and(|share| share.high >= COSTLY);
    found
        .iter()
        .filter(|one| one.severity == Severity::Note && is_of_memory(one) && may_cost(one))
        .filter(|one| is_beside(findings, one))
        .collect()
}
