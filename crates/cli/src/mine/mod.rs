//! `pagewise mine`: frequent patterns in traces and in sequence files.

mod database;
mod output;
mod support;
mod trees;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pagewise_traces::mine::{Algorithm, Query};
use std::path::PathBuf;
use std::process::ExitCode;
use support::MinSupport;

const LONG_ABOUT: &str = "\
Find frequent patterns in sequences

FILE is one of
  - a function_graph trace (text of the kernel or trace-cmd report, trace.dat):
    each complete top-level call is a sequence of the functions that it called,
    without interrupts;
  - a sequence file: one sequence per line, items separated by blanks;
  - a file in SPMF's format (1 -1 2 -1 -2).
It may be compressed by gzip or zstd; - is standard input.

Patterns are printed in the order of their items (whole numbers by value, then words by bytes), each \
before its extensions: support, a tab, the items. Trees are printed by their share of time: faults, \
share of fault time, mean and 99th percentile of one (without the tracer's cost), and the tree as \
root { a b ×3–15 { c } ( d e ) ×2 }.

Closed patterns follow the definition: no longer pattern, with one more item anywhere in it, has the \
same support. PrefixSpan-py's option --closed, which looks only at the last match in each sequence, \
prints all of these and some more: of the sequences \"a b c d\", \"c a b c\" and \"a c b a c\" it \
keeps \"a c\", though \"a b c\" is in all three, too.";

const EXAMPLES: &str = "\
Examples:
  pagewise mine --algorithm prefix --min-support 1% trace.txt   paths of faults
  pagewise mine --algorithm trees --min-support 5% trace.txt    their call trees
  pagewise mine --algorithm closed --min-support 2 --json shop.txt
  pagewise mine --algorithm classic --projection 'a b' shop.txt  what follows it";

/// Find frequent patterns in sequences
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Arguments {
    /// What counts as a pattern
    #[arg(long, value_enum, default_value_t = Mode::Prefix)]
    algorithm: Mode,
    /// Minimum support: a number of sequences, or a share such as 1%
    #[arg(long, value_name = "N", default_value = "1%")]
    min_support: MinSupport,
    /// Maximum length of a pattern, in items [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_length: Option<u32>,
    /// Print the projected database of ITEM (or of several, separated by spaces) instead
    #[arg(long, value_name = "ITEM")]
    projection: Option<String>,
    /// Keep the nesting of a trace's calls: a call that makes others is the item a{ … }
    #[arg(long)]
    nesting: bool,
    /// Print JSON (schema: pagewise help schema.json)
    #[arg(long)]
    json: bool,
    /// The trace or sequence file; - is standard input
    file: PathBuf,
}

/// What counts as a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    /// Prefixes of sequences (Algorithm 1 of Wei & Wang, 2024)
    Prefix,
    /// Items in this order, with gaps (PrefixSpan)
    Classic,
    /// Classic ones without a longer one of the same support
    #[value(alias = "strictly-closed")]
    Closed,
    /// Classic ones without a longer frequent one
    Maximal,
    /// Items that follow one another directly; support counts sequences
    Contiguous,
    /// The same, but support counts occurrences (Algorithm 1 over all suffixes)
    Suffixes,
    /// For traces: whole call trees of faults, repeats folded, weighted by time
    Trees,
}

impl Mode {
    /// `None` for trees, which are not sequences.
    fn of_sequences(self) -> Option<Algorithm> {
        Some(match self {
            Self::Prefix => Algorithm::Prefix,
            Self::Classic => Algorithm::Classic,
            Self::Closed => Algorithm::Closed,
            Self::Maximal => Algorithm::Maximal,
            Self::Contiguous => Algorithm::Contiguous,
            Self::Suffixes => Algorithm::Suffixes,
            Self::Trees => return None,
        })
    }
}

/// Reads the sequences and prints their patterns or a projected database.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut out = output::stdout(arguments.json);
    let Some(algorithm) = arguments.algorithm.of_sequences() else {
        let is_of_sequences = arguments.projection.is_some() || arguments.max_length.is_some();
        if is_of_sequences || arguments.nesting {
            bail!("--projection, --max-length and --nesting apply to sequences, not to trees");
        }
        let found = trees::find(&arguments.file, arguments.min_support)?;
        out.trees(&found)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    };
    let database = database::read(&arguments.file, arguments.nesting)?;
    match &arguments.projection {
        Some(items) => out.projection(&database, algorithm, items)?,
        None => {
            let query = Query {
                algorithm,
                min_support: arguments.min_support.sequences(database.len()),
                max_length: arguments.max_length.map(|n| n as usize),
            };
            out.patterns(&database, query)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
