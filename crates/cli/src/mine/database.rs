//! The sequences of a file, whatever its format.

use crate::input;
use anyhow::{Context, Result};
use pagewise_analyse::fault_paths::{Missing, missing};
use pagewise_analyse::mine::{self, CallSequences, Database};
use pagewise_model::formats::function_graph::{self, Summary};
use std::io::Read;
use std::path::Path;

/// Enough of a file to tell a trace from other text.
const HEAD: u64 = 16 << 10;

/// Reads a trace or a sequence file.
pub fn read(path: &Path) -> Result<Database> {
    let name = path.display();
    let (head, mut input) =
        input::peek(input::open(path)?, HEAD).with_context(|| format!("cannot read {name}"))?;
    if function_graph::looks_like(&head) {
        return trace(input).with_context(|| format!("cannot read {name}"));
    }
    let mut text = Vec::new();
    input
        .read_to_end(&mut text)
        .with_context(|| format!("cannot read {name}"))?;
    let database = mine::read(&text).with_context(|| format!("cannot read {name}"))?;
    if database.is_empty() {
        eprintln!("pagewise: {name} holds no sequence");
    }
    Ok(database)
}

fn trace(input: Box<dyn Read>) -> Result<Database> {
    let mut sequences = CallSequences::default();
    let summary = function_graph::read(input, &mut sequences)?;
    warn_of_losses(&summary);
    Ok(sequences.database(summary.parser.names()))
}

/// Calls that are left out change supports, so they are named.
fn warn_of_losses(summary: &Summary) {
    for Missing { count, what } in missing(summary) {
        eprintln!("pagewise: left out: {count} {what}");
    }
}
