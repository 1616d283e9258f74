//! One measurement of an allocator, in a separate process.

use crate::terminal;
use anyhow::Result;
use pagewise_linux::allocation_cost::Shape;
use pagewise_operate::bench::cycle::measure;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

/// What to measure.
#[derive(clap::Args, Clone, Copy)]
pub struct Args {
    /// Bytes in one block.
    #[arg(long)]
    size: usize,
    /// Blocks that are taken and given back together.
    #[arg(long)]
    blocks: usize,
    /// Milliseconds to spend.
    #[arg(long)]
    milliseconds: u64,
}

/// Measures and prints.
pub fn run(args: Args) -> Result<ExitCode> {
    let shape = Shape {
        size: args.size,
        blocks: args.blocks,
    };
    let cost = measure(shape, Duration::from_millis(args.milliseconds))?;
    let mut out = terminal::output(true);
    serde_json::to_writer(&mut out, &cost)?;
    writeln!(out)?;
    Ok(ExitCode::SUCCESS)
}
