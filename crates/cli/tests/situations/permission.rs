//! Restrictions by the kernel: no privileges, no perf events at all, programs that change their
//! user.

use crate::stage::{Outcome, Stage, faults, is_root, notes, pagewise_path, skip, target};

/// Faults of `target churn 30`: 33 MiB in pages of 4 KiB, thirty times. Larger pages cause fewer.
const CHURN_FAULTS: u64 = 30 * 33 * 256;

fn page_is_4k() -> bool {
    crate::stage::works("sh", &["-c", "[ $(getconf PAGESIZE) = 4096 ]"])
}

#[test]
fn without_privileges_the_diagnosis_names_what_is_missing() {
    let stage = Stage::new();
    let outcome = Outcome::run(stage.unprivileged_pagewise().args([
        "doctor",
        "--json",
        "--",
        target(),
        "churn",
        "30",
    ]))
    .ended_with(0);
    let findings = outcome.json();
    if page_is_4k() {
        assert!(
            faults(&findings) >= CHURN_FAULTS,
            "faults {}",
            faults(&findings)
        );
    }
    assert_eq!(
        findings["diagnoses"][0]["id"], "churn.mmap",
        "{}",
        findings["diagnoses"]
    );
    let notes = notes(&findings);
    assert!(
        notes.contains("tracepoint"),
        "nothing said about tracepoints: {notes}"
    );
}

/// Container runtimes return EPERM, others ENOSYS; with either, wait4 and /proc still work.
fn diagnoses_without_perf_events(error: i32) {
    let stage = Stage::new();
    let outcome = Outcome::run(stage.command(target()).args([
        "deny",
        &error.to_string(),
        pagewise_path(),
        "doctor",
        "--json",
        "--",
        target(),
        "churn",
        "30",
    ]))
    .ended_with(0);
    let findings = outcome.json();
    assert_eq!(findings["evidence"]["run"]["samples"], 0);
    if page_is_4k() {
        assert!(
            faults(&findings) >= CHURN_FAULTS,
            "faults {}",
            faults(&findings)
        );
    }
    let notes = notes(&findings);
    assert!(
        notes.contains("perf_event_open"),
        "nothing said about perf events: {notes}"
    );
    assert!(
        !findings["evidence"]["run"]["timeline"]["points"]
            .as_array()
            .expect("points")
            .is_empty()
    );
}

#[test]
fn forbidden_perf_events_leave_a_report_from_proc() {
    diagnoses_without_perf_events(libc::EPERM);
}

#[test]
fn missing_perf_events_leave_a_report_from_proc() {
    diagnoses_without_perf_events(libc::ENOSYS);
}

#[test]
fn record_without_perf_events_keeps_the_totals_and_tells_why() {
    let stage = Stage::new();
    Outcome::run(stage.command(target()).args([
        "deny",
        &libc::EPERM.to_string(),
        pagewise_path(),
        "record",
        "-o",
        "x.perf.data",
        "--",
        target(),
        "churn",
        "1",
    ]))
    .ended_with(0)
    .tells(&["only totals", "perf_event_open"]);
    let reported = Outcome::run(stage.pagewise().args(["report", "--json", "x.perf.data"]));
    assert!(faults(&reported.ended_with(0).json()) > 0);
}

#[test]
fn ordinary_programs_are_not_said_to_change_their_identity() {
    let stage = Stage::new();
    for target_arguments in [["churn", "30"], ["threads", "50"]] {
        let outcome = Outcome::run(
            stage
                .unprivileged_pagewise()
                .args(["record", "-o", "x.perf.data", "--", target()])
                .args(target_arguments),
        )
        .ended_with(0);
        assert!(!outcome.stderr.contains("identity"), "{}", outcome.stderr);
    }
}

#[test]
fn a_setuid_target_runs_and_the_blind_spot_is_told() {
    const TEST: &str = "a_setuid_target_runs_and_the_blind_spot_is_told";
    if !is_root() {
        return skip(TEST, "only root can make a set-user-ID program");
    }
    let stage = Stage::new();
    let program = stage.path("setuid-target");
    std::fs::copy(target(), &program).expect("copy the target");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o4755);
    std::fs::set_permissions(&program, mode).expect("set the set-user-ID bit");
    let findings = Outcome::run(
        stage
            .unprivileged_pagewise()
            .args(["doctor", "--json", "--"])
            .arg(&program)
            .args(["churn", "30"]),
    )
    .ended_with(0)
    .json();
    if page_is_4k() {
        assert!(
            faults(&findings) >= CHURN_FAULTS,
            "faults {}",
            faults(&findings)
        );
    }
    let notes = notes(&findings);
    assert!(
        notes.contains("set-user-ID"),
        "nothing said about the set-user-ID program: {notes}"
    );
    assert_eq!(
        notes.matches("set-user-ID").count(),
        1,
        "said twice: {notes}"
    );
}
