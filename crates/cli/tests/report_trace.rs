//! `pagewise report` on a function_graph trace, as a user runs it.

#[path = "../../../tests/traces.rs"]
mod traces;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod support;

use support::fed;

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

/// One anonymous fault of 9 µs with an interrupt of 2 µs inside, then one cut at its end.
const TRACE: &str = "\
# tracer: function_graph
#
   12.000001 |   0)     bash-1     |               |  handle_mm_fault() {
   12.000002 |   0)     bash-1     |   1.000 us    |    vma_alloc_folio();
   12.000004 |   0)     bash-1     |   2.000 us    |    irq_enter_rcu();
   12.000007 |   0)     bash-1     |   1.500 us    |    page_add_new_anon_rmap();
   12.000010 |   0)     bash-1     |   9.000 us    |  } /* handle_mm_fault */
   12.000011 |   0)     bash-1     |               |  handle_mm_fault() {
";

#[test]
fn json_splits_the_time_of_a_fault() {
    let output = fed("report", &["--json"], TRACE);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["kind"], "fault_paths");
    assert_eq!(json["evidence"]["fault_paths"]["faults"], 1);
    assert_eq!(
        json["evidence"]["fault_paths"]["classes"][0]["class"],
        "anonymous"
    );
    assert_eq!(
        json["evidence"]["fault_paths"]["latency"]["raw"]["max_ns"],
        7_000
    );
    let expected = serde_json::json!({
        "total_ns": 9_000, "self_ns": 4_500, "children_ns": 2_500, "interrupts_ns": 2_000,
        "runnable_ns": 0, "blocked_ns": 0, "off_cpu_ns": 0
    });
    assert_eq!(json["evidence"]["fault_paths"]["split"], expected);
    assert_eq!(
        json["evidence"]["fault_paths"]["conservation"]["violations"],
        0
    );
    assert_eq!(json["losses"], serde_json::json!({"open_at_end": 1}));
}

#[test]
fn text_says_what_is_missing() {
    let output = fed("report", &[], TRACE);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        text.starts_with("● trace    1 page fault in 9.00 µs, on 1 path; 100 % are of the kind"),
        "{text}"
    );
    assert!(text.contains("anonymous, first touch"), "{text}");
    assert!(
        text.contains("Left out: 1 call still open at the end of the trace."),
        "{text}"
    );
}

#[test]
fn a_trace_has_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.html");
    let output = fed("report", &["-o", path.to_str().expect("a name")], TRACE);
    assert!(output.status.success(), "{output:?}");
    let page = std::fs::read_to_string(&path).expect("the page is there");
    assert!(page.contains(r#"{"generator":"pagewise "#) && page.contains(r#""paths":{"#));
    assert!(page.contains(r#""functions":["handle_mm_fault"#), "{page}");
    let without_scripts = page.split("<noscript>").nth(1).expect("text too");
    assert!(without_scripts.contains("1 page fault in 9.00"));
}

#[test]
fn json_fits_its_schema() {
    for trace in [TRACE, "# tracer: function_graph\n"] {
        let output = fed("report", &["--json"], trace);
        let document = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(checker::errors(&document), [""; 0]);
    }
}

/// A trace-cmd record file, compressed: from its path and through a pipe.
#[test]
fn trace_dat_is_reported_and_mined() {
    let file = |traces: &traces::Traces| traces.file("trace-dat-6.1/v6.dat");
    let files = traces::all();
    let files = files
        .iter()
        .map(|traces| (file(traces), traces.expect(706, 25)));
    let both = |(file, faults)| {
        ["report", "mine"].map(move |command| (PathBuf::clone(&file), faults, command))
    };
    for (file, faults, command) in files.flat_map(both) {
        let run = |argument: &Path, stdin: Stdio| {
            Command::new(env!("CARGO_BIN_EXE_pagewise"))
                .args([command, "--json"])
                .arg(argument)
                .stdin(stdin)
                .output()
                .expect("pagewise runs")
        };
        let named = run(&file, Stdio::null());
        assert!(named.status.success(), "{named:?}");
        let input = std::fs::File::open(&file).expect("readable");
        assert_eq!(run(Path::new("-"), input.into()).stdout, named.stdout);
        let json: serde_json::Value = serde_json::from_slice(&named.stdout).expect("JSON");
        match command {
            "report" => assert_eq!(json["evidence"]["fault_paths"]["faults"], faults),
            _ => assert!(
                json["evidence"]["mined"]["patterns"]
                    .as_array()
                    .is_some_and(|all| !all.is_empty())
            ),
        }
    }
}

#[test]
fn a_cut_trace_dat_is_refused_with_the_place() {
    let output = fed(
        "report",
        &[],
        "\x17\x08\x44tracing6\0\0\x08\0\x10\0\0header_pa",
    );
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        message.contains("at byte 18 extends beyond the end"),
        "{message}"
    );
}

/// Faults of 9 µs with two calls inside, with a note of the capture on the same faults traced with
/// only their roots: 3 µs.
#[test]
fn what_a_capture_noted_of_the_root_alone_calibrates_its_report() {
    let mut latency = pagewise_model::histogram::Histogram::default();
    latency.record_many(3_000, 500);
    let note = pagewise_model::trace_note::TraceNote::RootOnly { latency };
    let mut text = format!("# tracer: function_graph\n{}\n", note.to_line());
    for at in 0..200 {
        let second = 100 + at;
        text += &format!(
            " {second:4}.000001 |   0)     bash-1     |               |  handle_mm_fault() {{\n \
              {second:4}.000002 |   0)     bash-1     |   3.000 us    |    vma_alloc_folio();\n \
              {second:4}.000005 |   0)     bash-1     |   3.000 us    |    page_add_new_anon_rmap();\n \
              {second:4}.000010 |   0)     bash-1     |   9.000 us    |  }} /* handle_mm_fault */\n"
        );
    }
    let output = fed("report", &["--json"], &text);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["evidence"]["fault_paths"]["faults"], 200);
    assert_eq!(
        json["evidence"]["fault_paths"]["calibration"]["source"],
        "root_only"
    );
    let cost = json["evidence"]["fault_paths"]["calibration"]["per_call_ns"]
        .as_f64()
        .expect("a number");
    assert!((cost - 3_000.0).abs() < 30.0, "{cost}");
}

/// Stored reports add up to the report on both traces; reports that cannot be added are named.
#[test]
fn stored_reports_are_merged() {
    let folder = tempfile::tempdir().expect("a folder");
    let stored: Vec<PathBuf> = (0..2)
        .map(|at| {
            let path = folder.path().join(format!("{at}.json"));
            let report = fed("report", &["--json", "--sums"], TRACE);
            std::fs::write(&path, report.stdout).expect("a file");
            path
        })
        .collect();
    let merge = |files: &[&PathBuf]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
        command.args(["report", "--json", "--sums"]).args(files);
        command.output().expect("pagewise runs")
    };
    let output = merge(&[&stored[0], &stored[1]]);
    assert!(output.status.success(), "{output:?}");
    let both: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(both["evidence"]["fault_paths"]["faults"], 2);
    assert_eq!(
        both["evidence"]["fault_paths"]["classes"][0]["latency"]["raw"]["count"],
        2
    );
    let notes = both["notes"].to_string();
    assert!(notes.contains("reports were merged"), "{notes}");
    let again = folder.path().join("both.json");
    std::fs::write(&again, &output.stdout).expect("a file");
    let three = merge(&[&again, &stored[0]]);
    let three: serde_json::Value = serde_json::from_slice(&three.stdout).expect("JSON");
    assert_eq!(three["evidence"]["fault_paths"]["faults"], 3);

    let strange = folder.path().join("strange.json");
    std::fs::write(&strange, "{\"kind\":\"mined\"}").expect("a file");
    let output = merge(&[&stored[0], &strange]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        error.contains("strange.json") && error.contains("only reports of traces"),
        "{error}"
    );
}

/// The part that most readers want is a third of the document; the rest is for merging, on request.
#[test]
fn sums_for_merging_are_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let plain = folder.path().join("plain.json");
    let without = fed("report", &["--json"], TRACE).stdout;
    std::fs::write(&plain, &without).expect("a file");
    let lines = without.iter().filter(|&&byte| byte == b'\n').count();
    assert_eq!((lines, without.last()), (1, Some(&b'\n')), "one line");
    let value: serde_json::Value = serde_json::from_slice(&without).expect("JSON");
    assert!(value["evidence"].get("sums").is_none());
    let report = |arguments: &[&str], files: &[&Path]| {
        Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .arg("report")
            .args(arguments)
            .args(files)
            .output()
            .expect("pagewise runs")
    };
    let alone = report(&["--json"], &[&plain]);
    assert_eq!(alone.stdout, without, "a report alone needs no sums");
    for (arguments, files) in [
        (&["--json"][..], &[&*plain, &plain][..]),
        (&["--json", "--sums"], &[&plain]),
    ] {
        let refused = report(arguments, files);
        assert_eq!(refused.status.code(), Some(1), "{arguments:?}");
        let error = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(error.contains("--json --sums"), "{error}");
        assert!(error.contains("plain.json"), "{error}");
    }
}

/// One level down, of the slower half of the faults.
#[test]
fn a_part_of_the_faults_is_reported_as_if_it_were_the_faults() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("trace.txt");
    let mut text = String::from("# tracer: function_graph\n");
    for at in 0..40 {
        let (second, us) = (100 + at, if at < 20 { 3 } else { 30 });
        text += &format!(
            " {second:4}.000001 |   0)     bash-1     |               |  handle_mm_fault() {{\n \
              {second:4}.000002 |   0)     bash-1     |   {us}.000 us    |    vma_alloc_folio();\n \
              {second:4}.000045 |   0)     bash-1     |   1.000 us    |    page_add_new_anon_rmap();\n \
              {second:4}.000050 |   0)     bash-1     |   {}.000 us    |  }} /* handle_mm_fault */\n",
            us + 3
        );
    }
    std::fs::write(&path, text).expect("written");
    let run = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .args(["report", "--json"])
            .args(arguments)
            .arg(&path)
            .output()
            .expect("pagewise runs")
    };
    let output = run(&["--class", "anonymous", "--path", "fault[20us..]/allocation"]);
    assert!(output.status.success(), "{output:?}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(json["evidence"]["fault_paths"]["faults"], 20);
    assert_eq!(
        json["evidence"]["fault_paths"]["latency"]["raw"]["p50_ns"],
        30_000
    );
    assert_eq!(json["evidence"]["fault_paths"]["descent"][0]["met"], 40);
    assert_eq!(json["evidence"]["fault_paths"]["descent"][0]["calls"], 20);
    assert_eq!(
        json["evidence"]["fault_paths"]["classes"][0]["class"],
        "anonymous"
    );
    let nothing = run(&["--layer", "swap_in"]);
    assert_eq!(nothing.status.code(), Some(1));
    let message = String::from_utf8_lossy(&nothing.stderr).into_owned();
    assert!(message.contains("nothing is left"), "{message}");
    let pipe = fed(
        "report",
        &["--layer", "allocation"],
        "# tracer: function_graph\n",
    );
    let message = String::from_utf8_lossy(&pipe.stderr).into_owned();
    assert!(message.contains("give a file"), "{message}");
}
