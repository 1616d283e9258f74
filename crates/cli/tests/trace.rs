//! `pagewise trace` as a user runs it, on the present kernel. tests/qemu/run checks captures under
//! kernels that have the tracer.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::path::Path;
use std::process::{Command, Output};

fn pagewise(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("pagewise starts")
}

/// Whether this process may use function_graph here.
fn has_tracer() -> bool {
    let root = Path::new("/sys/kernel/tracing");
    let tracers = std::fs::read_to_string(root.join("available_tracers"));
    tracers.is_ok_and(|list| list.contains("function_graph"))
        && std::fs::read(root.join("set_graph_function")).is_ok()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn whatever_the_kernel_allows_there_is_a_file_that_report_opens() {
    let folder = tempfile::tempdir().unwrap();
    let script = "dd if=/dev/zero of=/dev/null bs=8M count=4 2>/dev/null; exit 7";
    let output = pagewise(
        folder.path(),
        &["trace", "-o", "faults", "--", "sh", "-c", script],
    );
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let report = pagewise(folder.path(), &["report", "--json", "faults"]);
    assert!(report.status.success(), "{}", text(&report.stderr));
    let json: serde_json::Value = serde_json::from_slice(&report.stdout).expect("JSON");
    assert!(json["schema_version"].is_u64());
}

#[test]
fn without_the_tracer_it_says_why_and_what_it_records_instead() {
    if has_tracer() {
        return skipped!("this kernel has function_graph, and we may use it");
    }
    let folder = tempfile::tempdir().unwrap();
    let output = pagewise(folder.path(), &["trace", "--", "true"]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let said = text(&output.stderr);
    let remedies = [
        "pagewise help tracing",
        "is closed to this user. Run as root.",
        "is not mounted, and mounting it privately failed",
    ];
    assert!(remedies.iter().any(|one| said.contains(one)), "{said}");
    assert!(
        said.contains("recording into trace.perf.data instead"),
        "{said}"
    );
    assert!(folder.path().join("trace.perf.data").exists());
    let output = pagewise(folder.path(), &["trace", "--no-fallback", "--", "true"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(!text(&output.stderr).contains("recording into"));
}

#[test]
fn wrong_usage_is_told_apart_from_failure() {
    let folder = tempfile::tempdir().unwrap();
    let status = |arguments: &[&str]| pagewise(folder.path(), arguments).status.code();
    assert_eq!(status(&["trace"]), Some(2));
    assert_eq!(status(&["trace", "-p", "0"]), Some(2));
    assert_eq!(status(&["trace", "--restore", "--", "true"]), Some(2));
    assert_eq!(
        status(&["trace", "--buffer", "none", "--", "true"]),
        Some(2)
    );
    assert_eq!(status(&["trace", "--", "no-such-program"]), Some(127));
}

#[test]
fn a_trace_becomes_a_folder_of_tables() {
    let folder = tempfile::tempdir().unwrap();
    let script = "dd if=/dev/zero of=/dev/null bs=8M count=4 2>/dev/null; exit 7";
    let output = pagewise(
        folder.path(),
        &[
            "trace", "--export", "parquet", "-o", "host=a", "--", "sh", "-c", script,
        ],
    );
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let files = std::fs::read_dir(folder.path().join("host=a")).unwrap();
    let names: Vec<_> = files.map(|file| file.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name == "runs.parquet"), "{names:?}");
    let tables = names
        .iter()
        .all(|name| name.to_string_lossy().ends_with(".parquet"));
    assert!(tables, "{names:?}");
}
