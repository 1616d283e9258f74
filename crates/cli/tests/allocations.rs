//! `pagewise memory --stacks` on a C program whose functions hold known numbers of bytes.
#![cfg(target_arch = "x86_64")]

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

#[path = "support/command.rs"]
mod command;

use command::pagewise;

#[path = "../../report/tests/checker/mod.rs"]
mod checker;

/// `sites.c`, compiled once.
static PROGRAM: LazyLock<PathBuf> = LazyLock::new(|| compiled(&[]));

fn compiled(options: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/memory/sites.c");
    let program = format!("sites{}", options.concat());
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(program);
    let mut command = Command::new("cc");
    command.args(["-O1", "-pthread", "-o"]).arg(&program);
    let status = command.arg(source).args(options).status();
    assert!(status.expect("a C compiler").success());
    program
}

fn sampled(options: &[&str], program: &Path, what: &str) -> Output {
    let path = program.to_str().expect("Unicode");
    let before = ["memory", "--stacks", "--period", "32K"];
    pagewise(&[&before, options, &["--", path, what]].concat())
}

/// What the program held by the function that allocated it: [value, low, high] of bytes.
struct Held {
    document: Value,
}

impl Held {
    fn run(what: &str, seed: u32) -> Self {
        let output = sampled(&["--json", "--seed", &seed.to_string()], &PROGRAM, what);
        let printed = String::from_utf8(output.stdout).expect("text");
        let document = serde_json::from_str(&printed);
        let document: Value = document.unwrap_or_else(|error| {
            panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
        });
        assert_eq!(checker::errors(&document), [""; 0]);
        Self { document }
    }

    fn processes(&self) -> &[Value] {
        let holders = &self.document["evidence"]["memory"]["holders"];
        holders["processes"].as_array().expect("a list")
    }

    /// The estimates of stacks that have this function of ours innermost.
    fn at(&self, process: usize, when: &str, function: &str) -> Vec<[f64; 3]> {
        let process = &self.processes()[process];
        let stacks = process["stacks"].as_array().expect("a list").iter();
        let innermost = |stack: &Value| {
            let number = stack["frames"][0].as_u64().expect("a frame");
            process["functions"][usize::try_from(number).expect("small")]["name"].clone()
        };
        let of_function =
            stacks.filter(|stack| stack["frames"].get(0).is_some() && innermost(stack) == function);
        of_function
            .map(|stack| {
                let bytes = &stack[when]["bytes"];
                ["value", "low", "high"].map(|part| bytes[part].as_f64().expect("a number"))
            })
            .collect()
    }

    /// The one stack of a function.
    fn only(&self, process: usize, when: &str, function: &str) -> [f64; 3] {
        let found = self.at(process, when, function);
        assert_eq!(found.len(), 1, "{function}: {}", self.document);
        found[0]
    }
}

/// Within a part of the truth.
fn assert_near(found: [f64; 3], truth: f64, part: f64) {
    let [value, ..] = found;
    assert!((value / truth - 1.0).abs() < part, "{found:?}, not {truth}");
}

/// Bytes that a site of `sites` holds at the peak, and at the end.
const SITES: [(&str, f64, f64); 5] = [
    ("small", 19_200_000.0, 19_200_000.0),
    ("zeroed", 15_000_000.0, 15_000_000.0),
    ("aligned", 10_000_000.0, 10_000_000.0),
    ("large", 5_242_880.0, 5_242_880.0),
    ("temporary", 12_000_000.0, 0.0),
];

/// 80 checks of 95 %: the chance of less than 68 is below 10⁻⁶.
#[test]
fn sites_are_found_with_the_truth_in_their_intervals() {
    let mut covered = BTreeMap::new();
    for seed in 1..=8 {
        let held = Held::run("sites", seed);
        for (site, peak, end) in SITES {
            for (when, truth) in [("peak", peak), ("end", end)] {
                let [_, low, high] = held.only(0, when, site);
                let is_within = low <= truth && truth <= high;
                *covered.entry(site).or_insert(0) += i32::from(is_within);
            }
        }
        // Ever allocated: 40 MB, of which nothing was live.
        assert_near(held.only(0, "allocated", "churned"), 40e6, 0.25);
        assert!(held.only(0, "peak", "churned")[0] < 1e6);
    }
    assert!(covered.values().sum::<i32>() >= 68, "{covered:?}");
}

#[test]
fn what_a_block_grew_by_is_its_growers() {
    let held = Held::run("realloc", 3);
    // 8 MiB, sampled for certain; the site has one stack for new blocks and one for grown ones.
    let grown: f64 = held.at(0, "end", "grown").iter().map(|one| one[0]).sum();
    assert!((grown / 8_388_000.0 - 1.0).abs() < 0.05, "{grown}");
    // 800 KB in blocks that were 8 MB.
    let shrunk: f64 = held.at(0, "end", "shrunk").iter().map(|one| one[0]).sum();
    assert!((400e3..1_600e3).contains(&shrunk), "{shrunk}");
}

#[test]
fn threads_add_up() {
    let held = Held::run("threads", 5);
    let found = held.only(0, "end", "threaded");
    // 10 MB, some 300 samples: six standard errors.
    assert_near(found, 4.0 * 10_000.0 * 249.5, 0.35);
    assert_eq!(held.at(0, "end", "thread").len(), 0);
}

#[test]
fn a_forked_child_has_what_it_allocated_itself() {
    let held = Held::run("fork", 7);
    assert_eq!(held.processes().len(), 2);
    let parent = &held.processes()[0];
    assert_near(held.only(0, "end", "zeroed"), 15e6, 0.3);
    assert_eq!(held.at(0, "end", "aligned").len(), 0);
    assert_near(held.only(1, "end", "aligned"), 10e6, 0.4);
    assert_eq!(held.at(1, "end", "zeroed").len(), 0);
    assert_eq!(held.processes()[1]["parent"], parent["pid"]);
}

#[test]
fn a_killed_program_loses_no_sample() {
    let held = Held::run("kill", 9);
    assert_near(held.only(0, "end", "zeroed"), 15e6, 0.3);
}

/// It waited for ever: the lock was released once too often.
#[test]
fn a_first_allocation_inside_setlocale_does_no_harm() {
    let held = Held::run("locale", 1);
    assert_near(held.only(0, "end", "large"), f64::from(5 << 20), 1e-9);
}

#[test]
fn a_static_program_is_refused_with_the_reason() {
    let program = compiled(&["-static"]);
    let output = sampled(&[], &program, "sites");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0));
    assert!(errors.contains("is linked statically"), "{errors}");
}

#[test]
fn folded_stacks_lead_from_main_to_the_site() {
    let output = sampled(&["--export", "folded", "--seed", "2"], &PROGRAM, "sites");
    let printed = String::from_utf8(output.stdout).expect("text");
    let line = printed.lines().find(|line| line.contains(";large "));
    let line = line.unwrap_or_else(|| panic!("{printed}"));
    assert!(line.contains(";main;large "), "{line}");
    assert!(line.ends_with(" 5242880"), "{line}");
}

#[test]
fn the_text_says_who_held_most_and_how_sure_that_is() {
    let output = sampled(&["--seed", "4"], &PROGRAM, "sites");
    let text = String::from_utf8(output.stdout).expect("text");
    let row = text
        .lines()
        .find(|line| line.trim_start().starts_with("small "));
    let row = row.unwrap_or_else(|| panic!("{text}"));
    assert!(row.contains(" – ") && row.contains("MiB"), "{row}");
    assert!(text.contains("that were live at the peak"), "{text}");
}
