//! Flame graphs: what a fleet spends its CPU time on, or what changed, as one SVG file.

use crate::data::Samples;
use anyhow::{Context, Result};
use pagewise_report::exports::stacks::Stacks;
use pagewise_report::exports::svg::{self, Picture};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

const UNIT: &str = "nanoseconds of CPU time per day and host";

/// Writes the flame graph of one set of units: for each unit, what a nanosecond there weighs.
pub fn write(path: &Path, title: &str, samples: &Samples, scales: &[f64]) -> Result<()> {
    let stacks = Stacks::of(&samples.profile(scales), 0);
    draw(path, title, &stacks, false)
}

/// Writes the change from one set of units to another.
pub fn write_change(
    path: &Path,
    title: &str,
    samples: &Samples,
    before: &[f64],
    after: &[f64],
) -> Result<()> {
    let (before, after) = (samples.profile(before), samples.profile(after));
    let stacks = Stacks::of_both((&before, 0), (&after, 0));
    draw(path, title, &stacks, true)
}

fn draw(path: &Path, title: &str, stacks: &Stacks, is_diff: bool) -> Result<()> {
    let cannot = || format!("cannot write {}", path.display());
    let mut out = BufWriter::new(File::create(path).with_context(cannot)?);
    let picture = Picture {
        title,
        unit: UNIT,
        is_diff,
    };
    svg::write(stacks, picture, &mut out).with_context(cannot)?;
    out.flush().with_context(cannot)
}
