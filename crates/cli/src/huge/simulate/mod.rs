//! `pagewise huge simulate`: the effect of page sizes and controllers, on any machine.

mod programs;

use crate::terminal;
use anyhow::{Context, Result, bail};
use pagewise_model::answer::Document;
use pagewise_model::huge_simulation::HugeSimulation;
use pagewise_report::text::{Style, huge_simulation};
use pagewise_simulate::page_sizes::{self, Request};
use pagewise_simulate::tlb::{Machine, shipped};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pagewise huge simulate --workload mcf        would huge pages help or hurt?
  pagewise huge simulate --workload oltp --machine zen4
  pagewise huge simulate --controller min-cost -o huge.html trace.pwm
  pagewise huge simulate --workload mcf --workload gups --controller paper";

/// Simulate TLBs: would huge pages help or hurt, and what would a controller do
///
/// Runs generated accesses, or those of a trace (of pagewise huge trace, valgrind lackey's text,
/// perf script's addresses), through a processor's TLBs and page walks, natively and in a guest,
/// with small and with huge pages. With --controller page sizes change during the run.
///
/// The processors are data; `pagewise help hugepages` describes the model and what it leaves out.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES, arg_required_else_help = true)]
pub struct Args {
    /// The processor: 3a4000, skylake-sp, golden-cove, zen4, neoverse-v2, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "golden-cove")]
    machine: String,
    /// Generated accesses, optionally with a size (gups:512M); several workloads share the TLB as guests
    #[arg(long, value_name = "NAME[:SIZE]")]
    workload: Vec<String>,
    /// Who decides on huge pages: paper, min-cost, always, never, oracle
    #[arg(long, value_name = "NAME")]
    controller: Option<String>,
    /// Also show the first program's cost at each number of huge pages
    #[arg(long)]
    sweep: bool,
    /// Simulate native processes only, no guests: a third of the work
    #[arg(long)]
    native: bool,
    /// Nanoseconds per access whose translation is free
    #[arg(long, value_name = "NS", default_value_t = 5.0, value_parser = positive)]
    access_ns: f64,
    /// Accesses measured per configuration, continued to the end of the trace or round of phases
    #[arg(long, value_name = "N", default_value_t = 4_000_000,
        value_parser = clap::value_parser!(u64).range(1..))]
    accesses: u64,
    /// How long a controller is observed, in seconds of simulated time
    #[arg(long, value_name = "S", default_value_t = 80.0, value_parser = positive)]
    seconds: f64,
    /// Maximum accesses to keep from a trace; the rest is left out and counted
    #[arg(long, value_name = "N", default_value_t = 64_000_000)]
    most: usize,
    /// Print JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
    /// Also write the report as one HTML file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// A trace of memory accesses; - is standard input
    trace: Option<PathBuf>,
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(ns) if ns > 0.0 && f64::is_finite(ns) => Ok(ns),
        _ => Err("expected a positive number".to_owned()),
    }
}

/// Simulates and prints.
///
/// # Errors
/// When a machine, workload or trace can't be used, or output can't be written.
pub fn run(args: &Args) -> Result<ExitCode> {
    let machine = machine(args)?;
    let (programs, notes) = programs::open(args)?;
    let request = Request {
        access_ns: args.access_ns,
        accesses: args.accesses,
        seconds: args.seconds,
        is_native: args.native,
        sweep: args.sweep,
        controller: args.controller.clone(),
    };
    let result = page_sizes::simulate(&machine, &request, &programs, notes)?;
    write(args, &result)?;
    Ok(ExitCode::SUCCESS)
}

fn machine(args: &Args) -> Result<Machine> {
    let name = args.machine.as_str();
    if let Some(machine) = Machine::named(name) {
        return Ok(machine);
    }
    if !name.contains(['.', '/']) {
        let known: Vec<&str> = shipped()?.into_iter().map(|(name, _)| name).collect();
        let known = known.join(", ");
        bail!("there is no machine \"{name}\"; there are {known}, or name a TOML file");
    }
    let text = std::fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
    Machine::parse(&text).with_context(|| format!("{name} does not describe a machine"))
}

fn write(args: &Args, result: &Document<HugeSimulation>) -> Result<()> {
    if let Some(path) = &args.output {
        let text = huge_simulation::render(result, 100, Style::PLAIN);
        let page = pagewise_report::html::render_huge_simulation(result, &text)?;
        crate::page::write(path, &page)?;
    }
    terminal::present(result, args.json, huge_simulation::render)
}
