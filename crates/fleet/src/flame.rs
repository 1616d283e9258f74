//! Flame graphs: what a fleet spends its CPU time on, or what changed, as one SVG file.

use crate::data::Samples;
use anyhow::{Context, Result};
use pagewise_report::exports::stacks::Stacks;
use pagewise_report::exports::svg::{self, Picture};
use std::fs;
use std::path::Path;

const UNIT: &str = "nanoseconds of CPU time per day and host";

/// The flame graph of one set of units: for each unit, what a nanosecond there weighs.
pub fn of(title: &str, samples: &Samples, scales: &[f64]) -> Result<String> {
    draw(title, &Stacks::of(&samples.profile(scales), 0), false)
}

/// The change from one set of units to another.
pub fn of_change(title: &str, samples: &Samples, before: &[f64], after: &[f64]) -> Result<String> {
    let (before, after) = (samples.profile(before), samples.profile(after));
    draw(title, &Stacks::of_both((&before, 0), (&after, 0)), true)
}

fn draw(title: &str, stacks: &Stacks, is_diff: bool) -> Result<String> {
    let mut out = Vec::new();
    let picture = Picture {
        title,
        unit: UNIT,
        is_diff,
    };
    svg::write(stacks, picture, &mut out)?;
    Ok(String::from_utf8(out)?)
}

/// Writes a flame graph to a file.
pub fn write(path: &Path, picture: &str) -> Result<()> {
    fs::write(path, picture).with_context(|| format!("cannot write {}", path.display()))
}
