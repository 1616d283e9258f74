//! Destinations of results: full disks, closed pipes, terminals with and without colour.

use crate::stage::{Outcome, Stage, pagewise_path, skip, target, works};
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

const SPACES: [&str; 4] = ["-r", "--mount", "--propagation", "private"];

/// A shell script in a mount namespace of its own where `DIR` is a file system of one MiB.
fn on_a_full_disk(stage: &Stage, script: &str) -> Option<Outcome> {
    if !works(
        "unshare",
        &[&SPACES[..], &["sh", "-c", "mount -t tmpfs none /tmp"]].concat(),
    ) {
        return None;
    }
    let folder = stage.path("small");
    std::fs::create_dir(&folder).expect("make a folder");
    let folder = folder.to_str().expect("temporary paths are UTF-8");
    let script = format!(
        "mount -t tmpfs -o size=1m none {folder} || exit 99; cd {folder} || exit 99\n\
         pagewise={}; target={}\n{script}",
        pagewise_path(),
        target()
    );
    Some(Outcome::run(
        stage
            .command("unshare")
            .args(SPACES)
            .args(["sh", "-c", &script]),
    ))
}

#[test]
fn a_full_disk_is_told_and_what_was_written_stays_readable() {
    const TEST: &str = "a_full_disk_is_told_and_what_was_written_stays_readable";
    let stage = Stage::new();
    let Some(outcome) = on_a_full_disk(
        &stage,
        "head -c 600000 /dev/zero > filler\n\
         $pagewise record --full -o x.perf.data -- $target churn 30; echo \"record $?\" >&2\n\
         rm filler\n\
         exec $pagewise report --json x.perf.data",
    ) else {
        return skip(TEST, "cannot mount a small file system in a namespace here");
    };
    let outcome = outcome
        .tells(&["recording x.perf.data stopped", "no space left", "record 1"])
        .ended_with(0);
    let message = outcome.stderr.matches("No space left").count();
    assert_eq!(message, 1, "told {message} times: {}", outcome.stderr);
    let lost = &outcome.json()["losses"];
    assert!(
        lost.as_object().is_some_and(|kinds| !kinds.is_empty()),
        "nothing counted as lost: {lost}"
    );
}

#[test]
fn a_full_disk_leaves_the_report_that_was_there() {
    const TEST: &str = "a_full_disk_leaves_the_report_that_was_there";
    let stage = Stage::new();
    let Some(outcome) = on_a_full_disk(
        &stage,
        "echo before > r.html; head -c 1000000 /dev/zero > filler\n\
         TMPDIR=/dev/shm $pagewise doctor -o r.html -- true; echo \"doctor $?\" >&2\n\
         cat r.html >&2; ls -A >&2",
    ) else {
        return skip(TEST, "cannot mount a small file system in a namespace here");
    };
    let outcome = outcome.tells(&["no space left", "doctor 1", "before"]);
    assert!(!outcome.stderr.contains(".pagewise-"), "{}", outcome.stderr);
}

#[test]
fn recordings_and_reports_are_private_to_their_owner() {
    let stage = Stage::new();
    let files = ["x.data", "x.html", "x.folded"].map(|name| stage.path(name));
    for file in &files {
        std::fs::write(file, "old").expect("written");
        std::fs::set_permissions(file, PermissionsExt::from_mode(0o666)).expect("opened");
    }
    let run = |words: &[&str], tail: &[&str]| {
        Outcome::run(stage.pagewise().args(words).args(tail)).ended_with(0);
    };
    let program = ["--", target(), "churn", "30"];
    run(&["doctor", "--record", "x.data", "-o", "x.html"], &program);
    run(
        &["report", "--export", "folded", "-o", "x.folded", "x.data"],
        &[],
    );
    for file in &files {
        let mode = std::fs::metadata(file).expect("there").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", file.display());
    }
}

#[test]
fn an_unwritable_report_fails_behind_the_answer() {
    let stage = Stage::new();
    let outcome = Outcome::run(stage.pagewise().args([
        "doctor",
        "--json",
        "-o",
        "/dev/full",
        "--",
        target(),
        "churn",
        "30",
    ]))
    .tells(&["/dev/full", "no space left"])
    .ended_with(1);
    assert_eq!(outcome.json()["diagnoses"][0]["id"], "churn.mmap");
}

#[test]
fn a_path_that_cannot_be_written_costs_no_run() {
    let stage = Stage::new();
    let (sign, nowhere) = (stage.path("it-ran"), stage.path("no-such-folder/result"));
    for command in [
        &["doctor", "-o"][..],
        &["run", "--memory", "32M", "--timeline"],
        &["run", "--memory", "32M", "--json", "-o"],
    ] {
        Outcome::run(
            stage
                .pagewise()
                .args(command)
                .arg(&nowhere)
                .args(["--", "touch"])
                .arg(&sign),
        )
        .tells(&["no-such-folder", "no such file"])
        .ended_with(1);
        assert!(!sign.exists(), "{command:?} ran the program");
    }
    // A failed attempt to write leaves nothing behind.
    let report = stage.path("report.html");
    let outcome = stage
        .pagewise()
        .args(["doctor", "-o"])
        .arg(&report)
        .args(["--", "/"])
        .status();
    assert_eq!(outcome.expect("pagewise starts").code(), Some(126));
    assert!(!report.exists());
}

#[test]
fn a_reader_that_leaves_is_no_failure() {
    let stage = Stage::new();
    let mut child = stage
        .pagewise()
        .args(["doctor", "--json", "--", "true"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    drop(child.stdout.take());
    let outcome = Outcome::from(child.wait_with_output().expect("pagewise ends"));
    assert!(
        outcome.status == 0 || outcome.status == 141,
        "status {}\n{}",
        outcome.status,
        outcome.stderr
    );
    assert!(
        !outcome.stderr.to_lowercase().contains("broken pipe"),
        "{}",
        outcome.stderr
    );
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
}

/// Output of `doctor` on a terminal of its own, provided by script(1).
fn on_a_terminal(stage: &Stage, setting: &str) -> String {
    let line = format!(
        "{setting} TERM=xterm-256color {} doctor -- {} churn 5",
        pagewise_path(),
        target()
    );
    Outcome::run(stage.command("script").args(["-qec", &line, "/dev/null"]))
        .ended_with(0)
        .stdout
}

#[test]
fn colours_are_for_terminals_that_want_them() {
    const TEST: &str = "colours_are_for_terminals_that_want_them";
    if !works("script", &["-qec", "true", "/dev/null"]) {
        return skip(TEST, "script(1) is not installed");
    }
    let stage = Stage::new();
    assert!(
        coloured(&on_a_terminal(&stage, "env -u NO_COLOR")),
        "no colour on a terminal"
    );
    let plain = on_a_terminal(&stage, "NO_COLOR=1");
    assert!(!coloured(&plain), "colour in spite of NO_COLOR: {plain:?}");
    let piped = Outcome::run(
        stage
            .pagewise()
            .args(["doctor", "--", target(), "churn", "5"]),
    )
    .ended_with(0);
    assert!(
        !piped.stdout.contains('\u{1b}'),
        "escapes in a pipe: {:?}",
        piped.stdout
    );
}

/// Whether text has an SGR sequence that sets a colour (30–37, 38, 90–97).
fn coloured(text: &str) -> bool {
    text.split("\u{1b}[").skip(1).any(|rest| {
        let codes: String = rest
            .chars()
            .take_while(|c| c.is_ascii_digit() || *c == ';')
            .collect();
        rest[codes.len()..].starts_with('m')
            && codes
                .split(';')
                .any(|code| matches!(code.parse(), Ok(30..=38u8 | 90..=97)))
    })
}
