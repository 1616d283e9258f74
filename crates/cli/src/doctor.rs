//! `pagewise doctor`: observes one run, explains it, advises changes, and proves them.

mod server;

use crate::duration::{parse as duration, positive};
use crate::export::{Written, tables};
use crate::progress::Progress;
use crate::{own_library, recorded, status, terminal};
use anyhow::{Context, Result};
use pagewise_linux::perf::Mode;
use pagewise_linux::process::{Input, Launch, Output, interrupt};
use pagewise_model::findings::Findings;
use pagewise_model::run::{Ending, signal_name};
use pagewise_model::units::Bytes;
use pagewise_operate::destination;
use pagewise_operate::experiment::{
    Listeners, Load, Request, SavedInput, observe_driven, offer, prove_advice,
};
use pagewise_operate::explain::{explain, keep_proof};
use pagewise_operate::observe::{Observation, ObserveOptions, Subject, observe};
use pagewise_operate::recording::Recording;
use pagewise_report::{html, json, text};
use std::ffi::OsString;
use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const EXAMPLES: &str = "\
Examples:
  pagewise doctor -- ./simulate input.dat        what is slow, why, a fix
  pagewise doctor --prove -- ./simulate          the same, and a proof
  pagewise doctor -p 4242 --duration 10s         a running process
  pagewise doctor --prove --load './drive $PAGEWISE_PORT' -- ./server
                                                 a server, driven by a load
  pagewise doctor --json -- ./simulate > x.json  for another program
  pagewise doctor --export parquet -o tables -- ./simulate
                                                 tables, for many hosts";

/// The report's default name.
const REPORT: &str = "pagewise-report.html";
/// Observe a run, explain where memory management costs time, say what to change, and prove it
///
/// Runs the program once under observation, prints the answer and writes a report that opens in any
/// browser. Observing a program that mostly faults costs 2 to 5 % of its CPU time. With --prove the
/// command then runs once with each setting that can be applied, and repeatedly with the best ones.
///
/// With --load the program is a server: Pagewise starts it, runs the load once it listens, observes
/// it meanwhile, and stops it. A proof measures the load's elapsed time and the server's CPU time,
/// so the load should send the same requests each time and take at least a second.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// Observe a running process instead, with its threads and children
    #[arg(short, long, value_name = "PID", value_parser = clap::value_parser!(i32).range(1..))]
    pid: Option<i32>,

    /// The program to run and its arguments
    #[arg(
        last = true,
        value_name = "CMD",
        conflicts_with = "pid",
        required_unless_present = "pid"
    )]
    command: Vec<OsString>,

    /// Run the command once with each setting that can be applied, and then repeatedly with and without
    /// the best ones. Files that it waited for are dropped from the page cache before each run. A server needs --load
    #[arg(long)]
    prove: bool,

    #[command(flatten)]
    server: server::ServerArgs,

    /// Time for the proof's runs, which follow the observed one. A run that exceeds it is ended
    #[arg(long, value_name = "TIME", default_value = "2m", value_parser = positive, requires = "prove")]
    budget: Duration,

    /// Record every fault and every memory call: exact, but the run takes up to 50 % longer
    #[arg(long)]
    full: bool,

    /// Stop observing after this time, such as 10s; a program started by doctor is then terminated
    #[arg(long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// Time between two points of the timeline
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = duration)]
    interval: Duration,

    /// The report to write [default: pagewise-report.html]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,

    #[command(flatten)]
    tables: tables::Options,

    /// Write no report
    #[arg(long, conflicts_with = "output")]
    no_report: bool,

    /// Keep the recording (perf.data) under this name
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,

    /// Print the findings as JSON (schema: pagewise help schema.json); the program's output goes to stderr
    #[arg(long)]
    json: bool,

    /// Print only the answer, no progress
    #[arg(short, long)]
    quiet: bool,
}

/// Runs everything. Returns the program's status, or 128 plus the signal that killed it; 0 if it
/// still runs. In place of 0, 1 if the report could not be written.
///
/// # Errors
/// If nothing could be observed, or the answer could not be delivered.
pub fn run(args: &Args) -> Result<ExitCode> {
    if let (Some(pid), true) = (args.pid, args.prove) {
        return Err(server::not_by_number(pid));
    }
    let load = args.server.load();
    let input = match args.prove && load.is_none() {
        true => Some(SavedInput::take(terminal::tell)?),
        false => None,
    };
    // Checked early, so that a wrong path does not cost the run.
    if let Some(report) = args
        .output
        .as_ref()
        .filter(|_| args.tables.export.is_none())
    {
        destination::check(report).with_context(|| cannot_write(report))?;
    }
    let recording = Recording::named(args.record.as_deref())?;
    args.tell_beginning();
    let options = args.observation(input.as_ref(), &recording.path())?;
    let observed = match (&load, &options.subject) {
        (Some(load), Subject::Command(launch)) => observe_driven(&options, launch, load),
        _ => observe(&options),
    };
    let observation = match observed {
        Ok(observation) => observation,
        Err(error) => return status::failed_to_start(error),
    };
    let was_asked = interrupt::requested().is_some();
    let mut findings = explain(&observation.path)?;
    findings.ending = observation.ending;
    if args.prove {
        let input = input.as_ref().map_or(Input::Null, SavedInput::input);
        findings = args.proved(findings, input, load.as_ref())?;
        if let Some(file) = &args.record
            && let Err(error) = keep_proof(file, &findings)
        {
            findings.collection.notes.push(format!(
                "The proof could not be added to {} ({error:#}); pagewise report will not know it.",
                file.display()
            ));
        }
    }
    let is_delivered = deliver(args, &findings)?;
    if !(args.prove || args.command.is_empty() || args.server.has_load())
        && let Some(line) = offer(&findings, &args.command, own_library::installed)?
    {
        args.tell(&line);
    }
    if let (Some(_), Some(folder)) = (&args.tables.export, &args.output) {
        let path = &observation.path;
        let Written(words) = tables::export(path, Some(&findings), &args.tables, 0, folder)?;
        args.tell(&words);
    }
    if let Some(signal) = killed_by(&observation, was_asked) {
        // Printed even with --quiet: an answer about half a run should not pass for a whole one.
        let by = signal_name(signal);
        writeln!(io::stderr(), "pagewise: the program was killed by {by}")?;
    }
    let is_kept = args.record.is_none() || observation.is_whole;
    if !is_kept {
        recorded::tell_cut(&observation.path);
    }
    Ok(match observation.ending.shell_status() {
        0 if !(is_delivered && is_kept) => ExitCode::FAILURE,
        status => status::shell(status),
    })
}

impl Args {
    fn observation(&self, input: Option<&SavedInput>, recording: &Path) -> Result<ObserveOptions> {
        let mut options = ObserveOptions::explaining(self.subject(input)?, recording);
        if self.full {
            options.recorder.mode = Mode::Full;
        }
        options.interval = self.interval;
        options.duration = self.duration;
        Ok(options)
    }

    fn subject(&self, input: Option<&SavedInput>) -> Result<Subject> {
        if let Some(pid) = self.pid {
            return Ok(Subject::Processes(vec![pid]));
        }
        let mut launch = Launch::from_command(&self.command).context("give a command after --")?;
        launch.output = if self.json {
            Output::Stderr
        } else {
            Output::Inherit
        };
        if let Some(input) = input {
            launch.input = input.input();
        }
        if self.server.has_load() {
            launch.input = Input::Null;
        }
        Ok(Subject::Command(launch))
    }

    /// The findings with a proof.
    fn proved(&self, findings: Findings, input: Input, load: Option<&Load>) -> Result<Findings> {
        let progress = Progress::new();
        let request = Request {
            command: &self.command,
            input,
            load,
            budget: self.budget,
            library: own_library::installed,
        };
        let listeners = Listeners {
            begun: &|message| self.tell(message),
            progress: &progress.listener(),
        };
        let proved = prove_advice(findings, &request, &listeners);
        progress.finish();
        proved
    }

    /// Reports on a terminal that something is happening, as a program may print nothing for long.
    fn tell_beginning(&self) {
        if !io::stderr().is_terminal() {
            return;
        }
        match (self.pid, self.command.first()) {
            (Some(pid), _) => self.tell(&format!(
                "Observing process {pid} (Ctrl-C stops and prints results)"
            )),
            (None, Some(program)) => self.tell(&format!(
                "Observing {} (Ctrl-C stops it and prints results)",
                program.display()
            )),
            (None, None) => {}
        }
    }

    fn tell(&self, message: &str) {
        if !self.quiet {
            terminal::tell(message);
        }
    }
}

/// Writes the answer to standard output and the report to its file. Returns whether the report is
/// there.
fn deliver(args: &Args, findings: &Findings) -> Result<bool> {
    let answer = if args.json {
        json::to_string(findings)?
    } else {
        text::render(findings, terminal::width(), terminal::style())
    };
    let mut out = terminal::output(args.json);
    out.write_all(answer.as_bytes())?;
    if !answer.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    write_report(args, findings)
}

/// If a report was not requested by name and cannot be written, a message says so and the answer
/// remains valid.
fn write_report(args: &Args, findings: &Findings) -> Result<bool> {
    if args.no_report || args.tables.export.is_some() {
        return Ok(true);
    }
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(REPORT));
    let page = html::render(findings)?;
    let size = Bytes(page.len() as u64);
    let written = destination::write(&path, page.as_bytes()).with_context(|| cannot_write(&path));
    match written {
        Ok(()) => args.tell(&format!("Report: {} ({size})", path.display())),
        Err(error) if args.output.is_none() => {
            // Even with --quiet: it is an error.
            terminal::tell(&format!("pagewise: {error:#}"));
            return Ok(false);
        }
        Err(error) => return Err(error),
    }
    Ok(true)
}

fn cannot_write(report: &Path) -> String {
    let path = report.display();
    format!("the report is not written; choose another place than {path} with -o FILE")
}

/// The signal that killed the program, except signals with which we end it if `was_asked`.
fn killed_by(observation: &Observation, was_asked: bool) -> Option<i32> {
    match observation.ending {
        Ending::Killed(libc::SIGINT | libc::SIGHUP | libc::SIGTERM | libc::SIGKILL)
            if was_asked =>
        {
            None
        }
        Ending::Killed(signal) => Some(signal),
        Ending::Exited(_) | Ending::Running => None,
    }
}
