//! `pagewise gate` end to end: what passes, what fails, what is an error, and its documents.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

/// Takes faults and memory by its arguments: pages that stay, and rounds of 64 pages that are
/// freed.
const PROGRAM: &str = r"
#include <stdlib.h>
#include <sys/mman.h>
static volatile char *take(size_t pages) {
    volatile char *at = mmap(0, pages << 12, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (size_t page = 0; page < pages; page++) at[page << 12] = 1;
    return at;
}
__attribute__((noinline)) void load_table(size_t pages) { take(pages)[0] = 2; }
__attribute__((noinline)) void parse_rows(int rounds) {
    while (rounds-- > 0) munmap((void *)take(64), 64 << 12);
}
int main(int count, char **words) {
    load_table(atoi(words[1]));
    parse_rows(atoi(words[2]));
    return count > 3;
}
";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a folder"));
        std::fs::write(place.path("app.c"), PROGRAM).expect("the program is written");
        let built = Command::new("cc")
            .args(["-O1", "-g", "-fno-inline", "-fno-omit-frame-pointer", "-o"])
            .args([place.path("app"), place.path("app.c")])
            .status();
        assert!(built.expect("a C compiler").success());
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn gate(&self, words: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .arg("gate")
            .args(words)
            .current_dir(self.0.path())
            .output()
            .expect("pagewise runs")
    }

    fn text(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).expect("it was written")
    }
}

fn json(output: &Output) -> Value {
    let message = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {message}"))
}

fn verdict<'a>(document: &'a Value, metric: &str) -> &'a str {
    let figures = document["evidence"]["gate"]["figures"]
        .as_array()
        .expect("figures");
    let found = figures.iter().find(|figure| figure["metric"] == metric);
    found
        .and_then(|figure| figure["verdict"].as_str())
        .expect("a verdict")
}

fn perf_events_are_allowed(document: &Value) -> bool {
    document["evidence"]["gate"]["culprit"]["missing"]
        .as_array()
        .is_some_and(Vec::is_empty)
}

#[test]
fn growth_fails_and_equal_programs_pass() {
    let place = Place::new();
    let same = place.gate(&[
        "--against",
        "./app 3000 40",
        "--json",
        "--",
        "./app",
        "3000",
        "40",
    ]);
    let document = json(&same);
    assert_eq!(checker::errors(&document), [""; 0]);
    for metric in ["faults", "major_faults", "peak_memory"] {
        assert_eq!(verdict(&document, metric), "within", "{document}");
    }
    let reports = ["--junit", "gate.xml", "--markdown", "gate.md"];
    let words = [
        "--against",
        "./app 3000 40",
        "--json",
        "--",
        "./app",
        "3000",
        "46",
    ];
    let grown = place.gate(&[&reports[..], &words[..]].concat());
    let document = json(&grown);
    assert_eq!(grown.status.code(), Some(1), "{document}");
    assert_eq!(checker::errors(&document), [""; 0]);
    assert_eq!(verdict(&document, "faults"), "grown");
    assert_eq!(verdict(&document, "peak_memory"), "within");
    let runs = document["evidence"]["gate"]["new"]["runs"]
        .as_array()
        .expect("runs")
        .len();
    assert_eq!(runs, 6, "growth is told by all runs");
    let (comment, report) = (place.text("gate.md"), place.text("gate.xml"));
    assert!(
        comment.contains("| **grew** |") && comment.contains("gate failed"),
        "{comment}"
    );
    assert!(
        report.contains("failures=\"1\"") && report.contains("type=\"growth\""),
        "{report}"
    );
    if perf_events_are_allowed(&document) {
        let culprit = &document["evidence"]["gate"]["culprit"]["stacks"][0];
        assert_eq!(culprit["cause"], "refault_after_munmap", "{document}");
        let frames = culprit["stack"].as_array().expect("frames");
        assert!(frames.contains(&"parse_rows".into()), "{document}");
        assert!(
            comment.contains("parse_rows") && report.contains("parse_rows"),
            "{comment}"
        );
    } else {
        let missing = document["evidence"]["gate"]["culprit"]["missing"][0]
            .as_str()
            .expect("why");
        assert!(missing.contains("pagewise check"), "{missing}");
    }
}

#[test]
fn memory_that_grows_is_found_and_what_is_allowed_passes() {
    let place = Place::new();
    let words = ["--against", "./app 3000 40", "--json"];
    let with =
        |allow: &[&str]| place.gate(&[&words[..], allow, &["--", "./app", "3200", "40"]].concat());
    let document = json(&with(&[]));
    assert_eq!(verdict(&document, "peak_memory"), "grown", "{document}");
    assert_eq!(document["evidence"]["gate"]["passed"], false);
    let allowed = with(&["--allow", "10%,elapsed=off,cpu=off,system=off"]);
    let document = json(&allowed);
    assert_eq!(allowed.status.code(), Some(0), "{document}");
    assert_eq!(verdict(&document, "elapsed_time"), "not_judged");
}

#[test]
fn stored_runs_are_a_baseline_on_the_same_kind_of_host_only() {
    let place = Place::new();
    let saved = place.gate(&["--save", "base.json", "--", "./app", "3000", "40"]);
    assert_eq!(saved.status.code(), Some(0), "{saved:?}");
    let baseline: Value = serde_json::from_str(&place.text("base.json")).expect("JSON");
    assert_eq!(checker::errors(&baseline), [""; 0]);
    let with = |options: &[&str], file: &str, rows: &str| {
        let baseline = ["--baseline", file, "--json"];
        let command = ["--", "./app", "3000", rows];
        place.gate(&[&baseline[..], options, &command].concat())
    };
    let against = |file: &str, rows: &str| with(&[], file, rows);
    // Times grow by themselves when the machine becomes busy between the runs that are compared.
    let no_times = ["--allow", "elapsed=off,cpu=off,system=off"];
    let same = with(&no_times, "base.json", "40");
    assert_eq!(same.status.code(), Some(0), "{same:?}");
    let grown = against("base.json", "46");
    assert_eq!(grown.status.code(), Some(1), "{grown:?}");
    let document = json(&grown);
    assert_eq!(checker::errors(&document), [""; 0]);
    assert_eq!(verdict(&document, "faults"), "grown");
    let mut moved = baseline.clone();
    moved["evidence"]["gate_baseline"]["host"]["hostname"] = "elsewhere".into();
    std::fs::write(place.path("moved.json"), moved.to_string()).expect("it is written");
    let document = json(&against("moved.json", "46"));
    assert_eq!(verdict(&document, "elapsed_time"), "not_judged");
    assert_eq!(verdict(&document, "faults"), "grown");
    moved["evidence"]["gate_baseline"]["host"]["page_size"] = 65536.into();
    std::fs::write(place.path("other.json"), moved.to_string()).expect("it is written");
    let refused = against("other.json", "40");
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{message}");
    assert!(
        message.contains("page size") && message.contains("--save"),
        "{message}"
    );
}

#[test]
fn what_cannot_be_judged_is_an_error_with_a_status_of_its_own() {
    let place = Place::new();
    std::fs::write(place.path("x.json"), "{}").expect("it is written");
    let former = "{\"kind\": \"gate_baseline\", \"schema_version\": 1, \"runs\": []}";
    std::fs::write(place.path("former.json"), former).expect("it is written");
    for (words, expected) in [
        (
            &["--against", "./none", "--", "./app", "1", "1"][..],
            "there is no program",
        ),
        (
            &["--against", "./app 1 1", "--", "./app", "1", "1", "fails"],
            "ends with status 1",
        ),
        (
            &["--baseline", "none.json", "--", "./app", "1", "1"],
            "cannot read none.json",
        ),
        (
            &["--baseline", "x.json", "--", "./app", "1", "1"],
            "x.json is not a baseline",
        ),
        (
            &["--baseline", "former.json", "--", "./app", "1", "1"],
            "of an earlier pagewise; this pagewise reads 6; make a new one with --save",
        ),
        (
            &[
                "--against",
                "./app 1 1",
                "--pairs",
                "4",
                "--",
                "./app",
                "1",
                "1",
            ],
            "5 of each",
        ),
        (
            &["--against", "./app | wc", "--", "./app", "1", "1"],
            "sh -c",
        ),
        (&["--", "./app", "1", "1"], "--against"),
    ] {
        let output = place.gate(words);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {message}");
        assert!(message.contains(expected), "{words:?}: {message}");
        assert!(output.stdout.is_empty());
    }
    let words = [
        "--against",
        "./app 900 9 x",
        "-i",
        "--",
        "./app",
        "900",
        "9",
        "x",
    ];
    let ignored = place.gate(&words);
    let message = String::from_utf8_lossy(&ignored.stdout).into_owned();
    assert!(message.contains("ends with status 1"), "{message}");
}
