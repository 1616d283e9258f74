//! `pagewise huge` on live processes: a small server whose steps exceed the TLB's reach. Needs
//! transparent huge pages, Linux 6.7 and the right to advise other processes; skips visibly without
//! them.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

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

fn fits(document: &Value, kind: &str) {
    assert_eq!(document["kind"], kind);
    assert_eq!(checker::errors(document), [""; 0]);
}

/// The server whose steps exceed the TLB's reach.
fn server(folder: &Path) -> Option<PathBuf> {
    example(folder, "chase_server")
}

/// An example, built by the machine's compiler; `None` without one.
fn example(folder: &Path, name: &str) -> Option<PathBuf> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/huge_pages")
        .join(name)
        .with_extension("c");
    let program = folder.join(name);
    let built = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(source)
        .status();
    built
        .is_ok_and(|status| status.success())
        .then_some(program)
}

/// Whether this machine allows what the tests need.
fn allowed(runtime: &Path) -> bool {
    let mut sleeper = Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("sleep runs");
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
    // A kernel that cannot split reports it and goes on; the tests need both.
    let works = tried.status.success() && !why.contains("left out");
    if !works {
        skipped!("{why}");
    }
    works
}

struct Server(Child);

impl Server {
    /// A server that has started to serve; `more` follows its size in MiB and its seconds.
    fn start(program: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(program)
            .args(["64", "60"])
            .args(more)
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
    let mut sleeper = Command::new("sleep")
        .arg("1000")
        .spawn()
        .expect("sleep runs");
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
        return skipped!("{}", text(&output.stderr));
    }
    let found = json(&output);
    fits(&found, "huge_balance");
    assert_eq!(found["evidence"]["huge_balance"]["applied"], false);
    assert_eq!(found["evidence"]["huge_balance"]["built"]["count"], 0);
    assert!(
        !runtime.path().join("pagewise").exists(),
        "a dry run keeps no journal"
    );
}

#[test]
fn pages_are_built_split_and_given_back() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = server(runtime.path()) else {
        return skipped!("no C compiler");
    };
    if !allowed(runtime.path()) {
        return;
    }
    // `never` is MADV_NOHUGEPAGE, requested by the program: such memory is left alone.
    let server = Server::start(&program, &["never"]);
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
    assert_eq!(refused["evidence"]["huge_balance"]["built"]["count"], 0);
    assert!(
        refused["notes"].to_string().contains("MADV_NOHUGEPAGE"),
        "{refused}"
    );
    drop(server);
    both_ways(&program, runtime.path());
}

#[test]
fn a_counter_that_stands_still_is_called_that() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = server(runtime.path()) else {
        return skipped!("no C compiler");
    };
    if !allowed(runtime.path()) {
        return;
    }
    let server = Server::start(&program, &[]);
    let is_huge = server.huge_bytes() > 0;
    let counter = runtime.path().join("requests");
    std::fs::write(&counter, "5\n").expect("written");
    let progress = format!("file:{}", counter.display());
    let controller = if is_huge { "never" } else { "always" };
    let pid = server.pid();
    let found = json(&pagewise(
        &[
            "huge",
            "balance",
            "-p",
            &pid,
            "--apply",
            "--controller",
            controller,
            "--max-cpu",
            "100%",
            "--duration",
            "1500ms",
            "--progress",
            &progress,
            "--json",
        ],
        runtime.path(),
    ));
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("stood still") && !notes.contains("--progress"),
        "{notes}"
    );
    assert_ne!(server.huge_bytes() > 0, is_huge, "{found}");
    let before = &found["evidence"]["huge_balance"]["before"]["huge"];
    assert_eq!(before.as_u64().expect("a number") > 0, is_huge, "{found}");
}

/// A server that requests nothing, whatever the machine's settings.
fn both_ways(program: &Path, runtime: &Path) {
    let server = Server::start(program, &[]);
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
        fits(&found, "huge_balance");
        found
    };
    let found = balance(first);
    let after = server.huge_bytes();
    assert_ne!(before == 0, after == 0, "{found}");
    assert!(
        found["evidence"]["huge_balance"]["points"]
            .to_string()
            .contains("cost_ns")
    );
    let found = balance(second);
    assert_eq!(server.huge_bytes() == 0, before == 0, "{found}");
    balance(first);
    let undone = pagewise(
        &["huge", "balance", "--undo", "-p", &pid, "--json"],
        runtime,
    );
    let undone = json(&undone);
    fits(&undone, "huge_undo");
    assert_eq!(
        undone["evidence"]["huge_undo"]["processes"][0]["refused"], 0,
        "{undone}"
    );
    assert_eq!(
        server.huge_bytes() == 0,
        before == 0,
        "undo gives the sizes back"
    );
    // The journal is gone with it.
    let again = pagewise(&["huge", "balance", "--undo", "-p", &pid], runtime);
    assert!(text(&again.stderr).contains("no journal"));
}

/// Lines of journals under their final name. A journal being created has another name until its
/// first line is complete; a kill at that moment leaves it behind, and nothing has been changed by
/// then.
fn journal_lines(folder: &Path) -> usize {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files
        .filter(|file| {
            file.path()
                .extension()
                .is_some_and(|ending| ending == "journal")
        })
        .map(|file| std::fs::read_to_string(file.path()).unwrap_or_default())
        .map(|journal| journal.lines().count())
        .sum()
}

#[test]
fn a_killed_controller_leaves_a_correct_program_and_a_journal() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = server(runtime.path()) else {
        return skipped!("no C compiler");
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
    // In the middle of its first changes: the process is in the journal's first line.
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
fn a_controller_killed_at_any_moment_can_be_undone() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = server(runtime.path()) else {
        return skipped!("no C compiler");
    };
    if !allowed(runtime.path()) {
        return;
    }
    let server = Server::start(&program, &[]);
    let before = server.huge_bytes();
    let controller = if before == 0 { "always" } else { "never" };
    let pid = server.pid();
    let folder = runtime.path().join("pagewise");
    // With the first line only the process is noted; then come changes, each before it is made.
    for lines in [1, 2, 3, 8, 20, 30] {
        let mut killed = Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .args(["huge", "balance", "--apply", "--controller", controller])
            .args(["--max-cpu", "100%", "-p", &pid])
            .env("XDG_RUNTIME_DIR", runtime.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pagewise runs");
        while journal_lines(&folder) < lines {
            let ended = killed.try_wait().expect("it is ours");
            assert_eq!(ended, None, "it ended by itself before line {lines}");
            std::thread::yield_now();
        }
        killed.kill().expect("it runs");
        killed.wait().expect("it ends");
        let undone = pagewise(&["huge", "balance", "--undo", "-p", &pid], runtime.path());
        assert!(undone.status.success(), "{}", text(&undone.stderr));
        assert_eq!(server.huge_bytes(), before, "killed at line {lines}");
        assert_eq!(journal_lines(&folder), 0);
    }
}

/// A sparse server driven to as many huge pages as `--max-rss` allows: returns the report, and the
/// server's final message on its resident memory in KiB, current and peak.
fn sparse(program: &Path, runtime: &Path, promise: &str, grows: &str) -> (Value, u64, u64) {
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["huge", "balance", "--json", "--controller", "always"])
        .args(["--max-rss", promise, "--max-cpu", "100%"])
        .args(["--progress", "symbol:steps", "--"])
        .arg(program)
        .args(["256", "4", "8", grows])
        .env("XDG_RUNTIME_DIR", runtime)
        .output()
        .expect("pagewise runs");
    let found = json(&output);
    let said = text(&output.stderr);
    let words = said
        .lines()
        .find_map(|line| line.strip_prefix("memory intact resident "));
    let numbers: Vec<u64> = words
        .unwrap_or_else(|| panic!("{said}"))
        .split(' ')
        .filter_map(|word| word.parse().ok())
        .collect();
    (found, numbers[0], numbers[1])
}

#[test]
fn a_limit_on_memory_holds_where_huge_pages_multiply_it() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = example(runtime.path(), "sparse_server") else {
        return skipped!("no C compiler");
    };
    if !allowed(runtime.path()) {
        return;
    }
    let enabled = "/sys/kernel/mm/transparent_hugepage/enabled";
    if std::fs::read_to_string(enabled).is_ok_and(|text| text.contains("[always]")) {
        return skipped!("faults give huge pages here already ({enabled})");
    }
    const PROMISE_KIB: u64 = 64 << 10;
    // 32 MiB of 256 are touched; every huge page adds 1.75 MiB.
    let (found, _, most) = sparse(&program, runtime.path(), "64M", "0");
    let built = found["evidence"]["huge_balance"]["built"]["count"]
        .as_u64()
        .expect("a count");
    assert!((4..=18).contains(&built), "{built} built");
    // The kernel's own account of the whole run.
    assert!(most <= PROMISE_KIB, "{most} KiB");
    assert!(found["evidence"]["huge_balance"]["peak_rss"].as_u64() <= Some(PROMISE_KIB << 10));
    // The program has ended by then: its last state is reported, not an empty map.
    assert!(
        found["evidence"]["huge_balance"]["after"]["rss"].as_u64() > Some(32 << 20),
        "{found}"
    );
    assert!(
        found["evidence"]["huge_balance"]["after"]["huge"].as_u64() > Some(0),
        "{found}"
    );
    let verdict = found["verdict"].to_string();
    assert!(!verdict.contains("holds no memory"), "{verdict}");
    // The program itself takes 24 MiB more: huge pages that added memory are split again.
    let (found, now, _) = sparse(&program, runtime.path(), "64M", "24");
    assert!(
        found["evidence"]["huge_balance"]["split"]["count"].as_u64() > Some(0),
        "{found}"
    );
    assert!(now <= PROMISE_KIB, "{now} KiB at the end");
}

/// The setting of 64 KiB pages, if this machine has one that we may write.
fn middle_setting() -> Option<PathBuf> {
    let path = "/sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled";
    let text = std::fs::read_to_string(path).ok()?;
    let writable = std::fs::OpenOptions::new().write(true).open(path).is_ok();
    (writable && text.contains("[never]")).then(|| path.into())
}

/// Writes `never` if the test fails before the setting was restored.
struct Never(PathBuf);

impl Drop for Never {
    fn drop(&mut self) {
        if std::fs::read_to_string(&self.0).is_ok_and(|text| !text.contains("[never]")) {
            let _ = std::fs::write(&self.0, "never");
        }
    }
}

#[test]
fn undo_restores_the_machines_setting_after_a_kill() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(setting) = middle_setting() else {
        return skipped!("no setting of 64 KiB pages that is never and may be written");
    };
    let _never = Never(setting.clone());
    let chosen = || {
        let text = std::fs::read_to_string(&setting).expect("it is there");
        let (_, rest) = text.split_once('[').expect("a choice");
        rest.split(']').next().unwrap_or_default().to_owned()
    };
    if !allowed(runtime.path()) {
        return;
    }
    let show = format!("cat {}", setting.display());
    let arguments = [
        "huge",
        "balance",
        "--system",
        "64K=madvise",
        "--",
        "sh",
        "-c",
        &show,
    ];
    let output = pagewise(&arguments, runtime.path());
    let said = text(&output.stdout);
    assert!(said.contains("[madvise]"), "{said}{}", text(&output.stderr));
    assert!(said.contains("given back"), "{said}");
    assert_eq!(chosen(), "never");
    let mut killed = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args([
            "huge",
            "balance",
            "--system",
            "64K=madvise",
            "--",
            "sleep",
            "1000",
        ])
        .env("XDG_RUNTIME_DIR", runtime.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("pagewise runs");
    while chosen() != "madvise" {
        assert_eq!(killed.try_wait().expect("it is ours"), None, "it ended");
        std::thread::yield_now();
    }
    killed.kill().expect("it runs");
    killed.wait().expect("it ends");
    assert_eq!(chosen(), "madvise");
    let undone = json(&pagewise(
        &["huge", "balance", "--undo", "--json"],
        runtime.path(),
    ));
    fits(&undone, "huge_undo");
    assert_eq!(
        undone["evidence"]["huge_undo"]["processes"][0]["settings"], 1,
        "{undone}"
    );
    assert_eq!(chosen(), "never");
    // A size that the machine lacks is named, and nothing is started.
    let lacks = pagewise(
        &["huge", "balance", "--system", "24K=always", "--", "true"],
        runtime.path(),
    );
    assert!(
        text(&lacks.stderr).contains("no transparent huge pages of 24"),
        "{}",
        text(&lacks.stderr)
    );
}

#[test]
fn a_program_that_ends_at_once_passes_its_status_on() {
    let runtime = tempfile::tempdir().expect("a folder");
    let arguments = ["huge", "balance", "--json", "--", "sh", "-c", "exit 3"];
    let output = pagewise(&arguments, runtime.path());
    let said = text(&output.stderr);
    if output.status.code() == Some(1) && said.contains("run as root") {
        return skipped!("{said}");
    }
    assert_eq!(output.status.code(), Some(3), "{said}");
    fits(&json(&output), "huge_balance");
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
        return skipped!("{}", text(&output.stderr));
    }
    let found = json(&output);
    fits(&found, "huge_probe");
    assert_eq!(
        found["evidence"]["huge_probe"]["effect"][0]["huge_share"],
        0.0
    );
    assert!(found["evidence"]["huge_probe"]["effect"][4]["step_ns"]["value"].as_f64() > Some(0.0));
}

#[test]
fn doctor_says_what_huge_pages_would_save_by_fewer_faults() {
    let runtime = tempfile::tempdir().expect("a folder");
    let Some(program) = example(runtime.path(), "sparse_server") else {
        return skipped!("no C compiler");
    };
    if !allowed(runtime.path()) {
        return;
    }
    // 512 MiB touched once, then a moment of work: most of it is page faults.
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["doctor", "--json", "--no-report", "-q", "--"])
        .arg(&program)
        .args(["512", "0.1", "1"])
        .output()
        .expect("pagewise runs");
    let found = json(&output);
    let diagnoses = found["diagnoses"].as_array().expect("diagnoses");
    let is_ours = |one: &&Value| {
        let id = one["id"].as_str();
        id.is_some_and(|id| id.starts_with("huge_pages."))
    };
    let Some(note) = diagnoses.iter().find(is_ours) else {
        panic!("{diagnoses:?}");
    };
    let evidence = note["evidence"].to_string();
    if found["evidence"]["run"]["cost"]["minor_faults"].as_u64() < Some(100_000)
        || !evidence.contains("faults on")
    {
        return skipped!("huge pages at fault here already, or faults not measured: {note}");
    }
    let share = &note["share_of_cpu"];
    let (low, high) = (share["low"].as_f64(), share["high"].as_f64());
    // If free memory belongs to the host, huge pages may have to come from there.
    let is_promised = low > Some(0.0) || evidence.contains("free page reporting");
    // How much depends on what a first touch costs at the moment, which a busy machine multiplies.
    assert!(is_promised && high <= Some(1.0) && low <= high, "{note}");
    let headline = note["headline"].as_str().expect("a headline");
    assert!(
        headline.contains("help") && headline.contains(" CPU time by fewer page faults, "),
        "{headline}"
    );
}
