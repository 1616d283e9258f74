//! `pagewise bench`: the cost of memory management on this machine.

mod alloc;
mod cycle;
mod faults;
mod touch;

use anyhow::Result;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  pagewise bench alloc     each allocator's cost at each size of block
  pagewise bench faults    what a page fault costs, with paging or without";

/// Measure what memory management costs on this machine
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    what: Bench,
}

#[derive(clap::Subcommand)]
enum Bench {
    /// Find the block size from which an allocator returns memory to the kernel at each free
    #[command(after_help = alloc::EXAMPLES)]
    Alloc(alloc::Args),
    /// Find what one page fault costs: kernel, handler threads, SIGBUS
    #[command(after_help = faults::EXAMPLES)]
    Faults(faults::Args),
    /// First touches in this process, as JSON
    #[command(hide = true)]
    Touch(touch::Args),
    /// One measurement in this process, as JSON
    #[command(hide = true)]
    Cycle(cycle::Args),
}

/// Runs the requested benchmark.
///
/// # Errors
/// Those of the benchmark.
pub fn run(args: &Args) -> Result<ExitCode> {
    match &args.what {
        Bench::Alloc(args) => alloc::run(args),
        Bench::Faults(args) => faults::run(args),
        Bench::Touch(args) => touch::run(*args),
        Bench::Cycle(args) => cycle::run(*args),
    }
}
