//! `pagewise report --annotate FUNCTION`.

use crate::{page, terminal};
use anyhow::{Context, Result};
use pagewise_formats::perf_data::PerfData;
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_operate::annotate::annotate;
use pagewise_report::html::render_annotated;
use pagewise_report::text::{Style, annotated};
use std::path::Path;

/// Shows a function's lines, and writes them as a page.
///
/// # Errors
/// If the recording cannot be read, or has no such function.
pub fn show(bytes: &MappedFile, function: &str, to: Option<&Path>) -> Result<()> {
    let data = PerfData::parse(bytes).context("it is not a recording")?;
    let found = annotate(&data, function, |offset| bytes.release(offset))?;
    terminal::print(&annotated::render(
        &found,
        terminal::width(),
        terminal::style(),
    ))?;
    match to {
        Some(path) => {
            let plain = annotated::render(&found, 100, Style::PLAIN);
            page::write(path, &render_annotated(&found, &plain)?)
        }
        None => Ok(()),
    }
}
