//! What a program freed in order to end.

use pagewise_model::memory::{Memory, MemoryKind, MemoryPoint, MemoryVerdict, MemoryWhen};
use pagewise_model::quantity::{percent, share};
use pagewise_model::units::{Bytes, Nanos};

/// Share of the memory at the end from which it is worth a note.
const WORTH: f64 = 0.1;

/// Why what is free at the end was not judged, if that might be asked.
pub fn note(memory: &Memory) -> Option<String> {
    let end = memory.moments.last()?;
    let is_judged = memory.finding.when == MemoryWhen::End
        && memory.finding.verdict != MemoryVerdict::FreedToEnd;
    if end.when != MemoryWhen::End || is_judged {
        return None;
    }
    let elapsed = end.elapsed_ns?;
    let at_end = MemoryPoint::new(end, elapsed);
    let freed = kept(&at_end);
    let part = share(freed, at_end.resident.0);
    let before = memory.course.iter().rev();
    let mut before = before.filter(|point| point.elapsed_ns <= elapsed);
    let in_use = before.find(|point| kept(point) < freed / 2)?;
    (part >= WORTH).then(|| {
        let (freed, within) = (Bytes(freed), Nanos(elapsed - in_use.elapsed_ns));
        let (part, run) = (percent(part), Nanos(elapsed));
        format!(
            "At the end {freed} ({part}) was freed and kept, most of it for less than the last {within} of {run}: this does not count as retention."
        )
    })
}

fn kept(point: &MemoryPoint) -> u64 {
    point.bytes(MemoryKind::FreedKept) + point.bytes(MemoryKind::Reserve)
}
