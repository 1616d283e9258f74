//! We read perf's recordings as `perf script` does: plain, packed, through a pipe, with copied
//! stacks, with tracepoints.
//!
//! Needs `perf` and the right to record software events; without them the tests print a message and
//! pass. The committed fixtures of `perf_data_fixtures.rs` cover machines without perf.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use pagewise_formats::perf_data::PerfData;
use pagewise_model::event::Event;
use std::path::Path;
use std::process::{Command, Stdio};

/// (nanoseconds, thread, event, frames) of every sample.
type Row = (u64, i32, String, usize);

fn ours(bytes: &[u8]) -> Vec<Row> {
    let data = PerfData::parse(bytes).expect("perf wrote it");
    let mut rows = Vec::new();
    let losses = data.for_each(|event| {
        if let Event::Sample(s) = event {
            let name = data.sources()[usize::from(s.source.0)].name.clone();
            rows.push((s.time.0, s.tid, name, s.callchain.frames().count()));
        }
    });
    let losses = losses.expect("readable");
    assert!(losses.is_empty(), "{losses:?}");
    rows
}

/// The same from `perf script`, which separates samples with chains by blank lines. `None`, with a
/// message, where perf cannot read its own recording (an older perf than its kernel).
fn perfs(file: &Path, chains: bool) -> Option<Vec<Row>> {
    let fields = if chains {
        "tid,time,event,ip"
    } else {
        "tid,time,event"
    };
    let output = Command::new("perf")
        .args([
            "script",
            "--ns",
            "--max-stack",
            "512",
            "--no-inline",
            "-F",
            fields,
            "-i",
        ])
        .arg(file)
        .output()
        .expect("perf is there");
    if !output.status.success() {
        let reason = String::from_utf8_lossy(&output.stderr);
        eprintln!("perf script fails on perf's own file: {reason}");
        return None;
    }
    let mut rows: Vec<Row> = Vec::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match (&words[..], rows.last_mut()) {
            ([tid, time, event, ..], _) if time.ends_with(':') => {
                let digits: String = time.chars().filter(char::is_ascii_digit).collect();
                let tid = tid.parse().expect("a thread id");
                let name = event.trim_end_matches(':').to_owned();
                rows.push((digits.parse().expect("a time"), tid, name, 0));
            }
            ([_address], Some(row)) => row.3 += 1,
            _ => {}
        }
    }
    Some(rows)
}

/// Records a short program. `None`, with a message, where that is not possible here.
fn recorded(arguments: &[&str], file: &Path) -> Option<Vec<u8>> {
    let pipe = arguments.contains(&"-o-");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q"]).args(arguments);
    if !pipe {
        perf.arg("-o").arg(file);
    }
    let program = "i=0; while [ $i -lt 30 ]; do /bin/true; i=$((i+1)); done";
    let output = perf
        .args(["--", "sh", "-c", program])
        .stderr(Stdio::piped())
        .output();
    match output {
        Ok(output) if output.status.success() => {
            if pipe {
                std::fs::write(file, &output.stdout).expect("temporary file");
            }
            Some(std::fs::read(file).expect("perf wrote it"))
        }
        other => {
            skipped!("perf record {arguments:?}: {other:?}");
            None
        }
    }
}

fn agree(arguments: &[&str], chains: bool) {
    let directory = tempfile::tempdir().expect("temporary directory");
    let file = directory.path().join("perf.data");
    // perf 6.1 cannot read some of its own files from a busy machine ("Bad address").
    for _ in 0..8 {
        let Some(bytes) = recorded(arguments, &file) else {
            return;
        };
        if let Some(expected) = perfs(&file, chains) {
            return compare(&bytes, expected, chains);
        }
    }
    skipped!("perf script fails on eight of perf's own files: {arguments:?}");
}

fn compare(bytes: &[u8], mut expected: Vec<Row>, chains: bool) {
    let mut seen = ours(bytes);
    assert!(seen.is_sorted_by_key(|row| row.0));
    if !chains {
        seen.iter_mut().for_each(|row| row.3 = 0);
    }
    // perf and we may order equal times differently.
    expected.sort();
    seen.sort();
    assert!(
        seen.len() > 50,
        "only {} samples: nothing was tested",
        seen.len()
    );
    assert_eq!(seen, expected);
}

#[test]
fn plain_with_chains() {
    agree(&["-e", "page-faults", "-c", "1", "-g"], true);
}

#[test]
fn packed() {
    agree(&["-z", "-e", "page-faults", "-c", "1", "-g"], true);
}

#[test]
fn through_a_pipe() {
    agree(&["-e", "page-faults,minor-faults", "-c", "1", "-o-"], false);
}

#[test]
fn packed_through_a_pipe() {
    agree(&["-z", "-e", "page-faults", "-c", "1", "-o-"], false);
}

#[test]
fn with_copied_stacks() {
    // perf shows the chains that it unwound, so only the samples themselves are compared.
    agree(
        &["--call-graph", "dwarf,1024", "-e", "page-faults", "-c", "3"],
        false,
    );
}

#[test]
fn tracepoints_on_all_cpus() {
    let events = "syscalls:sys_enter_mmap,page-faults,syscalls:sys_enter_brk";
    agree(&["-a", "-e", events, "-c", "1"], false);
}

#[test]
fn many_fields_and_a_group() {
    let events = "{page-faults,minor-faults}:S";
    agree(
        &[
            "-d",
            "--phys-data",
            "--sample-cpu",
            "--all-cgroups",
            "-e",
            events,
            "-c",
            "1",
        ],
        false,
    );
}

#[test]
fn switches_and_namespaces() {
    agree(
        &[
            "--switch-events",
            "--namespaces",
            "-e",
            "page-faults",
            "-c",
            "1",
        ],
        false,
    );
}
