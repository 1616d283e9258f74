//! `pagewise report --export`: findings in other tools' formats.
//!
//! A new format is one line of [`FORMATS`].

pub mod faults;
mod profiles;
pub mod tables;

pub use profiles::of_event;

use crate::standard_output::{StandardOutput, standard_output};
use anyhow::{Result, bail};
use pagewise_model::fault_paths::FaultPaths;
use pagewise_model::profile::Profile;
use pagewise_operate::destination::Destination;
use pagewise_report::exports::tables::privacy::Include;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// An export format.
pub struct Format {
    /// Its name for `--export`.
    pub name: &'static str,
    /// Description for `--help`.
    about: &'static str,
    /// Writes the faults of a function_graph trace; `None` if the format cannot represent them.
    faults: Option<fn(&FaultExport<'_>) -> Result<Written>>,
    /// Writes a profile.
    profile: fn(&ProfileExport<'_>) -> Result<Written>,
}

/// All formats.
pub const FORMATS: [Format; 9] = [
    Format {
        name: "folded",
        about: "one line per stack for flame graph tools: weights of samples, or corrected own time of call paths in ns",
        faults: Some(faults::folded),
        profile: profiles::folded,
    },
    Format {
        name: "svg",
        about: "a flame graph; with --before, what grew and shrank",
        faults: None,
        profile: profiles::svg,
    },
    Format {
        name: "speedscope",
        about: "samples by thread, for www.speedscope.app",
        faults: None,
        profile: profiles::speedscope,
    },
    Format {
        name: "pprof",
        about: "gzipped protobuf for go tool pprof, Pyroscope, Parca, …",
        faults: None,
        profile: profiles::pprof,
    },
    Format {
        name: "otlp",
        about: "OpenTelemetry profiles, protobuf v1development (unstable: the format still changes)",
        faults: None,
        profile: profiles::otlp,
    },
    Format {
        name: "firefox",
        about: "samples by thread, for profiler.firefox.com",
        faults: None,
        profile: profiles::firefox,
    },
    Format {
        name: "perfetto",
        about: "samples or calls on their threads' tracks, for ui.perfetto.dev",
        faults: Some(faults::perfetto),
        profile: profiles::perfetto,
    },
    Format {
        name: "parquet",
        about: "a folder of tables (runs, findings, samples, stacks, faults, …) for DuckDB, Spark, …; to FILE.parquet, a row per sample",
        faults: Some(faults::parquet),
        profile: profiles::parquet,
    },
    Format {
        name: "csv",
        about: "one row per sample",
        faults: None,
        profile: profiles::csv,
    },
];

/// A profile to export.
pub struct ProfileExport<'a> {
    /// Samples and stacks.
    pub profile: &'a Profile,
    /// The profile to compare it with, if the format supports that.
    pub before: Option<&'a Profile>,
    /// The requested event; `None` for all, or for the first if the format has room for only one.
    pub event: Option<&'a str>,
    /// Name of the profile: that of its file.
    pub name: &'a str,
    /// Destination of the export; `None` is standard output.
    pub output: Option<&'a Path>,
}

/// The faults of a trace to export.
pub struct FaultExport<'a> {
    /// The trace, read once more for formats with individual faults.
    pub trace: &'a Path,
    /// Its findings.
    pub findings: &'a FaultPaths,
    /// Destination of the export; `None` is standard output.
    pub output: Option<&'a Path>,
    /// Maximum number of calls in an export of individual calls.
    pub limit: u64,
    /// What tables hold as it is.
    pub include: Include,
}

/// Description of what was written.
pub struct Written(pub String);

/// The format of a name that clap accepted.
pub fn named(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// The values of `--export` with their meanings.
pub fn values() -> clap::builder::PossibleValuesParser {
    let values =
        FORMATS.map(|format| clap::builder::PossibleValue::new(format.name).help(format.about));
    clap::builder::PossibleValuesParser::new(values)
}

impl Format {
    /// Writes the faults of a trace.
    ///
    /// # Errors
    /// If the format can't represent them, or writing fails.
    pub fn export_faults(&self, export: &FaultExport<'_>) -> Result<()> {
        let Some(write) = self.faults else {
            bail!("--export {} cannot hold the faults of a trace", self.name);
        };
        let Written(words) = write(export)?;
        crate::terminal::tell(&words);
        Ok(())
    }

    /// Writes a profile.
    ///
    /// # Errors
    /// If the format can't represent it, or writing fails.
    pub fn export_profile(&self, export: &ProfileExport<'_>) -> Result<()> {
        if export.before.is_some() && self.name != "svg" {
            bail!("--before is for --export svg");
        }
        let Written(words) = (self.profile)(export)?;
        crate::terminal::tell(&words);
        Ok(())
    }
}

/// Opens the export's file, or standard output.
enum Out {
    File(Destination),
    Standard(BufWriter<StandardOutput>),
}

fn output(path: Option<&Path>) -> Result<Out> {
    match path {
        None => Ok(Out::Standard(BufWriter::with_capacity(
            1 << 16,
            standard_output(),
        ))),
        Some(path) => Ok(Out::File(Destination::create(path)?)),
    }
}

impl Out {
    /// Completes the export.
    fn finish(self) -> Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::Standard(mut out) => Ok(out.flush()?),
        }
    }
}

impl Write for Out {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.write(bytes),
            Self::Standard(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::File(file) => file.flush(),
            Self::Standard(out) => out.flush(),
        }
    }
}

fn place(path: Option<&Path>) -> String {
    path.map_or("standard output".to_owned(), |path| {
        path.display().to_string()
    })
}

/// The export's path, required for formats that are not text or consist of several files.
fn required<'a>(output: Option<&'a Path>, what: &str) -> Result<&'a Path> {
    match output {
        Some(path) => Ok(path),
        None => bail!("{what} needs -o"),
    }
}

/// A file inside the folder that an export creates.
fn inside(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}
