//! The tables themselves.

use crate::Common;
use crate::engine::Engine;
use anyhow::Result;
use clap::Args;
use datafusion::arrow::json::ArrayWriter;
use datafusion::arrow::util::pretty::pretty_format_batches;
use std::io::{self, Write};

/// Options of `sql`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(flatten)]
    pub common: Common,

    /// The query; `SELECT table_name, column_name FROM information_schema.columns` names all columns
    #[arg(value_name = "QUERY")]
    query: String,
}

/// Prints the rows: a table, or with `--json` an array of objects.
pub fn run(options: &Options) -> Result<()> {
    let mut engine = Engine::open_for(&options.common, &options.query)?;
    let batches = engine.query(&options.query, &[])?;
    let mut out = io::stdout().lock();
    if options.common.json {
        let mut writer = ArrayWriter::new(&mut out);
        writer.write_batches(&batches.iter().collect::<Vec<_>>())?;
        writer.finish()?;
        writeln!(out)?;
    } else {
        writeln!(out, "{}", pretty_format_batches(&batches)?)?;
    }
    out.flush()?;
    for file in engine.unusable() {
        writeln!(
            io::stderr(),
            "pagewise fleet: left out {}: {}",
            file.path,
            file.reason
        )?;
    }
    Ok(())
}
