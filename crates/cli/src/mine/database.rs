//! The sequences of a file, whatever its format.

use crate::fault_paths::{Opened, Trace, open};
use anyhow::{Context, Result, bail};
use pagewise_analyse::fault_paths::{Missing, missing};
use pagewise_analyse::mine::{self, CallSequences, Database};
use pagewise_model::formats::function_graph::Summary;
use std::path::Path;

/// Reads a trace or a sequence file.
pub fn read(path: &Path, with_nesting: bool) -> Result<Database> {
    let name = path.display();
    let mut input = match open(path)? {
        Opened::Trace(found) => {
            return trace(found, with_nesting).with_context(|| format!("cannot read {name}"));
        }
        Opened::Other(input) => input,
    };
    if with_nesting {
        bail!("{name} is not a function_graph trace: --nesting needs calls within calls");
    }
    let mut text = Vec::new();
    input
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read {name}"))?;
    let database = mine::read(&text).with_context(|| format!("cannot read {name}"))?;
    if database.is_empty() {
        eprintln!("pagewise: {name} contains no sequences");
    }
    Ok(database)
}

fn trace(trace: Trace, with_nesting: bool) -> Result<Database> {
    let mut sequences = match with_nesting {
        true => CallSequences::with_nesting(),
        false => CallSequences::default(),
    };
    let summary = trace.read(&mut sequences)?;
    warn_of_losses(&summary);
    Ok(sequences.database(&summary.names))
}

/// Calls that are left out change supports, so they are named.
pub fn warn_of_losses(summary: &Summary) {
    for Missing { count, what } in missing(summary) {
        eprintln!("pagewise: left out: {count} {what}");
    }
}
