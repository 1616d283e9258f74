//! Captures the kernel's paths through page faults with function_graph while they happen.

mod choice;
mod cost;
mod ended;
mod output;
mod reading;
mod schedule;
mod session;
mod stretches;
mod subject;

pub use session::capture;
pub use subject::Subject;

use anyhow::Context;
use pagewise_linux::process::Finished;
use pagewise_linux::tracefs::capture::Capture;
use pagewise_linux::tracefs::guard::{self, Recovered};
use pagewise_linux::tracefs::{Error, Tracefs};
use pagewise_model::capture_summary::CaptureSummary;
use pagewise_model::units::Bytes;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

/// What is captured, the output file, and the settings of the tracer.
#[derive(Clone, Debug)]
pub struct Request {
    /// Processes whose faults are captured.
    pub subject: Subject,
    /// The file; compressed if its name ends in `.zst`.
    pub output: PathBuf,
    /// Duration; without one, until the program ends or the user stops it.
    pub duration: Option<Duration>,
    /// Duration of the first phase, which finds the functions called in faults; zero traces all.
    pub survey: Duration,
    /// Whether the cost of tracing is measured.
    pub calibrates: bool,
    /// Whether task switches, lock waits and addresses are recorded too.
    pub events: bool,
    /// Further root functions to trace.
    pub roots: Vec<String>,
    /// Maximum levels of calls; 0 means no limit.
    pub depth: u32,
    /// The kernel's buffer for each CPU.
    pub buffer: Option<Bytes>,
    /// Size of the file at which tracing stops.
    pub max_size: Bytes,
    /// Whether to override settings of another tracer.
    pub forced: bool,
}

/// Result of a capture.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Summary of the capture.
    pub summary: CaptureSummary,
    /// The program's end, if it was started here.
    pub finished: Option<Finished>,
}

/// The tracefs of a kernel with function_graph, or the reason why there is none, with a remedy.
///
/// # Errors
/// The reason, for the user.
pub fn tracer() -> Result<Tracefs, String> {
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

/// How to trace paths if this kernel can't.
const OTHER_KERNEL: &str = "To trace paths, use a kernel with CONFIG_FUNCTION_GRAPH_TRACER (those \
    of Debian, Fedora and Ubuntu have it), or tests/qemu/guest of Pagewise's sources, which runs a \
    program under one by emulation: pagewise help tracing";

/// Restores what a killed capture has left behind; `None` if there was nothing.
///
/// # Errors
/// If the state cannot be read or restored.
pub fn restore() -> anyhow::Result<Option<Recovered>> {
    let tracefs = Tracefs::find().context("cannot look for what a trace left behind")?;
    Ok(guard::recover(&tracefs.control(), &guard::usual_folder())?)
}

/// What was restored after a kill, in words.
#[must_use]
pub fn recovered(recovered: &Recovered) -> String {
    let mut text = format!(
        "an earlier trace (process {}) was killed: restored {} and removed {}",
        recovered.owner,
        plural(recovered.files, "setting"),
        plural(recovered.instances, "instance"),
    );
    for difference in &recovered.differences {
        text += &format!("\n  not as before: {difference}");
    }
    text
}

/// `1 setting`, `2 settings`.
fn plural<T: Copy + PartialEq + From<u8> + std::fmt::Display>(count: T, what: &str) -> String {
    let ending = if count == T::from(1) { "" } else { "s" };
    format!("{count} {what}{ending}")
}
