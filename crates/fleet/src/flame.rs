//! Flame graphs: what a fleet spends its CPU time on, or what changed, as one SVG file.

use anyhow::{Context, Result};
use pagewise_model::profile::Profile;
use pagewise_report::exports::stacks::Stacks;
use pagewise_report::exports::svg::{self, Picture};
use std::fs::File;
use std::io::BufWriter;
use std::path::Path;

use crate::answer::Flame;

const UNIT: &str = "nanoseconds of CPU time per day and host";

/// Writes a flame graph to a file.
pub fn write(path: &Path, flame: &Flame) -> Result<()> {
    let all = |profile: &Profile| Stacks::new(profile, 0);
    let (title, stacks, is_diff) = match flame {
        Flame::Of(name, profile) => (name.clone(), all(profile), false),
        Flame::Change(sides) => {
            let [(before, a), (after, b)] = &**sides;
            let stacks = Stacks::of_both((a, 0), (b, 0));
            (format!("{after} against {before}"), stacks, true)
        }
    };
    let picture = Picture {
        title: &title,
        unit: UNIT,
        is_diff,
    };
    let written = || -> Result<()> {
        svg::write(&stacks, picture, &mut BufWriter::new(File::create(path)?))?;
        Ok(())
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}
