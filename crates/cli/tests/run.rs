//! `pagewise run`, as a user runs it.
#![cfg(target_arch = "x86_64")]

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::io::{BufRead, BufReader};
use std::process::{Command, Output, Stdio};

#[path = "support/command.rs"]
mod command;

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

use command::pagewise;
use pagewise_wire::trace::{self, Event, Header, Record};

/// Whether the machine allows the pager to work; prints a message if not.
fn is_possible(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    let refused = said.contains("memory is not managed");
    if refused {
        skipped!("{}", said.trim());
    }
    !refused
}

/// Twice the budget, written and read back by a program unaware of it.
const PROGRAM: &str = "b = bytearray(96 << 20)\n\
    for i in range(0, len(b), 4096): b[i] = i // 4096 % 251\n\
    print(sum(b[i] != i // 4096 % 251 for i in range(0, len(b), 4096)))";

#[test]
fn a_program_of_twice_the_budget_keeps_its_bytes_and_the_budget() {
    let output = pagewise(&[
        "run", "--memory", "48M", "--json", "--", "python3", "-c", PROGRAM,
    ]);
    if !is_possible(&output) {
        return;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let (answer, document) = text.split_once('\n').expect("an answer and a document");
    assert_eq!(answer, "0", "wrong bytes");
    let document: serde_json::Value = serde_json::from_str(document).expect("JSON");
    assert_eq!(
        document["evidence"]["paged_run"]["ending"],
        serde_json::json!({"exited": 0})
    );
    let largest = document["evidence"]["paged_run"]["cost"]["max_rss"]
        .as_u64()
        .expect("a size");
    assert!(largest <= (48 << 20) * 11 / 10, "{largest}");
    assert_eq!(checker::errors(&document), [""; 0]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.json");
    std::fs::write(&path, document.to_string()).expect("written");
    let path = path.to_str().expect("text");
    let shown = pagewise(&["report", path]);
    let shown = String::from_utf8_lossy(&shown.stdout);
    assert!(
        shown.starts_with("● run      The program exited with status 0 after "),
        "{shown}"
    );
}

#[test]
fn two_runs_are_compared_by_their_settings() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let paths = ["prefetch", "2q"].map(|policy| (policy, path(policy)));
    for (policy, path) in &paths {
        if !is_possible(&paged(&["--policy", policy, "--json", "-o", path])) {
            return;
        }
    }
    let [(_, a), (_, b)] = &paths;
    let output = pagewise(&["diff", "--json", a, b]);
    assert!(output.status.success(), "{output:?}");
    let diff: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(checker::errors(&diff), [""; 0]);
    let settings = &diff["evidence"]["run_diff"]["settings"];
    let settings = settings.as_array().expect("settings");
    let names: Vec<_> = settings.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["run.policy"]);
    let output = pagewise(&[
        "diff",
        a,
        concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"),
    ]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
}

/// When a test disables allocation, the library ends the process at any allocation after its start,
/// above all in a handler. Both deliveries, evictions, a fork and recording pass under this
/// condition.
#[test]
fn no_handler_allocates() {
    let program = format!(
        "import os\n{PROGRAM}\nif os.fork() == 0:\n    {}\n    os._exit(0)\n\
        print(os.wait()[1])",
        "for i in range(0, len(b), 4096): b[i] ^= 1"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let record = folder.path().join("faults");
    for delivery in ["fd", "sigbus"] {
        let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .env("PAGEWISE_PAGER_WITHOUT", "allocation")
            .args(["run", "--memory", "48M", "--delivery", delivery])
            .arg("--record-faults")
            .arg(&record)
            .args(["--", "python3", "-c", &program])
            .output()
            .expect("pagewise starts");
        if !is_possible(&output) {
            return;
        }
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{delivery}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n0\n");
    }
}

#[test]
fn the_programs_status_is_ours_and_what_cannot_be_is_refused() {
    let output = pagewise(&["run", "--memory", "32M", "--", "sh", "-c", "exit 7"]);
    assert_eq!(output.status.code(), Some(7));
    let output = pagewise(&["run", "--memory", "1M", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("too small"));
    let output = pagewise(&["run", "--memory", "32M", "--policy", "nosuch", "--", "true"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("nosuch"));
    let replay = concat!("replay:", env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let output = pagewise(&["run", "--memory", "32M", "--policy", replay, "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a fault trace"));
}

/// A program that does not end by SIGTERM, and its child, which does not either.
#[test]
fn a_program_that_does_not_end_is_killed_with_its_children() {
    // One write per line: lines that print writes in parts would mix between two processes.
    // Short sleeps: Python calls no handler for a signal that comes just before it sleeps.
    let deaf = "import os, signal, time\n\
        signal.signal(signal.SIGTERM, lambda *_: os.write(1, b'0\\n'))\n\
        b = bytearray(80 << 20)\nos.fork()\nos.write(1, b'%d\\n' % os.getpid())\n\
        while True: time.sleep(.1)";
    let mut run = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["run", "--memory", "32M", "--", "python3", "-c", deaf])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    let mut lines = BufReader::new(run.stdout.take().expect("a pipe")).lines();
    let mut next = || {
        let line = lines.next()?.expect("text");
        Some(line.parse::<u32>().expect("a process"))
    };
    let [Some(parent), Some(child)] = [next(), next()] else {
        let output = run.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr);
        panic!("it ended early: {}: {said}", output.status);
    };
    let terminate = || {
        // The shell's builtin kill: small systems have no program for it.
        let kill = format!("kill {}", run.id());
        let status = Command::new("sh").args(["-c", &kill]).status();
        assert!(status.expect("sh runs").success());
    };
    terminate();
    let first = next();
    terminate();
    let output = run.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("memory is not managed") {
        skipped!("{}", said.trim());
        return;
    }
    assert_eq!(
        first,
        Some(0),
        "the first request reaches the program: {said}"
    );
    assert_eq!(output.status.code(), Some(128 + 9), "{said}");
    assert!(said.contains("killing it"), "{said}");
    for process in [parent, child] {
        // A killed process lives until it runs again, which may take a while on a busy machine.
        let patience = std::time::Instant::now() + std::time::Duration::from_secs(300);
        while let Some(state) = state_of(process) {
            assert!(std::time::Instant::now() < patience, "it lives on: {state}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }
}

#[test]
fn an_interrupt_sent_to_run_alone_reaches_the_program() {
    let program = "import os, signal, sys, time\n\
        def end(*_): os.write(1, b'interrupted\\n'); sys.exit(7)\n\
        signal.signal(signal.SIGINT, end)\n\
        os.write(1, b'ready\\n')\nwhile True: time.sleep(.1)";
    // A shell that started the tests in the background made them ignore SIGINT.
    let heeding = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); \
        os.execv(sys.argv[1], sys.argv[1:])";
    let pagewise = env!("CARGO_BIN_EXE_pagewise");
    let mut run = Command::new("python3")
        .args([
            "-c", heeding, pagewise, "run", "--memory", "32M", "--", "python3", "-c", program,
        ])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("pagewise starts");
    let mut lines = BufReader::new(run.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a line").expect("text");
    assert_eq!(first, "ready");
    let kill = format!("kill -INT {}", run.id());
    let status = Command::new("sh").args(["-c", &kill]).status();
    assert!(status.expect("sh runs").success());
    let next = lines.next().expect("a line").expect("text");
    assert_eq!(next, "interrupted");
    assert_eq!(run.wait().expect("it ends").code(), Some(7));
}

/// The kernel's state of a process that has not ended.
fn state_of(process: u32) -> Option<String> {
    let state = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    (!state.contains(") Z")).then_some(state)
}

/// The program inside 48 MiB, with `options` of `run`.
fn paged(options: &[&str]) -> Output {
    let command = ["--", "python3", "-c", PROGRAM];
    pagewise(&[&["run", "--memory", "48M"], options, &command].concat())
}

/// A run is recorded, and policies are tried on the recorded accesses.
#[test]
fn a_simulated_recorded_run_fits_its_schema() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("faults");
    let trace = trace.to_str().expect("text");
    let output = paged(&["--record-faults", trace, "--policy", "alone+2q"]);
    if !is_possible(&output) {
        return;
    }
    let policies = "2q,fifo,clock,s3fifo,prefetch,csr";
    let simulate = ["run", "--memory", "48M", "--simulate", trace];
    let simulate = [&simulate[..], &["--policy", policies]].concat();
    let output = pagewise(&[&simulate[..], &["--json"]].concat());
    assert!(output.status.success(), "{output:?}");
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(checker::errors(&answer), [""; 0]);
    let rows = answer["evidence"]["paging_simulation"]["policies"]
        .as_array()
        .expect("rows");
    let names: Vec<_> = rows
        .iter()
        .filter_map(|row| row["policy"].as_str())
        .collect();
    assert_eq!(names.join(","), policies);
    assert!(
        answer["evidence"]["paging_simulation"]["trace"]["uses"].as_u64() > Some(96 << 8),
        "{answer}"
    );
    let bound = answer["evidence"]["paging_simulation"]["bound"]["pages_read"]
        .as_u64()
        .expect("a number");
    for row in rows {
        let needed = row["pages_read"].as_u64().expect("a number")
            - row["read_in_vain"].as_u64().expect("a number");
        assert!(
            bound > 0 && needed >= bound,
            "{row} reads less than MIN, {bound}"
        );
    }
    let kept = folder.path().join("answer.json");
    std::fs::write(&kept, &output.stdout).expect("it is written");
    let opened = pagewise(&["report", kept.to_str().expect("text")]);
    let shown = String::from_utf8_lossy(&opened.stdout).into_owned();
    assert_eq!(shown.as_bytes(), pagewise(&simulate).stdout, "{shown}");
    let output = pagewise(&["run", "--memory", "48M", "--simulate", "/dev/null"]);
    assert_eq!(output.status.code(), Some(1), "an empty file is no trace");
}

/// A trace of these events, one page after the other.
fn trace_of(events: impl IntoIterator<Item = (u64, Event)>) -> tempfile::NamedTempFile {
    let head = Header {
        magic: trace::MAGIC,
        version: trace::VERSION,
        page_bytes: 4096,
        budget_pages: 100,
        pid: 1,
        reserved: 0,
    };
    let records = events
        .into_iter()
        .map(|(page, event)| Record::new(0, page, event));
    let records = records.flat_map(Record::to_bytes);
    let bytes: Vec<u8> = head.to_bytes().into_iter().chain(records).collect();
    let file = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(&file, bytes).expect("it is written");
    file
}

/// Nobody has seen when pages that were read ahead were used: of such a trace no policy is called better.
#[test]
fn a_trace_of_read_ahead_is_no_basis_for_a_choice() {
    let simulate = |share_ahead: u64| {
        let file = trace_of((0..3000).map(|at| match at % 10 < share_ahead {
            true => (at % 1000, Event::Prefetched),
            false => (at % 1000, Event::Refault),
        }));
        let path = file.path().to_str().expect("text");
        pagewise(&["run", "--memory", "1M", "--simulate", path])
    };
    let refused = simulate(9);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert_eq!(refused.status.code(), Some(1), "{said}");
    assert!(
        said.contains("90 % of its uses") && said.contains("alone+2q"),
        "{said}"
    );
    assert!(simulate(4).status.success());
}

/// The run that is replayed is the one that is simulated: that is no forecast of another run.
#[test]
fn replay_of_the_simulated_run_is_not_called_best() {
    let rounds = (0..6000).map(|at| (at * 7919 % 1000, Event::Refault));
    let file = trace_of(rounds);
    let path = file.path().to_str().expect("text");
    let policies = format!("2q,replay:{path}");
    let output = pagewise(&[
        "run",
        "--memory",
        "2M",
        "--simulate",
        path,
        "--policy",
        &policies,
    ]);
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(shown.contains("replay+2q, same order"), "{shown}");
    assert!(shown.contains("replay+2q, another order"), "{shown}");
    assert!(!shown.contains("same order waits least"), "{shown}");
}

/// 96 MiB, swept repeatedly: between two uses of a page all others are used, and as many of them
/// are evicted as do not fit the budget. Every policy has to show that number, and that this much
/// more memory would suffice.
#[test]
fn sweeps_come_back_after_as_many_evictions_as_do_not_fit() {
    // The memory is still there at the end, so that its region is in the figures.
    let program = "import os\nb = bytearray(96 << 20)\n\
        for turn in range(3):\n    for i in range(0, len(b), 4096): b[i] = (b[i] + i // 4096) % 251\n\
        os._exit(0)";
    for policy in ["fifo", "prefetch", "s3fifo"] {
        let output = pagewise(&[
            "run", "--memory", "48M", "--policy", policy, "--json", "--", "python3", "-c", program,
        ]);
        if !is_possible(&output) {
            return;
        }
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let distances = &document["evidence"]["paged_run"]["processes"][0]["refault_distances"];
        let buckets = distances["buckets"].as_array().expect("buckets");
        let sum = |from: u64, to: u64| -> u64 {
            let within = buckets.iter().filter(|bucket| {
                bucket["from_pages"].as_u64() >= Some(from)
                    && bucket["to_pages"].as_u64() <= Some(to)
            });
            let returns =
                ["refaults", "ahead"].map(|kind| move |one: &serde_json::Value| one[kind].as_u64());
            within
                .flat_map(|one| returns.map(|of| of(one).expect("a count")))
                .sum()
        };
        let (all, there) = (sum(0, u64::MAX), sum(8 << 8, 96 << 8));
        assert!(all > 0 && there * 10 >= all * 8, "{policy}: {distances}");
        // For pages that were read back, the count is exact; the sample approximates it within a
        // few percent.
        let read = document["evidence"]["paged_run"]["processes"][0]["pages"]["read"]
            .as_u64()
            .expect("a count");
        assert!(
            all * 10 >= read * 8 && all * 8 <= read * 10,
            "{policy}: {all} of {read}"
        );
        let region = &document["evidence"]["paged_run"]["processes"][0]["regions"][0];
        assert!(region["refaults"].as_u64() > Some(0), "{policy}: {region}");
        let more = distances["larger_budget"]["more_bytes"].as_u64();
        assert!(
            more.is_none_or(|more| more <= 128 << 20),
            "{policy}: {distances}"
        );
    }
}

/// A quarter of the memory is used all the time, half of that written; the rest is never used
/// again. The loop ends by time, so that a slow machine watches as many pages as a fast one, and takes
/// most of it: on a busy machine the first touches take seconds.
#[test]
fn a_hot_quarter_is_told_from_a_cold_rest() {
    let program = "import mmap, os, time\nstart = time.monotonic()\n\
        hot = bytearray(24 << 20)\ngap = mmap.mmap(-1, 1 << 20)\ncold = bytearray(72 << 20)\n\
        for i in range(0, len(cold), 4096): cold[i] = 1\n\
        for i in range(0, len(hot), 4096): hot[i] = 1\n\
        now = time.monotonic()\nend = now + max(5, 20 * (now - start))\n\
        while time.monotonic() < end:\n    for i in range(0, len(hot), 4096):\n        \
        if i % 8192: hot[i] = 2\n        else: hot[i]\n\
        os._exit(0)";
    let output = pagewise(&[
        "run",
        "--memory",
        "256M",
        "--min-region",
        "16M",
        "--heat",
        "250",
        "--json",
        "--",
        "python3",
        "-c",
        program,
    ]);
    if !is_possible(&output) {
        return;
    }
    let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let process = &document["evidence"]["paged_run"]["processes"][0];
    if !process["capabilities"].to_string().contains("\"move\"") {
        skipped!("the kernel moves no pages, so none are watched");
        return;
    }
    let heat = &process["heat"];
    let share = |of: &serde_json::Value| of["value"].as_f64().expect("a share");
    assert!(heat["watched"].as_u64() >= Some(100), "{heat}");
    assert!((0.15..0.35).contains(&share(&heat["hot"])), "{heat}");
    let written = &heat["written"];
    assert!((0.06..0.2).contains(&share(written)), "{heat}");
    for region in process["regions"].as_array().expect("regions") {
        let hot = share(&region["heat"]["hot"]);
        match region["bytes"].as_u64() >= Some(72 << 20) {
            true => assert!(hot < 0.1, "the cold rest: {region}"),
            false => assert!(hot > 0.8, "the hot quarter: {region}"),
        }
    }
}

#[test]
fn the_course_of_a_run_is_written_and_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("text").to_owned();
    let (course, page) = (path("course.json"), path("course.html"));
    let live = path("live.html");
    let output = paged(&["--timeline", &course, "-o", &live]);
    if !is_possible(&output) {
        return;
    }
    let text_of_course = std::fs::read_to_string(&course).expect("a timeline");
    let document: serde_json::Value = serde_json::from_str(&text_of_course).expect("JSON");
    assert_eq!(checker::errors(&document), [""; 0]);
    let points = document["evidence"]["paging_timeline"]["points"]
        .as_array()
        .expect("points");
    let last = points.last().expect("a point");
    assert!(last["pages_evicted"].as_u64() >= Some(48 << 8), "{last}");
    let most = points
        .iter()
        .filter_map(|point| point["resident_bytes"].as_u64())
        .max();
    assert!(most <= Some(48 << 20), "{most:?}");
    let returns =
        document["evidence"]["paging_timeline"]["refault_distances"]["buckets"].as_array();
    assert!(returns.is_some_and(|all| !all.is_empty()), "{document}");
    let output = pagewise(&["report", &course, "-o", &page]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("waits for the store") && text.contains("Away for:"),
        "{text}"
    );
    let html = std::fs::read_to_string(page).expect("a page");
    assert_eq!(
        std::fs::read_to_string(live).expect("a page"),
        html,
        "what the run draws is what report draws of its course"
    );
    assert!(html.contains(r#""paging":{"#) && html.contains("Pages per second"));
    for (what, text, said) in [
        (
            "cut off",
            &text_of_course[..text_of_course.len() / 2],
            "not JSON",
        ),
        (
            "of an earlier version",
            r#"{"pagewise":"paging timeline","schema_version":2,"points":[]}"#,
            "earlier pagewise",
        ),
    ] {
        std::fs::write(&course, text).expect("written");
        let refused = pagewise(&["report", &course]);
        assert_eq!(refused.status.code(), Some(1), "{what}");
        let message = String::from_utf8_lossy(&refused.stderr);
        assert!(message.contains(said), "{what}: {message}");
    }
}

#[test]
fn a_run_becomes_a_folder_of_tables() {
    let folder = tempfile::tempdir().unwrap();
    let tables = folder.path().join("host=a");
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["run", "--memory", "64M", "--export", "parquet", "-o"])
        .arg(&tables)
        .args(["--", "sh", "-c", "exit 3"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    for name in ["runs", "settings", "paging"] {
        assert!(tables.join(format!("{name}.parquet")).is_file(), "{name}");
    }
    assert_eq!(output.stdout, b"");
}
