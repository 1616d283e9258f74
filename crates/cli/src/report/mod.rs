//! `pagewise report`: opens recordings and shows their findings.

mod descent;
mod documents;
mod push;
pub mod recording;
mod tables;

use crate::export::{FaultExport, ProfileExport};
use crate::fault_paths::Trace;
use crate::open::{Opened, open, read_elsewhere, whole};
use crate::{export, fault_paths, page, profile_input, stored, terminal};
use anyhow::{Context, Result, bail};
use clap::Args as ClapArgs;
use pagewise_model::answer::Kind;
use pagewise_model::fault_paths::FaultPaths;
use pagewise_model::profile::Profile;
use pagewise_report::exports::tables::privacy::{Include, redacted};
use pagewise_report::html::render_fault_paths;
use pagewise_traces::fault_paths::{Step, Sums};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Examples for `--help`.
pub const EXAMPLES: &str = "\
Examples:
  pagewise report perf.data                    what it shows, on the terminal
  pagewise report perf.data -o report.html     the same as one HTML page
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
    #[arg(long)]
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

    /// Most calls in an export of single calls (perfetto); beyond that, only every nth top-level
    /// call is exported
    #[arg(long, value_name = "CALLS", default_value_t = 2_000_000)]
    export_limit: u64,

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

    #[command(flatten)]
    descent: descent::Options,
}

impl Args {
    /// Whether the samples themselves are wanted in place of findings.
    fn wants_samples(&self) -> bool {
        self.export.is_some() || self.push.is_wanted()
    }

    /// An option given that goes with traces only.
    fn for_traces(&self) -> Option<&'static str> {
        let calibrate = self.calibrate.as_ref().map(|_| "--calibrate");
        calibrate.or_else(|| self.descent.for_traces())
    }

    /// The folder for tables, if they are asked for.
    fn tables(&self) -> Result<Option<&Path>> {
        let folder = export::tables::folder(self.export.as_deref(), self.output.as_deref());
        if folder.is_some() && (self.event.is_some() || self.before.is_some()) {
            bail!("tables hold all events of one recording: leave out --event and --before");
        }
        Ok(folder)
    }

    fn include(&self) -> Include {
        self.included.parts()
    }
}

/// Reports on each file in turn.
///
/// # Errors
/// If a file cannot be read, is not a recording, or has nothing about faults.
pub fn run(args: &Args) -> Result<ExitCode> {
    let first = &args.files[0];
    if args.files.len() > 1 && is_of_trace(first).map_err(|error| named(first, error))? {
        report_merged(&args.files, args)?;
        return Ok(ExitCode::SUCCESS);
    }
    if (args.output.is_some() || args.wants_samples()) && args.files.len() > 1 {
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
    let opened = open(file)?;
    let is_of_faults = matches!(opened, Opened::Document(_) | Opened::Trace(_));
    if let Some(option) = args.for_traces().filter(|_| !is_of_faults) {
        bail!("{option} is for function_graph traces, which this is not");
    }
    match opened {
        Opened::Document(bytes) => report_document(&bytes, file, args),
        Opened::Trace(trace) => report_trace(trace, file, args),
        Opened::Profile(kind, input) => {
            let profile = profile_input::read_text(kind, input, file)?;
            recording::report_profile(profile, file, args)
        }
        Opened::PerfData(bytes) => recording::report(&bytes, file, args),
        Opened::Other(format, input) => match format.and_then(read_elsewhere) {
            Some(told) => Err(told),
            None => recording::report(&whole(input, file)?, file, args),
        },
    }
}

/// Writes a profile in the requested format, or sends it.
fn export_profile(profile: &Profile, file: &Path, args: &Args) -> Result<()> {
    if args.push.is_wanted() {
        return args.push.send(profile, args.event.as_deref(), file);
    }
    let Some(format) = args.export.as_deref().and_then(export::named) else {
        bail!("no format was requested");
    };
    let before = args.before.as_deref();
    let before = before.map(|path| {
        profile_input::open(path).with_context(|| format!("--before {}", path.display()))
    });
    format.export_profile(&ProfileExport {
        profile,
        before: before.transpose()?.as_ref(),
        event: args.event.as_deref(),
        name: &name_of(file),
        output: args.output.as_deref(),
    })
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
fn report_trace(trace: Trace, file: &Path, args: &Args) -> Result<()> {
    if args.cgroup.is_some() {
        bail!("--cgroup is for samples, which a function_graph trace lacks");
    }
    if args.push.is_wanted() {
        bail!("--push is for samples, which a function_graph trace lacks");
    }
    let steps = args.descent.steps().map_err(anyhow::Error::msg)?;
    if !steps.is_empty() {
        return report_part(trace, file, args, steps);
    }
    let found = fault_paths::findings(trace, args.calibrate.as_deref())?;
    if let Some(format) = args.export.as_deref().and_then(export::named) {
        return format.export_faults(&FaultExport {
            trace: file,
            findings: &found.report,
            output: args.output.as_deref(),
            limit: args.export_limit,
            include: args.include(),
        });
    }
    show_trace(&found.report, || Some(found.sums()), &name_of(file), args)
}

/// Reports on a part of the faults of a trace.
fn report_part(trace: Trace, file: &Path, args: &Args, steps: Vec<Step>) -> Result<()> {
    if args.export.is_some() {
        bail!("--export takes whole faults: leave out --path, --layer, --range and --class");
    }
    let found = fault_paths::part(trace, file, args.calibrate.as_deref(), steps)?;
    if found.faults == 0 {
        let steps = found.descent.iter();
        let met = steps.map(|step| format!("{}: {} of {}", step.name, step.calls, step.met));
        let met: Vec<String> = met.collect();
        bail!(
            "nothing is left to report on (calls that remain, of those found: {})",
            met.join("; ")
        );
    }
    terminal::present(&found, args.json, pagewise_report::fault_paths::render)?;
    match &args.output {
        Some(path) => page::write(path, &render_fault_paths(&found, &name_of(file))?),
        None => Ok(()),
    }
}

/// Reports on a document that Pagewise wrote.
fn report_document(bytes: &[u8], file: &Path, args: &Args) -> Result<()> {
    if let Some(stored) = stored::findings(bytes)? {
        return recording::report_stored(stored, file, args);
    }
    let (kind, head) = stored::kind(bytes)?;
    match documents::report(kind, &head, bytes, args)? {
        true => Ok(()),
        false => report_merged(std::slice::from_ref(&file.to_owned()), args),
    }
}

/// Reports on the merged reports of traces.
fn report_merged(files: &[PathBuf], args: &Args) -> Result<()> {
    if args.calibrate.is_some() {
        bail!("--calibrate is for a trace, not for stored reports");
    }
    if args.wants_samples() {
        bail!(
            "--export and --push read the recording itself, which a stored report does not contain"
        );
    }
    let (report, sums) = fault_paths::merged(files)?;
    let name = match files {
        [file] => name_of(file),
        files => format!("{} reports", files.len()),
    };
    show_trace(&report, || sums, &name, args)
}

fn show_trace(
    findings: &FaultPaths,
    sums: impl FnOnce() -> Option<Sums>,
    name: &str,
    args: &Args,
) -> Result<()> {
    let hidden = args.redact.then(|| redacted(findings)).transpose()?;
    let findings = hidden.as_ref().unwrap_or(findings);
    match args.sums {
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
        false => terminal::present(findings, args.json, pagewise_report::fault_paths::render)?,
    }
    match &args.output {
        Some(path) => page::write(path, &render_fault_paths(findings, name)?),
        None => Ok(()),
    }
}

/// The error with the file's name, unless it already contains it.
fn named(file: &Path, error: anyhow::Error) -> anyhow::Error {
    let name = name_of(file);
    let text = format!("{error:#}");
    let mut words = text.split(|c: char| c.is_whitespace() || c == ':');
    match words.any(|word| word == name) {
        true => error,
        false => error.context(name),
    }
}

/// The name of a file in a page.
fn shown_name(file: &Path, args: &Args) -> String {
    match args.redact {
        true => file
            .file_name()
            .map_or_else(String::new, |name| name.display().to_string()),
        false => name_of(file),
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
        let told = |text: &'static str| format!("{:#}", named(Path::new("a.data"), anyhow!(text)));
        assert_eq!(told("it is empty"), "a.data: it is empty");
        assert_eq!(told("cannot open a.data: no"), "cannot open a.data: no");
        assert_eq!(told("no aa.data"), "a.data: no aa.data");
    }
}
