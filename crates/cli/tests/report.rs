//! `pagewise report` from outside: its output, and its messages on files it cannot use.

use pagewise_formats::perf_data::{Features, SourceAttr, Writer};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Recorded by perf; see the README next to it.
fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../formats/tests/fixtures/plain.data.zst")
}

fn report(arguments: &[&str], file: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .arg("report")
        .args(arguments)
        .arg(file)
        .output()
        .expect("the program was built")
}

/// The error message of a failed run.
fn refusal(file: &Path) -> String {
    let output = report(&[], file);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(output.stdout.is_empty(), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_recording_of_perf_is_counted_and_not_judged() {
    let output = report(&["--json"], &fixture());
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let findings: pagewise_model::findings::Findings =
        serde_json::from_str(&text).expect("the schema's form");
    assert_eq!(findings.samples, 64);
    assert_eq!(findings.cost.faults(), 64);
    assert_eq!(findings.subject.command[0], "sh");
    let ids: Vec<_> = findings.diagnoses.iter().map(|d| d.id.as_str()).collect();
    assert!(
        ids.contains(&"addresses_missing") && !ids.contains(&"healthy"),
        "{ids:?}"
    );
}

#[test]
fn standard_input_gives_the_same_text_as_the_file() {
    let packed = std::fs::read(fixture()).expect("committed");
    let mut child = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["report", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program was built");
    let mut input = child.stdin.take().expect("piped");
    input.write_all(&packed).expect("it reads");
    drop(input);
    let piped = child.wait_with_output().expect("it ends");
    assert!(piped.status.success(), "{piped:?}");
    let from_file = report(&[], &fixture()).stdout;
    assert!(!from_file.is_empty());
    assert_eq!(
        String::from_utf8_lossy(&piped.stdout),
        String::from_utf8_lossy(&from_file)
    );
}

#[test]
fn a_page_is_written_beside_the_text() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let page = directory.path().join("report.html");
    let output = report(&["-o", page.to_str().expect("plain path")], &fixture());
    assert!(output.status.success(), "{output:?}");
    let html = std::fs::read_to_string(&page).expect("it was written");
    assert!(html.contains("addresses_missing"));
}

#[test]
fn files_that_cannot_be_used_say_what_they_are() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let write = |name: &str, bytes: &[u8]| {
        let path = directory.path().join(name);
        std::fs::write(&path, bytes).expect("temporary file");
        path
    };
    let gone = refusal(&directory.path().join("gone"));
    assert!(
        gone.contains("cannot open") && gone.contains("No such file"),
        "{gone}"
    );
    let empty = refusal(&write("empty", b""));
    assert!(empty.contains("the file is empty"), "{empty}");
    let text = refusal(&write("text", b"not a recording"));
    assert!(
        text.contains("this is not a recording") && text.contains("'not a recording'"),
        "{text}"
    );
    let faults = refusal(&write("faults", b"PWFAULTS\x03\0\0\0\0\x10\0\0"));
    assert!(faults.contains("--simulate"), "{faults}");
    let cut = refusal(&write("cut", b"PERFILE2\x68\0\0\0\0\0\0\0"));
    assert!(cut.contains("truncated in its header"), "{cut}");
    let folder = refusal(directory.path());
    assert!(folder.contains("is a directory"), "{folder}");
    let whole = std::fs::read(fixture()).expect("fixture");
    let packed = refusal(&write("packed.zst", &whole[..whole.len() / 2]));
    assert!(
        packed.contains("packed.zst") && packed.contains("zstd -dc FILE | pagewise report -"),
        "{packed}"
    );
}

#[test]
fn a_recording_without_samples_says_what_it_is_of() {
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("perf.data");
    let mut attr = vec![0; 128];
    attr[0] = 1;
    attr[4] = 128;
    let source = SourceAttr {
        name: "cpu-clock".into(),
        attr,
        ids: vec![1],
    };
    let file = File::create(&path).expect("temporary file");
    let writer = Writer::new(file, &[source]).expect("temporary file");
    writer.finish(&Features::default()).expect("temporary file");
    let words = refusal(&path);
    assert!(
        words.contains("it has no samples") && words.contains("cpu-clock"),
        "{words}"
    );
}

/// `report` on the JSON of a command prints the same as the command.
#[test]
fn results_of_other_commands_open_as_they_were_shown() {
    let folder = tempfile::tempdir().expect("a folder");
    let fixture = fixture();
    let recording = fixture.to_str().expect("a path of ours");
    let traces = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/traces");
    let trace = |name| traces.join(name).to_string_lossy().into_owned();
    let commands: [&[&str]; 4] = [
        &["check"],
        &["huge", "simulate", "--workload", "gups:1M"],
        &["report", recording],
        &[
            "diff",
            &trace("redis-6.1/trace.txt.zst"),
            &trace("tpcc-6.1/trace.txt.zst"),
        ],
    ];
    for words in commands {
        let run = |json: bool| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
            let output = command
                .args(words)
                .args(json.then_some("--json"))
                .output()
                .expect("the program was built");
            assert!(output.status.success(), "{words:?}: {output:?}");
            output.stdout
        };
        let document = folder.path().join("result.json");
        std::fs::write(&document, run(true)).expect("it is written");
        let opened = report(&[], &document);
        assert!(opened.status.success(), "{words:?}: {opened:?}");
        let (shown, said) = (
            String::from_utf8_lossy(&opened.stdout).into_owned(),
            String::from_utf8_lossy(&run(false)).into_owned(),
        );
        assert_eq!(shown, said, "{words:?}");
    }
}

/// Results that each run measures anew can be opened as well.
#[test]
fn results_of_benchmarks_open() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.args(["bench", "alloc", "--only", "system", "--size", "4K"]);
    let output = command.args(["--runs", "1", "--json"]).output();
    let output = output.expect("the program was built");
    assert!(output.status.success(), "{output:?}");
    let alloc = String::from_utf8(output.stdout).expect("text");
    let faults = r#"{"kind":"fault_bench","schema_version":6,
        "verdict":"At the median, the first write to a page takes 1.21 µs in the kernel.",
        "evidence":{"fault_bench":{
        "runs":3,"rows":[
        {"way":"kernel","threads":1,"p50_ns":1206,"p99_ns":2900,"in_order_ns":640}]}}}"#;
    for (document, said) in [
        (&*alloc, "CPU time per page of a single block"),
        (faults, "1206 / 2900"),
    ] {
        let file = folder.path().join("result.json");
        std::fs::write(&file, document).expect("it is written");
        let opened = report(&[], &file);
        let shown = String::from_utf8_lossy(&opened.stdout);
        assert!(shown.contains(said), "{opened:?}");
        let again = report(&["--json"], &file).stdout;
        let value = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).expect("JSON");
        assert_eq!(value(&again), value(document.as_bytes()));
    }
}

#[test]
fn foreign_documents_differ_from_other_versions() {
    let folder = tempfile::tempdir().expect("a folder");
    let refused = |text: &str| {
        let file = folder.path().join("some.json");
        std::fs::write(&file, text).expect("it is written");
        refusal(&file)
    };
    assert!(refused("{\"a\": 1}").contains("not written by pagewise"));
    assert!(refused("{\"kind\": \"rings\"}").contains("its kind is \"rings\""));
    let newer = refused("{\"kind\": \"tuning\", \"schema_version\": 999}");
    let of_later = "its schema_version is 999, of a later pagewise; this pagewise reads 6";
    assert!(newer.contains(of_later), "{newer}");
    let former = refused("{\"kind\": \"tuning\", \"schema_version\": 1, \"command\": []}");
    let of_former = "its schema_version is 1, of an earlier pagewise; this pagewise reads 6";
    assert!(former.contains(of_former), "{former}");
    // Earlier runs did not contain their kind.
    for run in [
        r#"{"kind": "run", "schema_version": 1, "command": []}"#,
        r#"{"schema_version": 1, "verdict": "", "by_cause": []}"#,
    ] {
        let former = refused(run);
        assert!(former.contains(of_former), "{former}");
        assert!(former.contains("observe the program again"), "{former}");
    }
    assert!(refused("{\"kind\": \"tuning\", \"schema_version\": 6}").contains("incomplete"));
    let readings = refused(&"{\"kind\": \"watch\", \"schema_version\": 6}\n".repeat(2));
    assert!(
        readings.contains("readings of pagewise watch"),
        "{readings}"
    );
}

/// Reads single pages of a file that is not in memory, at random.
const COLD: &str = r#"
import mmap, os, random
file = os.open(os.environ["NUMBERS"], os.O_RDONLY)
os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
pages = mmap.mmap(file, 0, prot=mmap.PROT_READ)
chance = random.Random(1)
for _ in range(1500):
    pages[chance.randrange(len(pages))]
"#;

/// `report` on a recording prints word for word what `doctor` printed on the run, followed by
/// tables of its samples.
#[test]
fn report_says_of_a_recording_what_doctor_said_live() {
    let folder = tempfile::tempdir().expect("a folder");
    let scripts = [
        // Much memory, touched once: page sizes matter.
        "x = bytearray(200 << 20)",
        // Memory that is allocated and freed.
        "import zlib\nfor i in range(300): zlib.compressobj(9)",
        "import time; time.sleep(0.3)",
        // A file that is not in memory, read at random: the time of a read from its disk was
        // measured live.
        COLD,
    ];
    // Next to the tests, as /tmp may be in memory.
    let mut numbers = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).expect("a file");
    for _ in 0..512 {
        numbers.write_all(&[1; 1 << 20]).expect("room on the disk");
    }
    numbers.as_file().sync_all().expect("a disk that works");
    for script in scripts {
        let recording = folder.path().join("doctor.data");
        let live = Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .args(["doctor", "-q", "--no-report", "--record"])
            .arg(&recording)
            .args(["--", "python3", "-c", script])
            .env("NUMBERS", numbers.path())
            .output()
            .expect("the program was built");
        assert!(live.status.success(), "{live:?}");
        let live = String::from_utf8_lossy(&live.stdout).into_owned();
        let later = report(&[], &recording);
        let later = String::from_utf8_lossy(&later.stdout).into_owned();
        assert!(later.starts_with(&live), "{live}\n---\n{later}");
    }
}

/// What `memory --save` keeps has a page, as other results have.
#[test]
fn an_account_of_memory_has_a_page() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/fixtures");
    let folder = tempfile::tempdir().expect("a folder");
    for (name, verdict) in [("memory", "Freed to end"), ("memory_growth", "Growth")] {
        let page = folder.path().join(name);
        let options = ["-o", page.to_str().expect("UTF-8")];
        let output = report(&options, &fixtures.join(name).with_extension("json"));
        assert!(output.status.success(), "{output:?}");
        let page = std::fs::read_to_string(&page).expect("a page");
        assert!(page.contains("\"memory\":{\"found\":"), "{name}");
        assert!(
            page.contains(&format!("\"verdict\":\"{verdict}: ")),
            "{name}"
        );
    }
}

/// Earlier builds wrote courses of paged runs without a verdict.
#[test]
fn a_result_without_a_verdict_gets_that_of_its_evidence() {
    let stored =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/fixtures/paging_timeline.json");
    let document = std::fs::read_to_string(&stored).expect("a fixture");
    assert!(!document.contains("\"verdict\""));
    let output = report(&[], &stored);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    assert!(text.contains(" for the store in "), "{text}");
}
