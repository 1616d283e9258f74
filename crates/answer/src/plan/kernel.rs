//! The kernel's work for a program apart from page faults, in words: a program is not called
//! healthy if a good part of its time is spent there.

use super::case::{Case, together};
use super::elapsed;
use super::grade::{range, severity_of, severity_within};
use super::phrases;
use super::symptom::Symptom;
use super::wording::{When, words};
use super::works;
use pagewise_faults::account::KernelTable;
use pagewise_model::account::KernelEntry;
use pagewise_model::findings::{Diagnosis, Findings, Severity};
use pagewise_model::quantity::percent;
use pagewise_model::units::{Estimate, Nanos};

/// Share of the CPU time from which the kernel's work apart from faults is reported.
const TOLD: f64 = 0.10;
/// Most entries reported, and the least share of the CPU time of each.
const MOST_ENTRIES: usize = 4;
const WORTH_A_LINE: f64 = 0.02;
/// A read from a slow disk.
const LONGEST_READ: Nanos = Nanos(10_000_000);
/// Starting a process takes the kernel some milliseconds, which need no explanation.
const WORTH_ASKING: Nanos = Nanos(10_000_000);

/// The kernel's work if it took a tenth of the CPU time or more apart from page faults, and the
/// unexplained time if its stacks were not seen.
pub(super) fn diagnosis(findings: &Findings, symptoms: &[Case]) -> Option<Diagnosis> {
    match findings.account.sees_kernel() {
        true => seen(findings, symptoms),
        false => unseen(findings, symptoms),
    }
}

fn seen(findings: &Findings, symptoms: &[Case]) -> Option<Diagnosis> {
    let account = &findings.account;
    let table = KernelTable::shipped();
    // Calls that free and reallocate memory are part of churn, and reported there.
    let churns = symptoms.iter().any(|one| {
        one.kind.is_churn()
            && severity_of(one.cost.value, findings.cost.cpu()) >= Some(Severity::Costly)
    });
    let populated = symptoms
        .iter()
        .any(|one| one.kind == Symptom::ChurnPopulated);
    let told_elsewhere = |entry: &&KernelEntry| {
        ["fault", "observer"].contains(&&*entry.id)
            || (churns && populated && entry.id == "populate")
            || (churns && table.is_memory_call(&entry.id))
            || works::tell_of(symptoms, entry, findings)
    };
    let others: Vec<&KernelEntry> = account
        .entries
        .iter()
        .filter(|one| !told_elsewhere(one))
        .collect();
    let others = with_their_gate(&others, &account.entries);
    let times = others.iter().map(|entry| entry.time);
    let mut all = share_of(together(times.chain([account.unexplained])), findings);
    all.high = all.high.min(1.0);
    if all.value < TOLD {
        return None;
    }
    let when = is_of_files(&others, all, findings).then_some(When::Files);
    let is_problem = |entry: &&KernelEntry| when.is_some() == table.is_file_call(&entry.id);
    let first = most_of_it(others.iter().filter(is_problem))?;
    let of_files = largest_on_files(findings).unwrap_or_default();
    let when =
        when.or((of_files.low > share_of(first.time, findings).high).then_some(When::BesideFiles));
    // The headline names one row of the account, and so has that row's figure.
    let share = share_of(first.time, findings);
    let severity = match when {
        Some(When::Files) => Severity::Note,
        _ => severity_within(share, findings.cost.cpu())?,
    };
    let lines = others
        .iter()
        .filter(|entry| share_of(entry.time, findings).value >= WORTH_A_LINE)
        .take(MOST_ENTRIES);
    let mut evidence: Vec<String> = lines.map(|entry| line(entry, findings)).collect();
    if evidence.len() > 1 {
        evidence.push(phrases::kernel_in_all(range(all)));
    }
    if first.id == "populate" {
        evidence.extend(populating_waits(findings));
    }
    let values = [("entry", first.label.clone()), ("who", who(findings))];
    Some(Diagnosis {
        share_of_cpu: Some(share),
        ..words(Symptom::KernelWork, when).found(severity, &values, evidence)
    })
}

/// The gate counts as the largest only from this many times the largest call on: what goes on in each of many
/// calls says less than the calls do.
pub(super) const MANY_TINY_CALLS: f64 = 1.5;

/// The largest of entries that are sorted.
fn most_of_it<'a>(entries: impl Iterator<Item = &'a KernelEntry>) -> Option<&'a KernelEntry> {
    let mut entries = entries.peekable();
    let gate = entries.next_if(|first| is_gate(first));
    let call = entries.next();
    let least = call.map_or(0.0, |call| MANY_TINY_CALLS * call.time.value);
    gate.filter(|gate| gate.time.value >= least).or(call)
}

/// Share of the CPU time of the largest entry that works on files.
pub(super) fn largest_on_files(findings: &Findings) -> Option<Estimate> {
    let table = KernelTable::shipped();
    let entries = findings.account.entries.iter();
    let of_files = entries.filter(|entry| table.is_file_call(&entry.id));
    let largest = of_files.max_by(|a, b| a.time.value.total_cmp(&b.time.value));
    largest.map(|entry| share_of(entry.time, findings))
}

/// What populating waits for, if it has to read: a share of the elapsed time, of which the CPU time
/// shows little.
fn populating_waits(findings: &Findings) -> Option<String> {
    let wall = findings.cost.wall.0.max(1) as f64;
    let reads = elapsed::waits(findings).find(|part| part.id == "pages")?;
    // Faults wait in the same place.
    let most_by_faults = findings.cost.major_faults as f64 * LONGEST_READ.0 as f64;
    let share = reads.time.scaled(1.0 / wall);
    let is_its_own = most_by_faults <= reads.time.value / 2.0;
    (is_its_own && share.value >= WORTH_A_LINE).then(|| phrases::populating_waits(range(share)))
}

/// Share of the CPU time of calls on memory, if there were any.
pub(super) fn memory_calls(findings: &Findings) -> Option<Estimate> {
    let table = KernelTable::shipped();
    let entries = findings.account.entries.iter();
    let calls = entries.filter(|entry| table.is_memory_call(&entry.id));
    let all = together(calls.map(|entry| share_of(entry.time, findings)));
    (all.value > 0.0).then_some(all)
}

fn is_gate(entry: &KernelEntry) -> bool {
    entry.id == "gate"
}

/// Each call comes through the gate: the gate's time for calls that are reported elsewhere belongs
/// to those.
fn with_their_gate(message: &[&KernelEntry], all: &[KernelEntry]) -> Vec<KernelEntry> {
    let call = |entry: &KernelEntry| match entry.id.starts_with("call.") {
        true => entry.time.value,
        false => 0.0,
    };
    let (here, calls) = (
        message.iter().map(|entry| call(entry)).sum::<f64>(),
        all.iter().map(call).sum::<f64>(),
    );
    let part = if calls > 0.0 { here / calls } else { 1.0 };
    let one = |entry: &&KernelEntry| match is_gate(entry) {
        true => KernelEntry {
            time: entry.time.scaled(part),
            ..(*entry).clone()
        },
        false => (*entry).clone(),
    };
    let mut found: Vec<KernelEntry> = message.iter().map(one).collect();
    found.sort_by(|a, b| b.time.value.total_cmp(&a.time.value));
    found
}

/// Whether nearly all of it is work on files: the purpose of a program that requests it, not a
/// problem by itself, however much it is.
fn is_of_files(others: &[KernelEntry], all: Estimate, findings: &Findings) -> bool {
    let table = KernelTable::shipped();
    let sum = |wanted: &dyn Fn(&KernelEntry) -> bool| -> f64 {
        let entries = others.iter().filter(|entry| wanted(entry));
        entries
            .map(|entry| share_of(entry.time, findings).value)
            .sum()
    };
    // Each call comes through the gate.
    let (gate, called) = (sum(&is_gate), sum(&|entry| !is_gate(entry)));
    let through_gate = 1.0 + gate / called.max(f64::MIN_POSITIVE);
    let files = through_gate * sum(&|entry| table.is_file_call(&entry.id));
    let rest = all.value - files;
    files >= rest && rest < TOLD
}

/// `52 % (48 to 56 %) of the CPU time: reading (pread64), most of it in filemap_read`.
fn line(entry: &KernelEntry, findings: &Findings) -> String {
    let share = share_of(entry.time, findings);
    match entry.functions.is_empty() {
        true => phrases::entry(range(share), &entry.label),
        false => phrases::entry_within(range(share), &entry.label, entry.functions.join(", ")),
    }
}

/// What neither the faults seen nor those inferred from totals explain.
fn unseen(findings: &Findings, symptoms: &[Case]) -> Option<Diagnosis> {
    let inferred = symptoms
        .iter()
        .find(|one| one.kind == Symptom::ChurnProbable);
    let inferred = inferred.map_or(Estimate::default(), |one| one.cost);
    let all = share_of(findings.account.unexplained, findings);
    let share = Estimate {
        value: (all.value - inferred.value).max(0.0),
        low: (all.low - inferred.high).max(0.0),
        high: (all.high - inferred.low).max(0.0),
    };
    let cpu = findings.cost.cpu().as_secs_f64();
    let nanos = Nanos::from_secs_f64(share.value * cpu);
    if share.value < TOLD || nanos < WORTH_ASKING {
        return None;
    }
    let cost = &findings.cost;
    let unexplained = phrases::unexplained(cost.system, cost.cpu(), nanos, percent(share.value));
    let severity = severity_within(share, cost.cpu())?;
    let when = is_privileged(findings).then_some(When::Privileged);
    Some(Diagnosis {
        share_of_cpu: Some(share),
        ..words(Symptom::KernelUnexplained, when).found(severity, &[], vec![unexplained])
    })
}

/// The program as options of a command.
pub(super) fn who(findings: &Findings) -> String {
    let subject = &findings.subject;
    let is_running = findings.collection.attached || subject.command.is_empty();
    match subject.pids.first().filter(|_| is_running) {
        Some(pid) => format!("-p {pid}"),
        None if findings.collection.whole_machine => "-a".to_owned(),
        None => "-- CMD".to_owned(),
    }
}

fn share_of(time: Estimate, findings: &Findings) -> Estimate {
    time.scaled(1.0 / findings.cost.cpu().0.max(1) as f64)
}

/// Whether the recorder had the rights to see the kernel: more rights show no more.
pub(super) fn is_privileged(findings: &Findings) -> bool {
    let account = &findings.account;
    account.sees_kernel() || account.delays.is_some() || !findings.time.mm_calls.is_empty()
}
