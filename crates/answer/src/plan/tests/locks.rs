//! Locks of the program that threads queue for.

use super::works::{ids, working};
use super::*;
use pagewise_model::account::{LOCKS, QUEUE, TimePart};

/// A run of which `locks` of the CPU time goes into locks and `queue` into sleeping for them.
fn locking(locks: f64, queue: f64) -> Findings {
    let mut findings = working("call.futex", &[(QUEUE, queue)]);
    let cpu = findings.cost.cpu().0 as f64;
    findings.account.entries[0].time = Estimate::exact(queue * cpu);
    findings.account.cpu.push(TimePart {
        places: vec!["serve(int)".into()],
        ..TimePart::plain(LOCKS, "", Estimate::exact(locks * cpu))
    });
    findings
}

#[test]
fn threads_that_queue_for_a_lock_are_named_with_who_asks() {
    let answer = concluded(locking(0.5, 0.2));
    assert_eq!(ids(&answer)[0], "lock.threads");
    assert_eq!(answer.advice[0].rule, "lock.threads");
    let evidence = answer.diagnoses[0].evidence.join("\n");
    assert!(evidence.contains("for locks in serve(int)"), "{evidence}");
    let verdict = &answer.verdict;
    assert!(verdict.contains("Threads queue for a lock"), "{verdict}");
}

#[test]
fn locks_that_nobody_waits_for_are_no_queue() {
    for (locks, queue) in [(0.5, 0.0), (0.05, 0.02)] {
        let answer = concluded(locking(locks, queue));
        assert!(
            !ids(&answer).contains(&"lock.threads"),
            "{:?}",
            ids(&answer)
        );
    }
}
