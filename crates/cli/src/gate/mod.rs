//! `pagewise gate`: fails a build that takes more page faults, memory or time than the one before.

mod words;

use crate::progress::Progress;
use crate::terminal;
use anyhow::{Result, bail};
use clap::ArgGroup;
use pagewise_compare::gate::Allowances;
use pagewise_linux::process::{Output, interrupt};
use pagewise_model::answer::Document;
use pagewise_model::gate::Gate;
use pagewise_model::quantity::counted;
use pagewise_operate::destination;
use pagewise_operate::experiment::SavedInput;
use pagewise_operate::gate::{self, Request, Runner, against, against_stored};
use pagewise_report::gate::{junit, markdown};
use pagewise_report::{json, text};
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use words::Words;

/// Exit status if no decision was possible.
const ERROR: u8 = 2;

pub const EXAMPLES: &str = "\
Examples:
  pagewise gate --against './old/app in.dat' -- ./new/app in.dat
  pagewise gate --save base.json -- ./app in.dat      store what is normal
  pagewise gate --baseline base.json -- ./app in.dat  compare with that later
  pagewise gate --baseline base.json --allow 5% -- ./app in.dat
  pagewise gate --baseline base.json --allow faults=1%,elapsed=off -- ./app
  pagewise gate --against ./old --junit gate.xml --markdown gate.md -- ./new

Exit status: 0 nothing grew, 1 something grew beyond what is allowed, 2 error.";

/// Fail a build that needs more page faults, memory or time than the previous one
///
/// Runs the old and the new command up to six times each, in random order, and compares page faults,
/// peak resident memory, CPU time in the kernel, CPU time and elapsed time. It fails only if growth
/// beyond the allowance is certain: of a hundred gates on equal programs at most five fail, even on a
/// busy machine. It stops as soon as no further run could make it fail. When it fails, it runs each
/// side once more under observation and names the cause of the faults and the stack that grew.
#[derive(clap::Args, Debug)]
#[command(group = ArgGroup::new("old").required(true).args(["against", "baseline", "save"]))]
pub struct Args {
    /// The old command, quoted; it is split into words as a shell would do it, but no shell runs it
    #[arg(long, value_name = "OLD CMD")]
    against: Option<Words>,

    /// Runs that --save stored; times are compared only on the same idle machine
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Run the command and store its figures for --baseline
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Allowed growth, for all figures or by name: faults, major, peak, system, cpu, elapsed
    /// (off: any growth) [default: 2% of faults and memory, 5% of times]
    #[arg(long, value_name = "N%|NAME=N%,…", conflicts_with = "save")]
    allow: Option<Allowances>,

    /// Maximum number of runs per side; fewer than 5 cannot decide all six figures
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(3..=100))]
    pairs: u32,

    /// Also accept commands that exit with a status other than 0, the same each time
    #[arg(short, long)]
    ignore_failure: bool,

    /// Send the commands' output to standard error instead of /dev/null
    #[arg(long)]
    show_output: bool,

    /// Print the result as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,

    /// Also write a JUnit report with one test case per figure
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    junit: Option<PathBuf>,

    /// Also write a comment for a pull request, in Markdown
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    markdown: Option<PathBuf>,

    /// Seed for the order of runs, to repeat it [default: random]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// The new command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs both sides and decides. Errors end with status 2, so that CI can distinguish them from
/// growth.
///
/// # Errors
/// None.
pub fn run(args: &Args) -> Result<ExitCode> {
    Ok(match answer(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            terminal::tell(&format!("pagewise: {error:#}"));
            ExitCode::from(ERROR)
        }
    })
}

/// Whether nothing grew.
fn answer(args: &Args) -> Result<bool> {
    interrupt::install()?;
    // Checked early, so that a wrong path does not cost the runs.
    for path in [&args.save, &args.junit, &args.markdown]
        .into_iter()
        .flatten()
    {
        destination::check(path)?;
    }
    let input = SavedInput::take(terminal::tell)?;
    let request = args.request(&input);
    let progress = Progress::new();
    if let Some(file) = &args.save {
        return store(&request, file, &progress);
    }
    let gate = match (&args.against, &args.baseline) {
        (Some(old), _) => against(&old.0, &request, &progress.listener())?,
        (None, Some(file)) => against_stored(file, &request, &progress.listener())?,
        (None, None) => bail!("give --against 'OLD CMD' or --baseline FILE"),
    };
    progress.finish();
    deliver(args, &gate)?;
    Ok(gate.evidence.passed)
}

/// Stores the command's normal figures.
fn store(request: &Request, file: &Path, progress: &Progress) -> Result<bool> {
    let count = request.pairs;
    let (baseline, missing) = gate::measure(
        &request.command,
        &request.runner,
        count,
        &progress.listener(),
    )?;
    progress.finish();
    destination::write(file, json::to_string(&baseline)?.as_bytes())?;
    let runs = counted(count.into(), "run");
    terminal::tell(&format!("{runs} stored in {}", file.display()));
    if let Some(missing) = missing {
        terminal::tell(&format!("Where it faults was not stored: {missing}"));
    }
    Ok(true)
}

impl Args {
    fn request(&self, input: &SavedInput) -> Request {
        Request {
            command: self.command.clone(),
            runner: Runner {
                input: input.input(),
                output: match self.show_output {
                    true => Output::Stderr,
                    false => Output::Null,
                },
                ignore_failure: self.ignore_failure,
            },
            pairs: self.pairs,
            allowances: self.allow.clone().unwrap_or_default(),
            seed: self.seed(),
        }
    }

    /// The given seed, or a random one: the error rates hold for orders drawn at random.
    fn seed(&self) -> u64 {
        // JSON numbers are exact to 2^53.
        self.seed
            .unwrap_or_else(|| RandomState::new().hash_one(std::process::id()) >> 11)
    }
}

fn deliver(args: &Args, gate: &Document<Gate>) -> Result<()> {
    let write = |path: &Option<PathBuf>, content: fn(&Document<Gate>) -> String| match path {
        Some(path) => destination::write(path, content(gate).as_bytes()),
        None => Ok(()),
    };
    write(&args.junit, junit)?;
    write(&args.markdown, markdown)?;
    let answer = match args.json {
        true => json::to_string(gate)?,
        false => text::gate::render(gate, terminal::width(), terminal::style()),
    };
    let mut out = terminal::output(args.json);
    let printed = out.write_all(answer.as_bytes()).and_then(|()| out.flush());
    match printed {
        // A reader that closes the pipe early does not change the result.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}
