//! Programs and threads that are started for a little work each: what starting and ending them takes is the cost,
//! in whichever functions it is spent.

use super::case::{Case, plain, together};
use super::phrases;
use super::symptom::Symptom;
use super::works::{self, POPULATE};
use pagewise_model::account::{TaskSum, Tasks};
use pagewise_model::findings::Findings;
use pagewise_model::quantity::count;
use pagewise_model::units::{Estimate, Nanos};

/// Programs that are started, from which on they are many.
const MANY_PROGRAMS: u64 = 50;
/// CPU time of a program that does a little work: starting an interpreter takes 10 to 50 ms.
const LITTLE: f64 = 50e6;
/// Share of the CPU time from which such programs are worth mentioning.
const MUCH: f64 = 0.3;
/// Threads that are started, from which on they are many.
const MANY_THREADS: u64 = 1_000;
/// Threads for each process, from which on it is the threads that are many.
const FOR_EACH_PROCESS: u64 = 10;
/// The entry of the kernel's account for starting and ending processes and threads.
const LIVES: &str = "call.process";
/// The call by which a new stack of locked memory is populated (nptl/allocatestack.c, setup_stack_prot).
const OF_STACKS: &str = "mprotect";
/// Faults of one process, of all, from which on first touches are its own.
const MOST_OF_IT: f64 = 0.5;

pub(super) fn all(findings: &Findings) -> impl Iterator<Item = Case> {
    let found = [
        (Symptom::StartEach, programs(findings)),
        (Symptom::ThreadEach, threads(findings)),
    ];
    found.into_iter().filter_map(|(kind, cost)| {
        Some(Case {
            cost: cost?,
            ..plain(findings, kind, 0.0, &[])
        })
    })
}

/// Share of the CPU time in programs that take little each: at least in those that were seen to the end, at
/// most with what was used by those that were not.
fn programs(findings: &Findings) -> Option<Estimate> {
    let started = findings.time.spawned;
    let tasks = findings.account.tasks.as_ref()?;
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let (seen, unseen) = in_little_ones(tasks);
    let each = (seen + unseen) / started.max(1) as f64;
    let share = |time: f64| (time / cpu).min(1.0);
    let cost = Estimate {
        value: share(seen + unseen),
        low: share(seen),
        high: share(seen + unseen),
    };
    (started >= MANY_PROGRAMS && each <= LITTLE && cost.value >= MUCH).then_some(cost)
}

/// CPU time in nanoseconds of processes that took little, and of those that ended before it was read.
fn in_little_ones(tasks: &Tasks) -> (f64, f64) {
    let run = |sum: &TaskSum| sum.part("cpu");
    let listed = tasks.processes.iter().map(|one| run(&one.all));
    let listed: f64 = listed.filter(|time| *time <= LITTLE).sum();
    let others = tasks.others.as_ref().map_or(0.0, run);
    (listed + others, tasks.elsewhere.0 as f64)
}

/// Starting and ending threads, with the stacks that are populated for them where all memory is locked.
fn threads(findings: &Findings) -> Option<Estimate> {
    let processes = 1 + findings.time.forks;
    let started = threads_started(findings);
    if started < MANY_THREADS || started < FOR_EACH_PROCESS * processes {
        return None;
    }
    let entries = findings.account.entries.iter();
    let of_threads = entries.filter(|one| {
        let stacks = one.id == POPULATE && one.label.contains(OF_STACKS);
        one.id == LIVES || stacks && !works::is_requested(findings)
    });
    let cpu = findings.cost.cpu().0.max(1) as f64;
    let cost = together(of_threads.map(|one| one.time.scaled(1.0 / cpu)));
    (cost.value > 0.0).then_some(cost)
}

fn threads_started(findings: &Findings) -> u64 {
    let Some(tasks) = &findings.account.tasks else {
        return 0;
    };
    let listed = tasks.processes.iter().map(|one| one.all.threads);
    let others = [&tasks.others, &tasks.unseen].into_iter().flatten();
    let all: u64 = listed.chain(others.map(|sum| sum.threads)).sum();
    all.saturating_sub(1 + findings.time.forks)
}

/// What is part of starting programs, if no process has most of the faults.
const OF_STARTS: [Symptom; 6] = [
    Symptom::ForkEach,
    Symptom::File,
    Symptom::FileCopies,
    Symptom::FileRemap,
    Symptom::FirstTouch,
    Symptom::FreshMemory,
];

/// First touches, and pages of files and their copies, in programs that are started again and again are part of
/// starting them.
pub(super) fn take_in_their_faults(findings: &Findings, symptoms: &mut Vec<Case>) {
    let starts = symptoms.iter().any(|one| one.kind == Symptom::StartEach);
    let threads = &findings.by_thread;
    let all: f64 = threads.iter().map(|one| one.faults).sum();
    let has_most = |pid: i32| {
        let own = threads.iter().filter(|one| one.pid == pid);
        own.map(|one| one.faults).sum::<f64>() >= MOST_OF_IT * all
    };
    if starts && !threads.iter().any(|one| has_most(one.pid)) {
        symptoms.retain(|one| !OF_STARTS.contains(&one.kind));
    }
}

/// The figures that show it.
pub(super) fn evidence(findings: &Findings, symptom: &Case) -> Vec<String> {
    let (number, line): (u64, fn(String, Nanos) -> String) = match symptom.kind {
        Symptom::StartEach => (findings.time.spawned, phrases::each_program),
        _ => (threads_started(findings), phrases::each_thread),
    };
    let each = symptom.lost(findings) / number.max(1) as f64;
    vec![line(count(number), Nanos::from_secs_f64(each))]
}
