//! The sequences of a file, whatever its format.

use crate::fault_paths::Trace;
use crate::open::{Opened, open};
use anyhow::{Context, Result, bail};
use pagewise_formats::function_graph::Summary;
use pagewise_traces::fault_paths::losses;
use pagewise_traces::mine::{self, CallSequences, Database};
use std::io::{self, Read};
use std::path::Path;

/// Reads a trace or a sequence file.
pub fn read(path: &Path, with_nesting: bool) -> Result<Database> {
    let name = path.display();
    let opened = match open(path)? {
        Opened::Trace(found) => {
            return trace(found, with_nesting).with_context(|| format!("cannot read {name}"));
        }
        other => other,
    };
    if with_nesting {
        bail!("{name} is not a function_graph trace: --nesting needs calls within calls");
    }
    let text = text(opened).with_context(|| format!("cannot read {name}"))?;
    let database = mine::read(&text).with_context(|| format!("cannot read {name}"))?;
    if database.is_empty() {
        eprintln!("pagewise: {name} contains no sequences");
    }
    Ok(database)
}

/// Sequences are text without a magic number; their reader refuses anything else.
fn text(opened: Opened) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    match opened {
        Opened::Document(bytes) | Opened::PerfData(bytes) => text.extend_from_slice(&bytes),
        Opened::Profile(_, mut input) | Opened::Other(_, mut input) => {
            input.read_to_end(&mut text)?;
        }
        Opened::Trace(_) => {}
    }
    Ok(text)
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

/// Omitted calls change supports, so they are reported.
pub fn warn_of_losses(summary: &Summary) {
    for lost in losses(summary).descriptions() {
        eprintln!("pagewise: left out: {lost}");
    }
}
