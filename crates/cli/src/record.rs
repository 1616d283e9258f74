//! `pagewise record`: faults and the data that explains them, into a perf.data file.

mod collecting;
mod overhead;
mod spool;

use crate::duration;
use crate::export::{Written, tables};
use crate::recorded;
use crate::standard_output::standard_output;
use crate::terminal;
use anyhow::bail;
use clap::{Args, ValueEnum};
use pagewise_linux::perf::{CpuStacks, DEFAULT_CPU_FREQUENCY, DEFAULT_FREQUENCY, Mode, Options};
use pagewise_linux::process::Launch;
use pagewise_operate::observe::{Hide, ObserveOptions, Subject};
use pagewise_report::exports::tables::privacy::hidden;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  pagewise record -- ./simulate input.dat      one run, from start to end
  pagewise record -p 4242 --duration 10s       a running process for ten seconds
  pagewise record -a -F 99 -- sleep 10         the whole machine for ten seconds
  pagewise record -e cpu,off-cpu -p 4242       CPU time and waits alone
  pagewise record -a --duration 10s --export parquet -o fleet/host=$(hostname)
  pagewise record -a --duration 10s --every 10m --export parquet -o spool \\
                  --to s3://bucket/fleet       again and again, for a fleet
  pagewise record --full -o all.data -- ./x    each fault and each memory call
  pagewise record --measure-overhead -- ./simulate input.dat
  perf report -i perf.data                     the same in perf's own viewer";

/// Record where time goes: CPU time, page faults and what explains them
///
/// Writes a standard perf.data file with samples of CPU time, sampled faults with their call
/// chains, short windows in which each fault is timed, new mappings, memory system calls and lock
/// waits (as far as privileges allow), and a timeline of the process tree. `pagewise help
/// benchmarks` says what that costs. The exit status is the program's, or 0 if --duration ended it.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a switch of the command line"
)]
pub struct RecordArgs {
    /// Observe these running processes with all their threads (comma-separated)
    #[arg(short, long, value_name = "PID", value_delimiter = ',', value_parser = clap::value_parser!(i32).range(1..))]
    pid: Vec<i32>,

    /// Observe everything on this machine, until CMD ends, or until Ctrl-C or --duration
    #[arg(short, long, conflicts_with = "pid")]
    all: bool,

    /// The program to run and its arguments
    #[arg(last = true, value_name = "CMD", conflicts_with = "pid",
          required_unless_present_any = ["pid", "all"])]
    command: Vec<OsString>,

    /// File to write
    ///
    /// An existing file is kept as FILE.old.
    #[arg(short, long, value_name = "FILE", default_value = "perf.data")]
    output: PathBuf,

    #[command(flatten)]
    tables: tables::Options,

    #[command(flatten)]
    collecting: collecting::Collecting,

    /// Record every fault and every memory call
    ///
    /// Exact but slow: a program that does nothing but fault runs at about half its speed.
    #[arg(long)]
    full: bool,

    /// CPU time samples per second on each busy CPU
    ///
    /// An odd number is best: 100 or 1000 may run in lockstep with timers, and then always hit or always miss
    /// the same code. Above 199, stacks are not copied where frame pointers break, unless --call-graph dwarf asks
    /// for it.
    #[arg(short = 'F', long, value_name = "HZ", default_value_t = DEFAULT_CPU_FREQUENCY,
          value_parser = clap::value_parser!(u64).range(1..=100_000))]
    frequency: u64,

    /// Approximate number of sampled faults per second
    #[arg(long, value_name = "HZ", default_value_t = DEFAULT_FREQUENCY,
          value_parser = clap::value_parser!(u64).range(1..), conflicts_with_all = ["count", "full"])]
    fault_frequency: u64,

    /// Sample every Nth fault instead
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..),
          conflicts_with = "full")]
    count: Option<u64>,

    /// What to record (comma-separated)
    #[arg(short, long, value_enum, value_name = "PART", value_delimiter = ',', default_values_t = Part::USUAL)]
    events: Vec<Part>,

    /// How call stacks are unwound
    #[arg(long, value_enum, default_value_t = CallGraph::Mixed)]
    call_graph: CallGraph,

    /// Stop after this time, such as 10s or 500ms; a program started by record is then terminated
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    duration: Option<Duration>,

    /// Time between two points of the timeline
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration::parse)]
    interval: Duration,

    /// Run CMD alternately with and without recording, and print what recording costs
    ///
    /// Takes this long, 60s by default, and writes no recording. The noise floor is the same
    /// comparison of CMD with itself.
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true,
          default_missing_value = "60s", value_parser = duration::parse, requires = "command",
          conflicts_with = "pid")]
    measure_overhead: Option<Duration>,

    /// Hash command lines and values of environment variables in the file
    ///
    /// Equal ones stay equal; who knows one can look for it. Names of programs and paths of mapped files stay,
    /// as functions are named by them: pagewise report --redact hides them in what it shows. Stacks are not
    /// copied, since they hold what the program has there. Settings of the environment, such as
    /// GLIBC_TUNABLES, no longer count when a report looks for causes.
    #[arg(long, conflicts_with = "measure_overhead")]
    redact: bool,

    /// Print only errors
    #[arg(short, long)]
    quiet: bool,
}

/// A part of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// CPU time samples: by cycles where the machine counts them, otherwise by the clock
    Cpu,
    /// Sampled page faults
    Faults,
    /// Windows in which each fault is timed
    Latency,
    /// New mappings of data
    Mappings,
    /// Memory system calls
    Calls,
    /// Waits for reader-writer locks such as `mmap_lock`
    Locks,
    /// Where threads leave the CPU, and for how long (records every switch: costly)
    OffCpu,
    /// Requests to block devices; all completions are seen only with -a, since a device interrupts
    /// whatever is running
    BlockIo,
    /// Counters over time: cycles, instructions, cache and TLB misses, context switches, as far as the machine has them
    Counters,
}

impl Part {
    const USUAL: [Self; 7] = [
        Self::Cpu,
        Self::Faults,
        Self::Latency,
        Self::Mappings,
        Self::Calls,
        Self::Locks,
        Self::Counters,
    ];
}

/// How call stacks are unwound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CallGraph {
    /// By frame pointers; copied for faults, and for CPU time where frame pointers break
    Mixed,
    /// By frame pointers only: smaller files
    Fp,
    /// The stack is copied with each sample (8 KiB) and unwound by unwind tables
    Dwarf,
}

/// Records, and returns the program's own status.
///
/// # Errors
/// If the program could not be started or nothing could be recorded.
pub fn run(args: RecordArgs) -> anyhow::Result<ExitCode> {
    let quiet = args.quiet || args.collecting.is_one_of_many();
    if let Some(warning) = lockstep(args.frequency).filter(|_| !quiet) {
        writeln!(io::stderr(), "pagewise: {warning}")?;
    }
    if let Some(budget) = args.measure_overhead {
        write!(standard_output(), "{}", overhead::measure(&args, budget)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(rounds) = args.collecting.rounds(args.duration, &args.output)? {
        return rounds.run();
    }
    if args.tables.export.is_some() {
        return export(args);
    }
    recorded::record(&args.into_options()?, quiet)
}

/// Records into a file of its own and writes the tables of that.
fn export(mut args: RecordArgs) -> anyhow::Result<ExitCode> {
    let folder = args.collecting.folder(std::mem::take(&mut args.output));
    let aside = tables::aside(&folder)?;
    args.output = aside.path().join("perf.data");
    let quiet = args.quiet || args.collecting.is_one_of_many();
    let path = args.output.clone();
    let request = std::mem::take(&mut args.tables);
    let unsent = args.collecting.unsent();
    let code = recorded::record_for(&args.into_options()?, quiet, &folder)?;
    if path.exists() {
        let Written(words) = tables::export(&path, None, &request, unsent, &folder)?;
        if !quiet {
            terminal::tell(&words);
        }
    }
    Ok(code)
}

impl RecordArgs {
    fn cpu_stacks(&self) -> CpuStacks {
        match self.call_graph {
            CallGraph::Fp => CpuStacks::Chains,
            // A fleet's hosts have a budget, and unwind what they copied.
            CallGraph::Mixed if self.collecting.is_one_of_many() => CpuStacks::Chains,
            CallGraph::Mixed => CpuStacks::CopiesWhereChainsBreak,
            CallGraph::Dwarf => CpuStacks::Copies,
        }
    }

    fn into_options(mut self) -> anyhow::Result<ObserveOptions> {
        if self.redact && self.call_graph == CallGraph::Dwarf {
            bail!(
                "copied stacks hold what the program has in memory: --redact goes with --call-graph fp"
            );
        }
        if self.redact {
            self.call_graph = CallGraph::Fp;
        }
        let wants = |part| self.events.contains(&part);
        let recorder = Options {
            mode: if self.full { Mode::Full } else { Mode::Sampled },
            frequency: self.fault_frequency,
            period: self.count,
            period_stacks: false,
            faults: wants(Part::Faults) || self.full,
            cpu: wants(Part::Cpu).then_some(self.frequency),
            cpu_dense_at_first: false,
            cpu_stacks: self.cpu_stacks(),
            off_cpu: wants(Part::OffCpu),
            block_io: wants(Part::BlockIo),
            mappings: wants(Part::Mappings),
            latency: wants(Part::Latency),
            calls: wants(Part::Calls),
            locks: wants(Part::Locks),
            dwarf_stacks: self.call_graph != CallGraph::Fp,
        };
        let subject = match Launch::from_command(&self.command) {
            Some(launch) if self.all => Subject::SystemDuring(launch),
            Some(launch) => Subject::Command(launch),
            None if self.all => Subject::System,
            None if !self.pid.is_empty() => Subject::Processes(self.pid),
            None => bail!("nothing to record: give -p PID, -a, or -- COMMAND (see --help)"),
        };
        Ok(ObserveOptions {
            subject,
            counters: wants(Part::Counters),
            pages: false,
            delays: false,
            recorder,
            output: self.output,
            interval: self.interval,
            duration: self.duration,
            hide: self.redact.then_some(hidden as Hide),
        })
    }
}

/// A warning if samples may stay in step with a timer: kernels tick 100, 250, 300 or 1000 times per
/// second (`CONFIG_HZ`), and so do many programs.
fn lockstep(frequency: u64) -> Option<String> {
    let in_step = [100, 250, 300, 1_000].iter().any(|tick| {
        frequency.is_multiple_of(*tick) || (frequency >= 50 && tick.is_multiple_of(frequency))
    });
    in_step.then(|| {
        format!(
            "{frequency} samples per second may run in lockstep with timers, and then always hit or always miss the same code; {} would not",
            frequency - 1
        )
    })
}
