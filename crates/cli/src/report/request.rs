//! What `pagewise report` is asked to do with one input: its options, checked once against the
//! input's kind, before anything is analysed.

use super::{Args, push};
use crate::export::{self, Format, tables};
use anyhow::{Result, bail};
use pagewise_model::units::Nanos;
use pagewise_report::exports::tables::privacy::Include;
use pagewise_traces::fault_paths::Step;
use std::path::Path;

/// A kind of input, as far as options differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Input {
    /// perf.data, text of perf script, folded stacks.
    Samples,
    /// A function_graph trace.
    Trace,
    /// Stored reports on traces.
    StoredTrace,
    /// The stored result of another command.
    Stored,
}

/// What to do with the findings, or in their place.
pub(super) enum Action<'a> {
    Show(Show<'a>),
    Export(Export<'a>),
    Tables(Tables<'a>),
    Push(Push<'a>),
}

/// Findings on the terminal.
#[derive(Clone, Copy)]
pub(super) struct Show<'a> {
    pub json: bool,
    /// Whether the sums come with the JSON.
    pub sums: bool,
    /// Where to write the page as well.
    pub page: Option<&'a Path>,
    /// Whether command lines and paths are hashed.
    pub redact: bool,
}

/// A file in a format of other tools.
#[derive(Clone, Copy)]
pub(super) struct Export<'a> {
    pub format: &'static Format,
    pub event: Option<&'a str>,
    pub before: Option<&'a Path>,
    pub output: Option<&'a Path>,
    /// Most single calls.
    pub limit: u64,
    pub include: Include,
}

/// A folder of tables.
#[derive(Clone, Copy)]
pub(super) struct Tables<'a> {
    pub folder: &'a Path,
    pub include: Include,
}

/// A server that takes the samples.
#[derive(Clone, Copy)]
pub(super) struct Push<'a> {
    pub to: &'a push::Options,
    pub event: Option<&'a str>,
}

/// A request that its input can serve.
pub(super) struct Request<'a> {
    pub action: Action<'a>,
    /// The calls within faults to look at; empty for whole faults.
    pub steps: Vec<Step>,
    /// The period of samples; `None` for all.
    pub period: Option<(Nanos, Nanos)>,
    /// The control group of samples; `None` for all.
    pub cgroup: Option<&'a str>,
    /// The trace with the root function only.
    pub calibrate: Option<&'a Path>,
}

impl Request<'_> {
    /// Whether samples outside a period or a control group are left out.
    pub fn is_of_some_samples(&self) -> bool {
        self.period.is_some() || self.cgroup.is_some()
    }
}

/// An option, whether it is given, the inputs that it is for, and their name in the plural.
type Rule = (
    &'static str,
    fn(&Args) -> bool,
    &'static [Input],
    &'static str,
);

/// Most calls in an export of single calls, if no other limit is given.
const MOST_CALLS: u64 = 2_000_000;

const TRACES: &str = "function_graph traces";
const SAMPLES: &str = "recordings of samples";

/// What each option applies to. Those that apply to all inputs are missing.
const RULES: [Rule; 13] = [
    (
        "--annotate",
        |args| args.annotate.is_some(),
        &[Input::Samples],
        SAMPLES,
    ),
    (
        "--layer",
        |args| args.descent.layer.is_some(),
        &[Input::Trace],
        TRACES,
    ),
    (
        "--path",
        |args| args.descent.path.is_some(),
        &[Input::Trace],
        TRACES,
    ),
    (
        "--class",
        |args| args.descent.class.is_some(),
        &[Input::Trace],
        TRACES,
    ),
    (
        "--calibrate",
        |args| args.calibrate.is_some(),
        &[Input::Trace],
        TRACES,
    ),
    (
        "--cgroup",
        |args| args.cgroup.is_some(),
        &[Input::Samples],
        SAMPLES,
    ),
    (
        "--event",
        |args| args.event.is_some(),
        &[Input::Samples],
        SAMPLES,
    ),
    (
        "--before",
        |args| args.before.is_some(),
        &[Input::Samples],
        SAMPLES,
    ),
    (
        "--push",
        |args| args.push.is_wanted(),
        &[Input::Samples],
        SAMPLES,
    ),
    (
        "--range",
        |args| args.descent.range.is_some(),
        &[Input::Trace, Input::Samples],
        "recordings",
    ),
    (
        "--export",
        |args| args.export.is_some() && args.folder().is_none(),
        &[Input::Trace, Input::Samples],
        "recordings (stored results can become tables: --export parquet -o FOLDER)",
    ),
    (
        "--export-limit",
        |args| args.export_limit.is_some(),
        &[Input::Trace],
        TRACES,
    ),
    (
        "--sums",
        |args| args.sums,
        &[Input::Trace, Input::StoredTrace],
        "function_graph traces and stored reports on them",
    ),
];

impl Input {
    fn name(self) -> &'static str {
        match self {
            Self::Samples => "samples",
            Self::Trace => "a function_graph trace",
            Self::StoredTrace => "a stored report, which does not contain the trace",
            Self::Stored => "a stored result, which does not contain the recording",
        }
    }
}

impl Args {
    /// The folder for tables, if they are asked for.
    fn folder(&self) -> Option<&Path> {
        export::tables::folder(self.export.as_deref(), self.output.as_deref())
    }

    /// The request, if an input of this kind can serve it.
    ///
    /// # Errors
    /// Names the first option that does not apply, or is malformed.
    pub(super) fn request(&self, input: Input) -> Result<Request<'_>> {
        let given = RULES.iter().filter(|(_, given, ..)| given(self));
        for (option, _, inputs, plural) in given {
            if !inputs.contains(&input) {
                bail!("{option} is for {plural}; this is {}", input.name());
            }
        }
        let (steps, period) = match input {
            Input::Trace => (self.descent.steps().map_err(anyhow::Error::msg)?, None),
            _ => (
                Vec::new(),
                self.descent.stretch().map_err(anyhow::Error::msg)?,
            ),
        };
        let action = self.action(input)?;
        if !steps.is_empty() && !matches!(action, Action::Show(_)) {
            bail!("--export takes whole faults: leave out --path, --layer, --range and --class");
        }
        Ok(Request {
            action,
            steps,
            period,
            cgroup: self.cgroup.as_deref(),
            calibrate: self.calibrate.as_deref(),
        })
    }

    fn action(&self, input: Input) -> Result<Action<'_>> {
        let (event, before) = (self.event.as_deref(), self.before.as_deref());
        let include = self.included.parts();
        if self.push.is_wanted() {
            let to = &self.push;
            return Ok(Action::Push(Push { to, event }));
        }
        let Some(format) = self.export.as_deref().and_then(export::named) else {
            return Ok(Action::Show(Show {
                json: self.json,
                sums: self.sums,
                page: self.output.as_deref(),
                redact: self.redact,
            }));
        };
        if self.export_limit.is_some() && format.name != "perfetto" {
            bail!(
                "--export-limit is for --export perfetto; {} has no single calls",
                format.name
            );
        }
        if self.included.is_any() && self.folder().is_none() {
            bail!("--include is for a folder of tables: --export parquet -o FOLDER");
        }
        let folder = self.folder().filter(|_| input != Input::Trace);
        if let Some(folder) = folder {
            if event.is_some() || before.is_some() {
                bail!("tables hold all events of one recording: leave out --event and --before");
            }
            return Ok(Action::Tables(Tables { folder, include }));
        }
        let limit = self.export_limit.unwrap_or(MOST_CALLS);
        let output = self.output.as_deref();
        Ok(Action::Export(Export {
            format,
            event,
            before,
            output,
            limit,
            include,
        }))
    }
}

impl Tables<'_> {
    /// Writes them, and says which.
    ///
    /// # Errors
    /// If the folder cannot be written to.
    pub fn write(&self, made: pagewise_report::exports::tables::Tables) -> Result<()> {
        let export::Written(words) = tables::write(made, self.folder)?;
        crate::terminal::tell(&words);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn args(words: &[&str]) -> Args {
        let line = ["report", "FILE"].iter().chain(words);
        Line::try_parse_from(line).expect("valid for clap").args
    }

    #[test]
    fn an_option_is_refused_for_inputs_it_is_not_for() {
        for (words, good, bad) in [
            (&["--layer", "charge"][..], Input::Trace, Input::Samples),
            (&["--class", "cow"], Input::Trace, Input::Stored),
            (&["--calibrate", "x"], Input::Trace, Input::StoredTrace),
            (&["--cgroup", "/a"], Input::Samples, Input::Trace),
            (&["--push", "http://a"], Input::Samples, Input::Trace),
            (&["--range", "1ms.."], Input::Samples, Input::Stored),
            (&["--export", "folded"], Input::Trace, Input::Stored),
            (&["--json", "--sums"], Input::StoredTrace, Input::Samples),
            (
                &["--export", "perfetto", "--export-limit", "5"],
                Input::Trace,
                Input::Samples,
            ),
        ] {
            let args = args(words);
            assert!(args.request(good).is_ok(), "{words:?}");
            let error = args.request(bad).err().expect("refused").to_string();
            let option = words.iter().rev().find(|word| word.starts_with("--"));
            assert!(error.starts_with(option.unwrap()), "{words:?}: {error}");
        }
    }

    #[test]
    fn stored_results_become_tables_of_all_events() {
        let words = ["--export", "parquet", "-o", "folder"];
        let whole = args(&words);
        let request = whole.request(Input::Stored).expect("tables");
        assert!(matches!(request.action, Action::Tables(_)));
        let of_event = args(&[&words[..], &["--event", "cycles"]].concat());
        let error = of_event.request(Input::Samples).err().expect("refused");
        assert!(error.to_string().contains("leave out --event"), "{error}");
    }

    #[test]
    fn an_option_is_refused_for_formats_it_is_not_for() {
        for (words, message) in [
            (
                &["--export", "folded", "--export-limit", "5"][..],
                "--export-limit is for --export perfetto",
            ),
            (
                &["--export", "parquet", "-o", "t", "--export-limit", "5"],
                "--export-limit is for --export perfetto",
            ),
            (
                &["--export", "folded", "--include", "paths"],
                "--include is for a folder of tables",
            ),
            (
                &[
                    "--export",
                    "parquet",
                    "-o",
                    "x.parquet",
                    "--include",
                    "paths",
                ],
                "--include is for a folder of tables",
            ),
        ] {
            let error = args(words).request(Input::Trace).err().expect("refused");
            assert!(error.to_string().starts_with(message), "{words:?}: {error}");
        }
        for words in [&["--export-limit", "5"][..], &["--json", "--export", "svg"]] {
            let line = ["report", "FILE"].iter().chain(words);
            assert!(Line::try_parse_from(line).is_err(), "{words:?}");
        }
    }

    #[test]
    fn a_malformed_range_is_refused_whatever_the_input() {
        for input in [Input::Trace, Input::Samples] {
            assert!(args(&["--range", "5us..2us"]).request(input).is_err());
        }
    }
}
