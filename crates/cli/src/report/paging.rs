//! `pagewise report` on what `pagewise run --timeline` wrote.

use super::Args;
use crate::{input, terminal};
use anyhow::{Context, Result, bail};
use pagewise_model::paging::{KIND, PagingTimeline, VERSION};
use std::io::Write;
use std::path::Path;

/// Bytes in which the document says what it is: its first field.
const HEAD: u64 = 64;

/// Whether `path` is such a timeline.
pub fn is_timeline(path: &Path) -> Result<bool> {
    if !path.is_file() {
        return Ok(false);
    }
    let (head, _) = input::peek(input::open(path)?, HEAD)?;
    // Earlier versions put a space behind the colon.
    let said = |colon| format!("\"pagewise\"{colon}\"{KIND}\"");
    Ok([":", ": "]
        .iter()
        .any(|colon| memchr::memmem::find(&head, said(colon).as_bytes()).is_some()))
}

/// Shows one timeline.
pub fn report(path: &Path, args: &Args) -> Result<()> {
    if args.export.is_some() || args.calibrate.is_some() {
        bail!("a timeline of paging has no calls to export or to calibrate");
    }
    let timeline: PagingTimeline =
        serde_json::from_reader(input::open(path)?).context("it is no whole timeline")?;
    if timeline.schema_version != VERSION {
        bail!(
            "it was written by another pagewise (version {} of its format; this one reads {VERSION})",
            timeline.schema_version
        );
    }
    let text = match args.json {
        true => pagewise_report::json::to_string(&timeline)?,
        false => pagewise_report::paging::render(&timeline, terminal::width()),
    };
    let mut out = terminal::output(args.json);
    out.write_all(text.as_bytes())?;
    out.flush()?;
    match &args.output {
        Some(page) => super::write_page(page, &pagewise_report::html::render_paging(&timeline)?),
        None => Ok(()),
    }
}
