//! Symptoms that samples of CPU time in the kernel show, though hardly a fault and no wait does: what
//! forks copy, spinning for the lock of the address space, flushing the TLBs of other CPUs. And files
//! that are mapped again and again, though each of their faults is an ordinary one.

use super::diagnose::{range, severity};
use super::symptoms::{Symptom, faults_of, is_one_process, plain, share_of_work};
use super::waits::LOCK;
use pagewise_model::account::KernelEntry;
use pagewise_model::findings::{Cause, Findings, Severity};
use pagewise_model::quantity::count;
use pagewise_model::units::Estimate;

pub(super) const FORK: &str = "fork.tables";
pub(super) const SPIN: &str = "lock.spin";
pub(super) const FLUSH: &str = "tlb.flush";
pub(super) const REMAP: &str = "file.remap";

/// Files are said to be mapped anew where their pages were found in memory by so many times as many
/// faults as the process ever had pages…
const OFTEN: f64 = 4.0;
/// … and as many calls unmapped something.
const FEWEST_CALLS: u64 = 100;
/// A symptom tells of an entry where it explains this part of its time.
const MOST_OF_IT: f64 = 0.5;

/// Those whose cost is a share of the CPU time without a fault.
pub(super) fn is_of_cpu(id: &str) -> bool {
    [FORK, SPIN, FLUSH].contains(&id)
}

pub(super) fn all(findings: &Findings) -> impl Iterator<Item = Symptom> {
    let found = [
        (FORK, forks(findings)),
        (SPIN, share_of_work(findings, "lock")),
        (FLUSH, share_of_work(findings, "flush")),
    ];
    found.into_iter().filter_map(|(id, cost)| {
        Some(Symptom {
            cost: cost?,
            ..plain(findings, id, 0.0, &[])
        })
    })
}

/// Threads that wait for the lock of the address space sleep or spin: one trouble, told by what costs
/// more.
pub(super) fn one_of_locks(findings: &Findings, symptoms: &mut Vec<Symptom>) {
    let lost = |id: &str| {
        let found = symptoms.iter().find(|one| one.id == id);
        found.map(|one| one.lost(findings))
    };
    if let (Some(spinning), Some(sleeping)) = (lost(SPIN), lost(LOCK)) {
        let lesser = if spinning < sleeping { SPIN } else { LOCK };
        symptoms.retain(|one| one.id != lesser);
    }
}

/// What forks copy, and what their children take down again when they end: no more than was copied.
fn forks(findings: &Findings) -> Option<Estimate> {
    let copied = share_of_work(findings, "fork")?;
    let taken = share_of_work(findings, "exit").unwrap_or(Estimate::exact(0.0));
    Some(Estimate {
        value: copied.value + taken.value.min(copied.value),
        low: copied.low,
        high: (copied.high + taken.high).min(1.0),
    })
}

/// Whether pages of files, which are all in memory, fault because their mappings come and go.
#[allow(clippy::cast_precision_loss, reason = "ratios of counts")]
pub(super) fn maps_files_anew(findings: &Findings) -> bool {
    let faults = faults_of(findings, &[Cause::FileMinor]);
    let held = findings.cost.max_rss.0 as f64 / findings.host.page_size.max(1) as f64;
    unmaps(findings) >= FEWEST_CALLS
        && held > 0.0
        && faults >= OFTEN * held
        && is_one_process(findings)
}

fn unmaps(findings: &Findings) -> u64 {
    let calls = findings.time.mm_calls.iter();
    let unmapping = calls.filter(|cost| cost.call == "munmap");
    unmapping.map(|cost| cost.calls).sum()
}

/// Whether costly symptoms tell of what the kernel did in this entry.
pub(super) fn tell_of(symptoms: &[Symptom], entry: &KernelEntry, findings: &Findings) -> bool {
    let told = |works: &[&str]| -> f64 {
        let works = works.iter().filter_map(|id| findings.account.work(id));
        let outside = works.map(|work| work.time.value - work.in_faults.value);
        outside.sum()
    };
    let costly = |id: &str| {
        let mut found = symptoms.iter().filter(|one| one.id == id);
        found.any(|one| severity(findings, one) >= Some(Severity::Costly))
    };
    let explained = match &*entry.id {
        "call.process" if costly(FORK) => told(&["fork", "exit"]),
        "call.map" if costly(REMAP) => return true,
        "call.map" => {
            let lock = if costly(SPIN) { told(&["lock"]) } else { 0.0 };
            let flush = if costly(FLUSH) { told(&["flush"]) } else { 0.0 };
            lock + flush
        }
        _ => return false,
    };
    explained >= MOST_OF_IT * entry.time.value
}

/// The figures that show it.
pub(super) fn evidence(findings: &Findings, symptom: &Symptom) -> Vec<String> {
    let share = |id: &str| share_of_work(findings, id).map(range);
    let mut lines = Vec::new();
    let mut say = |id: &str, what: &str| {
        lines.extend(share(id).map(|share| format!("{share} of the CPU time: {what}")));
    };
    match symptom.id {
        FORK => {
            say("fork", "copying page tables and the list of mappings");
            say("exit", "taking address spaces down when processes end");
            let peak = findings.cost.max_rss;
            lines.push(format!("The largest process held {peak}"));
        }
        SPIN | LOCK => say("lock", "spinning for the lock, or queueing for it"),
        FLUSH => say(
            "flush",
            "flushing TLBs, most of it waiting for the other CPUs",
        ),
        REMAP => lines.push(format!(
            "{} calls unmapped memory, and never more than {} was resident",
            count(unmaps(findings)),
            findings.cost.max_rss
        )),
        _ => {}
    }
    lines
}
