//! `pagewise mine` as a user runs it, on the database of table 1 of Wei & Wang (2024).

use std::process::Output;

#[path = "../../report/tests/checker/mod.rs"]
mod checker;
#[path = "support/command.rs"]
mod command;
mod support;

use command::pagewise;
use support::fed;

fn mine(arguments: &[&str], input: &[u8]) -> Output {
    fed("mine", arguments, input)
}

const TABLE_1: &[u8] = b"a b c d\nc a b c\na c b a c\n";

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn json_holds_items_and_support() {
    let output = mine(
        &["--algorithm", "prefix", "--min-support", "2", "--json"],
        TABLE_1,
    );
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let expected = serde_json::json!({
        "kind": "mined",
        "schema_version": 6,
        "verdict": "1 frequent pattern, the most frequent with a support of 2.",
        "evidence": {"mined": {"patterns": [{"items": ["a"], "support": 2}]}}
    });
    assert_eq!(json, expected);
    assert_eq!(checker::errors(&json), [""; 0]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("mined.json");
    std::fs::write(&path, &output.stdout).expect("written");
    let shown = pagewise(&["report", path.to_str().expect("text")]);
    assert_eq!(text(&shown), "2\ta\n");
}

#[test]
fn spmf_input_and_text_output() {
    let spmf = b"1 -1 2 -1 3 -1 -2\n1 -1 3 -1 -2\n";
    let output = mine(&["--algorithm", "classic", "--min-support", "2"], spmf);
    assert_eq!(text(&output), "2\t1\n2\t1 3\n2\t3\n");
}

#[test]
fn the_projected_database_of_table_2() {
    let output = mine(&["--algorithm", "classic", "--projection", "a"], TABLE_1);
    assert_eq!(text(&output), "b c d\nb c\nc b a c\n");
}

#[test]
fn calls_of_a_trace_are_sequences_without_interrupts() {
    let trace = b"# tracer: function_graph\n\
         0)               |  handle_mm_fault() {\n\
         0)   0.670 us    |    irq_enter_rcu();\n\
         0)   0.670 us    |    do_anonymous_page();\n\
         0)   2.670 us    |  } /* handle_mm_fault */\n\
         0)               |  handle_mm_fault() {\n";
    let output = mine(&["--min-support", "1"], trace);
    assert_eq!(
        text(&output),
        "1\thandle_mm_fault\n1\thandle_mm_fault do_anonymous_page\n"
    );
    let messages = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        messages.contains("left out: 1 call still open at the end"),
        "{messages}"
    );
}

/// Two faults that call one function once or several times, and a third kind.
const FAULTS: &[u8] = b"# tracer: function_graph\n\
     0)               |  handle_mm_fault() {\n\
     0)   0.670 us    |    clear_page_erms();\n\
     0)   2.670 us    |  } /* handle_mm_fault */\n\
     0)               |  handle_mm_fault() {\n\
     0)   0.670 us    |    clear_page_erms();\n\
     0)   0.670 us    |    clear_page_erms();\n\
     0)   3.670 us    |  } /* handle_mm_fault */\n\
     0)               |  handle_mm_fault() {\n\
     0)   0.670 us    |    do_anonymous_page();\n\
     0)   0.670 us    |    clear_page_erms();\n\
     0)   9.670 us    |  } /* handle_mm_fault */\n";

#[test]
fn trees_of_faults_have_their_repeats_folded() {
    let output = mine(&["--algorithm", "trees", "--min-support", "2"], FAULTS);
    let expected = "2\t40 %\t3.17 µs\t3.67 µs\thandle_mm_fault { clear_page_erms ×1–2 }\n";
    assert_eq!(text(&output), expected);
    let output = mine(
        &["--algorithm", "trees", "--min-support", "2", "--json"],
        FAULTS,
    );
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let [pattern] = &json["evidence"]["mined"]["patterns"]
        .as_array()
        .expect("patterns")[..]
    else {
        panic!("one pattern: {json}");
    };
    let items = serde_json::json!(["handle_mm_fault", "{", "clear_page_erms", "}"]);
    assert_eq!(pattern["items"], items);
    assert_eq!(
        (&pattern["support"], &pattern["tree"]["total_ns"]),
        (&2.into(), &6340.into())
    );
    for arguments in [&["--algorithm", "trees"][..], &["--nesting"]] {
        let refused = mine(arguments, TABLE_1);
        let message = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(message.contains("not a function_graph trace"), "{message}");
    }
}

#[test]
fn nesting_is_kept_on_request() {
    let output = mine(&["--nesting", "--min-support", "2"], FAULTS);
    let first = "3\thandle_mm_fault{\n2\thandle_mm_fault{ clear_page_erms\n";
    assert_eq!(text(&output), first);
}

#[test]
fn wrong_arguments_and_wrong_files_are_told_apart() {
    assert_eq!(
        mine(&["--min-support", "0"], TABLE_1).status.code(),
        Some(2)
    );
    assert_eq!(mine(&["--projection", "z"], TABLE_1).status.code(), Some(1));
    let several = mine(&[], b"1 2 -1 -2\n");
    assert_eq!(several.status.code(), Some(1));
    let message = String::from_utf8_lossy(&several.stderr).into_owned();
    assert!(
        message.contains("line 1") && message.contains("several items"),
        "{message}"
    );
}
