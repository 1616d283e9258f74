//! Programs that are gone, crash, are interrupted, never start, or end at once.

use crate::stage::{Outcome, Stage, await_file, faults, signal_group, target};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

#[test]
fn a_process_that_is_gone_is_named() {
    let stage = Stage::new();
    let mut child = Command::new("true").spawn().expect("true starts");
    let pid = child.id().to_string();
    child.wait().expect("true ends");
    Outcome::run(stage.pagewise().args(["doctor", "-p", &pid]))
        .ended_with(1)
        .tells(&[&pid, "no process"]);
}

#[test]
fn a_process_that_ends_while_observed_is_reported() {
    let stage = Stage::new();
    // It ends once the recording has begun.
    let file = stage.path("begun.perf.data");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done", file.display());
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .stdin(Stdio::null())
        .spawn()
        .expect("sh starts");
    let pid = child.id().to_string();
    let reaper = std::thread::spawn(move || child.wait());
    let findings = Outcome::run(
        stage
            .pagewise()
            .args(["doctor", "--json", "--duration", "1h", "-p", &pid])
            .arg("--record")
            .arg(&file),
    )
    .ended_with(0)
    .json();
    reaper.join().expect("no panic").expect("sh ends");
    assert_eq!(findings["subject"]["pids"][0].to_string(), pid);
    let wall = findings["evidence"]["run"]["cost"]["wall"].as_u64();
    let whole = 3_600_000_000_000;
    assert!(
        wall.is_some_and(|wall| wall < whole),
        "observed a dead process for {wall:?} ns"
    );
}

#[test]
fn a_crash_keeps_the_recording_and_its_status() {
    let stage = Stage::new();
    let file = stage.path("crash.perf.data");
    Outcome::run(stage.pagewise().args(["record", "-o"]).arg(&file).args([
        "--",
        target(),
        "crash",
    ]))
    .ended_with(139)
    .tells(&["SIGSEGV"]);
    let findings = Outcome::run(stage.pagewise().args(["report", "--json"]).arg(&file))
        .ended_with(0)
        .json();
    assert_eq!(
        findings["evidence"]["run"]["ending"]["killed"],
        libc::SIGSEGV
    );
    assert!(faults(&findings) > 0);
}

#[test]
fn doctor_tells_a_crash_and_still_reports() {
    let stage = Stage::new();
    let outcome = Outcome::run(stage.pagewise().args(["doctor", "--", target(), "crash"]));
    assert!(outcome.stdout.contains("SIGSEGV"), "{}", outcome.stdout);
    let message = "the program was killed by SIGSEGV (signal 11)";
    // 128 plus the signal, as in a shell.
    outcome.ended_with(139).tells(&[message]);
    let outcome =
        Outcome::run(
            stage
                .pagewise()
                .args(["doctor", "--json", "--", target(), "crash"]),
        )
        .ended_with(139)
        .tells(&[message]);
    let findings = outcome.json();
    assert_eq!(
        findings["evidence"]["run"]["ending"]["killed"],
        libc::SIGSEGV
    );
    assert_eq!(findings["diagnoses"][0]["id"], "churn.mmap");
}

#[test]
fn doctor_ends_with_the_programs_own_status() {
    let stage = Stage::new();
    let mut doctor = stage.pagewise();
    doctor.args(["doctor", "--no-report", "--", "sh", "-c", "exit 3"]);
    Outcome::run(&mut doctor).ended_with(3);
}

#[test]
fn a_doctor_that_is_killed_leaves_no_recording() {
    let stage = Stage::new();
    let (ready, temporary) = (stage.path("ready"), stage.path("temporary"));
    std::fs::create_dir(&temporary).expect("a folder");
    let mut child = stage
        .pagewise()
        .env("TMPDIR", &temporary)
        .args(["doctor", "--no-report", "--", target(), "until-killed"])
        .arg(&ready)
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("pagewise starts");
    await_file(&ready);
    signal_group(child.id(), "KILL");
    child.wait().expect("pagewise ends");
    let left = std::fs::read_dir(&temporary).expect("readable").count();
    assert_eq!(left, 0, "files in the temporary folder");
}

#[test]
fn interrupting_doctor_reports_what_was_gathered() {
    let stage = Stage::new();
    let ready = stage.path("ready");
    let report = stage.path("kept.html");
    let child = stage
        .pagewise()
        .args(["doctor", "--json", "-o"])
        .arg(&report)
        .args(["--", target(), "until-killed"])
        .arg(&ready)
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    await_file(&ready);
    signal_group(child.id(), "INT");
    let outcome = Outcome::from(child.wait_with_output().expect("pagewise ends"));
    let findings = outcome.json();
    assert!(faults(&findings) >= 20, "faults {}", faults(&findings));
    assert_eq!(findings["diagnoses"][0]["id"], "churn.mmap");
    let html = std::fs::read_to_string(&report).expect("the report was written");
    assert!(
        html.trim_end().ends_with("</html>"),
        "the report is cut off"
    );
}

#[test]
fn the_end_of_the_time_is_no_failure_of_the_program() {
    let stage = Stage::new();
    let findings = Outcome::run(stage.pagewise().args([
        "doctor",
        "--json",
        "--duration",
        "1s",
        "--",
        "sleep",
        "100",
    ]))
    .ended_with(0)
    .json();
    assert_eq!(findings["evidence"]["run"]["ending"], "running");
}

#[test]
fn interrupting_record_keeps_a_readable_file() {
    let stage = Stage::new();
    let (ready, file) = (stage.path("ready"), stage.path("kept.perf.data"));
    let child = stage
        .pagewise()
        .args(["record", "-o"])
        .arg(&file)
        .args(["--", target(), "until-killed"])
        .arg(&ready)
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    await_file(&ready);
    signal_group(child.id(), "INT");
    let status = child
        .wait_with_output()
        .map(Outcome::from)
        .expect("pagewise ends")
        .status;
    assert!(status == 130 || status == 0, "status {status}");
    let findings = Outcome::run(stage.pagewise().args(["report", "--json"]).arg(&file))
        .ended_with(0)
        .json();
    assert!(faults(&findings) >= 20, "faults {}", faults(&findings));
}

#[test]
fn a_program_shorter_than_ten_milliseconds_is_accounted_exactly() {
    let stage = Stage::new();
    let findings = Outcome::run(stage.pagewise().args(["doctor", "--json", "--", "true"]))
        .ended_with(0)
        .json();
    assert_eq!(findings["evidence"]["run"]["ending"]["exited"], 0);
    assert!(
        (20..2000).contains(&faults(&findings)),
        "faults {}",
        faults(&findings)
    );
    assert!(findings["advice"].is_null(), "{}", findings["advice"]);
}

#[test]
fn a_command_that_does_not_exist_is_127() {
    let stage = Stage::new();
    for command in [&["record"][..], &["doctor"], &["run", "--memory", "32M"]] {
        Outcome::run(
            stage
                .pagewise()
                .args(command)
                .args(["--", "no-such-program-anywhere"]),
        )
        .ended_with(127)
        .tells(&["no-such-program-anywhere", "no program"]);
    }
}

#[test]
fn a_file_that_may_not_be_executed_is_126() {
    let stage = Stage::new();
    let file = stage.path("data.txt");
    std::fs::write(&file, "no program\n").expect("write a file");
    for command in [&["record"][..], &["doctor"], &["run", "--memory", "32M"]] {
        Outcome::run(stage.pagewise().args(command).arg("--").arg(&file))
            .ended_with(126)
            .tells(&["data.txt", "permission"]);
    }
}

#[test]
fn no_command_is_a_usage_error() {
    let stage = Stage::new();
    for command in ["record", "doctor"] {
        Outcome::run(stage.pagewise().arg(command))
            .ended_with(2)
            .tells(&["--help"]);
        Outcome::run(stage.pagewise().args([command, "--"]))
            .ended_with(2)
            .tells(&["--help"]);
    }
}

#[test]
fn the_childs_own_status_is_recorded() {
    let stage = Stage::new();
    Outcome::run(stage.pagewise().args([
        "record",
        "-o",
        "x.perf.data",
        "--",
        "sh",
        "-c",
        "exit 7",
    ]))
    .ended_with(7);
}
