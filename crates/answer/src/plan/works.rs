//! Symptoms visible in samples of CPU time in the kernel, but hardly in faults and not in waits:
//! copies by forks, spinning for the lock of the address space, flushing the TLBs of other CPUs, faults that
//! the program serves itself, buffers that are registered for each request.
//! Also files that are mapped repeatedly, although each of their faults is an ordinary one.

use super::case::{Case, faults_of, is_one_process, plain, share_of_work, together};
use super::grade::{range, severity};
use super::open::has_one_thread;
use super::symptom::Symptom;
use super::{numa, phrases};
use pagewise_model::account::{FORKED, KernelEntry, LOCKS, QUEUE, SPAWNED};
use pagewise_model::findings::{Cause, Findings, Severity};
use pagewise_model::quantity::count;
use pagewise_model::units::{Bytes, Estimate, Nanos};

/// Files count as repeatedly mapped if the faults that found their pages in memory are this many
/// times the pages that the process ever had…
const OFTEN: f64 = 4.0;
/// … and at least this many calls unmapped something.
const FEWEST_CALLS: u64 = 100;
/// Pages that one fault maps at most where the file is in memory (mm/memory.c: fault_around_bytes, 64 KiB).
const FAULT_AROUND: f64 = 16.0;
/// Faults that read a page, of those that found it in memory, at most.
const RARELY_READ: f64 = 0.02;
/// A symptom explains an entry if it accounts for this part of its time.
const MOST_OF_IT: f64 = 0.5;

/// Work of the kernel: serving faults for a thread of the program, registering buffers (`kernel.toml`).
const SERVED: &str = "served";
const REGISTERED: &str = "registered";
/// The entry of the kernel's account for memory that calls populate.
pub(super) const POPULATE: &str = "populate";

pub(super) fn all(findings: &Findings) -> impl Iterator<Item = Case> {
    let found = [
        (of_forks(findings), forks(findings)),
        (Symptom::LockSpin, spinning(findings)),
        (Symptom::TlbFlush, share_of_work(findings, "flush")),
        (Symptom::ServedFaults, share_of_work(findings, SERVED)),
        (Symptom::Registering, share_of_work(findings, REGISTERED)),
        (Symptom::LockQueue, queueing(findings)),
        (Symptom::Populating, populating(findings)),
    ];
    found.into_iter().filter_map(|(kind, cost)| {
        Some(Case {
            cost: cost?,
            ..plain(findings, kind, 0.0, &[])
        })
    })
}

/// Share of the CPU time from which locks of the program are worth mentioning…
const MUCH_LOCKING: f64 = 0.1;
/// … if the kernel's part in it, which a lock without a queue never needs, is at least this.
const SOME_QUEUE: f64 = 0.01;

/// Taking and releasing locks of the program that threads queue for, in user mode and in the kernel.
fn queueing(findings: &Findings) -> Option<Estimate> {
    let queue = share_of_work(findings, QUEUE).filter(|queue| queue.value >= SOME_QUEUE)?;
    let cost = together([locking(findings)?, queue].into_iter());
    (cost.value >= MUCH_LOCKING && !has_one_thread(findings)).then_some(cost)
}

fn locking(findings: &Findings) -> Option<Estimate> {
    let part = findings.account.part(LOCKS)?;
    Some(part.time.scaled(1.0 / findings.cost.cpu().0.max(1) as f64))
}

/// What populating a page takes, at most: ten times what it took on a busy virtual machine (1.6 to 1.9 µs, Linux 6.18).
const POPULATING_NS: f64 = 20_000.0;

/// Populating new mappings as the program asked, if what it asked for explains most of it: locked memory
/// (mlockall) is populated without being asked.
fn populating(findings: &Findings) -> Option<Estimate> {
    let time = findings.account.entry(POPULATE)?;
    is_requested(findings).then(|| time.scaled(1.0 / findings.cost.cpu().0.max(1) as f64))
}

/// Whether what is populated is mostly what calls of mmap asked for.
pub(super) fn is_requested(findings: &Findings) -> bool {
    let pages = findings.time.populate_requested.0 as f64 / findings.host.page_size.max(1) as f64;
    let time = findings.account.entry(POPULATE).unwrap_or_default();
    pages > 0.0 && pages * POPULATING_NS >= MOST_OF_IT * time.value
}

/// Spinning for the lock of the address space: threads do that for each other.
fn spinning(findings: &Findings) -> Option<Estimate> {
    share_of_work(findings, "lock").filter(|_| !has_one_thread(findings))
}

/// Threads that wait for the lock of the address space sleep or spin: one problem, reported as the
/// costlier of the two.
pub(super) fn one_of_locks(findings: &Findings, symptoms: &mut Vec<Case>) {
    let lost = |kind: Symptom| {
        let found = symptoms.iter().find(|one| one.kind == kind);
        found.map(|one| one.lost(findings))
    };
    if let (Some(spinning), Some(sleeping)) = (lost(Symptom::LockSpin), lost(Symptom::LockWait)) {
        let lesser = match spinning < sleeping {
            true => Symptom::LockSpin,
            false => Symptom::LockWait,
        };
        symptoms.retain(|one| one.kind != lesser);
    }
}

/// Number of forks from which the cost of each is worth mentioning.
const MANY_FORKS: u64 = 50;
/// Symptoms that are part of the cost of each fork, if that explains most of them.
const OF_FORKS: [Symptom; 6] = [
    Symptom::ForkTables,
    Symptom::ForkSpawn,
    Symptom::ForkCopies,
    Symptom::File,
    Symptom::FirstTouch,
    Symptom::FreshMemory,
];

/// If many processes are forked for a little work each, the total cost is one problem: copying page
/// tables, the faults of the new processes, and their exit. If copies of written pages are most of
/// it, those are reported instead.
pub(super) fn forked_for_each(findings: &Findings, symptoms: &mut Vec<Case>) {
    let faults = share_of_work(findings, FORKED).filter(|_| findings.time.forks >= MANY_FORKS);
    let all = findings.time.share_of_cpu.unwrap_or_default();
    let Some(faults) = faults.filter(|faults| faults.value >= MOST_OF_IT * all.value) else {
        return;
    };
    let copied = forks(findings).unwrap_or_default();
    let cost = Estimate {
        value: (copied.value + faults.value).min(1.0),
        low: copied.low + faults.low,
        high: (copied.high + faults.high).min(1.0),
    };
    let written = symptoms.iter().find(|one| one.kind == Symptom::ForkCopies);
    if written.is_some_and(|one| one.cost.value >= MOST_OF_IT * cost.value) {
        return;
    }
    symptoms.retain(|one| !OF_FORKS.contains(&one.kind));
    symptoms.push(Case {
        cost,
        ..plain(findings, Symptom::ForkEach, 0.0, &[])
    });
}

/// Where the program serves its own faults, that is what they cost, whether their pages were touched before.
pub(super) fn served_by_the_program(findings: &Findings, symptoms: &mut Vec<Case>) {
    let all = findings.time.share_of_cpu.unwrap_or_default();
    let served = share_of_work(findings, SERVED).map_or(0.0, |share| share.value);
    if served > 0.0 && served >= MOST_OF_IT * all.value {
        symptoms.retain(|one| !one.kind.is_fresh_memory());
    }
}

/// Whether what forks copy is mostly for programs that are started.
fn of_forks(findings: &Findings) -> Symptom {
    let part = |id: &str| share_of_work(findings, id).map_or(0.0, |share| share.value);
    match part(SPAWNED) > MOST_OF_IT * part("fork") {
        true => Symptom::ForkSpawn,
        false => Symptom::ForkTables,
    }
}

/// Nanoseconds in which the kernel frees a page that faulted, at most: 512 MiB of small pages take 25
/// to 60 ms to unmap (Linux 6.18, x86-64).
const FREEING_NS: f64 = 500.0;

/// Copies by forks, and the teardown by their children when they end: at most as much as was
/// copied, at least what is more than freeing all pages that faulted takes.
pub(super) fn forks(findings: &Findings) -> Option<Estimate> {
    let copied = share_of_work(findings, "fork")?;
    let taken = share_of_work(findings, "exit").unwrap_or(Estimate::exact(0.0));
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let own = findings.cost.faults() as f64 * FREEING_NS / cpu;
    Some(Estimate {
        value: copied.value + taken.value.min(copied.value),
        low: copied.low + (taken.low - own).clamp(0.0, copied.low),
        high: (copied.high + taken.high).min(1.0),
    })
}

/// Whether file pages in the page cache fault because their mappings are created and removed
/// repeatedly.
pub(super) fn maps_files_anew(findings: &Findings) -> bool {
    is_one_process(findings) && (maps_small_files_anew(findings) || maps_large_files_anew(findings))
}

/// Many mappings, of which each fault may find a single page.
fn maps_small_files_anew(findings: &Findings) -> bool {
    let faults = faults_of(findings, &[Cause::FileMinor, Cause::FileCopy]);
    let held = pages_held(findings);
    unmaps(findings).calls >= FEWEST_CALLS && held > 0.0 && faults >= OFTEN * held
}

/// Few, each of which the faults map in pieces of the size of fault_around_bytes. Where pages are read
/// from the disk, a file may just be larger than memory.
fn maps_large_files_anew(findings: &Findings) -> bool {
    let found = faults_of(findings, &[Cause::FileMinor]);
    let read = faults_of(findings, &[Cause::FileMajor]);
    let held = pages_held(findings);
    let unmapped = unmaps(findings).bytes.0 as f64;
    held > 0.0
        && found * FAULT_AROUND >= OFTEN * held
        && read <= RARELY_READ * found
        && unmapped >= OFTEN * findings.cost.max_rss.0 as f64
}

fn pages_held(findings: &Findings) -> f64 {
    findings.cost.max_rss.0 as f64 / findings.host.page_size.max(1) as f64
}

/// Calls of munmap, and what they unmapped.
struct Unmapped {
    calls: u64,
    bytes: Bytes,
}

fn unmaps(findings: &Findings) -> Unmapped {
    let calls = findings.time.mm_calls.iter();
    let unmapping = calls.filter(|cost| cost.call == "munmap");
    let none = Unmapped {
        calls: 0,
        bytes: Bytes(0),
    };
    unmapping.fold(none, |sum, cost| Unmapped {
        calls: sum.calls + cost.calls,
        bytes: Bytes(sum.bytes.0.saturating_add(cost.bytes.0)),
    })
}

/// Whether costly symptoms explain the kernel's work in this entry.
pub(super) fn tell_of(symptoms: &[Case], entry: &KernelEntry, findings: &Findings) -> bool {
    let message = |works: &[&str]| -> f64 {
        let works = works.iter().filter_map(|id| findings.account.work(id));
        let outside = works.map(|work| work.time.value - work.in_faults.value);
        outside.sum()
    };
    let costly = |kind: Symptom| {
        let mut found = symptoms.iter().filter(|one| one.kind == kind);
        found.any(|one| severity(findings, one) >= Some(Severity::Costly))
    };
    let explained = match &*entry.id {
        "call.process" if costly(Symptom::StartEach) || costly(Symptom::ThreadEach) => return true,
        "call.process"
            if costly(Symptom::ForkTables)
                || costly(Symptom::ForkSpawn)
                || costly(Symptom::ForkEach) =>
        {
            message(&["fork", "exit"])
        }
        "interrupt" if costly(Symptom::NumaBalancing) => message(&[numa::WORK]),
        "call.device" | "call.read" if costly(Symptom::ServedFaults) => message(&[SERVED]),
        "call.rings" | "populate" if costly(Symptom::Registering) => message(&[REGISTERED]),
        POPULATE if costly(Symptom::Populating) || costly(Symptom::ThreadEach) => return true,
        "call.futex" if costly(Symptom::LockQueue) => message(&[QUEUE]),
        "call.map" if costly(Symptom::FileRemap) => return true,
        "call.map" => {
            let part = |kind, work| if costly(kind) { message(&[work]) } else { 0.0 };
            part(Symptom::LockSpin, "lock") + part(Symptom::TlbFlush, "flush")
        }
        _ => return false,
    };
    explained >= MOST_OF_IT * entry.time.value
}

/// The figures that show it.
pub(super) fn evidence(findings: &Findings, symptom: &Case) -> Vec<String> {
    let share = |id: &str| share_of_work(findings, id).map(range);
    let lines = match symptom.kind {
        Symptom::ForkTables | Symptom::ForkSpawn => {
            let forks = findings.time.forks;
            let each = Nanos::from_secs_f64(symptom.lost(findings) / forks.max(1) as f64);
            return [
                (forks > 0).then(|| phrases::each_fork(count(forks), each)),
                share("fork").map(phrases::copying_tables),
                share("exit").map(phrases::taking_down),
                Some(phrases::largest_process(findings.cost.max_rss)),
            ]
            .into_iter()
            .flatten()
            .collect();
        }
        Symptom::ForkEach => {
            let each = symptom.lost(findings) / findings.time.forks.max(1) as f64;
            return [
                Some(phrases::each_fork(
                    count(findings.time.forks),
                    Nanos::from_secs_f64(each),
                )),
                share(FORKED).map(phrases::faults_of_forks),
                share("fork").map(phrases::copying_tables),
                share("exit").map(phrases::taking_down),
            ]
            .into_iter()
            .flatten()
            .collect();
        }
        Symptom::LockSpin | Symptom::LockWait => [share("lock").map(phrases::spinning), None, None],
        Symptom::TlbFlush => [share("flush").map(phrases::flushing), None, None],
        Symptom::ServedFaults => [share(SERVED).map(phrases::serving), None, None],
        Symptom::Registering => [share(REGISTERED).map(phrases::registering), None, None],
        Symptom::Populating => {
            let asked = findings.time.populate_requested;
            let line = phrases::populating(asked, findings.cost.max_rss);
            [Some(line), None, None]
        }
        Symptom::LockQueue => {
            let asking = findings.account.part(LOCKS);
            let asking = asking.map_or(String::new(), |part| part.places.join(", "));
            [
                locking(findings).map(range).map(phrases::locking),
                (!asking.is_empty()).then(|| phrases::asking(asking)),
                share(QUEUE).map(phrases::queueing),
            ]
        }
        Symptom::FileRemap => {
            let Unmapped { calls, bytes } = unmaps(findings);
            [
                Some(phrases::unmapped(
                    count(calls),
                    bytes,
                    findings.cost.max_rss,
                )),
                None,
                None,
            ]
        }
        _ => [None, None, None],
    };
    lines.into_iter().flatten().collect()
}
