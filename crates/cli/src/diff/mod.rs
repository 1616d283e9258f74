//! `pagewise diff`: the differences between two recordings of the same kind.

mod faults;
mod label;
mod memory;
mod observed;
mod profiles;

use crate::fault_paths::Trace;
use crate::open::{Opened, open, read_elsewhere};
use crate::profile_input;
use crate::{page, stored, terminal};
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use observed::Observed;
use pagewise_compare::run_diff::compare_paged;
use pagewise_model::answer::{Document, Kind};
use pagewise_model::fault_paths::FaultPaths;
use pagewise_model::memory::Memory;
use pagewise_model::paged_run::PagedRun;
use pagewise_report::text::Style;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise diff redis/trace.txt.zst tpcc/trace.txt.zst   two workloads
  pagewise diff before.dat after.dat --json              two kernels
  pagewise diff --labels old,new before.txt after.txt    with names for both
  pagewise diff slow.data fast.data -o diff.html         two hosts' samples
  pagewise diff before.folded after.folded               folded stacks, text
  pagewise diff a.json b.json                            results of --json
  pagewise diff ten.json eleven.json                     of memory --save
  pagewise diff x.data x.data --range-a 4s..5s --range-b rest
  pagewise diff a.data b.data --fail-if \"+10% fill\"  for CI: exit code 1";

pub const LONG_ABOUT: &str = "\
Show what differs between two recordings

A and B are recordings of samples (perf.data from pagewise or perf, perf script text, folded \
stacks). Their functions and stacks are compared, and the settings of the two hosts, which only \
recordings of pagewise contain. Two runs of a command from start to end are compared by the CPU \
time that each function took, however busy the machine was; two machines, or two periods of one \
recording, by CPU time per elapsed time. For processes observed for a while, and for inputs that \
do not say what they cover (folded stacks, text), shares of the samples are compared.

If both are whole runs of a command (pagewise doctor --record, record, doctor --json), the answer \
first says what changed for the user (time, page faults, memory), which cause of faults explains \
it, and which settings differ: those of the program (variables that allocators and runtimes read, \
limits) and those of the host.

Two results of pagewise run --json are compared by time, refaults, pages written and memory, and \
by budget, policy and store.

Two accounts of memory (pagewise memory --save) are compared row by row: what grew, by type or \
size of block, and by call stack where both runs were sampled (--stacks).

A and B may also be function_graph traces (text of the kernel or of trace-cmd report, or \
trace.dat), or results of pagewise report --json on such traces. All may be compressed by gzip or \
zstd. A few questions come first: how many faults, of which kinds, how long at the median, in the \
tail and on average. Only if an answer differs, by enough to matter, do paths, layers and \
functions explain it. For two traces that are alike, the chance that anything at all is called \
different is 1 %. Successive faults are correlated, so blocks of faults are compared, not single \
faults. Two runs of one program also differ: what is found is a difference between the runs, \
whatever its cause.

Latencies are corrected for what tracing cost; the raw ones are shown next to them.";

/// Options of `pagewise diff`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// The first recording; - is standard input
    #[arg(value_name = "A")]
    a: PathBuf,

    /// The second recording, of the same kind; changes are B minus A
    #[arg(value_name = "B")]
    b: PathBuf,

    /// Print JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,

    /// Also write an HTML page
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,

    /// Names for A and B [default: where their paths differ]
    #[arg(long, value_name = "A,B", value_parser = label::pair)]
    labels: Option<(String, String)>,

    /// A trace of A's workload with only the fault's root function, to measure what tracing itself
    /// cost; given twice, the second is for B, otherwise A's cost is used for both
    #[arg(long, value_name = "TRACE")]
    calibrate: Vec<PathBuf>,

    /// Event to compare, in recordings that have several [default: CPU time]
    #[arg(long, value_name = "NAME")]
    event: Option<String>,

    /// Compare shares of the busy time rather than amounts of it
    #[arg(long)]
    shares: bool,

    /// Period of A to compare, in seconds from its start, such as 4.2s..5.2s; or rest: all but B's
    /// period
    #[arg(long, value_name = "FROM..TO")]
    range_a: Option<profiles::Range>,

    /// Period of B to compare
    #[arg(long, value_name = "FROM..TO")]
    range_b: Option<profiles::Range>,

    /// Exit with status 1 if this function, callees included, grew (+) or shrank (-) by at least
    /// this much, beyond chance; can be repeated. For whole runs also page-faults, major-faults and
    /// peak-memory
    #[arg(long, value_name = "+N% FUNCTION", allow_hyphen_values = true)]
    fail_if: Vec<profiles::Limit>,

    /// Seed for random permutations and resampling
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

impl Args {
    /// Whether parts of the recordings are compared.
    fn is_of_stretches(&self) -> bool {
        self.range_a.is_some() || self.range_b.is_some()
    }
}

/// What can be compared.
enum Recording {
    Trace(Trace),
    Result(Box<FaultPaths>),
    Paged(Box<Document<PagedRun>>),
    Memory(Box<Document<Memory>>),
    Observed(Observed),
}

/// Compares both recordings.
///
/// # Errors
/// If one can't be read, is of an unknown kind, or of a different kind than the other.
pub fn run(args: &Args) -> Result<ExitCode> {
    if args.a == Path::new("-") && args.b == Path::new("-") {
        bail!("standard input can be one of the two recordings, not both");
    }
    if args.calibrate.len() > 2 {
        bail!("--calibrate is for A and for B: at most twice");
    }
    let labels = match &args.labels {
        Some(labels) => labels.clone(),
        None => label::from_paths(&args.a, &args.b),
    };
    let recordings = (read(&args.a)?, read(&args.b)?);
    if let (Recording::Observed(a), Recording::Observed(b)) = &recordings {
        return observed::run(a, b, args, &labels);
    }
    if let (Recording::Paged(a), Recording::Paged(b)) = &recordings {
        return observed::show(&compare_paged((a, &labels.0), (b, &labels.1)), args);
    }
    if let (Recording::Memory(a), Recording::Memory(b)) = &recordings {
        return memory::run(a, b, args);
    }
    only_for_profiles(args)?;
    let diff = match recordings {
        (Recording::Paged(_), _) | (_, Recording::Paged(_)) => {
            bail!("one is a run inside a memory budget (pagewise run --json), the other is not")
        }
        (Recording::Memory(_), _) | (_, Recording::Memory(_)) => {
            bail!("one is an account of memory (pagewise memory --save), the other is not")
        }
        (Recording::Observed(_), _) | (_, Recording::Observed(_)) => {
            bail!("one is a recording of samples, the other a trace of fault paths")
        }
        (Recording::Trace(a), Recording::Trace(b)) => faults::traces(a, b, args, &labels)?,
        (Recording::Result(a), Recording::Result(b)) => faults::results(&a, &b, args, &labels)?,
        (Recording::Trace(trace), Recording::Result(b)) => {
            let a = crate::fault_paths::findings(trace, None)?.report;
            faults::results(&a, &b, args, &labels)?
        }
        (Recording::Result(a), Recording::Trace(trace)) => {
            let b = crate::fault_paths::findings(trace, None)?.report;
            faults::results(&a, &b, args, &labels)?
        }
    };
    terminal::present(&diff, args.json, pagewise_report::fault_diff::render)?;
    if let Some(path) = &args.output {
        let words = pagewise_report::fault_diff::render(&diff, 100, Style::PLAIN);
        let page = pagewise_report::html::render_fault_diff(&diff, &words)?;
        page::write(path, &page)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn only_for_profiles(args: &Args) -> Result<()> {
    let given = [
        ("--event", args.event.is_some()),
        ("--shares", args.shares),
        ("--range-a", args.range_a.is_some()),
        ("--range-b", args.range_b.is_some()),
        ("--fail-if", !args.fail_if.is_empty()),
    ];
    refuse(
        &given,
        "goes with recordings of samples (perf.data, perf script text, folded stacks)",
    )
}

/// Refuses the first of these options that was given, with the reason.
fn refuse(options: &[(&str, bool)], why: &str) -> Result<()> {
    match options.iter().find(|(_, given)| *given) {
        Some((name, _)) => bail!("{name} {why}"),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<Recording> {
    recording(open(path)?, path).with_context(|| format!("cannot compare {}", path.display()))
}

/// A trace, samples of any kind, or else a finished result.
fn recording(opened: Opened, path: &Path) -> Result<Recording> {
    Ok(match opened {
        Opened::Trace(trace) => Recording::Trace(trace),
        Opened::Profile(kind, input) => {
            let profile = profile_input::read_text(kind, input, path)?;
            Recording::Observed(Observed::of_profile(profile))
        }
        Opened::PerfData(bytes) => Recording::Observed(observed::read(&bytes)?),
        Opened::Document(bytes) => return result(&bytes),
        Opened::Other(format, _) => match format.and_then(read_elsewhere) {
            Some(message) => return Err(message),
            None => bail!(
                "it is not perf.data, perf script text, folded stacks, a function_graph trace, or a \
                 result of pagewise doctor --json or report --json"
            ),
        },
    })
}

/// A result of `pagewise report`, `doctor`, `run` or `memory` with `--json`.
fn result(text: &[u8]) -> Result<Recording> {
    if let Some(findings) = stored::findings(text)? {
        return Ok(Recording::Observed(Observed::of_findings(findings)));
    }
    let (kind, head) = stored::kind(text)?;
    if matches!(kind, Kind::PagedRun | Kind::Memory) {
        stored::this_version(&head, "make it again")?;
    }
    let incomplete = "it is incomplete";
    match kind {
        Kind::PagedRun => {
            let run = serde_json::from_slice(text).context(incomplete)?;
            return Ok(Recording::Paged(Box::new(run)));
        }
        Kind::Memory => {
            let account = serde_json::from_slice(text).context(incomplete)?;
            return Ok(Recording::Memory(Box::new(account)));
        }
        _ => {}
    }
    let found = crate::fault_paths::stored_report(text)?;
    Ok(Recording::Result(Box::new(found)))
}
