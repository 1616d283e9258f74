//! `pagewise huge` on live processes: a small server whose steps go by the TLB's reach. Needs
//! transparent huge pages, Linux 6.7 and the right to advise other processes; skips visibly
//! without.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

fn pagewise(arguments: &[&str], runtime: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(arguments)
        .env("XDG_RUNTIME_DIR", runtime)
        .output()
        .expect("pagewise runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

fn fits(document: &Value, name: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs/schema")
        .join(name);
    let schema = std::fs::read_to_string(path).expect("the schema is there");
    let schema = serde_json::from_str(&schema).expect("the schema is JSON");
    let mut checker = checker::Checker::new(&schema);
    checker.check(document);
    assert_eq!(checker.errors, [""; 0]);
}

/// The example server with 64 MiB, built by the machine's compiler; `None` without one.
fn server(folder: &Path) -> Option<PathBuf> {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/huge_pages/chase_server.c");
    let program = folder.join("chase_server");
    let built = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    built
        .is_ok_and(|status| status.success())
        .then_some(program)
}

/// Whether this machine lets us do what the tests are about.
fn allowed(runtime: &Path) -> bool {
    let mut sleeper = Command::new("sleep").arg("5").spawn().expect("sleep runs");
    let pid = sleeper.id().to_string();
    let tried = pagewise(
        &[
            "huge",
            "balance",
            "-p",
            &pid,
            "--apply",
            "--duration",
            "100ms",
            "-q",
        ],
        runtime,
    );
    sleeper.kill().expect("it runs");
    sleeper.wait().expect("it ends");
    let why = text(&tried.stderr);
    // A kernel that cannot split says so and goes on; the tests need both.
    let works = tried.status.success() && !why.contains("left out");
    if !works {
        eprintln!("skipped: {why}");
    }
    works
}

struct Server(Child);

impl Server {
    /// A server that has begun to serve.
    fn start(program: &Path) -> Self {
        let mut child = Command::new(program)
            .args(["64", "60", "never"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server runs");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("it is piped");
        BufReader::new(output)
            .read_line(&mut line)
            .expect("it prints");
        assert!(line.contains("steps"), "{line}");
        Self(child)
    }

    fn pid(&self) -> String {
        self.0.id().to_string()
    }

    /// Huge pages that the kernel itself counts in it.
    fn huge_bytes(&self) -> u64 {
        let path = format!("/proc/{}/smaps_rollup", self.0.id());
        let text = std::fs::read_to_string(path).expect("it runs");
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("AnonHugePages:"));
        let words = line.expect("the kernel counts huge pages");
        let kibibytes: u64 = words
            .trim()
            .trim_end_matches(" kB")
            .parse()
            .expect("a number");
        kibibytes * 1024
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_dry_run_changes_nothing_and_its_json_fits_the_schema() {
    let runtime = tempfile::tempdir().expect("a folder");
    let mut sleeper = Command::new("sleep").arg("5").spawn().expect("sleep runs");
    let pid = sleeper.id().to_string();
    let output = pagewise(
        &[
            "huge",
            "balance",
            "-p",
            &pid,
            "--duration",
            "300ms",
            "--json",
        ],
        runtime.path(),
    );
    sleeper.kill().expect("it runs");
    sleeper.wait().expect("it ends");
    if !output.status.success() {
        return eprintln!("skipped: {}", text(&output.stderr));
    }
    let found = json(&output);
    fits(&found, "huge-balance.json");
    assert_eq!(found["applied"], false);
    assert_eq!(found["built"]["count"], 0);
    assert!(
        !runtime.path().join("pagewise").exists(),
        "a dry run keeps no journal"
    );
}

#[test]
fn pages_are_built_split_and_given_back() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = server(runtime.path()) else {
        return eprintln!("skipped: no C compiler");
    };
    if !allowed(runtime.path()) {
        return;
    }
    // `never` is MADV_NOHUGEPAGE, which the program asked for: that is left alone.
    let server = Server::start(&program);
    let refused = json(&pagewise(
        &[
            "huge",
            "balance",
            "-p",
            &server.pid(),
            "--apply",
            "--controller",
            "always",
            "--duration",
            "300ms",
            "--json",
        ],
        runtime.path(),
    ));
    assert_eq!(refused["built"]["count"], 0);
    assert!(
        refused["notes"].to_string().contains("MADV_NOHUGEPAGE"),
        "{refused}"
    );
    drop(server);
    both_ways(&program, runtime.path());
}

/// One that asks for nothing, whatever the machine's settings are.
fn both_ways(program: &Path, runtime: &Path) {
    let mut child = Command::new(program);
    let child = child.args(["64", "60"]).stdout(Stdio::piped()).spawn();
    let mut server = Server(child.expect("the server runs"));
    let mut line = String::new();
    let output = server.0.stdout.as_mut().expect("it is piped");
    BufReader::new(output)
        .read_line(&mut line)
        .expect("it prints");
    let before = server.huge_bytes();
    let (first, second) = match before {
        0 => ("always", "never"),
        _ => ("never", "always"),
    };
    let pid = server.pid();
    let balance = |controller: &str| {
        let arguments = [
            "huge",
            "balance",
            "-p",
            &pid,
            "--apply",
            "--controller",
            controller,
            "--duration",
            "1500ms",
            "--max-cpu",
            "100%",
            "--json",
            "--progress",
            "symbol:steps",
        ];
        let found = json(&pagewise(&arguments, runtime));
        fits(&found, "huge-balance.json");
        found
    };
    let found = balance(first);
    let after = server.huge_bytes();
    assert_ne!(before == 0, after == 0, "{found}");
    assert!(found["points"].to_string().contains("cost_ns"));
    let found = balance(second);
    assert_eq!(server.huge_bytes() == 0, before == 0, "{found}");
    balance(first);
    let undone = pagewise(
        &["huge", "balance", "--undo", "-p", &pid, "--json"],
        runtime,
    );
    let undone = json(&undone);
    fits(&undone, "huge-undo.json");
    assert_eq!(undone["processes"][0]["refused"], 0, "{undone}");
    assert_eq!(
        server.huge_bytes() == 0,
        before == 0,
        "undo gives the sizes back"
    );
    // The journal is gone with it.
    let again = pagewise(&["huge", "balance", "--undo", "-p", &pid], runtime);
    assert!(text(&again.stderr).contains("no journal"));
}

fn journal_lines(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .map(|file| std::fs::read_to_string(file.path()).unwrap_or_default())
        .map(|journal| journal.lines().count())
        .sum()
}

#[test]
fn a_killed_controller_leaves_a_correct_program_and_a_journal() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = server(runtime.path()) else {
        return eprintln!("skipped: no C compiler");
    };
    if !allowed(runtime.path()) {
        return;
    }
    let mut child = Command::new(&program)
        .args(["64", "4"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the server runs");
    let mut output = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    output.read_line(&mut line).expect("it prints");
    let mut controller = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args([
            "huge",
            "balance",
            "--apply",
            "--max-actions",
            "40",
            "--progress",
            "symbol:steps",
        ])
        .args(["-p", &child.id().to_string()])
        .env("XDG_RUNTIME_DIR", runtime.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("pagewise runs");
    // Amid its first changes: the process stands in the journal's first line.
    let folder = runtime.path().join("pagewise");
    while journal_lines(&folder) < 2 {
        assert_eq!(
            controller.try_wait().expect("it is ours"),
            None,
            "it ended by itself"
        );
        std::thread::yield_now();
    }
    controller.kill().expect("it runs");
    controller.wait().expect("it ends");
    let undone = pagewise(&["huge", "balance", "--undo"], runtime.path());
    assert!(undone.status.success(), "{}", text(&undone.stderr));
    let rest: Vec<String> = output.lines().map_while(Result::ok).collect();
    assert!(
        rest.last()
            .is_some_and(|last| last.starts_with("memory intact")),
        "{rest:?}"
    );
    assert!(child.wait().expect("it ends").success());
}

#[test]
fn the_probe_fits_its_schema_within_a_minute() {
    let runtime = tempfile::tempdir().expect("a folder");
    let output = pagewise(
        &[
            "huge", "probe", "--memory", "128M", "--rounds", "3", "--json", "-q",
        ],
        runtime.path(),
    );
    if !output.status.success() {
        return eprintln!("skipped: {}", text(&output.stderr));
    }
    let found = json(&output);
    fits(&found, "huge-probe.json");
    assert_eq!(found["effect"][0]["huge_share"], 0.0);
    assert!(found["effect"][4]["step_ns"]["value"].as_f64() > Some(0.0));
}

#[test]
fn a_trace_holds_a_programs_accesses() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.pwm");
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["huge", "trace", "-o"])
        .arg(&trace)
        .args(["--", "/bin/true"])
        .env("XDG_CACHE_HOME", folder.path())
        .output()
        .expect("pagewise runs");
    let said = text(&output.stderr);
    if said.contains("not installed") || said.contains("no C compiler") {
        return eprintln!("skipped: {said}");
    }
    assert!(output.status.success(), "{said}");
    let bytes = std::fs::read(&trace).expect("the trace is there");
    assert_eq!(&bytes[..9], b"PWMTRACE\x01");
    // It says where it ends: kind 127, a length, accesses and dropped accesses as varints.
    let end = bytes.iter().rposition(|&byte| byte == 127).expect("an end");
    assert_eq!(usize::from(bytes[end + 1]), bytes.len() - end - 2);
    assert!(!said.contains("no end"), "{said}");
}
