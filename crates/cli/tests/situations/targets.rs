//! Targets that are awkward to observe: many threads, static binaries, other PID namespaces.

use crate::stage::{Outcome, Stage, faults, pagewise_path, skip, target, works};

#[test]
fn a_thousand_threads_are_followed() {
    let stage = Stage::new();
    let findings = Outcome::run(stage.pagewise().args([
        "doctor",
        "--json",
        "--",
        target(),
        "threads",
        "1000",
    ]))
    .ended_with(0)
    .json();
    assert_eq!(findings["evidence"]["run"]["ending"]["exited"], 0);
    // Each thread touches 16 pages of its block, and its stack.
    assert!(faults(&findings) >= 16_000, "faults {}", faults(&findings));
    let points = findings["evidence"]["run"]["timeline"]["points"]
        .as_array()
        .expect("points");
    let most = points
        .iter()
        .filter_map(|point| point["threads"].as_u64())
        .max();
    assert!(most > Some(900), "at most {most:?} threads seen");
}

#[test]
fn a_static_go_binary_gets_no_advice_that_cannot_work() {
    const TEST: &str = "a_static_go_binary_gets_no_advice_that_cannot_work";
    if !works("go", &["version"]) {
        return skip(TEST, "Go is not installed");
    }
    let stage = Stage::new();
    let source = stage.path("grow.go");
    std::fs::write(&source, GO_SOURCE).expect("write the source");
    let built = stage
        .command("go")
        .args(["build", "-o", "grow", "grow.go"])
        .env("CGO_ENABLED", "0")
        .env("GOFLAGS", "-mod=mod")
        .status()
        .expect("go starts");
    assert!(built.success(), "the Go program does not compile");
    let findings = Outcome::run(stage.pagewise().args(["doctor", "--json", "--", "./grow"]))
        .ended_with(0)
        .json();
    let allocators = findings["evidence"]["run"]["allocators"]
        .as_array()
        .expect("a list");
    assert!(
        allocators.iter().any(|found| found["kind"] == "go"),
        "{allocators:?}"
    );
    for advice in findings["advice"].as_array().into_iter().flatten() {
        assert!(
            no_libc_setting(advice),
            "advice that Go never reads: {advice}"
        );
    }
}

const GO_SOURCE: &str = r#"package main

import "fmt"

func main() {
	total := 0
	for round := 0; round < 200; round++ {
		block := make([]byte, 4<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = byte(round)
		}
		total += len(block)
	}
	fmt.Println(total)
}
"#;

fn no_libc_setting(advice: &serde_json::Value) -> bool {
    advice["settings"]
        .as_array()
        .expect("a list")
        .iter()
        .all(|setting| {
            !matches!(setting["kind"].as_str(), Some("glibc_tunable" | "preload"))
                && !setting["name"]
                    .as_str()
                    .is_some_and(|name| name.starts_with("MALLOC_"))
        })
}

#[test]
fn a_pid_namespace_of_its_own_does_not_confuse_the_accounts() {
    const TEST: &str = "a_pid_namespace_of_its_own_does_not_confuse_the_accounts";
    const SPACES: [&str; 5] = ["-r", "--pid", "--fork", "--mount-proc", "--kill-child"];
    if !works("unshare", &[&SPACES[..], &["true"]].concat()) {
        return skip(TEST, "cannot make a PID namespace here");
    }
    let stage = Stage::new();
    let findings = Outcome::run(stage.command("unshare").args(SPACES).args([
        pagewise_path(),
        "doctor",
        "--json",
        "--",
        target(),
        "churn",
        "30",
    ]))
    .ended_with(0)
    .json();
    assert_eq!(
        findings["diagnoses"][0]["id"], "churn.mmap",
        "{}",
        findings["diagnoses"]
    );
    let allocators = findings["evidence"]["run"]["allocators"]
        .as_array()
        .expect("a list");
    assert!(
        !allocators.is_empty(),
        "no allocator recognised inside the namespace"
    );
}
