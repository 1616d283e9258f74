//! `pagewise diff` as a user runs it.

use std::fmt::Write;
use std::path::Path;
use std::process::{Command, Output};

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

/// Anonymous faults whose charge takes `charge` ns, every fourth with a reuse after it.
fn trace(faults: u64, charge: u64) -> String {
    let mut text = String::from("# tracer: function_graph\n#\n");
    let mut line = |at: u64, us: u64, call: &str| {
        let _ = writeln!(
            text,
            "  {}.{:06} |   0)     bash-1     |   {}.{:03} us    |  {call}",
            12 + at / 1_000_000,
            at % 1_000_000,
            us / 1000,
            us % 1000
        );
    };
    for fault in 0..faults {
        let (at, noise) = (fault * 100, fault * 7919 % 97);
        line(at, 0, "handle_mm_fault() {");
        line(at + 1, 5_000 + noise, "  vma_alloc_folio();");
        line(at + 7, charge + noise, "  __mem_cgroup_charge();");
        line(at + 10, 900, "  page_add_new_anon_rmap();");
        line(
            at + 15,
            8_000 + charge + 2 * noise,
            "} /* handle_mm_fault */",
        );
        if fault % 4 == 0 {
            line(at + 50, 0, "handle_mm_fault() {");
            line(at + 51, 700, "  do_wp_page();");
            line(at + 55, 2_000, "} /* handle_mm_fault */");
        }
    }
    text.replace("|   0.000 us    |  handle", "|               |  handle")
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .arg("diff")
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("pagewise runs")
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: String| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    write("before.txt", trace(400, 900));
    write("after.txt", trace(400, 3_400));
    write("short.txt", trace(9, 900));
    for name in ["before", "after"] {
        let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .args(["report", "--json", &format!("{name}.txt")])
            .current_dir(folder.path())
            .output()
            .expect("pagewise runs");
        let text = String::from_utf8(output.stdout).expect("text");
        write(&format!("{name}.json"), text);
    }
    write(
        "other.json",
        "{\"kind\":\"tune\",\"schema_version\":1}".to_owned(),
    );
    folder
}

fn json(output: &Output) -> serde_json::Value {
    assert!(output.status.success(), "{output:?}");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_slower_charge_is_named_with_its_size() {
    let folder = folder();
    let diff = json(&run(folder.path(), &["--json", "before.txt", "after.txt"]));
    assert_eq!(diff["evidence"]["fault_diff"]["a"]["label"], "before");
    assert_eq!(diff["evidence"]["fault_diff"]["a"]["faults"], 500);
    let findings = diff["evidence"]["fault_diff"]["findings"]
        .as_array()
        .expect("findings");
    let of_charge = findings
        .iter()
        .filter(|f| f["name"] == "__mem_cgroup_charge");
    let time = of_charge
        .clone()
        .find(|f| f["subject"] == "function_time")
        .expect("named");
    assert_eq!(
        time["class"],
        serde_json::Value::Null,
        "first over all kinds"
    );
    let of_kind = of_charge
        .clone()
        .find(|f| f["class"] == "anonymous")
        .expect("by kind");
    let change = of_kind["change"]["value"].as_f64().expect("a number");
    assert!((change - 2_500.0).abs() < 30.0, "{change}");
    let parts = diff["evidence"]["fault_diff"]["mean"]["parts"]
        .as_array()
        .expect("parts");
    assert_eq!(parts[0]["function"], "__mem_cgroup_charge");
    let sum: f64 = parts.iter().filter_map(|part| part["ns"].as_f64()).sum();
    let all = diff["evidence"]["fault_diff"]["mean"]["change_ns"]
        .as_f64()
        .expect("a number");
    assert!((sum - all).abs() < 1.0, "{sum} of {all}");
    let rmap = findings
        .iter()
        .any(|f| f["name"] == "page_add_new_anon_rmap");
    assert!(!rmap, "it did not change");
}

#[test]
fn the_first_line_says_how_long_where_and_how_many() {
    let folder = folder();
    let output = run(folder.path(), &["before.txt", "after.txt"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let first = text.split("\n\n").next().expect("a line");
    let words: Vec<&str> = first.split_whitespace().collect();
    let first = words.join(" ");
    assert!(first.starts_with("● diff Faults take "), "{first}");
    for part in [
        "median",
        "nearly all of it in __mem_cgroup_charge",
        "as many faults",
    ] {
        assert!(first.contains(part), "{part} in {first}");
    }
}

#[test]
fn what_explains_is_tested_only_where_something_differs() {
    let folder = folder();
    let tests = |b: &str| {
        let diff = json(&run(folder.path(), &["--json", "before.txt", b]));
        let number = |name: &str| {
            diff["evidence"]["fault_diff"]["method"][name]
                .as_u64()
                .expect("a number")
        };
        (number("questions"), number("tests"))
    };
    let (alike, changed) = (tests("before.txt"), tests("after.txt"));
    assert!(
        alike.0 == changed.0 && alike.0 < 20,
        "{alike:?} {changed:?}"
    );
    assert!(alike.1 < changed.1, "{alike:?} {changed:?}");
}

#[test]
fn a_trace_does_not_differ_from_itself() {
    let folder = folder();
    let output = run(folder.path(), &["before.txt", "before.txt"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.contains("Nothing differs beyond chance"), "{text}");
    assert!(!text.contains("looks different"), "{text}");
}

#[test]
fn results_are_compared_without_tests() {
    let folder = folder();
    let diff = json(&run(
        folder.path(),
        &["--json", "before.json", "after.json"],
    ));
    assert!(diff["evidence"]["fault_diff"]["method"]["not_tested"].is_string());
    let mean = diff["evidence"]["fault_diff"]["whole"]["mean"]["value"]
        .as_f64()
        .expect("a number");
    assert!((mean - 2_000.0).abs() < 30.0, "four of five faults, {mean}");
    let functions = diff["evidence"]["fault_diff"]["functions"]
        .as_array()
        .expect("functions");
    assert_eq!(functions[0]["function"], "__mem_cgroup_charge");
    let mixed = json(&run(folder.path(), &["--json", "before.txt", "after.json"]));
    assert_eq!(
        mixed["evidence"]["fault_diff"]["whole"],
        diff["evidence"]["fault_diff"]["whole"]
    );
}

#[test]
fn short_traces_are_compared_but_not_tested() {
    let folder = folder();
    let output = run(folder.path(), &["short.txt", "after.txt"]);
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.contains("Nothing was tested: tests need 128 faults"),
        "{text}"
    );
}

#[test]
fn json_fits_its_schema() {
    let folder = folder();
    for pair in [
        ["before.txt", "after.txt"],
        ["before.json", "after.json"],
        ["short.txt", "before.txt"],
    ] {
        let document = json(&run(folder.path(), &["--json", pair[0], pair[1]]));
        assert_eq!(checker::errors(&document), [""; 0], "{pair:?}");
    }
}

#[test]
fn what_cannot_be_compared_is_refused_with_the_reason() {
    let folder = folder();
    for (arguments, status, reason) in [
        (&["before.txt", "missing.txt"][..], 1, "missing.txt"),
        (&["before.txt", "other.json"], 1, "kind is \"tune\""),
        (&["-", "-"], 1, "standard input"),
        (&["before.txt"], 2, "<B>"),
        (
            &["--labels", "x", "before.txt", "after.txt"],
            2,
            "two names",
        ),
    ] {
        let output = run(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(status), "{arguments:?}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(message.contains(reason), "{arguments:?}: {message}");
    }
}

/// A recording of page faults alone, by perf.
#[test]
fn a_recording_of_faults_alone_is_compared_with_itself() {
    let folder = tempfile::tempdir().unwrap();
    let packed =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/fixtures/plain.data.zst");
    let file = folder.path().join("faults.data");
    let data = zstd::decode_all(std::fs::File::open(packed).unwrap()).unwrap();
    std::fs::write(&file, data).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .arg("diff")
        .args([&file, &file])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(said.contains("No significant difference"), "{said}");
}
