//! Writes an HTML page to a file.

use crate::terminal;
use anyhow::Result;
use pagewise_model::units::Bytes;
use pagewise_operate::destination;
use std::path::Path;

/// Writes a page and reports its path.
///
/// # Errors
/// If it can't be written.
pub fn write(path: &Path, page: &str) -> Result<()> {
    destination::write(path, page.as_bytes())?;
    let size = Bytes(page.len() as u64);
    terminal::tell(&format!("Report: {} ({size})", path.display()));
    Ok(())
}
