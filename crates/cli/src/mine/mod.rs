//! `pagewise mine`: frequent patterns in traces and in sequence files.

mod database;
mod output;
mod support;
mod trees;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use pagewise_analyse::mine::{Algorithm, Query};
use std::path::PathBuf;
use std::process::ExitCode;
use support::MinSupport;

const LONG_ABOUT: &str = "\
Find frequent patterns in sequences

FILE is one of
  - a function_graph trace (its own text, trace-cmd report's, or trace.dat): each complete call
    at the top level is a sequence of the functions that it called, without interrupts;
  - a sequence file: a sequence per line, items separated by blanks;
  - a file in SPMF's format (1 -1 2 -1 -2).
It may be compressed with gzip or zstd; - is standard input.

Patterns come in the order of their items (whole numbers by value, then words by bytes), each
before those that it begins: support, a tab, the items. Trees come by their share of time:
faults, share of fault time, mean and 99th percentile of one (without the tracer's cost), the
tree as root { a b ×3–15 { c } ( d e ) ×2 }.

Closed patterns are those of the definition: no longer pattern, with an item more anywhere in it,
has the same support. PrefixSpan-py's option --closed (which looks at one match in each sequence,
the latest) prints all of these and some more: of the sequences \"a b c d\", \"c a b c\" and
\"a c b a c\" it keeps \"a c\", though \"a b c\" is in all three, too.";

const EXAMPLES: &str = "\
Examples:
  pagewise mine --algorithm prefix --min-support 1% trace.txt   paths of faults
  pagewise mine --algorithm trees --min-support 5% trace.txt    their call trees
  pagewise mine --algorithm closed --min-support 2 --json shop.txt
  pagewise mine --algorithm classic --projection 'a b' shop.txt  after a b";

/// Find frequent patterns in sequences
#[derive(Args)]
#[command(long_about = LONG_ABOUT, after_help = EXAMPLES)]
pub struct Arguments {
    /// What counts as a pattern
    #[arg(long, value_enum, default_value_t = Mode::Prefix)]
    algorithm: Mode,
    /// The least support: a number of sequences, or a share such as 1%
    #[arg(long, value_name = "N", default_value = "1%")]
    min_support: MinSupport,
    /// The longest pattern, in items (no limit by default)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_length: Option<u32>,
    /// Print the projected database behind ITEM (or several, separated by blanks) instead
    #[arg(long, value_name = "ITEM")]
    projection: Option<String>,
    /// Keep how a trace's calls are nested: items are a{ … } for calls that make others
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
    /// How sequences begin (Algorithm 1 of Wei & Wang, 2024)
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
    /// The same; support counts places (Algorithm 1 over all suffixes)
    Suffixes,
    /// Of traces: whole call trees of faults, repeats folded, weighted by time
    Trees,
}

impl Mode {
    /// `None` for trees, which are no sequences.
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
            bail!("--projection, --max-length and --nesting are about sequences, not about trees");
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
                min_support: arguments.min_support.of(database.len()),
                max_length: arguments.max_length.map(|n| n as usize),
            };
            out.patterns(&database, query)?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
