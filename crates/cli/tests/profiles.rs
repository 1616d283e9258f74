//! Profiles from the command line: recorded, reported, compared.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

#[path = "support/command.rs"]
mod command;

use command::pagewise;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// 40 MiB written and freed, 30 times: glibc maps such a block anew each time, unless configured to
/// keep it.
const CHURN: &str = "#include <stdlib.h>\n#include <string.h>\n\
    int main(void) { long sum = 0; for (int i = 0; i < 30; i++) { char *p = malloc(40 << 20);\n\
    for (long k = 0; k < 40 << 20; k += 512) p[k] = i; sum += p[4096]; free(p); } return sum == 1; }\n";
const KEEPING: &str =
    "glibc.malloc.mmap_threshold=4294967296:glibc.malloc.trim_threshold=4294967296";

#[test]
fn two_runs_differ_first_by_their_cause_and_the_setting() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("churn.c"), CHURN).unwrap();
    let built = Command::new("cc")
        .args(["-O1", "-g", "-o", &path("churn"), &path("churn.c")])
        .status();
    assert!(built.unwrap().success());
    for (name, tunables) in [("a", ""), ("b", KEEPING)] {
        let (data, json) = (path(&format!("{name}.data")), path(&format!("{name}.json")));
        let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .args(["doctor", "-q", "--no-report", "--json", "--record", &data])
            .args(["--", &path("churn")])
            .env("GLIBC_TUNABLES", tunables)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        std::fs::write(json, output.stdout).unwrap();
    }
    for kind in ["data", "json"] {
        let (a, b) = (path(&format!("a.{kind}")), path(&format!("b.{kind}")));
        let output = pagewise(&["diff", "--json", &a, &b]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let headline = found["verdict"].as_str().unwrap();
        for part in [
            "page faults became",
            "touched again after munmap",
            "GLIBC_TUNABLES is what differs.",
        ] {
            assert!(headline.contains(part), "{kind}: {part} in {headline}");
        }
        let again = pagewise(&["diff", "--json", &a, &a]);
        let found: Value = serde_json::from_slice(&again.stdout).unwrap();
        let evidence = &found["evidence"];
        let run = match evidence.get("run_diff") {
            Some(run) => run,
            None => &evidence["profile_diff"]["run"],
        };
        let figures = run["figures"].as_array().unwrap();
        let differ = figures.iter().filter(|figure| figure["differs"] == true);
        assert_eq!(differ.count(), 0, "{kind}: {figures:?}");
    }
    let told = |file: &str| {
        let output = pagewise(&["report", "--json", &path(file)]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["verdict"].as_str().unwrap().to_owned()
    };
    assert_eq!(told("a.json"), told("a.data"));
}

/// Records CPU time of a shell that counts. False if perf events are not available.
fn record(path: &Path) -> bool {
    let count = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";
    let path = path.to_str().unwrap();
    let output = pagewise(&[
        "record", "-e", "cpu", "-F", "997", "-o", path, "--", "sh", "-c", count,
    ]);
    let messages = text(&output.stderr);
    assert!(output.status.success(), "{messages}");
    if messages.contains("could not be sampled") {
        skipped!("{messages}");
        return false;
    }
    true
}

#[test]
fn a_profile_is_recorded_reported_and_compared() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a.data"), folder.path().join("b.data"));
    if !record(&a) || !record(&b) {
        return;
    }
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());

    let report = pagewise(&["report", a, "--json"]);
    let found: Value = serde_json::from_slice(&report.stdout).unwrap();
    let event = &found["evidence"]["profile"]["events"][0];
    let samples = event["samples"].as_u64().unwrap();
    assert!(samples > 20, "{found}");
    let weight = event["weight"].as_u64().unwrap();
    assert!(
        weight.abs_diff(samples * 1_000_000_000 / 997) <= samples,
        "{event}"
    );

    let in_range = |range: &str| {
        let report = pagewise(&["report", a, "--json", "--range", range]);
        let found: Value = serde_json::from_slice(&report.stdout).unwrap();
        found["evidence"]["profile"]["events"][0]["samples"]
            .as_u64()
            .unwrap()
    };
    assert_eq!(in_range("..0.05s") + in_range("50ms.."), samples);
    let beyond = pagewise(&["report", a, "--range", "1000s.."]);
    assert!(
        text(&beyond.stderr).contains("the range starts at 1000 s, and the recording ends after"),
        "{}",
        text(&beyond.stderr)
    );

    let diff = pagewise(&["diff", a, b, "--json"]);
    assert!(diff.status.success(), "{}", text(&diff.stderr));
    let found: Value = serde_json::from_slice(&diff.stdout).unwrap();
    assert_eq!(
        found["evidence"]["profile_diff"]["measure"],
        "cpu_seconds_per_run"
    );
    assert!(
        !found["evidence"]["profile_diff"]["tree"]
            .as_array()
            .unwrap()
            .is_empty()
    );

    for (words, part) in [
        (["report", a, "-o"].as_slice(), r#""profile":{"#),
        (&["diff", a, b, "-o"], r#""profile_diff":{"#),
    ] {
        let page = folder.path().join("page.html");
        let written = pagewise(&[words, &[page.to_str().unwrap()]].concat());
        assert!(written.status.success(), "{}", text(&written.stderr));
        assert!(std::fs::read_to_string(&page).unwrap().contains(part));
    }

    // The first may be one that few samples hit, of the other recording alone.
    let mut functions = found["evidence"]["profile_diff"]["functions"]
        .as_array()
        .unwrap()
        .iter();
    let has_time = |function: &&Value| function["a"].as_f64().is_some_and(|time| time > 0.0);
    let function = functions.find(has_time).unwrap();
    let limit = format!("+1% {}", function["name"].as_str().unwrap());
    let told = pagewise(&["diff", a, a, "--fail-if", &limit]);
    assert!(told.status.success(), "{}", text(&told.stderr));
    assert!(text(&told.stdout).contains("No significant difference"));
    let wrong = pagewise(&["diff", a, a, "--range-a", "rest"]);
    assert_eq!(wrong.status.code(), Some(1));
    assert!(text(&wrong.stderr).contains("all but the other side's range"));
}

/// Samples of `perf script`: one hundred each second, of which `copies` are in `copy_page`.
fn script(seconds: u64, copies: u64) -> String {
    let mut text = String::new();
    for at in 0..seconds * 100 {
        let (second, part) = (10 + at / 100, at % 100 * 10_000);
        // Spread over the second, so that blocks of time are alike.
        let function = match at * 37 % 100 < copies {
            true => "copy_page",
            false => "parse",
        };
        writeln!(
            text,
            "x 12/13 [000] {second}.{part:06}: 10000000 cpu-clock: \n\
             \t    7f0000000001 {function}+0x1 (/usr/bin/x)\n\
             \t    7f0000000002 main+0x9 (/usr/bin/x)\n"
        )
        .unwrap();
    }
    text
}

#[test]
fn profiles_that_come_as_text_are_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (a, b) = (
        file("a.txt", &script(12, 20)),
        file("b.txt", &script(12, 50)),
    );
    let diff = pagewise(&["diff", &a, &b, "--json", "--fail-if", "+10% copy_page"]);
    assert_eq!(diff.status.code(), Some(1), "{}", text(&diff.stderr));
    assert!(text(&diff.stderr).contains("copy_page changed by +150.0 %"));
    let found: Value = serde_json::from_slice(&diff.stdout).unwrap();
    assert_eq!(
        found["evidence"]["profile_diff"]["measure"],
        "share_of_busy"
    );
    let first = &found["evidence"]["profile_diff"]["functions"][0];
    assert_eq!(first["significant"], true, "{first}");
    assert!(
        (first["change"]["value"].as_f64().unwrap().abs() - 0.3).abs() < 0.01,
        "{first}"
    );
    let notes = found["notes"].to_string();
    assert!(
        notes.contains("Both inputs lack a snapshot of the host"),
        "{notes}"
    );

    let folded = file("a.folded", "x;main;parse 800\nx;main;copy_page 200\n");
    let diff = pagewise(&["diff", &folded, &b, "--shares", "--labels", "old,new"]);
    assert_eq!(diff.status.code(), Some(1));
    assert!(
        text(&diff.stderr).contains("only be compared with folded stacks"),
        "{}",
        text(&diff.stderr)
    );
    let later = file("b.folded", "x;main;parse 500\nx;main;copy_page 500\n");
    let diff = pagewise(&["diff", &folded, &later, "--labels", "old,new"]);
    assert!(diff.status.success(), "{}", text(&diff.stderr));
    let told = text(&diff.stdout);
    assert!(
        told.contains("copy_page") && told.contains("Both inputs lack times"),
        "{told}"
    );
    let fault = file("trace.txt", "# tracer: function_graph\n#\n");
    let mixed = pagewise(&["diff", &folded, &fault]);
    assert_eq!(mixed.status.code(), Some(1));
}

#[test]
fn options_that_do_not_apply_to_samples_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.txt");
    std::fs::write(&file, script(2, 20)).unwrap();
    let file = file.to_str().unwrap();
    let refused = |arguments: &[&str], why: &str| {
        let output = pagewise(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let message = text(&output.stderr);
        assert!(message.contains(why), "{arguments:?}: {message}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
    };
    refused(
        &["diff", file, file, "--fail-if", "+1% nosuchfunc"],
        "neither recording has a function 'nosuchfunc'",
    );
    for option in ["--class", "--layer", "--path"] {
        refused(
            &["report", file, option, "anonymous"],
            &format!("{option} is for function_graph traces"),
        );
    }
    let beyond = "the range starts at 7.00 s, and the recording ends after 1.99 s";
    refused(&["report", file, "--range", "7s.."], beyond);
    refused(&["diff", file, file, "--range-b", "7s..9s"], beyond);
}

#[test]
fn tracepoints_that_perf_recorded_are_a_profile_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("perf.data");
    let data = data.to_str().unwrap();
    // In our own recordings such events are evidence about faults; here they were requested.
    let write = "i=0; while [ $i -lt 3000 ]; do echo $i >/dev/null; i=$((i+1)); done";
    let perf = Command::new("perf")
        .args([
            "record",
            "-q",
            // Room for all samples, should perf not run before the end.
            "-m",
            "4M",
            "-g",
            "-e",
            "syscalls:sys_enter_write",
            "-e",
            "cpu-clock",
        ])
        .args(["-o", data, "--", "sh", "-c", write])
        .output();
    if !perf.as_ref().is_ok_and(|output| output.status.success()) {
        skipped!("perf records no tracepoints here: {perf:?}");
        return;
    }
    let report = pagewise(&["report", data, "--json"]);
    let found: Value = serde_json::from_slice(&report.stdout).unwrap();
    let events = found["evidence"]["profile"]["events"].as_array().unwrap();
    let writes = events
        .iter()
        .find(|event| event["name"] == "syscalls:sys_enter_write")
        .unwrap_or_else(|| panic!("{}", text(&report.stderr)));
    assert_eq!(writes["samples"], 3000, "{writes}");
}

#[test]
fn what_cannot_be_meant_is_a_usage_error() {
    for args in [
        ["diff", "a", "b", "--range-a", "5..4"],
        ["diff", "a", "b", "--fail-if", "memcpy"],
        ["diff", "a", "b", "--fail-if", "10% memcpy"],
        ["record", "-e", "nonsense", "--", "true"],
        ["tune", "--budget", "0s", "--", "true"],
        ["doctor", "--prove", "--budget=0s", "--", "true"],
    ] {
        let output = pagewise(&args);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn a_redacted_recording_holds_no_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.data");
    let data = path.to_str().unwrap();
    let recorded = |redact: &[&str]| {
        let recorded = Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .args(["record", "-q", "-o", data])
            .args(redact)
            .args(["--", "sh", "-c", "true for customer-17; sleep 0.2"])
            .env("OMP_PLACES", "customer-18")
            .output()
            .unwrap();
        assert!(recorded.status.success(), "{}", text(&recorded.stderr));
        let bytes = std::fs::read(data).unwrap();
        let output = pagewise(&["report", data, "--json"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let in_header = memchr::memmem::find(&bytes, b"customer-17").is_some();
        let shown = text(&output.stdout);
        (
            in_header,
            ["customer-17", "customer-18", "sha256:"].map(|word| shown.contains(word)),
        )
    };
    assert_eq!(recorded(&[]), (true, [true, true, false]));
    assert_eq!(recorded(&["--redact"]), (false, [false, false, true]));
}
