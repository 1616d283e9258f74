//! `pagewise huge trace` on real programs. Needs qemu-user and a C compiler; skips visibly without
//! them.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use pagewise_formats::memory_trace::{self, Accesses, Summary};
use serde_json::Value;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", text(&output.stderr)))
}

#[test]
fn a_trace_holds_a_programs_accesses() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.pwm");
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["huge", "trace", "-o"])
        .arg(&trace)
        .args(["--", "/bin/true"])
        .env("XDG_CACHE_HOME", folder.path())
        .output()
        .expect("pagewise runs");
    let said = text(&output.stderr);
    if said.contains("not installed") || said.contains("no C compiler") {
        return skipped!("{said}");
    }
    assert!(output.status.success(), "{said}");
    let bytes = std::fs::read(&trace).expect("the trace is there");
    assert_eq!(&bytes[..9], b"PWMTRACE\x01");
    // The end block: kind 127, a length, accesses and dropped accesses as varints.
    let end = bytes.iter().rposition(|&byte| byte == 127).expect("an end");
    assert_eq!(usize::from(bytes[end + 1]), bytes.len() - end - 2);
    assert!(!said.contains("no end"), "{said}");
}

/// Accesses written and dropped, from the end block: kind 127, a length, two varints.
fn counts(trace: &Path) -> (u64, u64) {
    let bytes = std::fs::read(trace).expect("the trace is there");
    let is_end =
        |&at: &usize| bytes[at] == 127 && usize::from(bytes[at + 1]) == bytes.len() - at - 2;
    let end = (bytes.len().saturating_sub(22)..bytes.len() - 2).find(is_end);
    let mut rest = bytes[end.expect("an end") + 2..].iter();
    let mut number = || {
        let mut value = 0;
        for (at, byte) in rest.by_ref().enumerate() {
            value |= u64::from(byte & 127) << (7 * at);
            if byte & 128 == 0 {
                break;
            }
        }
        value
    };
    (number(), number())
}

#[test]
fn stretches_of_a_long_run_are_written_and_the_rest_is_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let trace = folder.path().join("t.pwm");
    let traced = |every: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
            .args(["huge", "trace", "--every", every, "-o"])
            .arg(&trace)
            .args(["--", "awk", "BEGIN { for (i = 0; i < 300000; i++) n += i }"])
            .env("XDG_CACHE_HOME", folder.path())
            .output()
            .expect("pagewise runs");
        let said = text(&output.stderr);
        let missing = said.contains("not installed") || said.contains("no C compiler");
        (!missing).then(|| {
            assert!(output.status.success(), "{said}");
            counts(&trace)
        })
    };
    let (Some(whole), Some(part)) = (traced("1"), traced("4")) else {
        return skipped!("no emulator or no compiler");
    };
    assert_eq!(whole.1, 0);
    let stretch = 16 * 65_536;
    assert!(
        whole.0 > 5 * stretch,
        "{whole:?} is too short to show anything"
    );
    // Addresses and the environment's size change a few accesses between runs.
    assert!(
        (part.0 + part.1).abs_diff(whole.0) < whole.0 / 100,
        "{whole:?} {part:?}"
    );
    let stretches = (whole.0 - 1) / (4 * stretch) + 1;
    assert!(
        part.0 <= stretches * stretch && part.0 > (stretches - 1) * stretch,
        "{whole:?} {part:?}"
    );
}

/// A program whose instructions depend on nothing but its code: interpreters read the time, their
/// process id and the like, whose digits alone change how many instructions they take.
const SCATTER: &str = "
static long table[(1 << 21) + 20];
int main(void) {
    unsigned long at = 1, sum = 0;
    for (long i = 0; i < 100000; i++) {
        at = at * 6364136223846793005ul + 1442695040888963407ul;
        for (long *next = table + (at >> 43), *end = next + 20; next < end; next++)
            sum += *next += i;
    }
    return sum == 1;
}";

/// Compiles [`SCATTER`] in `folder`; `None` without a C compiler.
fn scatter(folder: &Path) -> Option<PathBuf> {
    let (source, program) = (folder.join("scatter.c"), folder.join("scatter"));
    std::fs::write(&source, SCATTER).expect("a source");
    let compiler = Command::new("cc")
        .args(["-O1", "-o"])
        .arg(&program)
        .arg(&source)
        .status();
    compiler
        .is_ok_and(|status| status.success())
        .then_some(program)
}

/// Traces a program and reads the trace: pages in order with their threads, and the rest.
fn traced_pages(
    folder: &Path,
    options: &[&str],
    program: &Path,
) -> Option<(Vec<(u64, u64)>, Summary)> {
    std::fs::create_dir(folder).expect("a folder");
    let trace = folder.join("t.pwm");
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["huge", "trace", "-o"])
        .arg(&trace)
        .args(options)
        .arg("--")
        .arg(program)
        .env("XDG_CACHE_HOME", folder.parent().expect("a parent"))
        .output()
        .expect("pagewise runs");
    let said = text(&output.stderr);
    if said.contains("not installed") || said.contains("no C compiler") {
        return None;
    }
    assert!(output.status.success(), "{said}");
    let file = std::fs::File::open(&trace).expect("the trace is there");
    let mut pages = Vec::new();
    let summary = memory_trace::read(BufReader::new(file), &mut |batch| match batch.accesses {
        Accesses::Addresses(addresses) => {
            pages.extend(addresses.iter().map(|a| (batch.thread, a & !0xfff)));
        }
        Accesses::Pages(runs) => {
            for run in runs {
                pages.extend((0..run.accesses()).map(|_| (batch.thread, run.page())));
            }
        }
    });
    Some((pages, summary.expect("a trace")))
}

#[test]
fn a_trace_by_page_gives_the_figures_of_a_full_one() {
    let parent = tempfile::tempdir().expect("a folder");
    let Some(program) = scatter(parent.path()) else {
        return skipped!("no C compiler");
    };
    for (name, options) in [("whole", vec![]), ("stretches", vec!["--every", "2"])] {
        let folders = ["full", "pages"].map(|form| parent.path().join(format!("{name}-{form}")));
        // The emulator lays out memory identically in each run, whatever the machine does.
        let full = traced_pages(&folders[0], &options, &program);
        let by_page = traced_pages(
            &folders[1],
            &[&options[..], &["--pages"]].concat(),
            &program,
        );
        let (Some(full), Some(by_page)) = (full, by_page) else {
            return skipped!("no emulator or no compiler");
        };
        assert!(
            full.1.accesses > 1_000_000 && full.1.is_complete,
            "{:?}",
            full.1
        );
        assert!(full.1.writes > 100_000 && full.1.instructions > full.1.accesses);
        assert_eq!(full.1.dropped > 0, name == "stretches");
        assert_eq!(full.1, by_page.1);
        assert!(full.0 == by_page.0, "the pages differ");
        let [full, by_page] = folders.map(|folder| {
            let bytes = std::fs::read(folder.join("t.pwm")).expect("the trace is there");
            let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
                .args([
                    "huge",
                    "simulate",
                    "--native",
                    "--json",
                    "--accesses",
                    "100000",
                    "t.pwm",
                ])
                .current_dir(folder)
                .output()
                .expect("pagewise runs");
            (bytes, json(&output))
        });
        assert_eq!((full.0[8], by_page.0[8]), (1, 2), "versions");
        // The factor depends on the program, the C library and the emulator: about half.
        assert!(by_page.0.len() * 5 < full.0.len() * 3);
        assert!(
            full.1["evidence"]["huge_simulation"]["configurations"][0]["small_per_1000"].as_f64()
                > Some(0.0)
        );
        assert_eq!(full.1, by_page.1);
    }
}
