//! `pagewise huge simulate` from the outside: JSON that conforms to its schema, traces, errors, the
//! page.

use serde_json::Value;
use std::process::{Command, Output};

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

fn simulate(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["huge", "simulate"])
        .args(arguments)
        .output()
        .expect("pagewise runs")
}

fn json(arguments: &[&str]) -> Value {
    let output = simulate(&[arguments, &["--json", "--accesses", "40000"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    serde_json::from_slice(&output.stdout).expect("the output is JSON")
}

#[test]
fn guests_that_share_a_tlb_fit_the_schema_and_slow_each_other() {
    let document = json(&[
        "--machine",
        "3a4000",
        "--workload",
        "chase:64M",
        "--workload",
        "gups:64M",
        "--controller",
        "paper",
        "--seconds",
        "0.5",
        "--sweep",
    ]);
    assert_eq!(checker::errors(&document), [""; 0]);
    let runs = document["evidence"]["huge_simulation"]["controlled"]
        .as_array()
        .unwrap();
    assert_eq!(runs.len(), 2);
    for run in runs {
        let share = run["against_alone"].as_f64().unwrap();
        assert!((0.2..=1.01).contains(&share), "{share}");
    }
    assert_eq!(
        document["evidence"]["huge_simulation"]["configurations"]
            .as_array()
            .unwrap()
            .len(),
        12
    );
}

#[test]
fn text_of_lackey_is_simulated_and_what_it_lacks_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.txt");
    let mut text = String::from("==1== Lackey\nnot of lackey\n");
    for page in 0..3000_u64 {
        text.push_str(&format!(
            " L {:x},8\nI  04001000,3\n",
            0x1000_0000 + page * 4096
        ));
    }
    std::fs::write(&trace, text).unwrap();
    let document = json(&[trace.to_str().unwrap()]);
    assert_eq!(checker::errors(&document), [""; 0]);
    let notes = document["notes"].to_string();
    assert!(
        notes.contains("1 blocks or lines were not understood"),
        "{notes}"
    );
    let rows = document["evidence"]["huge_simulation"]["configurations"]
        .as_array()
        .unwrap();
    // 3000 pages in a loop miss 2048 entries each time; huge pages do not miss.
    assert!(
        rows[0]["small_per_1000"].as_f64().unwrap() > 990.0,
        "{}",
        rows[0]
    );
    assert!(
        rows[1]["huge_per_1000"].as_f64().unwrap() < 1.0,
        "{}",
        rows[1]
    );
    let curve = document["evidence"]["huge_simulation"]["reuse"]
        .as_array()
        .unwrap();
    assert!(curve.iter().any(|curve| curve["page_bytes"] == 4096));
}

#[test]
fn native_processes_alone_are_simulated_where_asked() {
    let document = json(&["--workload", "small", "--native"]);
    assert_eq!(checker::errors(&document), [""; 0]);
    let rows = document["evidence"]["huge_simulation"]["configurations"]
        .as_array()
        .unwrap();
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["native, small pages", "native, huge pages"]);
}

#[test]
fn a_trace_is_measured_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.txt");
    let mut text = String::from("==1== Lackey\n");
    // A calm start longer than the minimum that is measured, then a storm.
    for access in 0..200_000_u64 {
        let page = if access < 100_000 { 0 } else { access % 3000 };
        text.push_str(&format!(" L {:x},8\n", 0x1000_0000 + page * 4096));
    }
    std::fs::write(&trace, text).unwrap();
    let document = json(&[trace.to_str().unwrap()]);
    let small = document["evidence"]["huge_simulation"]["configurations"][0]["small_per_1000"]
        .as_f64()
        .unwrap();
    assert!((400.0..=600.0).contains(&small), "{small}");
}

#[test]
fn the_report_is_one_page_with_the_data() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("huge.html");
    let output = simulate(&[
        "--workload",
        "small",
        "--controller",
        "never",
        "--seconds",
        "0.2",
        "--accesses",
        "20000",
        "-o",
        page.to_str().unwrap(),
    ]);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("\"simulation\":{\"machine\":"));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        text.contains("small, simulated: huge pages change the speed by"),
        "{text}"
    );
}

#[test]
fn mistakes_are_told_with_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "name = \"x\"\n").unwrap();
    let empty = folder.path().join("empty.txt");
    std::fs::write(&empty, "hello\n").unwrap();
    let cases: [(&[&str], &str); 7] = [
        (&["--workload", "nosuch"], "there are mcf"),
        (&["--workload", "gups:12Q"], "is not a size"),
        (
            &["--workload", "gups", "--machine", "z80"],
            "there are 3a4000",
        ),
        (
            &["--workload", "gups", "--machine", wrong.to_str().unwrap()],
            "does not describe a machine",
        ),
        (
            &["--workload", "gups", "--controller", "me"],
            "there are paper",
        ),
        (&[empty.to_str().unwrap()], "no memory access in 1 lines"),
        (&["--json"], "nothing to simulate"),
    ];
    for (arguments, expected) in cases {
        let output = simulate(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
}
