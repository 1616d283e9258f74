//! `pagewise bench faults`: the cost of one page fault when the kernel resolves it, when handler
//! threads do, and when the faulting thread does (SIGBUS), for one and more threads.

use crate::{own_library, terminal};
use anyhow::Result;
use pagewise_linux::process::interrupt;
use pagewise_model::answer::Document;
use pagewise_model::bench::FaultBench;
use pagewise_operate::bench::faults::measure;
use pagewise_report::text;
use std::process::ExitCode;

pub const EXAMPLES: &str = "\
Examples:
  pagewise bench faults                    kernel, fd, SIGBUS at 1 to 8 threads
  pagewise bench faults --threads 1 --runs 9
  pagewise bench faults --json";

#[derive(clap::Args)]
pub struct Args {
    /// Threads that fault at the same time (can be repeated) [default: 1 2 4 8]
    #[arg(long = "threads", value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Vec<u16>,
    /// Fresh processes per figure, interleaved; the median is shown
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
    let document = Document::new(FaultBench {
        runs: args.runs,
        rows: measure(&threads, args.runs, own_library::installed)?,
    });
    terminal::present(&document, args.json, text::bench_faults::render)?;
    Ok(ExitCode::SUCCESS)
}
