//! `watch` in bad situations: scripts read its table on standard output.

use crate::stage::{Outcome, Stage, await_file, signal_group, target};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

const HEADER: &str = "time_s,vsize_bytes,rss_bytes,";

#[test]
fn watching_a_process_that_is_gone_names_it() {
    let stage = Stage::new();
    let mut child = Command::new("true").spawn().expect("true starts");
    let pid = child.id().to_string();
    child.wait().expect("true ends");
    Outcome::run(stage.pagewise().args(["watch", "-p", &pid]))
        .ended_with(1)
        .tells(&[&pid, "no process"]);
}

#[test]
fn watching_a_command_ends_with_its_status() {
    let stage = Stage::new();
    let status = |words: &[&str]| {
        let mut command = stage.pagewise();
        command
            .args(["watch", "--command-output", "out.txt", "--"])
            .args(words);
        Outcome::run(&mut command).status
    };
    assert_eq!(status(&["sh", "-c", "exit 7"]), 7);
    assert_eq!(status(&[target(), "crash"]), 139);
    assert_eq!(status(&["no-such-program-anywhere"]), 127);
    let nothing = Outcome::run(stage.pagewise().args(["watch", "--", "no-such-program"]));
    assert_eq!(nothing.stdout, "", "a table of nothing");
    let mut named = stage.pagewise();
    named.args(["watch", "--csv", "none.csv", "--", "no-such-program"]);
    assert_eq!(Outcome::run(&mut named).status, 127);
    assert!(!stage.path("none.csv").exists(), "a file of nothing");
    std::fs::write(stage.path("data.txt"), "no program\n").expect("write a file");
    assert_eq!(status(&["./data.txt"]), 126);
    assert_eq!(Outcome::run(stage.pagewise().arg("watch")).status, 2);
}

#[test]
fn interrupting_watch_keeps_the_points() {
    let stage = Stage::new();
    let (ready, table) = (stage.path("ready"), stage.path("points.csv"));
    let child = stage
        .pagewise()
        .args(["watch", "--interval", "10ms", "--csv"])
        .arg(&table)
        .args([
            "--command-output",
            "out.txt",
            "--",
            target(),
            "until-killed",
        ])
        .arg(&ready)
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    await_file(&ready);
    signal_group(child.id(), "INT");
    let outcome = Outcome::from(child.wait_with_output().expect("pagewise ends"));
    assert!(!outcome.stderr.contains("panicked"), "{}", outcome.stderr);
    let text = std::fs::read_to_string(&table).expect("the table was kept");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with(HEADER), "{}", lines[0]);
    assert!(
        text.ends_with('\n') && lines.len() > 3,
        "the table is cut off:\n{text}"
    );
    let columns = lines[0].split(',').count();
    assert!(
        lines.iter().all(|line| line.split(',').count() == columns),
        "{text}"
    );
}

#[test]
fn a_table_that_cannot_be_written_is_told() {
    let stage = Stage::new();
    let outcome = Outcome::run(stage.pagewise().args([
        "watch",
        "--csv",
        "/dev/full",
        "--command-output",
        "out.txt",
        "--",
        target(),
        "churn",
        "5",
    ]));
    outcome.ended_with(1).tells(&["no space left", "/dev/full"]);
}

#[test]
fn a_reader_of_the_table_that_leaves_is_no_failure() {
    let stage = Stage::new();
    let mut child = stage
        .pagewise()
        .args([
            "watch",
            "--interval",
            "10ms",
            "--command-output",
            "out.txt",
            "--",
            target(),
            "churn",
            "30",
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    drop(child.stdout.take());
    let outcome = Outcome::from(child.wait_with_output().expect("pagewise ends")).ended_with(0);
    assert!(
        !outcome.stderr.to_lowercase().contains("broken pipe"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn a_thousand_threads_are_counted() {
    let stage = Stage::new();
    let mut command = stage.pagewise();
    command.args([
        "watch",
        "--interval",
        "10ms",
        "--json",
        "--command-output",
        "out.txt",
        "--",
    ]);
    // They live until all of them were seen.
    let end = stage.path("end");
    let mut watching = command
        .args([target(), "threads", "1000"])
        .arg(&end)
        .stdout(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    let lines = BufReader::new(watching.stdout.take().expect("a pipe")).lines();
    let mut threads = lines.filter_map(|line| {
        let line = line.expect("text");
        let point: serde_json::Value = serde_json::from_str(&line).expect("a line of JSON");
        point["evidence"]["watch"]["threads"].as_u64()
    });
    assert_eq!(threads.find(|count| *count > 1000), Some(1001));
    std::fs::write(end, "").expect("a file");
    assert!(threads.all(|count| count <= 1001));
    assert!(watching.wait().expect("it ends").success());
}
