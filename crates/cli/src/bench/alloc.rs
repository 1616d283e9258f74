//! `pagewise bench alloc`: the experiment of "A Study in Malloc" (Ezolt, 2001) on any allocator:
//! take a block, touch it, give it back; from which size on does each block involve the kernel?

use crate::progress::Progress;
use crate::terminal;
use anyhow::Result;
use pagewise_linux::process::interrupt;
use pagewise_operate::bench::alloc::{Request, block_size, measure};
use pagewise_report::text;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  pagewise bench alloc                          this machine's allocators
  pagewise bench alloc --size 126K --size 128K  two sizes only
  pagewise bench alloc --preload ./libmine.so   an allocator of your own
  sudo pagewise bench alloc                     with system calls counted";

#[derive(clap::Args)]
pub struct Args {
    /// Block size, such as 126K (can be repeated)
    ///
    /// Without it: 4K to 64M, and many small blocks freed together.
    #[arg(long = "size", value_name = "SIZE", value_parser = block_size)]
    sizes: Vec<usize>,
    /// Another allocator's library to measure (can be repeated)
    #[arg(long = "preload", value_name = "LIBRARY")]
    libraries: Vec<PathBuf>,
    /// Only allocators whose name contains this text (can be repeated)
    #[arg(long = "only", value_name = "TEXT")]
    only: Vec<String>,
    /// Fresh processes per figure; the median is shown
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=99))]
    runs: u32,
    /// Time per process, such as 20ms
    #[arg(long, value_name = "TIME", default_value = "20ms", value_parser = crate::duration::parse)]
    time: Duration,
    /// Print the result as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let progress = Progress::new();
    let document = measure(&args.request(), &progress.listener())?;
    progress.finish();
    terminal::present(&document, args.json, text::bench_alloc::render)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    fn request(&self) -> Request {
        Request {
            sizes: self.sizes.clone(),
            libraries: self.libraries.clone(),
            only: self.only.clone(),
            runs: self.runs,
            time: self.time,
        }
    }
}
