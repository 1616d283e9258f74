//! Which call stacks hold more than before.

use super::{Held, HeldStack, HolderFunction, Holders, ProcessHolders, holder};
use crate::units::Estimate;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What blocks from one stack hold, in two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct StackChange {
    /// The program that allocated them.
    pub program: String,
    /// Its functions, innermost first.
    pub frames: Vec<HolderFunction>,
    /// Live bytes in the first run.
    pub before: Estimate,
    /// Live bytes in the second.
    pub after: Estimate,
    /// Bytes that were added.
    pub added: Estimate,
}

impl StackChange {
    /// The function that allocated the blocks.
    #[must_use]
    pub fn place(&self) -> String {
        let function = holder(self.frames.iter());
        function.map_or_else(|| "[no stack]".to_owned(), |one| one.name.clone())
    }
}

/// Program and functions by which a stack is known in both runs, and what it held in each.
type Sums = BTreeMap<(String, Vec<String>), Side>;

#[derive(Default)]
struct Side {
    frames: Vec<HolderFunction>,
    held: [Option<Estimate>; 2],
}

/// Stacks that hold more or less in `after`, beyond the error of the samples; the one that grew most
/// first.
#[must_use]
pub fn stack_changes(
    before: &Holders,
    after: &Holders,
    of: fn(&HeldStack) -> Held,
) -> Vec<StackChange> {
    let mut sums = Sums::new();
    for (side, holders) in [before, after].into_iter().enumerate() {
        for process in &holders.processes {
            add(&mut sums, side, process, of);
        }
    }
    let changes = sums.into_iter().map(|((program, _), side)| {
        let [before, after] = side.held.map(|held| held.unwrap_or(Estimate::exact(0.0)));
        StackChange {
            program,
            frames: side.frames,
            before,
            after,
            added: after.minus(before),
        }
    });
    let is_sure = |change: &StackChange| change.added.low > 0.0 || change.added.high < 0.0;
    let mut changes: Vec<StackChange> = changes.filter(is_sure).collect();
    changes.sort_by(|one, other| other.added.value.total_cmp(&one.added.value));
    changes
}

fn add(sums: &mut Sums, side: usize, process: &ProcessHolders, of: fn(&HeldStack) -> Held) {
    for stack in &process.stacks {
        let known = |frame: &u32| process.functions.get(*frame as usize).cloned();
        let frames: Vec<HolderFunction> = stack.frames.iter().filter_map(known).collect();
        let names = frames.iter().map(|frame| frame.name.clone()).collect();
        let sum = sums.entry((process.program.clone(), names)).or_default();
        let bytes = of(stack).bytes;
        let held = &mut sum.held[side];
        *held = Some(held.map_or(bytes, |held| held.plus(bytes)));
        sum.frames = frames;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Bytes;

    fn estimate(value: f64) -> Estimate {
        Estimate {
            value,
            low: value * 0.9,
            high: value * 1.1,
        }
    }

    /// One process with stacks that hold so much at the peak.
    fn holders(stacks: &[(&str, f64)]) -> Holders {
        let held = |bytes: f64| Held {
            bytes: estimate(bytes),
            blocks: estimate(1.0),
        };
        let function = |name: &str| HolderFunction {
            name: name.to_owned(),
            module: String::new(),
            inlined: false,
        };
        Holders {
            period: Bytes(1),
            refused: 0,
            processes: vec![ProcessHolders {
                pid: 1,
                program: "work".to_owned(),
                parent: None,
                bypassed: false,
                samples: 1,
                untracked: 0,
                crowded: 0,
                cut: 0,
                peak_ns: 0,
                peak: held(1.0),
                end: held(1.0),
                allocated: held(1.0),
                functions: stacks.iter().map(|(name, _)| function(name)).collect(),
                stacks: (0..)
                    .zip(stacks)
                    .map(|(number, (_, bytes))| HeldStack {
                        frames: vec![number],
                        peak: held(*bytes),
                        end: held(0.0),
                        allocated: held(*bytes),
                    })
                    .collect(),
            }],
        }
    }

    #[test]
    fn stacks_that_hold_more_come_first_and_those_within_their_error_not_at_all() {
        let before = holders(&[("same", 1000.0), ("less", 1000.0), ("more", 100.0)]);
        let after = holders(&[("more", 900.0), ("same", 1100.0), ("new", 300.0)]);
        let found = stack_changes(&before, &after, |stack| stack.peak);
        let names: Vec<&str> = found
            .iter()
            .map(|one| one.frames[0].name.as_str())
            .collect();
        assert_eq!(names, ["more", "new", "less"]);
        assert_eq!(found[0].added.value, 800.0);
        assert!(found[0].added.low > 700.0 && found[0].added.low < 750.0);
        assert_eq!(found[2].after, Estimate::exact(0.0));
    }
}
