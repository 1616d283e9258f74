//! Waits that the kernel counted.

use super::*;
use pagewise_model::delays::{Delay, Delays};
use pagewise_model::timeline::PressurePoint;

/// A run with 2 s of CPU time and these delays.
fn waiting(change: impl Fn(&mut Delays)) -> Findings {
    let mut findings = run(1000, 1000, 2_000);
    let mut delays = Delays {
        tasks: 1,
        ready: delay(0, 0),
        ..Delays::default()
    };
    change(&mut delays);
    findings.account.delays = Some(delays);
    findings
}

fn delay(count: u64, milliseconds: u64) -> Option<Delay> {
    Some(Delay {
        count,
        time: Nanos(milliseconds * 1_000_000),
    })
}

fn named<'a>(answer: &'a Findings, id: &str) -> Option<&'a Diagnosis> {
    answer.diagnoses.iter().find(|one| one.id == id)
}

#[test]
fn reclaim_that_no_sample_showed_is_told_by_its_delay() {
    let answer = concluded(waiting(|delays| delays.reclaim = delay(9_000, 800)));
    let reclaim = named(&answer, "reclaim").expect("it took 40 % of the time");
    assert_eq!(reclaim.severity, Severity::Severe);
    let line = "Counted by the kernel over all threads: 800 ms reclaiming memory before an allocation, 9,000 times";
    assert!(
        reclaim.evidence.iter().any(|one| one == line),
        "{:?}",
        reclaim.evidence
    );
    assert_eq!(answer.advice[0].rule, "pressure.limit");
}

#[test]
fn where_samples_and_the_count_disagree_the_interval_spans_both() {
    let mut findings = waiting(|delays| delays.reclaim = delay(9_000, 800));
    findings.account.work = vec![KernelWork {
        id: "reclaim".into(),
        time: Estimate::exact(200e6),
        in_faults: Estimate::exact(0.0),
    }];
    let answer = concluded(findings);
    let lines = &named(&answer, "reclaim").expect("it took time").evidence;
    assert!(
        lines.iter().any(|line| line.contains("disagree")),
        "{lines:?}"
    );
}

#[test]
fn pages_that_are_evicted_too_soon_are_told() {
    let answer = concluded(waiting(|delays| {
        delays.thrashing = delay(2_000, 600);
        delays.swap = delay(1_000, 500);
    }));
    let found = named(&answer, "thrashing").expect("30 % of the time");
    assert_eq!(found.severity, Severity::Severe);
    assert_eq!(answer.advice[0].rule, "swap.limit");
}

#[test]
fn short_waits_are_no_finding() {
    let answer = concluded(waiting(|delays| {
        delays.thrashing = delay(20, 6);
        delays.reclaim = delay(90, 8);
    }));
    // Half of the CPU time is the kernel's, and nothing shows the reason.
    assert_eq!(answer.diagnoses[0].id, "open");
    assert!(named(&answer, "reclaim").is_none() && named(&answer, "thrashing").is_none());
}

#[test]
fn at_a_limit_pages_of_files_fault_because_of_it() {
    let mut findings = waiting(|delays| delays.reclaim = delay(9_000, 900));
    findings.by_cause = vec![share(Cause::FileMajor, 1_900.0)];
    let point = |hits: u64| PressurePoint {
        cgroup_limit_hits: Some(hits),
        ..PressurePoint::default()
    };
    findings.timeline.pressure = vec![point(100), point(90_100)];
    let answer = concluded(findings.clone());
    assert_eq!(answer.diagnoses[0].id, "limit", "{:?}", answer.diagnoses);
    let hits = "The memory limit of the cgroup was hit 90,000 times";
    assert!(answer.diagnoses[0].evidence.iter().any(|line| line == hits));
    assert_eq!(answer.advice[0].rule, "limit.larger");
    let verdict = &answer.verdict;
    assert!(verdict.contains("A larger memory limit"), "{verdict}");
    assert!(!verdict.contains("No setting"), "{verdict}");
    // The cgroup may be gone when the program has ended.
    findings.timeline.pressure.push(point(0));
    assert_eq!(concluded(findings.clone()).diagnoses[0].id, "limit");
    // A limit that was hit earlier is irrelevant to this run.
    findings.timeline.pressure = vec![point(100), point(100)];
    assert_eq!(concluded(findings).diagnoses[0].id, "reclaim");
}

#[test]
fn a_program_that_was_killed_at_its_limit_ran_out_of_memory() {
    let mut findings = waiting(|delays| delays.reclaim = delay(9_000, 900));
    let point = |hits: u64| PressurePoint {
        cgroup_limit_hits: Some(hits),
        ..PressurePoint::default()
    };
    findings.timeline.pressure = vec![point(0), point(70)];
    for ending in [Ending::Killed(9), Ending::Exited(137)] {
        findings.ending = ending;
        let answer = concluded(findings.clone());
        assert_eq!(answer.diagnoses[0].id, "limit.killed");
        assert_eq!(answer.advice[0].rule, "limit.larger");
        let verdict = &answer.verdict;
        assert!(
            verdict.contains("ran out of memory. A larger memory limit"),
            "{verdict}"
        );
    }
    // Somebody else killed it.
    findings.timeline.pressure = vec![point(70), point(70)];
    let answer = concluded(findings.clone());
    assert!(answer.diagnoses.iter().all(|one| one.id != "limit.killed"));
    // It lived.
    findings.timeline.pressure = vec![point(0), point(70)];
    findings.ending = Ending::Exited(0);
    let answer = concluded(findings);
    assert!(answer.diagnoses.iter().all(|one| one.id != "limit.killed"));
}
