//! Symptoms in plain words, and their severity.

use super::evidence::evidence;
use super::open::{Open, is_one_thread};
use super::symptom::Symptom;
use super::symptoms::Case;
use super::wording::{When, words};
use super::{doing, kernel, say, verdict};
use crate::page_sizes;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::kernel_threads::KernelThread;
use pagewise_model::quantity::{count, percent, percent_seen};
use pagewise_model::units::{Estimate, Nanos};

/// Shares of CPU time (of elapsed time for waits) from which a symptom is worth mentioning, costly,
/// severe.
const WORTH_A_WORD: f64 = 0.02;
const COSTLY: f64 = 0.05;
const SEVERE: f64 = 0.30;

/// A symptom that takes less CPU time (or waits less) is not worth a change, whatever its share:
/// starting a program takes tens of milliseconds.
const LEAST_COSTLY: Nanos = Nanos(50_000_000);

/// The severity of a symptom; `None` if it is not worth mentioning.
pub(super) fn severity(findings: &Findings, symptom: &Case) -> Option<Severity> {
    severity_of(symptom.cost.value, symptom.of(findings))
}

/// The severity of something that takes a share of this much time.
pub(super) fn severity_of(share: f64, all: Nanos) -> Option<Severity> {
    let most = match share * all.as_secs_f64() < LEAST_COSTLY.as_secs_f64() {
        true => Severity::Note,
        false => Severity::Severe,
    };
    Some(graded(share)?.min(most))
}

fn graded(cost: f64) -> Option<Severity> {
    match cost {
        cost if cost >= SEVERE => Some(Severity::Severe),
        cost if cost >= COSTLY => Some(Severity::Costly),
        cost if cost >= WORTH_A_WORD => Some(Severity::Note),
        _ => None,
    }
}

/// All findings worth mentioning, most severe first; "healthy" if nothing is costly.
pub(super) fn diagnoses(findings: &Findings, symptoms: &[Case]) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = symptoms
        .iter()
        .filter_map(|symptom| Some(diagnosis(findings, symptom, severity(findings, symptom)?)))
        .collect();
    found.extend(kernel::diagnosis(findings, symptoms));
    found.extend(huge_page_fallback(findings));
    found.extend(kernel_threads(findings));
    found.sort_by(|a, b| {
        let lost = |one| seconds(findings, one);
        (b.severity.cmp(&a.severity)).then(lost(b).total_cmp(&lost(a)))
    });
    if found.iter().all(|one| one.severity < Severity::Costly) {
        let open = Open::of(findings, &found);
        let (at_rest, computing) = (at_rest(findings, &open), doing::computing(findings));
        if at_rest.is_none() && doing::mostly_computes(findings) {
            // The verdict is about it, so it leads.
            let leads = computing.map(|one| Diagnosis {
                severity: Severity::Note,
                ..one
            });
            found.splice(0..0, leads);
        } else {
            found.splice(0..0, at_rest);
            found.extend(computing);
        }
    }
    found
}

/// The first finding if nothing is costly: "healthy" only if nothing remains unexplained.
fn at_rest(findings: &Findings, open: &Open) -> Option<Diagnosis> {
    if verdict::is_short(findings) {
        let used = say::used(findings.cost.cpu(), findings.cost.wall);
        return Some(words(Symptom::Short, None).found(Severity::Healthy, &[], vec![used]));
    }
    if open.bounds_memory() {
        return Some(healthy(findings));
    }
    let told = open.evidence();
    let values = [("who", kernel::who(findings))];
    (!told.is_empty()).then(|| words(Symptom::Open, None).found(Severity::Note, &values, told))
}

/// Seconds that a finding costs.
pub(super) fn seconds(findings: &Findings, one: &Diagnosis) -> f64 {
    let cost = &findings.cost;
    let of =
        |share: Option<Estimate>, all: Nanos| share.map(|share| share.value * all.as_secs_f64());
    of(one.share_of_cpu, cost.cpu())
        .or_else(|| of(one.share_of_elapsed, cost.cpu().max(cost.wall)))
        .unwrap_or(0.0)
}

fn diagnosis(findings: &Findings, symptom: &Case, severity: Severity) -> Diagnosis {
    let when = match symptom.kind {
        Symptom::LockWait if is_one_thread(findings) => Some(When::OneThread),
        _ => When::of(symptom.owner),
    };
    let words = words(symptom.kind, when);
    let known = !symptom.kind.has_unknown_cost();
    Diagnosis {
        share_of_cpu: (known && symptom.is_of_cpu()).then_some(symptom.cost),
        share_of_elapsed: (known && !symptom.is_of_cpu()).then_some(symptom.cost),
        ..words.found(severity, &[], evidence(findings, symptom))
    }
}

/// Huge pages that were requested but not available. The counters are machine-wide, so it is a
/// note.
fn huge_page_fallback(findings: &Findings) -> Option<Diagnosis> {
    let (first, last) = (
        findings.timeline.pressure.first()?,
        findings.timeline.pressure.last()?,
    );
    let fallback = last
        .thp_fault_fallback
        .saturating_sub(first.thp_fault_fallback);
    let given = last.thp_fault_alloc.saturating_sub(first.thp_fault_alloc);
    (fallback >= 16 && fallback * 4 > given).then(|| {
        let told = say::huge_fallback(count(fallback), count(given));
        words(Symptom::HugeFallback, None).found(Severity::Note, &[], vec![told])
    })
}

/// Part of the elapsed time from which the kernel's own threads are reported, and the least time.
const KERNEL_THREADS: f64 = 0.05;
const KERNEL_THREADS_TIME: Nanos = Nanos(50_000_000);

/// Kernel threads that managed memory meanwhile. They work for the whole machine, so it is a note.
fn kernel_threads(findings: &Findings) -> Option<Diagnosis> {
    let wall = findings.cost.wall.as_secs_f64().max(1e-9);
    let all: Nanos = findings.kernel_threads.iter().map(|one| one.cpu).sum();
    let much = all >= KERNEL_THREADS_TIME && all.as_secs_f64() >= KERNEL_THREADS * wall;
    let line = |one: &KernelThread| {
        let share = percent(one.cpu.as_secs_f64() / wall);
        say::kernel_thread(&one.name, one.cpu, share)
    };
    let worth = |one: &&KernelThread| one.cpu.0 * 10 >= all.0;
    much.then(|| {
        let told = findings.kernel_threads.iter().filter(worth).map(line);
        words(Symptom::KernelThreads, None).found(Severity::Note, &[], told.collect())
    })
}

fn healthy(findings: &Findings) -> Diagnosis {
    let cost = &findings.cost;
    let share = findings.time.share_of_cpu;
    let told = share.map(|share| say::faults_share(percent_seen(&share)));
    let faults = say::faults_in(count(cost.faults()), cost.cpu());
    let blind = match findings.diagnoses.iter().any(page_sizes::is_note) {
        _ if findings.account.samples == 0 => Some(When::NotSampled),
        true => Some(When::PageSizes),
        false => None,
    };
    let evidence = std::iter::once(faults).chain(told).collect();
    Diagnosis {
        share_of_cpu: share,
        ..words(Symptom::Healthy, blind).found(Severity::Healthy, &[], evidence)
    }
}

/// `52 % (48 % to 56 %)`.
pub(super) fn range(share: Estimate) -> String {
    let (low, high) = (percent(share.low), percent(share.high));
    match low == high {
        true => percent(share.value),
        false => format!("{} ({low} to {high})", percent(share.value)),
    }
}
