//! `pagewise diff`: what differs between two recordings of the same kind.

mod faults;
mod label;

use crate::fault_paths::{Opened, Trace, open};
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use pagewise_model::fault_paths::FaultPaths;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise diff redis/trace.txt.zst tpcc/trace.txt.zst   two workloads
  pagewise diff before.dat after.dat --json              two kernels
  pagewise diff --labels old,new before.txt after.txt    with names for both
  pagewise diff a.json b.json                            two finished results";

const LONG_ABOUT: &str = "\
Say what differs between two recordings

A and B are function_graph traces (text of the kernel or of trace-cmd report, or trace.dat; also
packed by gzip or zstd), or results of pagewise report --json on such traces. Differences of the
kinds of faults, their paths, layers and functions are tested together: the chance that anything
at all is called different in two traces that are alike is 1 %. Faults that follow one another are
alike, so blocks of faults are compared, not single faults. Two runs of one program also differ:
what is found is a difference of the runs, whatever its cause.

Latencies are corrected for what tracing cost; raw ones stand beside them.";

/// Options of `pagewise diff`.
#[derive(ClapArgs, Debug)]
#[command(long_about = LONG_ABOUT)]
pub struct Args {
    /// The first recording; - is standard input
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The second recording, of the same kind; changes are B minus A
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Print JSON (docs/schema/fault-diff.json)
    #[arg(long)]
    json: bool,

    /// Also write an HTML page
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,

    /// What to call A and B (by default what differs in their paths)
    #[arg(long, value_name = "A,B", value_parser = label::pair)]
    labels: Option<(String, String)>,

    /// A trace of A's workload with the fault's root function alone, to measure what tracing
    /// itself cost; given twice, the second is B's, else A's cost is taken for both
    #[arg(long, value_name = "TRACE")]
    calibrate: Vec<PathBuf>,

    /// Seed of the random exchanges and resamples
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

/// What can be compared.
enum Recording {
    Trace(Trace),
    Result(Box<FaultPaths>),
}

/// Compares both recordings.
///
/// # Errors
/// When one can't be read, is of no known kind, or of another kind than the other.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.a == Path::new("-") && args.b == Path::new("-") {
        bail!("standard input can be one of both recordings, not both");
    }
    if args.calibrate.len() > 2 {
        bail!("--calibrate goes with A and with B: at most twice");
    }
    let labels = match &args.labels {
        Some(labels) => labels.clone(),
        None => label::from_paths(&args.a, &args.b),
    };
    let recordings = (read(&args.a)?, read(&args.b)?);
    let diff = match recordings {
        (Recording::Trace(a), Recording::Trace(b)) => faults::traces(a, b, args, &labels)?,
        (Recording::Result(a), Recording::Result(b)) => faults::results(&a, &b, args, &labels)?,
        (Recording::Trace(trace), Recording::Result(b)) => {
            let (a, _) = crate::fault_paths::findings(trace, None)?;
            faults::results(&a, &b, args, &labels)?
        }
        (Recording::Result(a), Recording::Trace(trace)) => {
            let (b, _) = crate::fault_paths::findings(trace, None)?;
            faults::results(&a, &b, args, &labels)?
        }
    };
    let words = pagewise_report::fault_diff::render(&diff, crate::terminal::width());
    let text = match args.json {
        true => &pagewise_report::fault_diff::to_json(&diff)?,
        false => &words,
    };
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    if let Some(path) = &args.output {
        let page = pagewise_report::html::render_fault_diff(&diff, &words)?;
        std::fs::write(path, page).with_context(|| format!("cannot write {}", path.display()))?;
        eprintln!("The page is {}", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Recording> {
    let name = path.display();
    match open(path)? {
        Opened::Trace(trace) => Ok(Recording::Trace(trace)),
        Opened::Other(input) => result(input).with_context(|| format!("cannot compare {name}")),
    }
}

/// A result of `pagewise report --json`.
fn result(input: Box<dyn Read + Send>) -> Result<Recording> {
    // A wrong file may be large; a result begins with its brace.
    let (head, mut input) = crate::input::peek(input, 64)?;
    if !head.trim_ascii_start().starts_with(b"{") {
        bail!("it is neither a function_graph trace nor a result of pagewise report --json on one");
    }
    let mut text = String::new();
    input
        .read_to_string(&mut text)
        .context("it is not UTF-8 text")?;
    let value: serde_json::Value = serde_json::from_str(&text).context("it is not JSON")?;
    match value["kind"].as_str() {
        Some("fault_paths") => {}
        Some(kind) => bail!("results of the kind \"{kind}\" can't be compared: fault_paths can"),
        None => bail!("this JSON does not say what kind of result it is (\"kind\")"),
    }
    let version = value["schema_version"].as_u64();
    if version != Some(u64::from(pagewise_model::fault_paths::SCHEMA_VERSION)) {
        bail!(
            "its schema_version is {}, this pagewise reads {}: report on the trace again",
            version.map_or("missing".to_owned(), |version| version.to_string()),
            pagewise_model::fault_paths::SCHEMA_VERSION
        );
    }
    let found = serde_json::from_value(value).context("not a whole result of pagewise report")?;
    Ok(Recording::Result(Box::new(found)))
}
