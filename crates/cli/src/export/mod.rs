//! `pagewise report --export`: findings in other tools' formats.
//!
//! A new format is one line of [`FORMATS`].

mod faults;
mod profiles;

use anyhow::{Context, Result, bail};
use pagewise_model::fault_paths::FaultPaths;
use pagewise_model::profile::Profile;
use pagewise_operate::destination::Destination;
use std::io::{self, BufWriter, Stdout, Write, stdout};
use std::path::{Path, PathBuf};

/// A format that findings can be written in.
pub struct Format {
    /// What `--export` calls it.
    pub name: &'static str,
    /// For `--help`.
    about: &'static str,
    /// Writes the faults of a function_graph trace; `None`: the format has no place for them.
    faults: Option<fn(&FaultExport<'_>) -> Result<Written>>,
    /// Writes a profile.
    profile: fn(&ProfileExport<'_>) -> Result<Written>,
}

/// All formats.
pub const FORMATS: [Format; 8] = [
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
        about: "a table of samples, or a folder of tables (faults, paths, functions, histograms), for DuckDB, Spark, …",
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

/// A profile, to be exported.
pub struct ProfileExport<'a> {
    /// Samples and stacks.
    pub profile: &'a Profile,
    /// The profile to compare it with, where the format can.
    pub before: Option<&'a Profile>,
    /// The event that is wanted; `None` for all, or the first where a format holds one.
    pub event: Option<&'a str>,
    /// What the profile is called: its file.
    pub name: &'a str,
    /// Where the export goes; `None` is standard output.
    pub output: Option<&'a Path>,
}

/// The faults of a trace, to be exported.
pub struct FaultExport<'a> {
    /// The trace, to be read once more by formats that hold single faults.
    pub trace: &'a Path,
    /// What it shows.
    pub findings: &'a FaultPaths,
    /// Where the export goes; `None` is standard output.
    pub output: Option<&'a Path>,
    /// Calls that an export of single calls holds at most.
    pub limit: u64,
}

/// What was written, in words.
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
    /// When the format can't hold them, or writing fails.
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
    /// When the format can't hold it, or writing fails.
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
    Standard(BufWriter<Stdout>),
}

fn output(path: Option<&Path>) -> Result<Out> {
    match path {
        None => Ok(Out::Standard(BufWriter::with_capacity(1 << 16, stdout()))),
        Some(path) => Ok(Out::File(Destination::create(path)?)),
    }
}

impl Out {
    /// Completes the export.
    fn finish(self) -> Result<()> {
        match self {
            Self::File(file) => file.finish(),
            Self::Standard(mut out) => out.flush().context("cannot write standard output"),
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

/// The export's path; formats that are not text, or take more than one file, need one.
fn required<'a>(output: Option<&'a Path>, what: &str) -> Result<&'a Path> {
    match output {
        Some(path) => Ok(path),
        None => bail!("{what} needs -o"),
    }
}

/// A file inside the folder that an export makes.
fn inside(folder: &Path, name: &str) -> PathBuf {
    folder.join(name)
}
