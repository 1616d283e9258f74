//! `pagewise trace`: the paths that page faults take through the kernel, as they happen.
//!
//! [`live`] captures with function_graph; where that can't be had, [`fallback`] records the
//! faults' latencies without their paths. Both write a file that `pagewise report` opens.

mod choice;
mod cost;
mod fallback;
mod live;
mod output;
mod schedule;
mod stretches;
mod subject;
mod summary;
mod text;

use crate::duration;
use anyhow::{Context, bail};
use clap::Args;
use pagewise_analyse::tune::parse_size;
use pagewise_linux::process;
use pagewise_linux::tracefs::capture::Capture;
use pagewise_linux::tracefs::{Error, Tracefs, guard};
use pagewise_model::units::Bytes;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use subject::Subject;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples (as root):
  pagewise trace -- ./simulate input.dat      one run, with all its children
  pagewise trace -p 4242 --duration 10s       a running process for ten seconds
  pagewise trace -p 4242 -- ./benchmark       a process during a benchmark
  pagewise trace -o t.zst -- ./simulate       a compressed trace
  pagewise trace --restore                    clean up after a killed trace
  pagewise report trace.txt                   what a trace shows";

/// Trace the kernel's paths through page faults
///
/// Graphs what the kernel calls to handle each fault, with the time of every call, by its
/// function_graph tracer; waits for the address space's lock, task switches and the faults'
/// addresses are in the same text. Needs root. A first, short phase finds the functions that the
/// program's faults meet; the rest of the run traces those that take time. Now and then the
/// faults are traced without what is inside them, which tells what the tracing itself costs:
/// pagewise report corrects for it. Every setting of the tracer is put back at the end, on
/// errors, on Ctrl-C, and after a kill by the next start. Where the kernel can't graph functions,
/// each fault's latency is recorded instead. The exit status is the program's, 0 where --duration
/// ended it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct TraceArgs {
    /// Trace running processes, with their threads and children (commas between several); with a
    /// command, while that runs
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,

    /// Trace every process on this machine; with a command, while that runs
    #[arg(short, long, conflicts_with = "pid")]
    all: bool,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "CMD", required_unless_present_any = ["pid", "all", "restore"])]
    command: Vec<OsString>,

    /// File to write; compressed if it ends in .zst [default: trace.txt]
    ///
    /// One that exists is kept as FILE.old.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    /// Stop after this time, such as 10s or 500ms; a program started by trace is ended then
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,

    /// How long the first phase looks for the functions that the faults meet; 0s traces all that
    /// may matter for the whole run
    #[arg(long, value_name = "TIME", default_value = "500ms", value_parser = duration::parse)]
    survey: Duration,

    /// Do not measure what tracing costs: about a ninth of the time goes into that, and the
    /// faults in it have no path
    #[arg(long)]
    no_calibration: bool,

    /// Leave out task switches, lock waits and faults' addresses
    #[arg(long)]
    no_events: bool,

    /// Also trace from this kernel function (may be given several times)
    #[arg(long, value_name = "NAME")]
    function: Vec<String>,

    /// How many levels of calls to trace; 0 is no limit
    #[arg(long, value_name = "LEVELS", default_value_t = 0)]
    depth: u32,

    /// The kernel's buffer for each CPU, such as 64M [default: 32M, at most a tenth of what
    /// memory is available, over all CPUs]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    buffer: Option<u64>,

    /// Stop tracing when the file has this size; the program runs on
    #[arg(long, value_name = "SIZE", value_parser = size, default_value = "4G")]
    max_size: u64,

    /// Trace although settings or events of another tracer are left in the kernel; settings are
    /// put back, events in its buffer are lost
    #[arg(long)]
    force: bool,

    /// Fail where the kernel can't graph functions, rather than record latencies without paths
    #[arg(long)]
    no_fallback: bool,

    /// Put back what a trace that was killed has left behind, and do nothing else
    #[arg(long, conflicts_with_all = ["pid", "all", "command"])]
    restore: bool,

    /// Say nothing but errors
    #[arg(short, long)]
    quiet: bool,
}

/// Traces, and returns the program's own status.
///
/// # Errors
/// When the tracer is in use, the program could not be started, or nothing could be recorded.
pub fn run(args: &TraceArgs) -> anyhow::Result<ExitCode> {
    if args.restore {
        return restore();
    }
    let outcome = match tracer() {
        Ok(tracefs) => live::trace(&tracefs, args),
        Err(reason) if args.no_fallback => bail!("{reason}"),
        Err(reason) => fallback::record(&reason, args),
    };
    outcome.or_else(|error| match error.downcast_ref::<process::Error>() {
        Some(failed) => {
            writeln!(io::stderr(), "pagewise: {failed}")?;
            Ok(ExitCode::from(failed.shell_status()))
        }
        None => Err(error),
    })
}

/// The tracefs of a kernel that graphs functions, or why there is none, with the way to it.
fn tracer() -> Result<Tracefs, String> {
    let tracefs = Tracefs::find().map_err(|error| format!("{error}. Run as root."))?;
    match Capture::is_possible(&tracefs) {
        Ok(()) => Ok(tracefs),
        Err(Error::Control { path, cause, .. })
            if cause.kind() == io::ErrorKind::PermissionDenied =>
        {
            Err(format!(
                "{} is closed to this user. Run as root.",
                path.display()
            ))
        }
        Err(error) => Err(format!("{error}. {OTHER_KERNEL}")),
    }
}

/// Where paths can be traced when this kernel can't.
const OTHER_KERNEL: &str = "To trace paths, use a kernel with CONFIG_FUNCTION_GRAPH_TRACER (those \
    of Debian, Fedora and Ubuntu have it), or tests/qemu/guest of Pagewise's sources, which runs a \
    program under one by emulation: pagewise help tracing";

impl TraceArgs {
    fn subject(&self) -> Subject {
        Subject::of(&self.pid, self.all, &self.command)
    }

    /// Where the trace goes, `usual` unless the user said.
    fn output(&self, usual: &str) -> PathBuf {
        self.output.clone().unwrap_or_else(|| usual.into())
    }

    fn say(&self, text: &str) {
        if !self.quiet {
            // Nobody to tell is no reason to stop.
            let _ = writeln!(io::stderr(), "pagewise: {text}");
        }
    }
}

/// Cleans up after a trace that was killed.
fn restore() -> anyhow::Result<ExitCode> {
    let tracefs = Tracefs::find().context("cannot look for what a trace left behind")?;
    let recovered = guard::recover(&tracefs.control(), &guard::usual_folder())?;
    let mut err = io::stderr().lock();
    match recovered {
        None => writeln!(
            err,
            "pagewise: no trace was killed: there is nothing to put back"
        )?,
        Some(recovered) => {
            writeln!(err, "pagewise: {}", summary::recovered(&recovered))?;
            if !recovered.differences.is_empty() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn size(text: &str) -> Result<u64, String> {
    match parse_size(text) {
        Some(Bytes(0)) | None => Err(format!("'{text}' is no size; write it like 64M or 2G")),
        Some(Bytes(bytes)) => Ok(bytes),
    }
}

/// Keeps an earlier file under another name.
fn keep_previous(path: &Path) {
    crate::record::keep_previous(path);
}
