//! How often comparing two traces finds what is not there, and what is there.
//!
//! `cargo run --release -p pagewise-traces --example trace_halves -- FOLDER [HALVES [TRIES]]` splits
//! the traces of `FOLDER` into random halves, `HALVES` (200) in all: fault by fault, in runs of 10
//! and of 100 faults by turns. Then it plants changes into one half of the Redis trace, `TRIES` (10)
//! times each. Exits with 1 where more than 5 % of the halves that are alike show anything.

#[path = "../tests/halves/mod.rs"]
mod halves;

use halves::{Change, Trees, diff, planted, read};
use std::path::Path;
use std::process::ExitCode;

const ALIKE: [&str; 10] = [
    "redis-6.1/trace",
    "tpcc-6.1/trace",
    "contend-6.1/contend",
    "workloads-6.1/file",
    "workloads-6.1/swap",
    "workloads-6.1/cow",
    "workloads-6.1/shm",
    "workloads-5.10/cow",
    "workloads-5.10/swap",
    "workloads-7.2/anon",
];
const RUNS: [usize; 3] = [1, 10, 100];
/// A trace's first faults that are split.
const MOST: usize = 3000;

const PLANTED: [Change; 15] = [
    Change::DeviceReads(0.01),
    Change::DeviceReads(0.02),
    Change::DeviceReads(0.036),
    Change::Slower(0.01, 20_000),
    Change::Slower(0.015, 220_000),
    Change::Slower(0.04, 20_000),
    Change::NewPath(0.02, 3_000),
    Change::NewPath(0.04, 3_000),
    Change::Function("get_page_from_freelist", 0.2),
    Change::Function("get_page_from_freelist", 0.5),
    Change::Function("charge_memcg", 0.5),
    Change::SlowCalls("charge_memcg", 0.01, 5_000),
    Change::SlowCalls("charge_memcg", 0.02, 5_000),
    Change::SlowCalls("charge_memcg", 0.01, 20_000),
    Change::SlowCalls("__mod_lruvec_state", 0.01, 5_000),
];

fn main() -> ExitCode {
    let mut given = std::env::args().skip(1);
    let Some(folder) = given.next() else {
        eprintln!("usage: trace_halves FOLDER [HALVES [TRIES]]");
        return ExitCode::FAILURE;
    };
    let mut number = |usual: u64| given.next().map_or(Some(usual), |text| text.parse().ok());
    let (Some(halves), Some(tries)) = (number(200), number(10)) else {
        eprintln!("HALVES and TRIES are numbers");
        return ExitCode::FAILURE;
    };
    match run(Path::new(&folder), halves, tries) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{folder}: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether few enough of the halves that are alike show anything.
fn run(folder: &Path, halves: u64, tries: u64) -> std::io::Result<bool> {
    let each = halves.div_ceil((ALIKE.len() * RUNS.len()) as u64);
    let (mut claims, mut in_phases, mut all) = (0, 0, 0);
    println!("| alike halves of | runs of 1 | of 10 | of 100 |\n|---|---|---|---|");
    for name in ALIKE {
        if halves == 0 {
            break;
        }
        let trees = read(&folder.join(format!("{name}.txt.zst")), MOST)?;
        let found = RUNS.map(|run| claiming(&trees, run, each));
        claims += found.iter().map(|[sure, _]| sure).sum::<u64>();
        in_phases += found.iter().map(|[_, phases]| phases).sum::<u64>();
        all += each * RUNS.len() as u64;
        let [one, ten, hundred] =
            found.map(|[sure, phases]| format!("{sure} ({phases}) of {each}"));
        println!(
            "| {name}, {} faults | {one} | {ten} | {hundred} |",
            trees.all.len()
        );
    }
    println!("\n{claims} of {all} claim something; in brackets {in_phases} \"in few phases\"\n");
    let redis = || read(&folder.join("redis-6.1/trace.txt.zst"), usize::MAX);
    let (plain, mut changed) = (redis()?, redis()?);
    println!("| planted into a half | found | named |\n|---|---|---|");
    for change in PLANTED {
        let [found, named] = detections(&plain, &mut changed, change, tries);
        println!("| {change:?} | {found} of {tries} | {named} of {tries} |");
    }
    Ok(claims * 20 <= all)
}

/// How many of the halves are said to differ, and how many but in few of their phases.
fn claiming(trees: &Trees, run: usize, splits: u64) -> [u64; 2] {
    let mut claims = [0, 0];
    for seed in 0..splits {
        let diff = diff(&halves::halves(trees, run, seed), &trees.summary, 0);
        if let Some(reason) = &diff.method.not_tested {
            eprintln!("split {seed}, runs of {run}: {reason}");
        }
        if let Some(first) = diff.findings.first() {
            eprintln!("split {seed}, runs of {run}: {}", first.sentence);
            claims[0] += 1;
        } else if let Some(first) = diff.phases.first() {
            eprintln!("split {seed}, runs of {run}, phases: {}", first.sentence);
            claims[1] += 1;
        }
    }
    claims
}

/// How many of so many changed halves show anything, and what was changed in them.
fn detections(plain: &Trees, changed: &mut Trees, change: Change, tries: u64) -> [u64; 2] {
    let mut message = [0, 0];
    for seed in 0..tries {
        let diff = planted(plain, changed, change, seed);
        if seed == 0 {
            eprintln!("{change:?}: {}", diff.verdict);
        }
        message[0] += u64::from(!diff.findings.is_empty());
        message[1] += u64::from(change.is_named(&diff));
    }
    message
}
