//! One measurement of `pagewise bench faults`, in a separate process: the time of first touches.

use anyhow::Result;
use pagewise_operate::bench::touch::{Touches, measure};
use std::process::ExitCode;

/// What to touch.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Args {
    /// Threads that touch at the same time.
    #[arg(long, default_value_t = 1)]
    threads: usize,
    /// Pages for each thread.
    #[arg(long, default_value_t = 4096)]
    pages: usize,
}

pub fn run(args: Args) -> Result<ExitCode> {
    let found = measure(Touches {
        threads: args.threads,
        pages: args.pages,
    });
    println!("{}", serde_json::to_string(&found)?);
    Ok(ExitCode::SUCCESS)
}
