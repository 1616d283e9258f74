//! What the kernel does for a program beside page faults, in words: nothing is called healthy while
//! a good part of the time goes there.

use super::diagnose::{range, severity_of};
use super::symptoms::Symptom;
use super::works;
use crate::account::KernelTable;
use pagewise_model::account::KernelEntry;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::quantity::percent;
use pagewise_model::units::{Estimate, Nanos};

/// Share of the CPU time from which what the kernel does beside faults is told.
const TOLD: f64 = 0.10;
/// Entries that are told, and the share of the CPU time from which on each is.
const MOST_ENTRIES: usize = 4;
const WORTH_A_LINE: f64 = 0.02;
/// Starting a process takes the kernel some milliseconds, of which nobody asks what for.
const WORTH_ASKING: Nanos = Nanos(10_000_000);

/// What the kernel did where it took a tenth of the CPU time or more beside page faults; how much
/// is unexplained where its stacks were not seen.
pub(super) fn diagnosis(findings: &Findings, symptoms: &[Symptom]) -> Option<Diagnosis> {
    match findings.account.sees_kernel() {
        true => seen(findings, symptoms),
        false => unseen(findings),
    }
}

fn seen(findings: &Findings, symptoms: &[Symptom]) -> Option<Diagnosis> {
    let account = &findings.account;
    let table = KernelTable::shipped();
    // What gives memory back and takes it again is part of churn, and told there.
    let churns = symptoms.iter().any(|one| {
        one.id.starts_with("churn.")
            && severity_of(one.cost.value, findings.cost.cpu()) >= Some(Severity::Costly)
    });
    let told_elsewhere = |entry: &&KernelEntry| {
        ["fault", "observer"].contains(&&*entry.id)
            || (churns && table.is_memory_call(&entry.id))
            || works::tell_of(symptoms, entry, findings)
    };
    let others: Vec<&KernelEntry> = account
        .entries
        .iter()
        .filter(|one| !told_elsewhere(one))
        .collect();
    let nanos: f64 =
        others.iter().map(|entry| entry.time.value).sum::<f64>() + account.unexplained.value;
    let share = share_of(Estimate::exact(nanos), findings);
    let first = others.iter().find(|entry| entry.id != "gate")?;
    if share.value < TOLD {
        return None;
    }
    let lines = others
        .iter()
        .filter(|entry| share_of(entry.time, findings).value >= WORTH_A_LINE)
        .take(MOST_ENTRIES);
    let mut evidence: Vec<String> = lines.map(|entry| line(entry, findings)).collect();
    evidence.push(next_command(findings));
    Some(Diagnosis {
        id: "kernel.work".to_owned(),
        severity: severity_of(share.value, findings.cost.cpu())?,
        headline: format!(
            "The kernel works for the program, most of all at {}",
            first.label
        ),
        explanation: "This time goes into the kernel, but not into page faults: no setting of the \
                      memory allocator changes it. Fewer or larger calls do."
            .to_owned(),
        evidence,
        share_of_cpu: Some(share),
        share_of_elapsed: None,
    })
}

/// `52 % (48 to 56 %) of the CPU time: reading (pread64), most of it in filemap_read`.
fn line(entry: &KernelEntry, findings: &Findings) -> String {
    let share = share_of(entry.time, findings);
    let within = match entry.functions.is_empty() {
        true => String::new(),
        false => format!("; most of it in {}", entry.functions.join(", ")),
    };
    format!("{} of the CPU time: {}{within}", range(share), entry.label)
}

fn unseen(findings: &Findings) -> Option<Diagnosis> {
    let share = share_of(findings.account.unexplained, findings);
    let nanos = Nanos::from_secs_f64(findings.account.unexplained.value * 1e-9);
    if share.value < TOLD || nanos < WORTH_ASKING {
        return None;
    }
    Some(Diagnosis {
        id: "kernel.unexplained".to_owned(),
        severity: severity_of(share.value, findings.cost.cpu())?,
        headline: "The kernel used much CPU time for something other than the page faults seen"
            .to_owned(),
        explanation: "What it did could not be seen here: system calls, interrupts, giving memory \
                      back, or page faults that take long. Root, or kernel.perf_event_paranoid=1, \
                      shows it where a run takes more than some tens of milliseconds and its \
                      processes live for more than a few."
            .to_owned(),
        evidence: vec![
            format!(
                "The kernel used {} of {} CPU time; {nanos} of it ({}) is unexplained",
                findings.cost.system,
                findings.cost.cpu(),
                percent(share.value)
            ),
            "Next: the same as root, or strace -c -f for the system calls".to_owned(),
        ],
        share_of_cpu: Some(share),
        share_of_elapsed: None,
    })
}

fn next_command(findings: &Findings) -> String {
    let whom = match findings.command.is_empty() {
        true => format!("-p {}", findings.pid),
        false => "-- CMD".to_owned(),
    };
    format!(
        "Next: pagewise record -e cpu {whom}, then pagewise report, shows from where it is called"
    )
}

#[allow(clippy::cast_precision_loss, reason = "2^53 ns is 104 days")]
fn share_of(time: Estimate, findings: &Findings) -> Estimate {
    time.scaled(1.0 / findings.cost.cpu().0.max(1) as f64)
}
