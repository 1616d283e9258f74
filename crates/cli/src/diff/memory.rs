//! Two accounts of memory: what grew.

use super::{Args, only_for_profiles, refuse};
use crate::terminal;
use anyhow::{Context, Result};
use pagewise_model::answer::Document;
use pagewise_model::memory::Memory;
use pagewise_operate::memory::between;
use pagewise_report::text;
use std::process::ExitCode;

/// Prints the second account, with what grew since the first.
///
/// # Errors
/// If one of them has no look, or something is requested that only other recordings can answer.
pub fn run(a: &Document<Memory>, b: &Document<Memory>, args: &Args) -> Result<ExitCode> {
    only_for_profiles(args)?;
    let given = [
        ("--output", args.output.is_some()),
        ("--calibrate", !args.calibrate.is_empty()),
    ];
    refuse(
        &given,
        "does not go with accounts of memory (pagewise memory --save)",
    )?;
    let diff = between(a, b).context(
        "one of them has no look at the program: it ended before its memory could be read",
    )?;
    terminal::present(&diff, args.json, text::memory::render)?;
    Ok(ExitCode::SUCCESS)
}
