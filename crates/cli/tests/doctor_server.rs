//! `pagewise doctor --load`: a server in C, started, driven, observed, proved and ended.

use serde_json::Value;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A folder with the server, in which it runs.
struct Stage(tempfile::TempDir);

impl Stage {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doctor_server/served.c");
        let built = Command::new("cc")
            .args(["-O1", "-o"])
            .args([&folder.path().join("served"), &source])
            .status()
            .expect("the C compiler that Rust links with");
        assert!(built.success(), "served.c does not compile");
        Self(folder)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn doctor(&self, arguments: &[&str], server: &[&str]) -> Command {
        // The tests may run with interrupts ignored, as a shell does for background commands.
        let mut command = Command::new("env");
        command
            .current_dir(self.0.path())
            .args(["--default-signal=INT", env!("CARGO_BIN_EXE_pagewise")])
            .args(["doctor", "--no-report"])
            .args(arguments)
            .arg("--")
            .args(server)
            .stdin(Stdio::null());
        command
    }

    fn run(&self, arguments: &[&str], server: &[&str]) -> Output {
        let mut command = self.doctor(arguments, server);
        command.output().expect("pagewise runs")
    }

    /// Process ids of all started servers.
    fn started(&self) -> Vec<u32> {
        let text = fs::read_to_string(self.path("starts")).unwrap_or_default();
        let ids = text.lines().map(|line| line.parse().expect("a number"));
        ids.collect()
    }

    /// Asserts that all started servers have ended.
    #[track_caller]
    fn has_ended(&self) {
        for pid in self.started() {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(!stat.contains("(served) S"), "{pid} runs on: {stat}");
        }
    }
}

fn said(output: &Output) -> String {
    let (out, err) = (&output.stdout, &output.stderr);
    String::from_utf8_lossy(out).into_owned() + &String::from_utf8_lossy(err)
}

fn findings(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", said(output)))
}

/// Longest wait for what takes less than a second on an idle machine: it only ends a hang.
const PATIENCE: Duration = Duration::from_secs(300);

const SERVER: [&str; 2] = ["./served", "serve"];

#[test]
fn a_server_is_observed_while_it_is_driven_and_ended_then() {
    let stage = Stage::new();
    let output = stage.run(&["--json", "--load", "./served ask 300"], &SERVER);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let found = findings(&output);
    let faults = found["evidence"]["run"]["cost"]["minor_faults"]
        .as_u64()
        .expect("a count");
    // 64 blocks of 25 pages for each request.
    assert!((300 * 1_400..300 * 2_000).contains(&faults), "{faults}");
    assert_eq!(found["diagnoses"][0]["id"], "churn.brk", "{found:#}");
    assert_eq!(stage.started().len(), 1);
    stage.has_ended();
}

#[test]
fn a_cure_of_a_server_is_proved_by_its_load() {
    let stage = Stage::new();
    let arguments = [
        "--json",
        "--prove",
        "--budget",
        "3m",
        "--load",
        "./served ask 150",
    ];
    let output = stage.run(&arguments, &SERVER);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let proof = &findings(&output)["proof"];
    // Where tcmalloc is installed, it is tried as well.
    let winner = proof["winner"].as_str().expect("a winner");
    let cures = ["keep freed memory", "tcmalloc instead", "jemalloc instead"];
    assert!(cures.contains(&winner), "{proof:#}");
    let first = &proof["arms"][0]["runs"][0];
    let faults = first["minor_faults"].as_u64().expect("a count");
    assert!((150 * 1_400..150 * 2_000).contains(&faults), "{proof:#}");
    let notes = proof["notes"].to_string();
    assert!(
        notes.contains("drove it with './served ask 150'"),
        "{notes}"
    );
    // The observed run, an unmeasured one, and three or more of each arm.
    assert!(stage.started().len() >= 8, "{:?}", stage.started());
    stage.has_ended();
}

#[test]
fn a_server_that_is_a_child_of_a_shell_ends_with_it() {
    let stage = Stage::new();
    let output = stage.run(
        &["--json", "--load", "./served ask 100"],
        &["./served", "child"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let faults = findings(&output)["evidence"]["run"]["cost"]["minor_faults"].as_u64();
    assert!(faults > Some(100 * 1_400), "{faults:?}");
    stage.has_ended();
}

#[test]
fn a_load_that_fails_is_an_error() {
    let stage = Stage::new();
    let load = "./served ask 10; exit 7";
    for arguments in [vec!["--load", load], vec!["--prove", "--load", load]] {
        let output = stage.run(&arguments, &SERVER);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        let message = "the load './served ask 10; exit 7' exited with status 7";
        assert!(said(&output).contains(message), "{}", said(&output));
    }
    assert_eq!(stage.started().len(), 2, "no run of a proof was begun");
    stage.has_ended();
}

#[test]
fn a_server_that_ends_early_is_an_error() {
    let stage = Stage::new();
    let message = |how: &str, words: &str| {
        let output = stage.run(&["--load", "./served ask 100"], &["./served", "serve", how]);
        assert_eq!(output.status.code(), Some(1), "{}", said(&output));
        assert!(said(&output).contains(words), "{}", said(&output));
    };
    message(
        "leave",
        "the server exited with status 3 before it was ready",
    );
    message(
        "die",
        "the server was killed by SIGKILL (signal 9) while it was driven",
    );
    stage.has_ended();
}

#[test]
fn a_port_that_is_taken_and_a_program_that_is_missing_are_told() {
    let stage = Stage::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port().to_string();
    let output = stage.run(&["--load", "true", "--port", &port], &SERVER);
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let message = format!("another process already listens on port {port}");
    assert!(said(&output).contains(&message), "{}", said(&output));
    assert!(stage.started().is_empty());
    let output = stage.run(&["--load", "true"], &["./none"]);
    assert_eq!(output.status.code(), Some(127), "{}", said(&output));
}

#[test]
fn a_server_without_a_port_is_ready_after_a_time() {
    let stage = Stage::new();
    let arguments = [
        "--json",
        "--ready-after",
        "100ms",
        "--load",
        "test -z \"$PAGEWISE_PORT\"",
    ];
    let output = stage.run(&arguments, &["./served", "serve", "silent"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    stage.has_ended();
}

#[test]
fn an_interrupt_ends_server_and_load_and_tells_what_was_seen() {
    let stage = Stage::new();
    let mut command = stage.doctor(
        &[
            "--json",
            "--load",
            "echo $$ > load; exec ./served ask 100000000",
        ],
        &SERVER,
    );
    let child = command
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    let deadline = Instant::now() + PATIENCE;
    while !stage.path("load").exists() {
        assert!(Instant::now() < deadline, "no load was begun");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Sent only to us: neither server nor load receives it from a terminal.
    let kill = format!("kill -s INT {}", child.id());
    let sent = Command::new("sh").args(["-c", &kill]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("pagewise ends");
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    assert!(findings(&output)["verdict"].is_string());
    let load = fs::read_to_string(stage.path("load")).expect("its id");
    let left = fs::read_to_string(format!("/proc/{}/stat", load.trim())).unwrap_or_default();
    assert!(!left.contains("(served)") || left.contains(") Z"), "{left}");
    stage.has_ended();
}

#[test]
fn a_proof_of_a_running_process_names_the_way_that_works() {
    let stage = Stage::new();
    let mut server = Command::new(stage.path("served"))
        .args(["serve", "silent"])
        .current_dir(stage.0.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server starts");
    let deadline = Instant::now() + PATIENCE;
    while stage.started().is_empty() {
        assert!(Instant::now() < deadline, "it did not start");
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["doctor", "--prove", "-p", &server.id().to_string()])
        .output()
        .expect("pagewise runs");
    server.kill().expect("it can be ended");
    server.wait().expect("it ends");
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let words = said(&output);
    let way = format!(
        "cd {} && pagewise doctor --prove --load 'COMMAND THAT DRIVES IT' -- {} serve silent",
        stage.0.path().canonicalize().expect("a folder").display(),
        stage.path("served").display()
    );
    assert!(words.contains(&way), "{words}\n{way}");
}
