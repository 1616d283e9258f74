//! `pagewise bench faults`: what one page fault costs when the kernel resolves it, when handler
//! threads do, and when the faulting thread does (SIGBUS), for one and more threads.

use crate::own_library;
use crate::terminal;
use anyhow::{Context, Result, bail};
use pagewise_linux::process::{Launch, Output, interrupt};
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::bench::{FAULT_BENCH_VERSION, FaultBench, FaultRow, Times, Way};
use pagewise_model::document::Kind;
use pagewise_model::run::Ending;
use pagewise_operate::paged_run::{Budgeted, budgeted};
use pagewise_report::{json, text};
use std::io::Write;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  pagewise bench faults                    kernel, fd, SIGBUS at 1 to 8 threads
  pagewise bench faults --threads 1 --runs 9
  pagewise bench faults --json";

#[derive(clap::Args)]
pub struct Args {
    /// Threads that fault at the same time (may be given several times) [default: 1 2 4 8]
    #[arg(long = "threads", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Vec<u16>,
    /// Fresh processes for each figure, in turns; the median is shown
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Print the result as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let threads = match args.threads.is_empty() {
        true => vec![1, 2, 4, 8],
        false => args.threads.clone(),
    };
    let document = FaultBench {
        kind: Kind::FaultBench,
        schema_version: FAULT_BENCH_VERSION,
        runs: args.runs,
        rows: measure(&threads, args.runs)?,
    };
    let mut out = terminal::output(args.json);
    let text = match args.json {
        true => json::to_string(&document)?,
        false => text::bench_faults::render(&document),
    };
    out.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// All rows, measured in turns, so that what changes on the machine meanwhile meets all alike.
fn measure(threads: &[u16], runs: u32) -> Result<Vec<FaultRow>> {
    let cells: Vec<(Way, u16)> = Way::ALL
        .into_iter()
        .flat_map(|way| threads.iter().map(move |&count| (way, count)))
        .collect();
    let mut found = vec![Vec::new(); cells.len()];
    for _ in 0..runs {
        for (times, &(way, count)) in found.iter_mut().zip(&cells) {
            times.push(ask(way, count)?);
            if interrupt::requested().is_some() {
                bail!("interrupted before all was measured");
            }
        }
    }
    let rows = cells.into_iter().zip(found);
    Ok(rows
        .map(|((way, threads), times)| FaultRow {
            way,
            threads,
            times: Times {
                p50_ns: median(times.iter().map(|one| one.p50_ns)),
                p99_ns: median(times.iter().map(|one| one.p99_ns)),
                in_order_ns: median(times.iter().map(|one| one.in_order_ns)),
            },
        })
        .collect())
}

fn median(values: impl Iterator<Item = u64>) -> u64 {
    let mut values: Vec<u64> = values.collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

/// One process that touches pages.
fn ask(way: Way, threads: u16) -> Result<Times> {
    let own = std::env::current_exe().context("cannot find our own program")?;
    let result = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    let mut launch = Launch {
        program: own.into_os_string(),
        args: ["bench", "touch", "--threads", &threads.to_string()]
            .map(Into::into)
            .to_vec(),
        output: Output::Capture(result.path().to_owned()),
        ..Launch::default()
    };
    let delivery = match way {
        Way::Kernel => None,
        Way::Fd => Some("fd"),
        Way::Sigbus => Some("sigbus"),
    };
    launch.settings = match delivery {
        // Huge pages would resolve 512 touches by one fault.
        None => Settings(vec![Setting::Thp {
            mode: "never".to_owned(),
        }]),
        Some(delivery) => {
            let budget = Budgeted {
                memory: 2 << 30,
                policy: "fifo",
                delivery,
            };
            budgeted(&budget, own_library::installed)?
        }
    };
    let finished = launch.spawn()?.wait()?;
    let output = std::fs::read_to_string(result.path()).context("cannot read the result")?;
    if finished.ending != Ending::Exited(0) {
        bail!(
            "a measurement failed ({:?}): {}",
            finished.ending,
            output.trim()
        );
    }
    let line = output.lines().last().unwrap_or_default();
    serde_json::from_str(line).with_context(|| format!("a measurement said: {}", output.trim()))
}
