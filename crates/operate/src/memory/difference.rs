//! What grew from one stored account to another.

use super::document;
use pagewise_memory::finding_of_growth;
use pagewise_model::answer::Document;
use pagewise_model::memory::{
    Growth, HeldStack, Memory, MemoryMoment, MemoryWhen, ProcessMemory, stack_changes,
};

/// Nanoseconds of a millisecond.
const MILLI: u64 = 1_000_000;

/// The account in `after`, with what grew since `before`; `None` if one of them has no look.
#[must_use]
pub fn between(before: &Document<Memory>, after: &Document<Memory>) -> Option<Document<Memory>> {
    let (first, second) = (&before.evidence, &after.evidence);
    let new = second.judged()?;
    // A peak is compared with a peak where both runs have one.
    let like = first.moments.iter().find(|one| one.when == new.when);
    let old = like.or(first.judged())?;
    let mut growth = Growth::between(old, new, elapsed(old, new));
    if let (Some(old), Some(holders)) = (&first.holders, &second.holders) {
        let at_end = new.when == MemoryWhen::End;
        let held = |stack: &HeldStack| stack.end;
        let at_peak = |stack: &HeldStack| stack.peak;
        growth.stacks = stack_changes(old, holders, if at_end { held } else { at_peak });
    }
    let finding = finding_of_growth(&growth, new);
    let moments = vec![
        MemoryMoment {
            when: MemoryWhen::Before,
            ..old.clone()
        },
        new.clone(),
    ];
    let memory = Memory {
        finding,
        moments,
        course: Vec::new(),
        growth: Some(growth),
        holders: None,
        touched: Vec::new(),
    };
    Some(Document {
        host: after.host.clone(),
        ..document(memory, after.subject.clone())
    })
}

/// The time between looks at one process, which ran already.
fn elapsed(old: &MemoryMoment, new: &MemoryMoment) -> Option<u64> {
    let ran = |moment: &MemoryMoment| moment.when == MemoryWhen::Now;
    let whose = |moment: &MemoryMoment| {
        let first: Option<&ProcessMemory> = moment.processes.first();
        first.map(|one| (one.pid, one.name.clone()))
    };
    let (began, later) = (old.began_unix_ms?, new.began_unix_ms?);
    let is_one = ran(old) && ran(new) && whose(old) == whose(new);
    is_one
        .then(|| later.checked_sub(began))
        .flatten()
        .map(|ms| ms * MILLI)
}
