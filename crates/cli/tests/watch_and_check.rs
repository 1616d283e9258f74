//! `pagewise watch` and `pagewise check` as a user runs them.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader};

#[path = "support/command.rs"]
mod command;

use command::pagewise;

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

fn errors(document: &str) -> Vec<String> {
    checker::errors(&serde_json::from_str(document).expect("JSON"))
}

#[test]
fn check_fits_its_schema_and_never_fails() {
    let output = pagewise(&["check", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let printed = text(&output.stdout);
    assert_eq!(errors(&printed), [""; 0]);
    let wrong = printed.replace("\"finding\"", "\"found\"");
    assert!(!errors(&wrong).is_empty());
}

#[test]
fn every_line_of_json_fits_its_schema() {
    let folder = tempfile::tempdir().unwrap();
    let end = folder.path().join("end");
    let script = format!("while [ ! -e {} ]; do sleep 0.01; done", end.display());
    let mut watching = std::process::Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["watch", "--interval", "10ms", "--json", "--", "sh", "-c"])
        .arg(&script)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(watching.stdout.take().unwrap()).lines();
    let mut printed: Vec<String> = lines.by_ref().take(2).map(Result::unwrap).collect();
    std::fs::write(end, "").unwrap();
    printed.extend(lines.map(Result::unwrap));
    assert!(watching.wait().unwrap().success());
    for line in &printed {
        assert_eq!(errors(line), [""; 0]);
    }
    let last: Value = serde_json::from_str(printed.last().unwrap()).unwrap();
    assert_eq!(
        last["evidence"]["watch"]["processes"], 0,
        "the last line is the end"
    );
    assert_eq!(last["subject"]["command"], json!(["sh", "-c", script]));
    assert!(last["subject"]["pids"][0].is_i64());
    assert!(printed.len() >= 3);
}

#[test]
fn rows_are_csv_and_the_status_is_the_commands() {
    let output = pagewise(&[
        "watch",
        "--interval",
        "10ms",
        "--",
        "sh",
        "-c",
        "echo noise; exit 7",
    ]);
    assert_eq!(output.status.code(), Some(7));
    let printed = text(&output.stdout);
    let mut lines = printed.lines();
    let columns = lines.next().unwrap().split(',').count();
    assert!(lines.clone().count() >= 1);
    assert!(lines.all(|line| line.split(',').count() == columns));
    assert!(
        !printed.contains("noise"),
        "the command's output must not mix with the rows"
    );
    let messages = text(&output.stderr);
    assert!(messages.contains("ended with status 7"), "{messages}");
    let (_, file) = messages.split_once("The command's output is in ").unwrap();
    assert_eq!(std::fs::read_to_string(file.trim()).unwrap(), "noise\n");
    std::fs::remove_file(file.trim()).unwrap();
}

#[test]
fn the_end_tells_what_wait_tells() {
    // Children that are created, fault and are reaped between two readings.
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do cat /dev/null; done";
    let output = pagewise(&["watch", "--json", "--", "sh", "-c", script]);
    let printed = text(&output.stdout);
    let last: Value = serde_json::from_str(printed.lines().last().unwrap()).unwrap();
    let faults = last["evidence"]["watch"]["minor_faults"].as_u64().unwrap();
    let messages = text(&output.stderr);
    let message = messages
        .split(" minor faults")
        .next()
        .unwrap()
        .replace(',', "");
    assert_eq!(message.parse::<u64>().unwrap(), faults, "{messages}");
    assert!(faults > 10 * 40, "ten programs were loaded: {faults}");
}

#[test]
fn a_duration_ends_the_command_and_keeps_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("run.csv");
    let parquet = folder.path().join("run.parquet");
    let output = pagewise(&[
        "watch",
        "--duration",
        "200ms",
        "--csv",
        csv.to_str().unwrap(),
        "--parquet",
        parquet.to_str().unwrap(),
        "--",
        "sleep",
        "1000",
    ]);
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stdout.is_empty(), "rows go to the files only");
    assert!(text(&output.stderr).contains("ended by pagewise"));
    assert!(std::fs::read_to_string(csv).unwrap().lines().count() >= 3);
    let bytes = std::fs::read(parquet).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
}

#[test]
fn several_processes_are_one_sum() {
    let mut asleep: Vec<_> = (0..2)
        .map(|_| {
            std::process::Command::new("sleep")
                .arg("1000")
                .spawn()
                .unwrap()
        })
        .collect();
    let pids: Vec<String> = asleep.iter().map(|one| one.id().to_string()).collect();
    let whole = [
        "watch",
        "--duration",
        "100ms",
        "--json",
        "-p",
        &pids.join(","),
    ];
    let printed = text(&pagewise(&whole).stdout);
    for one in &mut asleep {
        one.kill().unwrap();
        one.wait().unwrap();
    }
    let first: Value = serde_json::from_str(printed.lines().next().unwrap()).unwrap();
    assert_eq!(first["evidence"]["watch"]["processes"], 2, "{printed}");
}

#[test]
fn the_output_file_has_the_rows_in_the_format_of_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let watch = |options: &[&str]| {
        let whole = [
            &["watch", "--interval", "10ms"],
            options,
            &["--", "sleep", "0.1"],
        ]
        .concat();
        let output = pagewise(&whole);
        assert_eq!(output.status.code(), Some(0), "{options:?}");
        assert!(output.stdout.is_empty(), "{options:?}: rows go to the file");
        std::fs::read(options[options.len() - 1]).unwrap()
    };
    let csv = text(&watch(&["-o", &file("rows.csv")]));
    assert!(
        csv.starts_with("time_s,") && csv.lines().count() >= 3,
        "{csv}"
    );
    let parquet = watch(&["-o", &file("rows.parquet")]);
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let lines = text(&watch(&["--json", "--output", &file("rows.jsonl")]));
    // At its start and at its end.
    assert!(lines.lines().count() >= 2);
    for line in lines.lines() {
        assert_eq!(errors(line), [""; 0]);
    }
}

#[test]
fn mistakes_are_told_plainly() {
    let cases: [(&[&str], i32, &str); 8] = [
        (&["watch"], 2, "required"),
        (
            &["watch", "--", "A=1", "true"],
            127,
            "as in: env NAME=VALUE",
        ),
        (&["watch", "--", "sleep 1"], 127, "words of their own"),
        (
            &["watch", "--interval", "1ms", "-p", "1"],
            2,
            "use 10ms or more",
        ),
        (&["watch", "1"], 2, "as in: -p 1"),
        (
            &["watch", "--", "/no/such/program"],
            127,
            "there is no program",
        ),
        (
            &["watch", "-p", "2147483647"],
            1,
            "there is no process 2147483647",
        ),
        (
            &["watch", "--csv", "/no/such/folder/x", "-p", "1"],
            1,
            "cannot write /no/such/folder/x",
        ),
    ];
    for (arguments, status, words) in cases {
        let output = pagewise(arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        let messages = text(&output.stderr);
        assert!(messages.contains(words), "{arguments:?}: {messages}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    }
}

/// One scrape: the response of the server at `address`.
fn scrape(address: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).expect("the server listens");
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

#[test]
fn metrics_hold_what_was_counted_and_what_a_look_inside_found() {
    let busy = "while :; do :; done";
    // The tests may run with interrupts ignored, as a shell does for background commands.
    let mut watching = std::process::Command::new("env")
        .args([
            "--default-signal=INT",
            env!("CARGO_BIN_EXE_pagewise"),
            "watch",
            "--metrics",
            ":0",
            "--look",
            "1s",
            "--",
            "sh",
            "-c",
            busy,
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    let mut said = String::new();
    let mut lines = BufReader::new(watching.stderr.take().expect("its stderr"));
    lines.read_line(&mut said).expect("its address");
    let address = said
        .trim()
        .trim_start_matches("pagewise: metrics at http://");
    let address = address.trim_end_matches("/metrics").to_owned();
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(600);
    let mut found = scrape(&address);
    assert!(
        found.contains("pagewise_page_faults_total{kind=\"minor\"}"),
        "{found}"
    );
    while !found.contains("pagewise_observed_timestamp_seconds ") {
        assert!(std::time::Instant::now() < deadline, "{found}");
        std::thread::sleep(std::time::Duration::from_millis(200));
        found = scrape(&address);
    }
    assert!(
        found.contains("pagewise_finding_severity{finding=\""),
        "{found}"
    );
    let interrupted = std::process::Command::new("sh")
        .args(["-c", &format!("kill -INT {}", watching.id())])
        .status()
        .expect("a shell");
    assert!(interrupted.success());
    let output = watching.wait_with_output().expect("it ends");
    assert!(
        output.stdout.is_empty(),
        "no rows where metrics are asked for"
    );
}
