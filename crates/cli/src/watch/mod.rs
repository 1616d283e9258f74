//! `pagewise watch`: a process tree's faults, memory and CPU time, live and as a table.
//!
//! A descendant of findfault.sh (Ezolt, "A Study in Malloc", 2001), which printed sizes and fault
//! counts with `ps` each second until a graph of them showed the pattern: ever-rising against flat.

mod metrics;
mod rows;
#[cfg(feature = "screen")]
mod screen;
mod summary;

use crate::duration;
use crate::status;
use anyhow::Context;
use clap::Args as ClapArgs;
use metrics::Exporter;
use pagewise_linux::proc::SHORTEST_INTERVAL;
use pagewise_linux::process::{Launch, interrupt};
use pagewise_model::answer;
use pagewise_operate::watch::{End, Reading, Subject, Whom, follow, sample};
use rows::Rows;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise watch -- ./simulate input.dat            a command and its children
  pagewise watch -p 4242                            a running process
  pagewise watch -p 4242,4243                       two, as one sum
  pagewise watch -p 4242 -o run.csv                 the same, into a file too
  pagewise watch -p 4242 --duration 10s | column -ts,  without a terminal
  pagewise watch -o run.parquet -- make             for DuckDB, Spark or pandas
  pagewise watch -p 4242 --metrics :9101            for Prometheus, at /metrics

Keys of the live view: q quit, space pause, + and - zoom, ←/→ scroll, f faults
per second or in total, t table of processes, ? help.";

/// Options of `pagewise watch`.
#[derive(ClapArgs, Debug)]
#[command(
    override_usage = "pagewise watch [OPTIONS] -p <PID>\n       pagewise watch [OPTIONS] -- <COMMAND>..."
)]
pub struct Args {
    /// Processes to watch, with all their descendants (comma-separated).
    #[arg(short, long, value_name = "PID", value_delimiter = ',', required_unless_present = "command",
          conflicts_with = "command", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,
    /// Time between readings, at least 10ms; widened automatically if readings cost more than 1 %
    /// of a CPU.
    #[arg(long, default_value = "100ms", value_parser = interval, value_name = "TIME")]
    interval: Duration,
    /// Stop after this time; a command that was started is then terminated.
    #[arg(long, value_parser = duration::parse, value_name = "TIME")]
    duration: Option<Duration>,
    /// Write every point as comma-separated values; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write every point to a Parquet file.
    #[arg(long, value_name = "FILE")]
    parquet: Option<PathBuf>,
    /// Print every point as one line of JSON (schema: pagewise help schema.json) instead of the live view.
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Provide metrics for Prometheus instead of rows: in a file rewritten every second, such as
    /// DIR/NAME.prom for node_exporter, or over HTTP at :PORT, or at ADDRESS:PORT for other hosts.
    #[arg(long, value_name = "FILE|:PORT", value_parser = metrics::target)]
    metrics: Option<metrics::Target>,
    /// With --metrics, how often to look inside the process, for two seconds each: causes of
    /// faults, where the time goes, findings. 0 means never.
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = look, requires = "metrics")]
    look: Duration,
    /// Write every point to this file: Parquet if its name ends in .parquet, lines of JSON with
    /// --json, otherwise comma-separated values
    #[arg(short, long, value_name = "FILE", conflicts_with_all = ["csv", "parquet"])]
    output: Option<PathBuf>,
    /// Where the command's own output goes while the live view or a table uses the terminal; its
    /// input is then empty [default: a file in the user's cache folder, named at the end].
    #[arg(long, value_name = "FILE", requires = "command")]
    command_output: Option<PathBuf>,
    /// Command to start and watch.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Watches until the processes end, the time is up, or the user quits.
///
/// # Errors
/// If the command cannot be started, the process does not exist, or a file cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    interrupt::install()?;
    let live = wants_screen(args);
    let rows = Rows::open(args, live)?;
    let redirect = live || rows.take_standard_output();
    let subject = match args.whom(redirect).and_then(Subject::start) {
        Ok(subject) => subject,
        Err(error) => {
            rows.abandon(args);
            return status::failed_to_start(error);
        }
    };
    let exporter = args.metrics.as_ref().map(|target| {
        let look = Some(args.look).filter(|look| !look.is_zero());
        Exporter::start(target, &subject.processes(), look)
    });
    let exporter = match exporter.transpose() {
        Ok(exporter) => exporter,
        Err(error) => {
            subject.end(Some(End::Asked));
            rows.abandon(args);
            return Err(error);
        }
    };
    let mut sinks = Sinks {
        rows,
        exporter,
        subject: subject.named(),
    };
    let (sampler, readings) = sample(&subject, args.interval);
    let watched = match live {
        #[cfg(feature = "screen")]
        true => screen::show(
            subject.name(),
            subject.pid(),
            &readings,
            &mut sinks,
            args.duration,
        ),
        _ => follow(&readings, |reading| sinks.take(reading), args.duration),
    };
    let timeline = sampler.stop();
    let rest = readings.try_iter().try_for_each(|last| sinks.take(&last));
    let ending = subject.end(watched.as_ref().ok().copied());
    summary::print(&timeline, &ending);
    watched?;
    rest.and_then(|()| sinks.rows.finish())?;
    Ok(status::shell(ending.status()))
}

impl Args {
    /// The file for comma-separated values.
    fn csv(&self) -> Option<&Path> {
        let named = self.output.as_deref();
        let named = named.filter(|path| !self.json && !is_parquet(path));
        self.csv.as_deref().or(named)
    }

    /// The Parquet file.
    fn parquet(&self) -> Option<&Path> {
        let named = self.output.as_deref();
        let named = named.filter(|path| !self.json && is_parquet(path));
        self.parquet.as_deref().or(named)
    }

    /// The file for lines of JSON; `None` to print them.
    fn json_lines(&self) -> Option<&Path> {
        self.output.as_deref().filter(|_| self.json)
    }

    /// The subject to watch; a program's output is redirected if necessary.
    fn whom(&self, redirect: bool) -> anyhow::Result<Whom> {
        let processes = self.pid.clone();
        if !processes.is_empty() {
            return Ok(Whom::Processes(processes));
        }
        Ok(Whom::Program {
            launch: Launch::from_command(&self.command).context("no command was given after --")?,
            output: self.command_output.clone(),
            redirect,
        })
    }
}

fn is_parquet(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension == "parquet")
}

/// An interval that is long enough for the kernel's counters.
fn interval(text: &str) -> Result<Duration, String> {
    let interval = duration::parse(text)?;
    match interval >= SHORTEST_INTERVAL {
        true => Ok(interval),
        false => Err("the kernel counts CPU time in steps of 10 ms: use 10ms or more".to_string()),
    }
}

/// Time between looks inside.
fn look(text: &str) -> Result<Duration, String> {
    match text {
        "0" => Ok(Duration::ZERO),
        text => duration::parse(text),
    }
}

/// Everything that receives readings.
struct Sinks {
    rows: Rows,
    exporter: Option<Exporter>,
    subject: answer::Subject,
}

impl Sinks {
    fn take(&mut self, reading: &Reading) -> anyhow::Result<()> {
        if let Some(exporter) = &mut self.exporter {
            exporter.take(reading)?;
        }
        self.rows.write(&reading.point, &self.subject)
    }
}

/// A live view needs a terminal that nothing else writes to.
fn wants_screen(args: &Args) -> bool {
    let csv_takes_it = args.csv().is_some_and(rows::is_standard_output);
    let wants = std::io::stdout().is_terminal() && !args.json && !csv_takes_it;
    if wants && !cfg!(feature = "screen") {
        eprintln!(
            "pagewise: this build has no live view (built without the feature `screen`); a table follows"
        );
    }
    wants && cfg!(feature = "screen")
}
