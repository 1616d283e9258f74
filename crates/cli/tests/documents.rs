//! The `--json` output of each command conforms to the schema of its kind, and `report` reads it
//! back.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

#[path = "../../report/tests/checker/mod.rs"]
mod checker;
#[path = "support/command.rs"]
mod command;

use command::pagewise;
use serde_json::Value;
use std::path::Path;

/// Blocks that glibc returns each time, for a moment.
const CHURN: &str = "import time\nend = time.monotonic() + 0.15\n\
    while time.monotonic() < end: bytearray(40 << 20)";

/// Commands that print a document, with its kind, after files that they read.
fn commands(folder: &Path) -> Vec<(&'static str, Vec<String>)> {
    let fixture = |path: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        root.join(path).display().to_string()
    };
    let own = |name: &str| folder.join(name).display().to_string();
    let trace = fixture("tests/fixtures/traces/anon-7.2.txt.zst");
    let recording = |name: &str| {
        fixture(&format!(
            "crates/answer/tests/fixtures/recordings/{name}.data.zst"
        ))
    };
    // Stored recordings: if CPU time may not be sampled, ours would contain only whole runs.
    let (php, node) = (recording("php"), recording("node"));
    let program = ["--", "python3", "-c", CHURN];
    let all: [(&'static str, Vec<&str>); 14] = [
        (
            "run",
            [&["doctor", "--no-report", "--json"], &program[..]].concat(),
        ),
        ("run", vec!["report", "--json", "a.data"]),
        ("profile_diff", vec!["diff", "--json", &php, &node]),
        ("run_diff", vec!["diff", "--json", "a.json", "b.json"]),
        ("fault_paths", vec!["report", "--json", "TRACE"]),
        ("fault_diff", vec!["diff", "--json", "TRACE", "TRACE"]),
        (
            "mined",
            vec!["mine", "--json", "--algorithm", "trees", "TRACE"],
        ),
        (
            "tuning",
            // Blocks that come and go, and a budget of dozens of runs: with none, the page has no table.
            [
                &["tune", "--json", "--budget", "8s", "--only", "thresholds"],
                &["--", "python3", "-c"][..],
                &["for _ in range(10): bytearray(40 << 20)"],
            ]
            .concat(),
        ),
        (
            "gate",
            [&["gate", "--json", "--baseline", "gate.json"], &program[..]].concat(),
        ),
        (
            "huge_simulation",
            vec![
                "huge",
                "simulate",
                "--json",
                "--workload",
                "gups:64M",
                "--accesses",
                "40000",
            ],
        ),
        ("huge_undo", vec!["huge", "balance", "--undo", "--json"]),
        ("check", vec!["check", "--json"]),
        (
            "allocator_bench",
            vec![
                "bench", "alloc", "--runs", "1", "--time", "1ms", "--size", "64K", "--only",
                "glibc", "--json",
            ],
        ),
        (
            "fault_bench",
            vec!["bench", "faults", "--threads", "1", "--runs", "1", "--json"],
        ),
    ];
    let word = |word: &str| match word {
        "TRACE" => trace.clone(),
        "a.data" | "b.data" | "a.json" | "b.json" | "gate.json" => own(word),
        word => word.to_owned(),
    };
    all.into_iter()
        .map(|(kind, words)| (kind, words.into_iter().map(word).collect()))
        .collect()
}

/// Kinds whose pages are tables.
const OF_TABLES: [&str; 6] = [
    "mined",
    "tuning",
    "gate",
    "check",
    "allocator_bench",
    "fault_bench",
];

/// Whether the budget of a tuning was too short for a single setting: its page then has no table. A busy machine
/// can make it so.
fn tried_nothing(document: &Value) -> bool {
    document["evidence"]["tuning"]["time_and_memory"]
        .as_array()
        .is_some_and(Vec::is_empty)
}

fn done(words: &[&str]) -> Vec<u8> {
    let output = pagewise(words);
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {message}");
    output.stdout
}

#[test]
fn each_document_fits_its_schema_and_is_read_back_as_it_was() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = |name: &str| folder.path().join(name).display().to_string();
    let program = ["--", "python3", "-c", CHURN];
    for name in ["a", "b"] {
        let (data, json) = (own(&format!("{name}.data")), own(&format!("{name}.json")));
        let words = [
            &["doctor", "--no-report", "--json", "--record", &data],
            &program[..],
        ]
        .concat();
        std::fs::write(json, done(&words)).expect("written");
    }
    let baseline = own("gate.json");
    done(&[&["gate", "--save", &baseline], &program[..]].concat());
    let mut kinds = std::collections::BTreeSet::new();
    for (kind, words) in commands(folder.path()) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let output = pagewise(&words);
        if output.stdout.is_empty() {
            skipped!("{words:?}: {}", String::from_utf8_lossy(&output.stderr));
            continue;
        }
        let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(printed["kind"], kind, "{words:?}");
        assert_eq!(checker::errors(&printed), [""; 0], "{words:?}");
        let path = own("printed.json");
        std::fs::write(&path, &output.stdout).expect("written");
        let again: Value =
            serde_json::from_slice(&done(&["report", "--json", &path])).expect("JSON");
        assert!(
            again == printed,
            "{words:?}: report --json prints another document"
        );
        assert!(!done(&["report", &path]).is_empty(), "{words:?}");
        if OF_TABLES.contains(&kind) && !tried_nothing(&printed) {
            let page = own("page.html");
            done(&["report", &path, "-o", &page]);
            let page = std::fs::read_to_string(page).expect("a page");
            let rows = page.contains(r#""sheets":{"badge""#) && page.contains(r#"[{"text":"#);
            assert!(rows, "{words:?}: no table on its page");
        }
        kinds.insert(kind);
    }
    assert!(kinds.len() > 8, "{kinds:?}");
    let page = own("runs.html");
    done(&["diff", &own("a.json"), &own("b.json"), "-o", &page]);
    let page = std::fs::read_to_string(page).expect("a page of two runs without samples");
    assert!(page.contains("\"run_diff\":{"));
}

/// What a proof changed is in the recording, too.
#[test]
fn a_recording_says_what_its_proof_showed() {
    let folder = tempfile::tempdir().expect("a folder");
    let data = folder.path().join("proved.data").display().to_string();
    let words = [
        &["doctor", "-q", "--no-report", "--json", "--record", &data],
        &["--prove", "--budget", "5s", "--", "python3", "-c", CHURN][..],
    ];
    let live: Value = serde_json::from_slice(&done(&words.concat())).expect("JSON");
    assert!(live["proof"].is_object(), "{live}");
    let kept: Value = serde_json::from_slice(&done(&["report", "--json", &data])).expect("JSON");
    for part in ["verdict", "diagnoses", "advice", "proof"] {
        assert_eq!(kept[part], live[part], "{part}");
    }
}
