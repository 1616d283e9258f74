//! `pagewise huge probe`: properties of this machine's TLB, and whether its host uses huge pages.

use crate::terminal;
use anyhow::Result;
use pagewise_model::units::{Bytes, NoSize};
use pagewise_operate::huge::probe::{Request, probe};
use pagewise_report::text::huge_probe;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pagewise huge probe                 TLB levels, host pages, huge pages
  pagewise huge probe --memory 4G     a chase through more memory
  pagewise huge probe --json > probe.json";

/// Measure this machine's TLB: levels, cost of a walk, the host's pages, what huge pages change
///
/// Times pointer chases in CPU time, in shuffled rounds; needs neither hardware counters nor
/// privileges. Takes up to a minute on a busy machine.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Maximum memory to use
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = memory)]
    memory: Bytes,

    /// Measurements per point
    #[arg(long, value_name = "N", default_value_t = 9, value_parser = clap::value_parser!(u32).range(3..=99))]
    rounds: u32,

    /// Print JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,

    /// Print only the answer, no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Probes and prints.
///
/// # Errors
/// If memory cannot be allocated.
pub fn run(args: &Args) -> Result<ExitCode> {
    let request = Request {
        memory: args.memory,
        rounds: args.rounds,
    };
    let found = probe(request, &terminal::progress(args.quiet))?;
    terminal::present(&found, args.json, huge_probe::render)?;
    Ok(ExitCode::SUCCESS)
}

fn memory(text: &str) -> Result<Bytes, String> {
    const LEAST: Bytes = Bytes(128 << 20);
    let size: Bytes = text.parse().map_err(|error: NoSize| error.to_string())?;
    match size >= LEAST {
        true => Ok(size),
        false => Err(format!(
            "'{text}' is too small: a probe needs at least {LEAST}"
        )),
    }
}
