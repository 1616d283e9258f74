//! `pagewise trace`: the paths that page faults take through the kernel, as they happen.
//!
//! Without function_graph, [`fallback`] records the faults' latencies without their paths. Both
//! write a file that `pagewise report` opens.

mod fallback;

use crate::duration;
use crate::export::tables;
use crate::report;
use crate::size;
use crate::status;
use crate::terminal;
use anyhow::bail;
use clap::Args;
use pagewise_linux::tracefs::Tracefs;
use pagewise_model::run::Ending;
use pagewise_model::units::Bytes;
use pagewise_operate::capture::{self, Captured, Request, Subject};
use pagewise_report::text::capture_summary;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples (as root):
  pagewise trace -- ./simulate input.dat      one run, with all its children
  pagewise trace -p 4242 --duration 10s       a running process for ten seconds
  pagewise trace -p 4242 -- ./benchmark       a process during a benchmark
  pagewise trace -o t.zst -- ./simulate       a compressed trace
  pagewise trace --export parquet -o tables -- ./simulate
                                              tables, for many hosts
  pagewise trace --restore                    clean up after a killed trace
  pagewise report trace.txt                   what a trace shows";

/// Trace the kernel's paths through page faults
///
/// Records what the kernel calls to handle each fault, and the time of every call, with its
/// function_graph tracer; waits for the address space's lock, task switches and the faults'
/// addresses are part of the same text. Needs root. A short first phase finds the functions that
/// the program's faults reach; the rest of the run traces those that take time. From time to time
/// faults are traced without the calls inside them, which measures what tracing itself costs;
/// pagewise report corrects for it. All tracer settings are restored at the end, on errors and on
/// Ctrl-C, and after a kill by the next start. Where the kernel cannot graph functions, each
/// fault's latency is recorded instead. The exit status is the program's, or 0 if --duration ended
/// it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct TraceArgs {
    /// Trace these running processes, with their threads and children (comma-separated); with a
    /// command, for as long as it runs
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,

    /// Trace every process on this machine; with a command, for as long as it runs
    #[arg(short, long, conflicts_with = "pid")]
    all: bool,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["pid", "all", "restore"])]
    command: Vec<OsString>,

    /// File to write; compressed if it ends in .zst [default: trace.txt]
    ///
    /// An existing file is kept as FILE.old.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    tables: tables::Options,

    /// Stop after this time, such as 10s or 500ms; a program started by trace is then terminated
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,

    /// How long the first phase looks for functions that faults reach; 0s traces everything that
    /// may matter throughout the run
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration::parse)]
    survey: Duration,

    /// Do not measure what tracing costs. Measuring takes about a ninth of the time, in which
    /// faults are recorded without their path
    #[arg(long)]
    no_calibration: bool,

    /// Leave out task switches, lock waits and faults' addresses
    #[arg(long)]
    no_events: bool,

    /// Also trace from this kernel function (can be repeated)
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    /// How many levels of calls to trace; 0 means no limit
    #[arg(long, value_name = "LEVELS", default_value_t = 0)]
    depth: u32,

    /// The kernel's buffer per CPU, such as 64M [default: 32M, over all CPUs at most a tenth of the
    /// available memory]
    #[arg(long, value_name = "SIZE", value_parser = size::positive)]
    buffer: Option<Bytes>,

    /// Stop tracing when the file reaches this size; the program continues
    #[arg(long, value_name = "SIZE", value_parser = size::positive, default_value = "4G")]
    max_size: Bytes,

    /// Trace even if another tracer has left settings or events in the kernel; settings are
    /// restored, events in its buffer are lost
    #[arg(long)]
    force: bool,

    /// Fail if the kernel cannot graph functions, instead of recording latencies without paths
    #[arg(long)]
    no_fallback: bool,

    /// Only restore what a killed trace left behind
    #[arg(long, conflicts_with_all = ["pid", "all", "command"])]
    restore: bool,

    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
}

/// Traces, and returns the program's own status.
///
/// # Errors
/// If the tracer is in use, the program could not be started, or nothing could be recorded.
pub fn run(mut args: TraceArgs) -> anyhow::Result<ExitCode> {
    if args.restore {
        return restore();
    }
    if args.tables.export.is_none() {
        return record(&args);
    }
    let folder = args.output.take().unwrap_or_default();
    let aside = tables::aside(&folder)?;
    let path = aside.path().join("recording");
    args.output = Some(path.clone());
    let code = record(&args)?;
    if path.exists() {
        report::write_tables(&path, &args.tables, &folder)?;
    }
    Ok(code)
}

/// Traces into a file.
fn record(args: &TraceArgs) -> anyhow::Result<ExitCode> {
    let outcome = match capture::tracer() {
        Ok(tracefs) => trace(&tracefs, args),
        Err(reason) if args.no_fallback => bail!("{reason}"),
        Err(reason) => fallback::record(&reason, args),
    };
    outcome.or_else(status::failed_to_start)
}

fn trace(tracefs: &Tracefs, args: &TraceArgs) -> anyhow::Result<ExitCode> {
    let say = terminal::progress(args.quiet);
    let Captured { summary, finished } = capture::capture(tracefs, &args.request(), &say)?;
    for line in capture_summary::lines(&summary) {
        say(&line);
    }
    let ending = finished.map_or(Ending::Running, |finished| finished.ending);
    Ok(status::exit_code(ending, ExitCode::SUCCESS))
}

impl TraceArgs {
    fn subject(&self) -> Subject {
        Subject::new(&self.pid, self.all, &self.command)
    }

    /// The path of the trace: `usual` unless the user gave one.
    fn output(&self, usual: &str) -> PathBuf {
        self.output.clone().unwrap_or_else(|| usual.into())
    }

    fn request(&self) -> Request {
        Request {
            subject: self.subject(),
            output: self.output("trace.txt"),
            duration: self.duration,
            survey: self.survey,
            calibrates: !self.no_calibration,
            events: !self.no_events,
            roots: self.function.clone(),
            depth: self.depth,
            buffer: self.buffer,
            max_size: self.max_size,
            forced: self.force,
        }
    }
}

/// Restores what a killed trace left behind.
fn restore() -> anyhow::Result<ExitCode> {
    let say = terminal::progress(false);
    let Some(recovered) = capture::restore()? else {
        say("no killed trace left anything behind: there is nothing to restore");
        return Ok(ExitCode::SUCCESS);
    };
    say(&capture::recovered(&recovered));
    Ok(match recovered.differences.is_empty() {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}
