//! `pagewise gate`: fails a build that takes more page faults, memory or time than the one before.

mod culprit;
mod runs;
mod stored;
mod together;
mod words;

use crate::destination;
use crate::progress::Progress;
use crate::terminal;
use anyhow::{Context, Result, bail};
use clap::ArgGroup;
use pagewise_analyse::compare::Random;
use pagewise_analyse::gate::{Allowances, Terms, Turn, batch, judge, order};
use pagewise_linux::process::{Output, interrupt};
use pagewise_model::gate::{Gate, GateSide};
use pagewise_operate::experiment::SavedInput;
use pagewise_report::gate::{junit, markdown};
use pagewise_report::{json, text};
use runs::{Program, Runner};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use words::Words;

/// Status where nothing could be judged.
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

/// Fail a build that takes more page faults, memory or time than the one before
///
/// Runs the old and the new command up to six times each, in random order, and compares page faults,
/// peak resident memory, CPU time in the kernel, CPU time and elapsed time. It fails only where growth
/// beyond the allowance is sure: of a hundred gates on equal programs at most five fail, on a busy
/// machine too, and it stops as soon as no further run could make it fail. When it fails, it runs each
/// side once more under observation and names the cause of the faults and the stack that grew.
#[derive(clap::Args, Debug)]
#[command(group = ArgGroup::new("old").required(true).args(["against", "baseline", "save"]))]
pub struct Args {
    /// The old command, in quotes; it is split into words as a shell does, but no shell runs it
    #[arg(long, value_name = "OLD CMD")]
    against: Option<Words>,

    /// Runs that --save stored; times are compared only on the same idle machine
    #[arg(long, value_name = "FILE")]
    baseline: Option<PathBuf>,

    /// Run the command and store its figures for --baseline
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,

    /// Growth that is allowed, for all figures or by name: faults, major, peak, system, cpu, elapsed
    /// (off: any growth) [default: 2% of faults and memory, 5% of times]
    #[arg(long, value_name = "N%|NAME=N%,…", conflicts_with = "save")]
    allow: Option<Allowances>,

    /// Most runs of each side; fewer than 5 decide nothing for all six figures
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u32).range(3..=100))]
    pairs: u32,

    /// Also take commands that end with another status than 0, the same each time
    #[arg(short, long)]
    ignore_failure: bool,

    /// Let the commands write to our standard error instead of /dev/null
    #[arg(long)]
    show_output: bool,

    /// Print the result as JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,

    /// Also write a JUnit report, a test case for each figure
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    junit: Option<PathBuf>,

    /// Also write a comment for a pull request
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    markdown: Option<PathBuf>,

    /// Seed of the order of runs, to repeat one [default: drawn]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,

    /// The new command and its arguments
    #[arg(last = true, required = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Runs both sides and judges. Errors end with status 2, so that CI can tell them from growth.
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
    // A wrong path should not cost the runs.
    for path in [&args.save, &args.junit, &args.markdown]
        .into_iter()
        .flatten()
    {
        destination::check(path)?;
    }
    let input = SavedInput::take(terminal::tell)?;
    let runner = Runner {
        input: input.input(),
        output: match args.show_output {
            true => Output::Stderr,
            false => Output::Null,
        },
        ignore_failure: args.ignore_failure,
    };
    let progress = Progress::new();
    if let Some(file) = &args.save {
        stored::save(&args.command, &runner, args.pairs, file, &progress)?;
        return Ok(true);
    }
    let gate = match (&args.against, &args.baseline) {
        (Some(old), _) => of_two(args, &old.0, &runner, &progress)?,
        (None, Some(file)) => of_stored(args, file, &runner, &progress)?,
        (None, None) => bail!("give --against 'OLD CMD' or --baseline FILE"),
    };
    progress.finish();
    deliver(args, &gate)?;
    Ok(gate.passed)
}

/// Two commands in random order.
fn of_two(args: &Args, old: &[OsString], runner: &Runner, progress: &Progress) -> Result<Gate> {
    let pairs = args.pairs as usize;
    let terms = args.terms(BTreeMap::new(), (pairs, pairs))?;
    progress.show("first runs, not measured");
    let (old, typical) = runner.first(old).context("the old command")?;
    let (new, of_new) = runner.first(&args.command).context("the new command")?;
    let batch = batch(typical.min(of_new));
    let seed = args.seed();
    let (mut of_old, mut of_new) = (old.side(), new.side());
    for turn in order(pairs, &mut Random::seeded(seed)) {
        let runs = of_old.runs.len() + of_new.runs.len();
        progress.show(&format!("run {} of at most {}", runs + 1, 2 * pairs));
        let (program, side) = match turn {
            Turn::Old => (&old, &mut of_old),
            Turn::New => (&new, &mut of_new),
        };
        side.runs.push(runner.measure(program, batch)?);
        if !terms.is_open(&of_old.runs, &of_new.runs) {
            break;
        }
    }
    let mut gate = judge(&terms, of_old, of_new);
    (gate.batch, gate.seed) = (batch, seed);
    gate.notes.extend(old.notes().chain(new.notes()));
    if !gate.passed {
        progress.show("one more run of each side, observed");
        gate.culprit = Some(culprit::of_two(&gate, &old, &new, runner));
    }
    Ok(gate)
}

/// The command against runs that were stored.
fn of_stored(args: &Args, file: &Path, runner: &Runner, progress: &Progress) -> Result<Gate> {
    let baseline = stored::read(file)?;
    let stored = stored::Setting::begin(&baseline);
    progress.show("first run, not measured");
    let (new, _) = runner.first(&args.command)?;
    let mut of_new = new.side();
    let planned = (baseline.runs.len(), args.pairs as usize);
    let terms = args.terms(stored.barred(&new)?, planned)?;
    while terms.is_open(&baseline.runs, &of_new.runs) {
        let (run, most) = (of_new.runs.len() + 1, args.pairs);
        progress.show(&format!("run {run} of at most {most}"));
        of_new.runs.push(runner.measure(&new, baseline.batch)?);
    }
    let terms = args.terms(stored.barred(&new)?, planned)?;
    let of_old = GateSide {
        command: baseline.command.clone(),
        baseline: Some(file.display().to_string()),
        runs: baseline.runs.clone(),
    };
    let mut gate = judge(&terms, of_old, of_new);
    gate.batch = baseline.batch;
    gate.notes.extend(stored.warnings(&new));
    gate.notes.extend(new.notes());
    if !gate.passed {
        progress.show("one more run, observed");
        gate.culprit = Some(culprit::of_stored(&gate, &baseline, &new, runner));
    }
    Ok(gate)
}

impl Args {
    fn terms(
        &self,
        barred: BTreeMap<pagewise_model::gate::Metric, String>,
        planned: (usize, usize),
    ) -> Result<Terms> {
        let terms = Terms {
            allowances: self.allow.clone().unwrap_or_default(),
            barred,
            planned,
        };
        match terms.too_few() {
            Some(why) => bail!("{why} (--pairs)"),
            None => Ok(terms),
        }
    }

    /// The given seed, or one that nobody chose: the error rates hold for orders drawn at random.
    fn seed(&self) -> u64 {
        // JSON numbers are exact to 2^53.
        self.seed
            .unwrap_or_else(|| RandomState::new().hash_one(std::process::id()) >> 11)
    }
}

fn deliver(args: &Args, gate: &Gate) -> Result<()> {
    let write = |path: &Option<PathBuf>, content: fn(&Gate) -> String| match path {
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
        // A reader that has seen enough does not change the answer.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        printed => Ok(printed?),
    }
}

impl Program {
    /// Its side, without runs.
    fn side(&self) -> GateSide {
        GateSide {
            command: self.words(),
            baseline: None,
            runs: Vec::new(),
        }
    }
}
