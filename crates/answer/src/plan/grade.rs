//! How much a symptom or a finding costs, and how grave that is.

use super::case::Case;
use super::symptom::Symptom;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::quantity::percent;
use pagewise_model::units::{Estimate, Nanos};

/// Shares of CPU time (of elapsed time for waits) from which a symptom is worth mentioning, costly,
/// severe.
const WORTH_A_WORD: f64 = 0.02;

pub(super) const COSTLY: f64 = 0.05;

const SEVERE: f64 = 0.30;

/// A symptom that takes less CPU time (or waits less) is not worth a change, whatever its share:
/// starting a program takes tens of milliseconds.
const LEAST_COSTLY: Nanos = Nanos(50_000_000);

/// The severity of a symptom; `None` if it is not worth mentioning.
pub(super) fn severity(findings: &Findings, symptom: &Case) -> Option<Severity> {
    let most = match symptom.kind {
        // The next run does not have it.
        Symptom::FirstRun => Severity::Note,
        _ => Severity::Severe,
    };
    Some(severity_within(symptom.cost, symptom.time(findings))?.min(most))
}

/// The severity of something that takes a share of this much time.
pub(super) fn severity_of(share: f64, all: Nanos) -> Option<Severity> {
    severity_within(Estimate::exact(share), all)
}

/// The severity of something that takes a share within an interval of this much time. What is
/// hardly known is at most a note: it may be costly.
pub(super) fn severity_within(share: Estimate, all: Nanos) -> Option<Severity> {
    let is_little = share.value * all.as_secs_f64() < LEAST_COSTLY.as_secs_f64();
    let most = match is_little || is_vague(share) {
        true => Severity::Note,
        false => Severity::Severe,
    };
    Some(graded(share.value)?.min(most))
}

/// Ends of an interval that differ by a larger factor say too little to call a cost.
const VAGUE: f64 = 4.0;

/// Whether a share is hardly known.
pub(super) fn is_vague(share: Estimate) -> bool {
    share.high > VAGUE * share.low
}

/// Whether a finding is too little known to be costly, but may be.
pub(super) fn may_be_costly(findings: &Findings, one: &Diagnosis) -> bool {
    let cost = &findings.cost;
    let all = match one.share_of_elapsed {
        Some(_) => cost.cpu().max(cost.wall),
        None => cost.cpu(),
    };
    let share = one.share_of_elapsed.or(one.share_of_cpu);
    let at_most = |share: Estimate| severity_of(share.high, all) >= Some(Severity::Costly);
    one.severity == Severity::Note && share.is_some_and(|share| is_vague(share) && at_most(share))
}

fn graded(cost: f64) -> Option<Severity> {
    match cost {
        cost if cost >= SEVERE => Some(Severity::Severe),
        cost if cost >= COSTLY => Some(Severity::Costly),
        cost if cost >= WORTH_A_WORD => Some(Severity::Note),
        _ => None,
    }
}

/// Seconds that a finding costs.
pub(super) fn seconds(findings: &Findings, one: &Diagnosis) -> f64 {
    seconds_by(findings, one, |share| share.value)
}

/// Seconds that a finding costs at least.
pub(super) fn at_least(findings: &Findings, one: &Diagnosis) -> f64 {
    seconds_by(findings, one, |share| share.low)
}

/// Seconds that a finding costs at most.
pub(super) fn at_most(findings: &Findings, one: &Diagnosis) -> f64 {
    seconds_by(findings, one, |share| share.high)
}

fn seconds_by(findings: &Findings, one: &Diagnosis, end: fn(Estimate) -> f64) -> f64 {
    let cost = &findings.cost;
    let of = |share: Option<Estimate>, all: Nanos| share.map(|one| end(one) * all.as_secs_f64());
    of(one.share_of_cpu, cost.cpu())
        .or_else(|| of(one.share_of_elapsed, cost.cpu().max(cost.wall)))
        .unwrap_or(0.0)
}

/// `52 % (48 % to 56 %)`.
pub(super) fn range(share: Estimate) -> String {
    let (low, high) = (percent(share.low), percent(share.high));
    match low == high {
        true => percent(share.value),
        false => format!("{} ({low} to {high})", percent(share.value)),
    }
}
