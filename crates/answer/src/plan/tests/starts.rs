//! Programs and threads that are started for a little work each, and memory that is populated on request.

use super::works::{ids, working};
use super::*;
use pagewise_model::account::{ProcessTime, TaskSum, Tasks, TimePart};

fn sum(threads: u64, cpu: f64) -> TaskSum {
    TaskSum {
        threads,
        parts: vec![TimePart::plain("cpu", "on a CPU", Estimate::exact(cpu))],
        ..TaskSum::default()
    }
}

/// 4 s, of which one process took this much, and others, of so many threads, the rest.
fn started(first: f64, threads: u64) -> Findings {
    let mut findings = working("call.process", &[]);
    findings.account.entries[0].time = Estimate::exact(1e9);
    findings.account.tasks = Some(Tasks {
        processes: vec![ProcessTime {
            all: sum(1, first * 4e9),
            ..ProcessTime::default()
        }],
        others: Some(sum(threads, (1.0 - first) * 4e9)),
        ..Tasks::default()
    });
    findings
}

#[test]
fn programs_that_do_little_are_told_as_starts() {
    let of = |first: f64, spawned: u64| {
        let mut findings = started(first, spawned);
        (findings.time.forks, findings.time.spawned) = (spawned, spawned);
        concluded(findings)
    };
    let answer = of(0.1, 700);
    assert_eq!(ids(&answer)[0], "start.each", "{}", answer.verdict);
    assert!(!ids(&answer).contains(&"kernel.work"), "{:?}", ids(&answer));
    assert_eq!(answer.advice[0].rule, "start.fewer");
    let evidence = &answer.diagnoses[0].evidence;
    assert!(evidence[0].starts_with("700 programs"), "{evidence:?}");
    // Few programs; programs of 72 ms each; programs beside one that does most.
    for (first, spawned) in [(0.1, 40), (0.1, 50), (0.8, 700)] {
        let answer = of(first, spawned);
        assert!(!ids(&answer).contains(&"start.each"), "{first} {spawned}");
    }
}

#[test]
fn threads_that_do_little_are_told_as_starts() {
    let answer = concluded(started(0.9, 30_000));
    assert_eq!(ids(&answer)[0], "thread.each", "{}", answer.verdict);
    assert_eq!(answer.advice[0].rule, "thread.pool");
    assert!(!ids(&answer).contains(&"kernel.work"), "{:?}", ids(&answer));
    let answer = concluded(started(0.9, 300));
    assert!(!ids(&answer).contains(&"thread.each"));
    // A thousand processes with a thread each.
    let mut findings = started(0.9, 2_000);
    findings.time.forks = 2_000;
    assert!(!ids(&concluded(findings)).contains(&"thread.each"));
}

#[test]
fn stacks_that_are_populated_for_threads_are_part_of_them() {
    let mut findings = started(0.9, 1_500);
    let mut populating = findings.account.entries[0].clone();
    populating.id = "populate".to_owned();
    populating.label =
        "populating memory before it is touched (mprotect after mlockall)".to_owned();
    populating.time = Estimate::exact(2e9);
    findings.account.entries.push(populating);
    let answer = concluded(findings);
    let first = &answer.diagnoses[0];
    assert_eq!(first.id, "thread.each");
    assert!(
        first
            .share_of_cpu
            .is_some_and(|share| (share.value - 0.75).abs() < 0.01)
    );
}

#[test]
fn memory_that_the_program_has_populated_is_told_with_its_fix() {
    let of = |requested: u64| {
        let mut findings = working("populate", &[]);
        findings.time.populate_requested = Bytes(requested);
        concluded(findings)
    };
    let asked = of(1 << 40);
    assert_eq!(ids(&asked)[0], "populate.each");
    assert!(!ids(&asked).contains(&"kernel.work"), "{:?}", ids(&asked));
    assert_eq!(asked.advice[0].rule, "populate.less");
    // Locked memory is populated without being asked.
    assert_eq!(ids(&of(0))[0], "kernel.work");
    assert_eq!(ids(&of(1 << 20))[0], "kernel.work");
}
