//! `pagewise memory`: where the memory of a process went.

use crate::allocations::Stacks;
use crate::progress::Progress;
use crate::{status, terminal};
use anyhow::{Context, Result};
use pagewise_linux::process::{Input, Launch, Output, interrupt};
use pagewise_operate::destination;
use pagewise_operate::memory::{Scope, Wanted, running, smallest, twice};
use pagewise_report::text;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Show where a program's memory is: in use, freed and kept, pinned, files, stacks
///
/// One look at a running process: nothing is injected or restarted, and reading makes no pages in it.
/// Only if its heaps change too fast is it stopped, for at most 50 ms. The rows add up to what the kernel counts as resident.
#[derive(clap::Args, Debug)]
#[command(
    after_help = EXAMPLES,
    override_usage = "pagewise memory [OPTIONS] -p <PID>\n       pagewise memory [OPTIONS] -- <CMD>..."
)]
pub struct Args {
    /// The process
    #[arg(short, long, value_name = "PID", required_unless_present = "command", conflicts_with = "command",
          value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,
    /// Add up the process and all its descendants, pages that they share once
    #[arg(long, conflicts_with = "command")]
    tree: bool,
    /// Look a second time after this while (10s, 5m), and show what grew
    #[arg(long = "for", value_name = "TIME", conflicts_with = "command", value_parser = crate::duration::positive)]
    apart: Option<Duration>,
    /// Search for blocks that no pointer leads to: leaks. The process is stopped for at most 50 ms, three times
    #[arg(long)]
    leaks: bool,
    /// Find the smallest memory limit at which the program does not wait for memory: it runs about ten times, with
    /// no input and output, each time in a memory cgroup of its own with another limit (takes root)
    #[arg(long, requires = "command", conflicts_with = "leaks")]
    limit: bool,
    /// Print the result as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
    /// Also keep the result in a file: pagewise diff compares two of them, pagewise report shows one again
    #[arg(long, value_name = "FILE", conflicts_with = "limit")]
    save: Option<PathBuf>,
    /// Also show which call stacks touched the memory first that is there at the peak and at the end, by page
    /// faults: of any program, also static ones and Go
    #[arg(long, requires = "command", conflicts_with = "limit")]
    touched: bool,
    #[command(flatten)]
    stacks: Stacks,
    /// A program to run and its arguments: looked at with its children at the peak and at the end
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

const EXAMPLES: &str = "\
Examples:
  pagewise memory -p 4242                  a running process
  pagewise memory -p 4242 --tree           with its children, shared pages once
  pagewise memory -p 4242 --for 60s        what grew in a minute
  pagewise memory -p 4242 --leaks          blocks that nothing points to
  pagewise memory -p 4242 --save ten.json  keep it, for pagewise diff
  pagewise memory -p 4242 --json | jq .evidence.memory.finding
  sudo pagewise memory -p 4242             a process of another user
  pagewise memory -- ./simulate input.dat  a program at its peak and its end
  pagewise memory --stacks -- ./simulate   and who allocated it
  pagewise memory --touched -- ./simulate  and who touched it first
  pagewise memory --stacks --export pprof -o mem.pb.gz -- ./simulate
  sudo pagewise memory --limit -- ./simulate
                                           the smallest limit that it fits into

Read are glibc's malloc (2.31 to 2.43), jemalloc, mimalloc 2 and 3, tcmalloc
(gperftools), musl, Go and Python; memory of other allocators is one row,
'not readable'. pagewise help memory has the guide.";

/// Looks and prints the account. Exits with the status of the program that was run.
///
/// # Errors
/// If the process cannot be read, the program cannot be run, or the result cannot be printed.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.limit {
        return limit(args);
    }
    let scope = match args.tree {
        true => Scope::Tree,
        false => Scope::Process,
    };
    if let Some(path) = &args.save {
        destination::check(path)?;
    }
    let (document, code) = match args.pid {
        Some(pid) => {
            let progress = Progress::new();
            progress.show("Reading the heaps");
            let found = match args.apart {
                Some(apart) => {
                    interrupt::install()?;
                    twice(pid, scope, apart, args.leaks)
                }
                None => running(pid, scope, args.leaks),
            };
            progress.finish();
            (found?, ExitCode::SUCCESS)
        }
        None => {
            interrupt::install()?;
            let wanted = Wanted {
                leaks: args.leaks,
                touched: args.touched,
            };
            match args.stacks.run(&args.launch()?, wanted) {
                Ok(ran) => (
                    ran.document,
                    status::exit_code(ran.ending, ExitCode::SUCCESS),
                ),
                Err(error) => return status::failed_to_start(error),
            }
        }
    };
    if let Some(path) = &args.save {
        destination::write(path, &serde_json::to_vec(&document)?)?;
    }
    if !args.stacks.is_to_standard_output() {
        terminal::present(&document, args.json, text::memory::render)?;
    }
    args.stacks.export(&document)?;
    Ok(code)
}

fn limit(args: &Args) -> Result<ExitCode> {
    interrupt::install()?;
    let launch = Launch {
        input: Input::Null,
        output: Output::Null,
        ..args.launch()?
    };
    let progress = Progress::new();
    let found = smallest(&launch, &progress.listener());
    progress.finish();
    terminal::present(&found?, args.json, text::memory_limit::render)?;
    Ok(ExitCode::SUCCESS)
}

impl Args {
    /// The program, its output apart from ours.
    fn launch(&self) -> Result<Launch> {
        let launch = Launch::from_command(&self.command).context("say which program to run")?;
        Ok(Launch {
            output: Output::Stderr,
            ..launch
        })
    }
}
