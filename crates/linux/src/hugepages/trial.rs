//! What this kernel really does when a child of ours is asked to change its page sizes.

use super::actuator::{Change, Outcome, Refusal, Target};
use super::map::{Error, PageSizes};
use crate::proc::ProcRoot;
use crate::sys::anonymous::{Holder, Pages};
use pagewise_model::units::Nanos;

/// Slots that the child holds.
const SLOTS: u64 = 4;

/// What a change did to a child of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The page map showed it; median time of a call.
    Works(Nanos),
    /// It did not happen.
    Fails(Refusal),
}

/// What works here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trial {
    /// `MADV_COLLAPSE` on another process.
    pub collapse: Found,
    /// `MADV_COLD` on a part of a huge page of another process.
    pub split: Found,
}

impl Trial {
    /// Whether `change` works.
    #[must_use]
    pub fn allows(&self, change: Change) -> bool {
        let found = match change {
            Change::Collapse => self.collapse,
            Change::Split => self.split,
        };
        matches!(found, Found::Works(_))
    }
}

/// Splits and rebuilds four huge pages of a child. Takes some 10 ms.
///
/// # Errors
/// When no child can be made or its page map not be read.
pub fn run(proc: &ProcRoot, sizes: PageSizes) -> Result<Trial, Error> {
    let huge = usize::try_from(sizes.huge.0).unwrap_or(usize::MAX);
    let base = usize::try_from(sizes.base.0).unwrap_or(usize::MAX);
    let slots = usize::try_from(SLOTS).unwrap_or(1);
    let child = Holder::start(slots * huge, huge, base, Pages::Huge)
        .map_err(|source| Error::Hold { pid: 0, source })?;
    let target = Target::open(proc, child.pid(), sizes)?;
    let all = |change| all(&target, child.address(), change);
    // Where faults gave base pages (THP off), they are collapsed first.
    all(Change::Collapse)?;
    Ok(Trial {
        split: all(Change::Split)?,
        collapse: all(Change::Collapse)?,
    })
}

fn all(target: &Target, address: u64, change: Change) -> Result<Found, Error> {
    let mut calls = Vec::new();
    let mut refusal = Refusal::NoEffect;
    for slot in 0..SLOTS {
        let act = target.apply(change, address + slot * target.sizes().huge.0)?;
        match act.outcome {
            Outcome::Done => calls.push(act.call),
            // A collapse that finds a huge page shows nothing; neither does a split that finds
            // none, because building one failed.
            Outcome::Already => {}
            Outcome::Refused(why) => refusal = why,
        }
    }
    calls.sort_unstable();
    Ok(match calls.get(calls.len() / 2) {
        Some(&median) => Found::Works(median),
        None => Found::Fails(refusal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn this_machine_answers() {
        let sizes = match PageSizes::of(Path::new("/sys")) {
            Ok(sizes) => sizes,
            Err(error) => return skipped!("{error}"),
        };
        match run(&ProcRoot::default(), sizes) {
            Ok(trial) => {
                eprintln!("{trial:?}");
                if let Found::Works(call) = trial.split {
                    assert!(call > Nanos(0) && trial.allows(Change::Split));
                }
            }
            Err(error) => skipped!("{error}"),
        }
    }
}
