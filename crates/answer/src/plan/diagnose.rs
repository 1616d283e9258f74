//! Symptoms in plain words.

use super::case::{Case, together};
use super::evidence::evidence;
use super::grade::{at_least, range, seconds, severity, severity_within};
use super::kernel::is_privileged;
use super::open::Open;
use super::symptom::Symptom;
use super::wording::{When, words};
use super::{activity, elapsed, kernel, leads, phrases, writers};
use crate::page_sizes;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::kernel_threads::KernelThread;
use pagewise_model::quantity::{count, percent, percent_seen};
use pagewise_model::units::{Estimate, Nanos};
use std::cmp::Ordering;

/// All findings worth mentioning, most severe first; "healthy" if nothing is costly.
pub(super) fn diagnoses(findings: &Findings, symptoms: &[Case]) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> = symptoms
        .iter()
        .filter_map(|symptom| {
            let severity = severity(findings, symptom)?;
            let plain = diagnosis(findings, symptom, severity);
            Some(match calls_of(findings, symptoms, symptom) {
                Some(calls) => with_calls(findings, plain, calls),
                None => plain,
            })
        })
        .collect();
    found.extend(kernel::diagnosis(findings, symptoms));
    found.extend(huge_page_fallback(findings));
    found.extend(kernel_threads(findings));
    leads::set_beside_computing(findings, &mut found);
    found.sort_by(|a, b| {
        let lost = |one| (at_least(findings, one), seconds(findings, one));
        let longer = lost(b).partial_cmp(&lost(a)).unwrap_or(Ordering::Equal);
        b.severity
            .min(Severity::Costly)
            .cmp(&a.severity.min(Severity::Costly))
            .then(longer)
    });
    lead_with_the_end(&mut found);
    if found.iter().all(|one| one.severity < Severity::Costly) {
        let open = Open::new(findings, &found);
        let (at_rest, computing) = (at_rest(findings, &open), activity::computing(findings));
        let beside = leads::beside_computing(findings, &found);
        if !beside.is_empty() || (at_rest.is_none() && activity::mostly_computes(findings)) {
            // The verdict is about it, so it leads.
            let severity = match beside.is_empty() && activity::surely_computes(findings) {
                true => Severity::Healthy,
                false => Severity::Note,
            };
            let leads = computing.map(|one| Diagnosis { severity, ..one });
            found.splice(0..0, leads);
        } else {
            found.splice(0..0, at_rest);
            found.extend(computing);
        }
    }
    found
}

/// A program that was killed did not end its work: nothing matters more.
fn lead_with_the_end(found: &mut [Diagnosis]) {
    let killed = found.iter().position(|one| one.id == Symptom::Killed.id());
    if let Some(at) = killed {
        found[at].severity = Severity::Severe;
        found[..=at].rotate_right(1);
    }
}

/// A finding together with the time of calls.
fn with_calls(findings: &Findings, plain: Diagnosis, calls: Estimate) -> Diagnosis {
    let share = plain.share_of_cpu.map(|share| {
        let all = together([share, calls].into_iter());
        let within = |end: f64| end.min(1.0);
        Estimate {
            value: within(all.value),
            low: within(all.low),
            high: within(all.high),
        }
    });
    let graded = share.and_then(|share| severity_within(share, findings.cost.cpu()));
    let mut evidence = plain.evidence;
    // Behind the number of faults and their time.
    evidence.insert(evidence.len().min(2), phrases::calls_take(range(calls)));
    Diagnosis {
        share_of_cpu: share,
        severity: graded.unwrap_or(plain.severity),
        evidence,
        ..plain
    }
}

/// The time of the calls that free memory, or unmap files, and request it again: of the largest costly
/// finding about that.
fn calls_of(findings: &Findings, symptoms: &[Case], symptom: &Case) -> Option<Estimate> {
    let is_costly = |one: &&Case| severity(findings, one) >= Some(Severity::Costly);
    let calls = |one: &&Case| one.kind.is_churn() || one.kind == Symptom::FileRemap;
    let largest = symptoms.iter().filter(calls).find(is_costly);
    // These have that time already.
    let has_it = symptom.kind == Symptom::ChurnPopulated;
    let is_it = !has_it && largest == Some(symptom);
    is_it.then(|| kernel::memory_calls(findings))?
}

/// The first finding if nothing is costly: "healthy" only if nothing remains unexplained.
fn at_rest(findings: &Findings, open: &Open) -> Option<Diagnosis> {
    if elapsed::is_short(findings) {
        let used = phrases::used(findings.cost.cpu(), findings.cost.wall);
        return Some(words(Symptom::Short, None).found(Severity::Note, &[], vec![used]));
    }
    if open.bounds_memory() {
        return Some(healthy(findings));
    }
    let message = open.evidence();
    let values = [("who", kernel::who(findings))];
    (!message.is_empty())
        .then(|| words(Symptom::Open, None).found(Severity::Note, &values, message))
}

/// Whether the advice is about collections in forked processes.
fn is_of_forked_collectors(findings: &Findings) -> bool {
    let mut advice = findings.advice.iter();
    advice.any(|one| one.rule == "cow.collector")
}

fn diagnosis(findings: &Findings, symptom: &Case, severity: Severity) -> Diagnosis {
    let when = match symptom.kind {
        Symptom::WriteProtect if findings.time.forks > 0 => Some(When::Forked),
        Symptom::HotCollector if is_of_forked_collectors(findings) => Some(When::Collector),
        Symptom::ForkCopies => writers::writer(findings).map(When::from),
        Symptom::FreshMemory if is_privileged(findings) => Some(When::Privileged),
        _ => When::from_owner(symptom.owner),
    };
    let words = words(symptom.kind, when);
    let values = [("who", kernel::who(findings))];
    let known = !symptom.kind.has_unknown_cost();
    Diagnosis {
        share_of_cpu: (known && symptom.is_of_cpu()).then_some(symptom.cost),
        share_of_elapsed: (known && !symptom.is_of_cpu()).then_some(symptom.cost),
        ..words.found(severity, &values, evidence(findings, symptom))
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
        let message = phrases::huge_fallback(count(fallback), count(given));
        words(Symptom::HugeFallback, None).found(Severity::Note, &[], vec![message])
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
        phrases::kernel_thread(&one.name, one.cpu, share)
    };
    let worth = |one: &&KernelThread| one.cpu.0 * 10 >= all.0;
    much.then(|| {
        let message = findings.kernel_threads.iter().filter(worth).map(line);
        words(Symptom::KernelThreads, None).found(Severity::Note, &[], message.collect())
    })
}

fn healthy(findings: &Findings) -> Diagnosis {
    let cost = &findings.cost;
    let share = findings.time.share_of_cpu;
    let message = share.map(|share| phrases::faults_share(percent_seen(&share)));
    let faults = phrases::faults_in(count(cost.faults()), cost.cpu());
    let blind = match findings.diagnoses.iter().any(page_sizes::is_note) {
        _ if findings.account.samples == 0 => Some(When::NotSampled),
        true => Some(When::PageSizes),
        false => None,
    };
    let evidence = std::iter::once(faults).chain(message).collect();
    Diagnosis {
        share_of_cpu: share,
        ..words(Symptom::Healthy, blind).found(Severity::Healthy, &[], evidence)
    }
}
