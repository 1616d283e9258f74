//! Who called whom: callers are shown at their call, not at the place where they continue;
//! interrupted code is shown where it was interrupted. If a machine lacks something for a test, a
//! message says so and the test is skipped.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Functions that call nothing keep a frame only if they use its address.
const WITH_FRAME_POINTERS: &[&str] = &["-fno-omit-frame-pointer"];

/// `parent` calls `callee`, and the code after that call was inlined from another function.
const NEXT_LINE_IS_INLINED: &str = "
#define FRAMED sum += (unsigned long)__builtin_frame_address(0) & 1
volatile unsigned long sum;
static inline __attribute__((always_inline)) void after(void) { sum ^= 3; sum += 5; }
__attribute__((noinline)) void callee(void) { FRAMED; for (long i = 0; i < 200000; i++) sum += i * i; }
__attribute__((noinline)) void parent(void) { callee(); after(); }
int main(void) { for (int i = 0; i < 1500; i++) parent(); return 0; }
";

/// A handler of signals that interrupt `work`.
const INTERRUPTED: &str = "
#include <signal.h>
#define FRAMED sum += (unsigned long)__builtin_frame_address(0) & 1
volatile unsigned long sum;
__attribute__((noinline)) void inside(void) { FRAMED; for (long i = 0; i < 2000000; i++) sum += i; }
__attribute__((noinline)) void handler(int n) { inside(); sum++; }
__attribute__((noinline)) void work(void) { for (int i = 0; i < 150; i++) { raise(SIGUSR1); sum++; } }
int main(void) { signal(SIGUSR1, handler); work(); return sum == 0; }
";

/// `fill` calls a function of the C library that keeps no frame.
const CALLS_MEMSET: &str = "
#include <stdlib.h>
#include <string.h>
volatile int sink;
__attribute__((noipa)) void fill(char *at, size_t size) { memset(at, 1, size); sink += at[5]; }
__attribute__((noipa)) void parent(size_t size) { char *at = malloc(size); fill(at, size); free(at); sink++; }
int main(void) { for (int i = 0; i < 400; i++) parent(4 << 20); return 0; }
";

fn built(folder: &Path, source: &str, options: &[&str]) -> Option<PathBuf> {
    let (program, file) = (folder.join("program"), folder.join("program.c"));
    std::fs::write(&file, source).expect("temporary file");
    let mut command = Command::new("cc");
    command.args(["-O2", "-g"]).args(options).arg("-o");
    let done = command.args([&program, &file]).status();
    if !done.is_ok_and(|status| status.success()) {
        skipped!("cc does not build the program");
        return None;
    }
    Some(program)
}

fn recorded(program: &Path, options: &[&str]) -> Option<PathBuf> {
    let out = program.with_extension("data");
    let mut perf = Command::new("perf");
    perf.args(["record", "-q", "-e", "cpu-clock:u", "-F", "499"]);
    let done = perf.args(options).arg("-o").args([&out, program]).output();
    if !done.as_ref().is_ok_and(|output| output.status.success()) {
        skipped!("perf cannot record here: {done:?}");
        return None;
    }
    Some(out)
}

/// A recording of ours of these events: `cpu`, `faults`.
fn recorded_by_us(program: &Path, events: &str, options: &[&str]) -> Option<PathBuf> {
    let record = [&["record", "-q", "-e", events], options, &["-o"]].concat();
    recorded_by(&record, program)
}

/// The recording of three runs of the program; the command's last word is the option that names it.
fn recorded_by(command: &[&str], program: &Path) -> Option<PathBuf> {
    let out = program.with_extension("data");
    let mut ours = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    ours.args(command);
    let program = program
        .to_str()
        .expect("a temporary folder has a plain name");
    let thrice = format!("{program}; {program}; {program}");
    let done = ours.arg(&out).args(["--", "sh", "-c", &thrice]);
    let done = done.output().expect("pagewise runs");
    if !done.status.success() || !out.exists() {
        skipped!("pagewise cannot record here: {done:?}");
        return None;
    }
    Some(out)
}

fn folded_of(event: &str, file: &Path) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    let command = command.arg("report").arg(file);
    let output = command.args(["--event", event, "--export", "folded"]);
    lines(&output.output().expect("pagewise runs"))
}

fn lines(output: &Output) -> Vec<String> {
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(str::to_owned).collect()
}

fn folded(file: &Path, variables: &[(&str, &Path)]) -> Vec<String> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    command.envs(variables.iter().copied());
    let output = command
        .arg("report")
        .arg(file)
        .args(["--export", "folded"])
        .output();
    lines(&output.expect("pagewise runs"))
}

fn those_with<'a>(stacks: &'a [String], part: &str) -> Vec<&'a String> {
    let found: Vec<&String> = stacks.iter().filter(|stack| stack.contains(part)).collect();
    assert!(!found.is_empty(), "nothing has {part}: {stacks:#?}");
    found
}

/// The figure at the end of a folded line.
fn time_of(stack: &str) -> u64 {
    let figure = stack.rsplit(' ').next().and_then(|text| text.parse().ok());
    figure.unwrap_or_else(|| panic!("no figure: {stack}"))
}

#[test]
fn what_follows_a_call_is_no_frame_of_its_stack() {
    for (compiled, recording) in [
        (WITH_FRAME_POINTERS, &["-g"][..]),
        (WITH_FRAME_POINTERS, &["--call-graph", "dwarf"]),
        (&["-fomit-frame-pointer"][..], &["--call-graph", "dwarf"]),
    ] {
        let folder = tempfile::tempdir().expect("temporary directory");
        let program = built(folder.path(), NEXT_LINE_IS_INLINED, compiled);
        let Some(file) = program.and_then(|program| recorded(&program, recording)) else {
            return;
        };
        let stacks = folded(&file, &[]);
        // A sample may hit `after` itself, once in some thousands; it is then the innermost frame.
        // One that hits `callee` before it has set up its frame has no frame pointer that leads to
        // `parent`; call frame information describes that place, too.
        let (mut whole, mut at_entry) = (0, 0);
        for stack in those_with(&stacks, "callee") {
            let time = time_of(stack);
            if stack.contains("parent;callee") {
                whole += time;
            } else {
                assert!(stack.contains(";main;callee "), "{recording:?}: {stack}");
                assert_eq!(recording, &["-g"], "{stack}");
                at_entry += time;
            }
        }
        assert!(at_entry * 50 < whole, "{recording:?}: {stacks:#?}");
    }
}

/// A walk by frame pointers from memset leads to `parent`: the frame of `fill` is the innermost.
#[test]
fn the_caller_of_a_function_without_a_frame_is_found() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let Some(program) = built(folder.path(), CALLS_MEMSET, WITH_FRAME_POINTERS) else {
        return;
    };
    let Some(file) = recorded_by_us(&program, "faults", &[]) else {
        return;
    };
    let stacks = folded_of("page-faults", &file);
    // The loader has a memset, too.
    for stack in those_with(&stacks, ";main;") {
        let is_known = stack.contains(";parent;fill") || !stack.contains("memset");
        assert!(is_known, "{stack}");
    }
}

/// The chains by frame pointers are tried after a while, break, and are given up.
#[test]
fn cpu_time_of_code_without_frame_pointers_has_its_callers() {
    let record = &["record", "-q", "-e", "cpu", "-F", "199", "-o"];
    // The trial takes 50 ms of two seconds or more.
    callers_are_known(record, 0.9);
    // Copies pause on a busy machine, where they cost more than their share.
    callers_are_known(&["doctor", "-q", "--no-report", "--record"], 0.25);
}

fn callers_are_known(command: &[&str], least: f64) {
    let folder = tempfile::tempdir().expect("temporary directory");
    let source = NEXT_LINE_IS_INLINED.replace("i < 1500", "i < 6000");
    let program = built(folder.path(), &source, &["-fomit-frame-pointer"]);
    let Some(file) = program.and_then(|program| recorded_by(command, &program)) else {
        return;
    };
    let stacks = folded(&file, &[]);
    let [mut whole, mut all] = [0, 0];
    for stack in those_with(&stacks, "callee") {
        all += time_of(stack);
        whole += u64::from(stack.contains("main;parent;callee")) * time_of(stack);
    }
    let share = whole as f64 / all as f64;
    assert!(share > least, "{command:?}: {share}: {stacks:#?}");
}

/// Interpreters generate code that keeps frame pointers and has no tables, in libraries that have
/// some for the rest.
#[test]
fn code_without_tables_has_its_callers_by_the_frame_pointer() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let source = NEXT_LINE_IS_INLINED.replace(
        "__attribute__((noinline)) void callee(void) {",
        "asm(\".text\\nspin: push %rbp\\nmov %rsp, %rbp\\nsub $64, %rsp\\nmovq $0, (%rsp)\\n1: dec %rdi\\n\\
         jnz 1b\\nleave\\nret\\n\"); void spin(long);\n\
         __attribute__((noinline)) void callee(void) { spin(200000); ",
    );
    if !cfg!(target_arch = "x86_64") {
        skipped!("the program is written for x86-64");
        return;
    }
    let program = built(folder.path(), &source, &["-fomit-frame-pointer"]);
    let options = &["--call-graph", "dwarf"][..];
    let Some(file) = program.and_then(|program| recorded_by_us(&program, "cpu", options)) else {
        return;
    };
    let stacks = folded(&file, &[]);
    let [mut whole, mut all] = [0, 0];
    for stack in those_with(&stacks, "spin") {
        all += time_of(stack);
        whole += u64::from(stack.contains("main;parent;callee;spin")) * time_of(stack);
    }
    assert!(whole * 20 > all * 19, "{whole} of {all}: {stacks:#?}");
}

#[test]
fn a_handler_of_a_signal_returns_to_the_librarys_trampoline() {
    for recording in [&["-g"][..], &["--call-graph", "dwarf"]] {
        let folder = tempfile::tempdir().expect("temporary directory");
        let program = built(folder.path(), INTERRUPTED, WITH_FRAME_POINTERS);
        let Some(file) = program.and_then(|program| recorded(&program, recording)) else {
            return;
        };
        let stacks = folded(&file, &[]);
        for stack in those_with(&stacks, "handler;inside") {
            assert!(
                stack.contains("__restore_rt;handler;inside"),
                "{recording:?}: {stack}"
            );
        }
    }
}

#[test]
fn a_copied_stack_is_the_only_one_of_its_sample() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let Some(program) = built(folder.path(), NEXT_LINE_IS_INLINED, WITH_FRAME_POINTERS) else {
        return;
    };
    let file = folder.path().join("own.data");
    let mut own = Command::new(env!("CARGO_BIN_EXE_pagewise"));
    own.args(["record", "-q", "-e", "cpu", "--call-graph", "dwarf", "-o"]);
    let done = own
        .arg(&file)
        .arg("--")
        .arg(&program)
        .output()
        .expect("pagewise runs");
    assert!(done.status.success(), "{done:?}");
    let mut perf = Command::new("perf");
    perf.args(["script", "--no-inline", "-F", "ip,sym", "-i"]);
    let Ok(text) = perf.arg(&file).output() else {
        skipped!("there is no perf");
        return;
    };
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let samples = text
        .split("\n\n")
        .filter(|sample| sample.contains(" callee"));
    let mut seen = 0;
    for sample in samples {
        let times = sample
            .lines()
            .filter(|line| line.ends_with(" main"))
            .count();
        assert!(times <= 1, "{sample}");
        seen += 1;
    }
    if seen == 0 {
        skipped!("nothing could be sampled here");
        return;
    }
    those_with(&folded(&file, &[]), "main;parent;callee");
}

#[test]
fn programs_that_perf_kept_are_named_when_they_are_gone() {
    let folder = tempfile::tempdir().expect("temporary directory");
    let options = [WITH_FRAME_POINTERS, &["-Wl,--build-id"]].concat();
    let Some(program) = built(folder.path(), NEXT_LINE_IS_INLINED, &options) else {
        return;
    };
    let Some(file) = recorded(&program, &["-g"]) else {
        return;
    };
    let store = folder.path().join("store");
    let mut keep = Command::new("perf");
    keep.arg("--buildid-dir")
        .arg(&store)
        .args(["buildid-cache", "--add"]);
    let kept = keep.arg(&program).output().expect("perf is there");
    assert!(kept.status.success(), "{kept:?}");
    std::fs::remove_file(&program).expect("it was there");
    let nameless = folded(&file, &[("PERF_BUILDID_DIR", folder.path())]);
    assert!(
        !nameless.iter().any(|stack| stack.contains("callee")),
        "{nameless:#?}"
    );
    those_with(
        &folded(&file, &[("PERF_BUILDID_DIR", &store)]),
        "parent;callee",
    );
}

/// Share of the blocks that an allocator maps, as `doctor` reports it from few calls.
fn allocators_share(program: &str, folder: &Path) -> Option<f64> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../bench/causes/src")
        .join(program);
    let text = std::fs::read_to_string(source).expect("the program's source");
    let path = built(folder, &text, &["-fomit-frame-pointer", "-s"])?;
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["doctor", "--quiet", "--json", "--no-report", "--"])
        .arg(path)
        .args(["3", "33554432"])
        .output()
        .expect("pagewise runs");
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let share = found["evidence"]["run"]["churn"]["allocator_blocks"].as_f64();
    if share.is_none() {
        let notes = &found["notes"];
        assert!(
            notes.to_string().contains("system calls"),
            "calls are on record, yet nothing is told of who maps: {notes}"
        );
        skipped!("memory system calls cannot be recorded here: {notes}");
    }
    share
}

#[test]
fn few_calls_tell_who_maps_memory() {
    let folder = tempfile::tempdir().expect("temporary directory");
    for (program, share) in [("malloc_blocks.c", 1.0), ("own_mappings.c", 0.0)] {
        let Some(message) = allocators_share(program, folder.path()) else {
            return;
        };
        assert!((message - share).abs() < 1e-9, "{program}: {message}");
    }
}
