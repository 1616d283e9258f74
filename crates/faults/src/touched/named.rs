//! Who touched the resident memory first, with names.

use super::{Owned, Shared};
use crate::flame::{Names, culprit};
use pagewise_model::memory::{HolderFunction, TouchedMemory, TouchedStack};
use pagewise_model::units::{Bytes, Estimate, Nanos};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// Private memory of a process that is worth a list of stacks.
const WORTH: u64 = 1 << 20;
/// Smallest share of a stack that is listed by itself.
const LEAST_SHARE: f64 = 0.0005;
/// Ends of a 95 % interval, in standard deviations.
const DEVIATIONS: f64 = 1.96;

/// Who touched the memory of each look; observing began at this time.
pub(crate) fn all_named(shared: &[Shared], began: Nanos, names: &Names<'_>) -> Vec<TouchedMemory> {
    let worth = shared.iter().filter(|one| one.resident.0 >= WORTH);
    worth
        .filter(|one| one.samples > 0)
        .map(|one| TouchedMemory {
            elapsed_ns: one.clock - began,
            ..named(one, names)
        })
        .collect()
}

/// What stacks of equal names add up to.
#[derive(Default)]
struct Sum {
    owned: Owned,
    culprit: String,
}

fn named(shared: &Shared, names: &Names<'_>) -> TouchedMemory {
    let mut functions = Functions::default();
    let mut sums: BTreeMap<Vec<u32>, Sum> = BTreeMap::new();
    for (stack, owned) in &shared.stacks {
        let frames = names.frames(*stack);
        let culprit = culprit(&frames);
        let frames = frames.into_iter().map(|frame| {
            functions.number(HolderFunction {
                name: frame.name,
                module: frame.module,
                inlined: false,
            })
        });
        let sum = sums.entry(frames.collect()).or_default();
        sum.owned.bytes += owned.bytes;
        sum.owned.variance += owned.variance;
        sum.culprit = culprit;
    }
    let total = shared.resident.0 as f64;
    let mut other = 0.0;
    let mut stacks = Vec::new();
    for (frames, Sum { owned, culprit }) in sums {
        let Owned { bytes, variance } = owned;
        if bytes < total * LEAST_SHARE {
            other += bytes;
            continue;
        }
        let around = DEVIATIONS * variance.sqrt();
        let bytes = Estimate {
            value: bytes,
            low: (bytes - around).max(0.0),
            high: (bytes + around).min(total),
        };
        stacks.push(TouchedStack {
            frames,
            culprit,
            bytes,
        });
    }
    stacks.sort_by(|one, two| two.bytes.value.total_cmp(&one.bytes.value));
    TouchedMemory {
        pid: shared.pid,
        name: shared.name.clone(),
        is_peak: shared.is_peak,
        elapsed_ns: Nanos(0),
        resident: shared.resident,
        unseen: whole(shared.unseen),
        samples: shared.samples,
        functions: functions.list,
        stacks,
        other: whole(other),
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast saturates, and sums of bytes are not negative"
)]
fn whole(bytes: f64) -> Bytes {
    Bytes(bytes.round() as u64)
}

/// Functions by number.
#[derive(Default)]
struct Functions {
    list: Vec<HolderFunction>,
    numbers: FxHashMap<(String, String), u32>,
}

impl Functions {
    fn number(&mut self, function: HolderFunction) -> u32 {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let key = (function.name.clone(), function.module.clone());
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.list.push(function);
        }
        number
    }
}
