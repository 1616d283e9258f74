//! How this kernel behaves when asked to change the page sizes of a child process.

use super::actuator::{Change, Outcome, Refusal, Target};
use super::map::{Error, PageSizes};
use crate::proc::ProcRoot;
use crate::sys::anonymous::{Holder, Pages};
use pagewise_model::units::Nanos;

/// Slots in the child's memory.
const SLOTS: u64 = 4;

/// Effect of a change on the child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The page map showed it; median time of a call.
    Works(Nanos),
    /// The change did not happen.
    Fails(Refusal),
}

/// The changes that work on this machine.
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
/// If no child can be created or its page map cannot be read.
pub fn run(proc: &ProcRoot, sizes: PageSizes) -> Result<Trial, Error> {
    let huge = usize::try_from(sizes.huge.0).unwrap_or(usize::MAX);
    let base = usize::try_from(sizes.base.0).unwrap_or(usize::MAX);
    let slots = usize::try_from(SLOTS).unwrap_or(1);
    let child = Holder::start(slots * huge, huge, base, Pages::Huge)
        .map_err(|source| Error::Hold { pid: 0, source })?;
    let target = Target::open(proc, child.pid(), sizes)?;
    let all = |change| all(&target, child.address(), change);
    // If faults gave base pages (THP off), these are collapsed first.
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
            // A collapse of a slot that is already huge proves nothing, nor does a split of a slot
            // that is not huge because collapsing it failed.
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
        let sizes = match PageSizes::read(Path::new("/sys")) {
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
