//! `pagewise bench faults`: what one page fault costs when the kernel resolves it, when handler
//! threads do, and when the faulting thread does (SIGBUS), for one and more threads.

use super::touch::Times;
use crate::run::{Budgeted, budgeted};
use crate::terminal;
use anyhow::{Context, Result, bail};
use pagewise_linux::process::{Launch, Output, interrupt};
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::run::Ending;
use serde::Serialize;
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
    /// Print the result as JSON (schema: pagewise help bench-faults.json)
    #[arg(long)]
    json: bool,
}

/// Who resolves the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Way {
    Kernel,
    Fd,
    Sigbus,
}

#[derive(Debug, Serialize)]
struct Document {
    schema_version: u32,
    runs: u32,
    rows: Vec<Row>,
}

#[derive(Debug, Serialize)]
struct Row {
    way: Way,
    threads: u16,
    #[serde(flatten)]
    times: Times,
}

/// Version of docs/schema/bench-faults.json.
const BENCH_FAULTS_VERSION: u32 = 2;
const WAYS: [Way; 3] = [Way::Kernel, Way::Fd, Way::Sigbus];

pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let threads = match args.threads.is_empty() {
        true => vec![1, 2, 4, 8],
        false => args.threads.clone(),
    };
    let document = Document {
        schema_version: BENCH_FAULTS_VERSION,
        runs: args.runs,
        rows: measure(&threads, args.runs)?,
    };
    let mut out = terminal::output(args.json);
    match args.json {
        true => out.write_all(pagewise_report::json::to_string(&document)?.as_bytes())?,
        false => write!(out, "{}", text(&document, &threads))?,
    }
    Ok(ExitCode::SUCCESS)
}

/// All rows, measured in turns, so that what changes on the machine meanwhile meets all alike.
fn measure(threads: &[u16], runs: u32) -> Result<Vec<Row>> {
    let cells: Vec<(Way, u16)> = WAYS
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
        .map(|((way, threads), times)| Row {
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
        Some(delivery) => budgeted(&Budgeted {
            memory: 2 << 30,
            policy: "fifo",
            delivery,
        })?,
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

fn text(document: &Document, threads: &[u16]) -> String {
    let scattered = table(document, threads, |times| {
        format!("{} / {}", times.p50_ns, times.p99_ns)
    });
    let in_order = table(document, threads, |times| times.in_order_ns.to_string());
    format!(
        "First write to a page, scattered, p50 / p99 in nanoseconds\n\n{scattered}\n\n\
         One page after the other, nanoseconds a page\n\n{in_order}\n\n\
         Medians of {} processes each. kernel: no paging. fd: handler threads.\n\
         sigbus: the faulting thread.\n",
        document.runs
    )
}

/// A row for each way, a column for each number of threads.
fn table(document: &Document, threads: &[u16], cell: impl Fn(&Times) -> String) -> String {
    let mut text = " ".repeat(8);
    for count in threads {
        let plural = if *count == 1 { "" } else { "s" };
        text += &format!("{:>18}", format!("{count} thread{plural}"));
    }
    for way in WAYS {
        text += &format!("\n{:<8}", format!("{way:?}").to_lowercase());
        for row in document.rows.iter().filter(|row| row.way == way) {
            text += &format!("{:>18}", cell(&row.times));
        }
    }
    text
}
