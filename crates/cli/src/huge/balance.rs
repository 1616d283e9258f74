//! `pagewise huge balance`: builds and splits huge pages of a running program until its work costs
//! least, from outside the program and on a stock kernel.

use crate::duration::parse as duration;
use crate::status;
use crate::terminal;
use anyhow::{Result, bail};
use pagewise_linux::hugepages::progress::Progress;
use pagewise_linux::hugepages::system::Wish;
use pagewise_linux::process::{Launch, Output};
use pagewise_model::answer::Document;
use pagewise_model::balance::Balance;
use pagewise_model::units::Bytes;
use pagewise_operate::destination;
use pagewise_operate::huge::balance::{self, Limits, Request, Subject};
use pagewise_report::text::{huge_balance, huge_undo};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  pagewise huge balance -p 4242                        look: would they help?
  pagewise huge balance -p 4242 --apply --max-rss 4G   act, within this memory
  pagewise huge balance -- ./server                    start a program and act
  pagewise huge balance --prove --progress symbol:requests -- ./server
  pagewise huge balance --undo                         restore everything";

/// Build and split huge pages of a running program to make its work as cheap as possible
///
/// Measures the CPU time per unit of work while it tries different numbers of huge pages, and keeps
/// the best. Work is counted by what --progress names, otherwise by instructions where the machine
/// has hardware counters, otherwise by read and write calls. Needs no change to the program and no
/// system-wide switch; every change is noted in a journal before it is made, and verified in the
/// page map. A process that was not started here is only observed, unless --apply is given.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(group = clap::ArgGroup::new("subject").args(["pid", "cgroup", "command"]).multiple(false))]
pub struct Args {
    /// Running processes (comma-separated)
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,

    /// All processes of a cgroup: its folder, or its name below /sys/fs/cgroup
    #[arg(long, value_name = "GROUP")]
    cgroup: Option<PathBuf>,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,

    /// Act on processes that were not started here
    #[arg(long)]
    apply: bool,

    /// Only look, even at a program that is started here
    #[arg(long, conflicts_with = "apply")]
    dry_run: bool,

    /// Restore the original page sizes: of -p PID, or of every process with a journal
    #[arg(long, conflicts_with_all = ["apply", "dry_run", "command", "cgroup", "prove", "restore"])]
    undo: bool,

    /// What counts as work: file:PATH, symbol:NAME (a 64-bit variable), memory:0xADDRESS, calls
    #[arg(long, value_name = "COUNTER")]
    progress: Option<Progress>,

    /// Build no huge page that would take resident memory beyond this, such as 4G
    #[arg(long, value_name = "SIZE")]
    max_rss: Option<Bytes>,

    /// Maximum number of page size changes per second
    #[arg(long, value_name = "N", default_value = "1000", value_parser = positive)]
    max_actions: f64,

    /// Maximum CPU time of the controller, as a share of one CPU over 5 minutes
    #[arg(long, value_name = "PERCENT", default_value = "1%", value_parser = share)]
    max_cpu: f64,

    /// How the number of huge pages is chosen
    #[arg(long, value_enum, default_value = "min-cost")]
    controller: Choice,

    /// Time between readings
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    interval: Duration,

    /// Stop after this time; a program that was started here keeps running [default: 5s for a dry run]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// At the end, for half of --duration, alternate between base and huge pages in the running
    /// program and compare them
    #[arg(long, conflicts_with = "dry_run")]
    prove: bool,

    /// Restore page sizes at the end
    #[arg(long)]
    restore: bool,

    /// Start the program so that the kernel gives it huge pages only on request (Linux 6.18)
    #[arg(long, requires = "command")]
    only_ours: bool,

    /// Also set which page sizes faults allocate, for every program on the machine, while this command runs:
    /// 64K=always (always, madvise, inherit, never; Linux 6.8). Restored at the end
    #[arg(long, value_name = "SIZE=WHO", conflicts_with_all = ["undo", "dry_run"])]
    system: Vec<Wish>,

    /// Also write the report as one HTML file
    #[arg(short, long, value_name = "FILE", conflicts_with = "undo")]
    output: Option<PathBuf>,

    /// Print JSON (schema: pagewise help schema.json); the program's output goes to stderr
    #[arg(long)]
    json: bool,

    /// Print only the answer, no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Controllers by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Choice {
    /// Try different numbers and keep the one at which work costs least
    MinCost,
    /// As many as fit
    Always,
    /// None
    Never,
}

impl From<Choice> for balance::Choice {
    fn from(choice: Choice) -> Self {
        match choice {
            Choice::MinCost => Self::MinCost,
            Choice::Always => Self::Always,
            Choice::Never => Self::Never,
        }
    }
}

/// Runs the controller, or reverts the changes of an earlier one.
///
/// # Errors
/// If the machine does not allow it or the subject does not exist.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.undo {
        return undo(args);
    }
    let balanced = balance::balance(args.request()?, &terminal::progress(args.quiet))?;
    present(args, &balanced.found)?;
    Ok(match balanced.ending {
        Some(ending) => status::exit_code(ending, ExitCode::SUCCESS),
        None => ExitCode::SUCCESS,
    })
}

fn undo(args: &Args) -> Result<ExitCode> {
    let undone = balance::undo(&args.pid)?;
    terminal::present(&undone, args.json, huge_undo::render)?;
    Ok(
        match undone.evidence.processes.iter().any(|one| one.refused > 0) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        },
    )
}

impl Args {
    fn request(&self) -> Result<Request> {
        Ok(Request {
            subject: self.subject()?,
            acts: self.apply || !(self.dry_run || self.command.is_empty()),
            choice: self.controller.into(),
            progress: self.progress.clone(),
            limits: Limits {
                actions_per_second: self.max_actions,
                cpu_share: self.max_cpu,
            },
            max_rss: self.max_rss,
            interval: self.interval,
            duration: self.duration,
            prove: self.prove,
            restore: self.restore,
            system: self.system.clone(),
        })
    }

    fn subject(&self) -> Result<Subject> {
        if let Some(mut launch) = Launch::from_command(&self.command) {
            if self.json {
                launch.output = Output::Stderr;
            }
            return Ok(Subject::Program {
                launch: Box::new(launch),
                only_ours: self.only_ours,
            });
        }
        match (&self.cgroup, self.pid.as_slice()) {
            (Some(group), _) => Ok(Subject::Cgroup(group.clone())),
            (None, []) => {
                bail!("say what to balance: -p PID, --cgroup GROUP, or a command after --")
            }
            (None, pids) => Ok(Subject::Processes(pids.to_vec())),
        }
    }
}

fn present(args: &Args, found: &Document<Balance>) -> Result<()> {
    if let Some(path) = &args.output {
        let page = pagewise_report::html::render_huge_balance(found, &huge_balance::plain(found))?;
        destination::write(path, page.as_bytes())?;
        if !args.quiet {
            eprintln!("pagewise: the report is in {}", path.display());
        }
    }
    terminal::present(found, args.json, huge_balance::render)
}

fn positive(text: &str) -> Result<f64, String> {
    let digits = text.trim_end_matches("/s");
    match digits.parse::<f64>() {
        Ok(value) if value > 0.0 && value.is_finite() => Ok(value),
        _ => Err(format!("'{text}' is not a number of changes; example: 500")),
    }
}

fn share(text: &str) -> Result<f64, String> {
    match text.trim_end_matches('%').trim().parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 100.0 => Ok(value / 100.0),
        _ => Err(format!(
            "'{text}' is not a percentage up to 100; example: 1%"
        )),
    }
}
