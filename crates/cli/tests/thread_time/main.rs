//! The account of time by process and thread, compared with the threads' own figures.
//!
//! Needs a C compiler; without privileges the same figures come from looks at `/proc`, with a
//! larger unexplained part.

#[macro_use]
#[path = "../../../../tests/skipped.rs"]
mod skipped;

use pagewise_model::account::{Account, TaskSum, Tasks, ThreadTime};
use pagewise_model::run::RunCost;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A thread's own figures, times in seconds.
struct Truth {
    pid: i32,
    tid: i32,
    what: String,
    cpu: f64,
    lifetime: f64,
}

/// Looks are 20 ms apart while they are cheap, and the kernel counts running time in ticks.
const CLOSE: f64 = 0.1;

fn truths(output: &str) -> Vec<Truth> {
    let lines = output.lines().map(|line| {
        let words: Vec<&str> = line.split(' ').collect();
        let number = |at: usize| words[at].parse::<f64>().expect("a number");
        Truth {
            pid: words[0].parse().expect("a process"),
            tid: words[1].parse().expect("a thread"),
            what: words[2].to_owned(),
            cpu: number(3) / 1e9,
            lifetime: number(4) / 1e9,
        }
    });
    lines.collect()
}

/// Builds the program, and observes a run of it.
fn observed(folder: &Path) -> Option<(Vec<Truth>, Account, RunCost)> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/thread_time/program.c");
    let program = folder.join("program");
    let mut compiler = Command::new("cc");
    compiler
        .args(["-O1", "-pthread", "-o"])
        .args([&program, &source]);
    if !compiler.status().is_ok_and(|status| status.success()) {
        skipped!("the program cannot be built with cc here");
        return None;
    }
    let message = folder.join("told");
    let script = format!("exec '{}' > '{}'", program.display(), message.display());
    let output = Command::new(env!("CARGO_BIN_EXE_pagewise"))
        .args(["doctor", "--json", "--", "sh", "-c", &script])
        .current_dir(folder)
        .output()
        .expect("pagewise starts");
    let document: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)));
    let part = |name: &str| document["evidence"]["run"][name].clone();
    let account = serde_json::from_value(part("account")).expect("an account");
    let cost = serde_json::from_value(part("cost")).expect("a cost");
    let message = std::fs::read_to_string(message).expect("what its threads say");
    Some((truths(&message), account, cost))
}

fn adds_up(sum: &TaskSum) {
    let parts: f64 = sum.parts.iter().map(|part| part.time.value).sum();
    let lifetime = sum.lifetime.as_secs_f64() * 1e9;
    assert!((parts - lifetime).abs() <= 1e-6 * lifetime + 1.0, "{sum:?}");
}

fn thread<'a>(tasks: &'a Tasks, truth: &Truth) -> &'a ThreadTime {
    let process = tasks.processes.iter().find(|one| one.pid == truth.pid);
    let threads = &process.expect("its process").threads;
    let thread = threads.iter().find(|one| one.tid == truth.tid);
    thread.unwrap_or_else(|| panic!("{} in {threads:?}", truth.what))
}

#[test]
fn a_threads_lifetime_is_running_ready_and_waiting() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((truths, account, cost)) = observed(folder.path()) else {
        return;
    };
    let Some(tasks) = &account.tasks else {
        skipped!("the kernel shows no times of threads here (schedstat)");
        return;
    };
    assert_eq!(truths.len(), 4);
    for truth in &truths {
        let thread = thread(tasks, truth);
        assert_eq!(thread.name, truth.what);
        adds_up(&thread.all);
        let lived = thread.all.lifetime.as_secs_f64();
        assert!(
            (lived - truth.lifetime).abs() < CLOSE + 0.1 * truth.lifetime,
            "{thread:?}"
        );
        let (cpu, open) = (
            thread.all.part("cpu") / 1e9,
            thread.all.part("unexplained") / 1e9,
        );
        assert!(
            cpu <= truth.cpu + 0.02,
            "{} of {}: {thread:?}",
            cpu,
            truth.cpu
        );
        assert!(
            cpu + open + CLOSE >= truth.cpu,
            "{} of {}: {thread:?}",
            cpu,
            truth.cpu
        );
    }
    for process in &tasks.processes {
        adds_up(&process.all);
    }
    let counted: f64 = tasks.processes.iter().map(|one| one.all.part("cpu")).sum();
    let all = counted / 1e9 + tasks.elsewhere.as_secs_f64();
    assert!(
        (all - cost.cpu().as_secs_f64()).abs() < 0.02,
        "{all}: {cost:?}"
    );
}

#[test]
fn threads_that_wait_are_told_by_what_they_wait_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some((truths, account, _)) = observed(folder.path()) else {
        return;
    };
    let Some(tasks) = &account.tasks else {
        skipped!("the kernel shows no times of threads here (schedstat)");
        return;
    };
    let named = |what: &str| {
        let truth = truths.iter().find(|truth| truth.what == what);
        thread(tasks, truth.expect("each says so"))
    };
    let sees_places = tasks.processes.iter().any(|one| {
        let mut waits = one.all.waits();
        waits.any(|wait| !wait.places.is_empty())
    });
    if !sees_places {
        skipped!("places that threads sleep in are not shown here (wchan)");
        return;
    }
    for (what, kind) in [("sleeps", "sleep"), ("reads", "pipe")] {
        let all = &named(what).all;
        let share = all.part(kind) / 1e9 / all.lifetime.as_secs_f64();
        assert!(share > 0.6, "{what}: {all:?}");
    }
}
