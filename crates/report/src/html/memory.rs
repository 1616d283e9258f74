//! The part of a page about where memory is.

use super::faults::labelled_exports;
use pagewise_model::answer::Document;
use pagewise_model::memory::{Memory, ProcessHolders, TouchedMemory};
use pagewise_model::units::Bytes;
use serde::Serialize;
use std::borrow::Cow;

/// Stacks of a process that are kept when the page would be too large, tried in turn.
const KEPT: [usize; 4] = [20_000, 5_000, 1_000, 200];

/// The account, with texts that are produced only here (`web/src/data/page.ts`).
#[derive(Serialize)]
pub(super) struct MemoryPart<'a> {
    found: Cow<'a, Memory>,
    exports: Vec<Vec<(&'static str, String)>>,
    /// How often stacks were left out.
    #[serde(skip)]
    pruned: usize,
}

impl<'a> MemoryPart<'a> {
    pub(super) fn new(document: &'a Document<Memory>) -> Self {
        let settings = document.advice.iter().map(|advice| &advice.settings);
        Self {
            found: Cow::Borrowed(&document.evidence),
            exports: settings.map(labelled_exports).collect(),
            pruned: 0,
        }
    }

    /// Leaves out the smallest stacks; returns whether there was anything to try.
    pub(super) fn shrink(&mut self) -> bool {
        let Some(&kept) = KEPT.get(self.pruned) else {
            return false;
        };
        self.pruned += 1;
        let found = self.found.to_mut();
        let holders = found.holders.iter_mut();
        for process in holders.flat_map(|one| &mut one.processes) {
            keep_held(process, kept);
        }
        for process in &mut found.touched {
            keep_touched(process, kept);
        }
        true
    }
}

/// Stacks are in order of what they hold at the peak; what is left out is the rest of the process's sum.
fn keep_held(process: &mut ProcessHolders, kept: usize) {
    process.stacks.truncate(kept);
}

fn keep_touched(process: &mut TouchedMemory, kept: usize) {
    let left_out = process.stacks.iter().skip(kept);
    let bytes: f64 = left_out.map(|stack| stack.bytes.value).sum();
    process.stacks.truncate(kept);
    process.other += rounded(bytes);
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and estimates are not negative"
)]
fn rounded(bytes: f64) -> Bytes {
    Bytes(bytes.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::memory::TouchedStack;
    use pagewise_model::units::Estimate;

    #[test]
    fn stacks_that_are_left_out_are_counted_as_others() {
        let stack = |bytes: f64| TouchedStack {
            frames: Vec::new(),
            culprit: String::new(),
            bytes: Estimate::exact(bytes),
        };
        let mut process = TouchedMemory {
            stacks: [400.0, 30.0, 2.0].map(stack).into(),
            other: Bytes(5),
            ..TouchedMemory::default()
        };
        keep_touched(&mut process, 1);
        assert_eq!((process.stacks.len(), process.other), (1, Bytes(37)));
    }
}
