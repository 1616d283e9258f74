//! `pagewise report`: opens recordings and shows their findings.

mod annotate;
mod descent;
mod documents;
mod push;
mod recording;
mod request;
mod tables;

use crate::export::FaultExport;
use crate::fault_paths::Trace;
use crate::open::{Opened, open, read_elsewhere, whole};
use crate::{export, fault_paths, page, profile_input, stored, terminal};
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use pagewise_model::answer::Kind;
use pagewise_model::fault_paths::FaultPaths;
use pagewise_report::exports::tables::privacy::redacted;
use pagewise_report::html::render_fault_paths;
use pagewise_traces::fault_paths::Sums;
use request::{Action, Input, Request};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise report perf.data                    what it shows, on the terminal
  pagewise report perf.data -o report.html     the same as one HTML page
  pagewise report perf.data --annotate fill    one function, line by line
  pagewise report perf.data --range 12s..13s   one second of it
  pagewise report perf.data.zst --json         the same as JSON
  perf record -e page-faults -c 1 -g -d -o - ./x | pagewise report -
  perf script | pagewise report -              perf script's text, folded stacks
  pagewise report perf.data --export folded    folded stacks
  pagewise report perf.data --export svg -o flame.svg
  pagewise report new.data --export svg --before old.data -o change.svg
  pagewise report perf.script.gz --export pprof --event cycles -o p.pb.gz
  pagewise report perf.data --push http://pyroscope:4040
  pagewise report perf.data --export parquet -o tables/
  pagewise report trace.txt.zst                paths of faults in the kernel
  pagewise report trace.txt -o report.html     the same as one HTML page
  pagewise report trace.txt --export folded    call paths, for flame graph tools
  pagewise report trace.txt --export perfetto -o trace.pftrace
  pagewise report trace.dat                    the same, of trace-cmd record
  pagewise report trace.txt --class cow --layer wp_page_copy --range 10us..
  pagewise report run.json -o run.html         a paged run, from run --timeline
  pagewise report tune.json                    a result saved with --json
  pagewise report a.json b.json                stored by --json --sums, merged";

/// Options of `pagewise report`.
#[derive(ClapArgs, Debug)]
pub struct Args {
    /// Recordings: perf.data from pagewise or perf, perf script text, folded stacks, or a
    /// function_graph trace (the kernel's text, trace-cmd report's, or trace.dat), plain or compressed
    /// by gzip or zstd; - is standard input. Trace reports stored with --json --sums are merged into
    /// one. Results of any command's --json, and of `pagewise run --timeline`, are shown again
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// Print JSON (schema: pagewise help schema.json), one document per file
    #[arg(long, conflicts_with_all = ["export", "push"])]
    json: bool,

    /// With --json on traces, also include the sums needed to merge reports from many hosts
    ///
    /// They make up about two thirds of the document. `pagewise report A.json B.json` merges.
    #[arg(long, requires = "json")]
    sums: bool,

    /// Also write an HTML page; with --export, the file to write (for Parquet, a folder of tables;
    /// FILE.parquet takes a row per sample)
    #[arg(short, long, value_name = "FILE.html")]
    output: Option<PathBuf>,

    /// Write a format that other tools read, instead of the report
    #[arg(long, value_name = "FORMAT", value_parser = export::values(), group = "of_samples")]
    export: Option<String>,

    #[command(flatten)]
    push: push::Options,

    #[command(flatten)]
    included: export::tables::Included,

    /// Only samples of this event, by the report's name for it; formats that hold one event take
    /// the first by default
    #[arg(long, value_name = "EVENT", requires = "of_samples")]
    event: Option<String>,

    /// With --export svg, the profile to compare with: what grew is red, what shrank is blue
    #[arg(long, value_name = "FILE", requires = "export")]
    before: Option<PathBuf>,

    /// Most calls in --export perfetto of a trace (default: 2000000); beyond that, only every nth
    /// top-level call is exported
    #[arg(long, value_name = "CALLS", requires = "export")]
    export_limit: Option<u64>,

    /// A trace of the same workload with only the fault's root function, to measure what tracing
    /// itself cost (for function_graph traces; estimated without it)
    #[arg(long, value_name = "TRACE")]
    calibrate: Option<PathBuf>,

    /// Only samples of this control group and those below it, such as /system.slice/ssh.service
    ///
    /// Needs a recording with control groups: from pagewise record, or from perf record
    /// --all-cgroups.
    #[arg(long, value_name = "PATH")]
    cgroup: Option<String>,

    /// Hash command lines, paths and values of environment variables in what is shown and written
    ///
    /// Equal ones stay equal; who knows one can look for it. Passwords are always masked.
    #[arg(long, conflicts_with_all = ["export", "push"])]
    redact: bool,

    /// Show where the samples of this function are, by line of its source and by instruction
    ///
    /// For perf.data of programs with debug information (-g). Page faults and CPU time, with and
    /// without what the function calls.
    #[arg(long, value_name = "FUNCTION", conflicts_with_all = ["export", "push", "json", "redact"])]
    annotate: Option<String>,

    #[command(flatten)]
    descent: descent::Options,
}

/// Reports on each file in turn.
///
/// # Errors
/// If a file cannot be read, is not a recording, or has nothing about faults.
pub fn run(args: &Args) -> Result<ExitCode> {
    let first = &args.files[0];
    if args.files.len() > 1 && is_of_trace(first).map_err(|error| named(first, error))? {
        report_merged(&args.files, &args.request(Input::StoredTrace)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let one_at_a_time = args.output.is_some() || args.export.is_some() || args.push.is_wanted();
    if one_at_a_time && args.files.len() > 1 {
        bail!("-o, --export and --push take one recording; call pagewise report once for each");
    }
    for file in &args.files {
        report(file, args).map_err(|error| named(file, error))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Whether a file (one that can be opened again) is a stored report on a trace.
fn is_of_trace(file: &Path) -> Result<bool> {
    Ok(file.is_file()
        && match open(file)? {
            Opened::Document(bytes) => stored::kind(&bytes)?.0 == Kind::FaultPaths,
            _ => false,
        })
}

/// Reports on one file of any kind.
fn report(file: &Path, args: &Args) -> Result<()> {
    let of_samples = || args.request(Input::Samples);
    match open(file)? {
        Opened::Document(bytes) => report_document(&bytes, file, args),
        Opened::Trace(trace) => report_trace(trace, file, args.request(Input::Trace)?),
        Opened::Profile(kind, input) => {
            let request = of_samples()?;
            if args.annotate.is_some() {
                bail!(
                    "--annotate needs the addresses of a perf.data file, which text does not have"
                );
            }
            let profile = profile_input::read_text(kind, input, file)?;
            recording::report_profile(profile, file, &request)
        }
        Opened::PerfData(bytes) if args.annotate.is_some() => {
            args.request(Input::Samples)?;
            let function = args.annotate.as_deref().unwrap_or_default();
            annotate::show(&bytes, function, args.output.as_deref())
        }
        Opened::PerfData(bytes) => recording::report(&bytes, file, &of_samples()?),
        Opened::Other(format, input) => match format.and_then(read_elsewhere) {
            Some(error) => Err(error),
            None => recording::report(&whole(input, file)?, file, &of_samples()?),
        },
    }
}

/// Writes the tables of a recording that was just made: a trace, or what was recorded in its place.
///
/// # Errors
/// If it has nothing to report on, or the tables cannot be written.
pub fn write_tables(file: &Path, request: &export::tables::Options, folder: &Path) -> Result<()> {
    let export::Written(words) = match open(file)? {
        Opened::Trace(trace) => export::faults::parquet(&FaultExport {
            trace: file,
            findings: &fault_paths::findings(trace, None)?.report,
            output: Some(folder),
            limit: u64::MAX,
            include: request.included.parts(),
        })?,
        _ => export::tables::export(file, None, request, 0, folder)?,
    };
    terminal::tell(&words);
    Ok(())
}

/// Reports on a function_graph trace.
fn report_trace(trace: Trace, file: &Path, request: Request<'_>) -> Result<()> {
    if !request.steps.is_empty() {
        return report_part(trace, file, request);
    }
    let found = fault_paths::findings(trace, request.calibrate)?;
    match request.action {
        Action::Export(export) => export.format.export_faults(&FaultExport {
            trace: file,
            findings: &found.report,
            output: export.output,
            limit: export.limit,
            include: export.include,
        }),
        action => show_trace(
            &found.report,
            || Some(found.sums()),
            &name_of(file),
            &action,
        ),
    }
}

/// Reports on a part of the faults of a trace.
fn report_part(trace: Trace, file: &Path, request: Request<'_>) -> Result<()> {
    let found = fault_paths::part(trace, file, request.calibrate, request.steps)?;
    if found.faults == 0 {
        let steps = found.descent.iter();
        let met = steps.map(|step| format!("{}: {} of {}", step.name, step.calls, step.met));
        let met: Vec<String> = met.collect();
        bail!(
            "nothing is left to report on (calls that remain, of those found: {})",
            met.join("; ")
        );
    }
    show_trace(&found, || None, &name_of(file), &request.action)
}

/// Reports on a document that Pagewise wrote.
fn report_document(bytes: &[u8], file: &Path, args: &Args) -> Result<()> {
    if let Some(stored) = stored::findings(bytes)? {
        return recording::report_stored(stored, file, &args.request(Input::Stored)?);
    }
    match stored::kind(bytes)? {
        (Kind::FaultPaths, _) => {
            let request = args.request(Input::StoredTrace)?;
            report_merged(std::slice::from_ref(&file.to_owned()), &request)
        }
        (kind, head) => documents::report(kind, &head, bytes, &args.request(Input::Stored)?),
    }
}

/// Reports on the merged reports of traces.
fn report_merged(files: &[PathBuf], request: &Request<'_>) -> Result<()> {
    let (report, sums) = fault_paths::merged(files)?;
    let name = match files {
        [file] => name_of(file),
        files => format!("{} reports", files.len()),
    };
    show_trace(&report, || sums, &name, &request.action)
}

fn show_trace(
    findings: &FaultPaths,
    sums: impl FnOnce() -> Option<Sums>,
    name: &str,
    action: &Action<'_>,
) -> Result<()> {
    let Action::Show(show) = action else {
        bail!("it has no tables: those of a trace come from the trace itself");
    };
    let hidden = show.redact.then(|| redacted(findings)).transpose()?;
    let findings = hidden.as_ref().unwrap_or(findings);
    match show.sums {
        // Sums are possible only with JSON.
        true => {
            let sums = sums().with_context(|| {
                format!(
                    "{name} lacks the sums: they come from the trace itself, with pagewise report \
                     --json --sums TRACE"
                )
            })?;
            terminal::print_json(&fault_paths::with_sums(findings, &sums))?;
        }
        false => terminal::present(findings, show.json, pagewise_report::fault_paths::render)?,
    }
    match show.page {
        Some(path) => page::write(path, &render_fault_paths(findings, name)?),
        None => Ok(()),
    }
}

/// The error with the file's name, unless it already contains it.
fn named(file: &Path, error: anyhow::Error) -> anyhow::Error {
    let name = name_of(file);
    let text = format!("{error:#}");
    let mut words = text.split(|c: char| c.is_whitespace() || c == ':');
    let is_of_output = ["cannot write", "cannot make"]
        .iter()
        .any(|start| text.starts_with(start));
    match is_of_output || words.any(|word| word == name) {
        true => error,
        false => error.context(name),
    }
}

fn name_of(file: &Path) -> String {
    if file == Path::new("-") {
        return "standard input".to_owned();
    }
    file.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn an_error_names_its_file_once() {
        let message =
            |text: &'static str| format!("{:#}", named(Path::new("a.data"), anyhow!(text)));
        assert_eq!(message("it is empty"), "a.data: it is empty");
        assert_eq!(message("cannot open a.data: no"), "cannot open a.data: no");
        assert_eq!(message("no aa.data"), "a.data: no aa.data");
    }
}
