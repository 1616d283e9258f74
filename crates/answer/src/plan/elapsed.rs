//! How the elapsed time passes: too short to tell, or mostly in waits, and in which.

use super::phrases;
use pagewise_model::account::TimePart;
use pagewise_model::findings::Findings;
use pagewise_model::quantity::percent;
use pagewise_model::units::Nanos;

/// Whether a program ends before a result is possible. A busy machine does not make it longer.
pub(super) fn is_short(findings: &Findings) -> bool {
    let parts = findings.account.elapsed.iter();
    let ready = parts.filter(|part| part.id == "ready");
    let ready: f64 = ready.map(|part| part.time.value * 1e-9).sum();
    let (cpu, wall) = (findings.cost.cpu(), findings.cost.wall);
    let alone = wall - Nanos::from_secs_f64(ready);
    cpu < SHORT && (alone < SHORT || alone.0 < 2 * cpu.0)
}

/// A program with less CPU time ends before a result is possible.
pub(super) const SHORT: Nanos = Nanos(100_000_000);

/// Elapsed time from which waiting is worth mentioning, the share of it that the CPU time must stay
/// below, and the share of moments in which no process was runnable. On a busy machine a program
/// waits for a CPU; it is ready to run meanwhile.
const LONG: Nanos = Nanos(1_000_000_000);

const HARDLY_BUSY: f64 = 0.2;

const MOSTLY: f64 = 0.6;

const FEWEST_MOMENTS: usize = 5;

/// Kinds of waiting that are reported, and the least share of the elapsed time of each.
const MOST_KINDS: usize = 2;

const KIND: f64 = 0.1;

pub(super) fn mostly_waits(findings: &Findings) -> bool {
    let cost = &findings.cost;
    let busy = cost.cpu().as_secs_f64() / cost.wall.as_secs_f64().max(1e-9);
    if !findings.account.elapsed.is_empty() {
        let waits: f64 = waits(findings).map(|part| part.time.value).sum();
        let share = waits * 1e-9 / cost.wall.as_secs_f64().max(1e-9);
        return cost.wall >= LONG && share >= MOSTLY;
    }
    let moments = findings.timeline.points.iter();
    let active: Vec<u32> = moments.filter_map(|point| point.active).collect();
    let idle = active.iter().filter(|&&active| active == 0).count();
    let rests = active.len() >= FEWEST_MOMENTS && idle as f64 >= MOSTLY * active.len() as f64;
    cost.wall >= LONG && busy < HARDLY_BUSY && rests && !findings.collection.whole_machine
}

pub(super) fn waits(findings: &Findings) -> impl Iterator<Item = &TimePart> {
    let parts = findings.account.elapsed.iter();
    parts.filter(|part| part.is_waiting())
}

/// `, 1.04 s (81 %) waiting for the network`: the first of these parts that are large enough.
pub(super) fn kinds<'a>(findings: &Findings, parts: impl Iterator<Item = &'a TimePart>) -> String {
    let wall = findings.cost.wall.as_secs_f64();
    let message: Vec<String> = parts
        .take(MOST_KINDS)
        .filter(|part| part.time.value * 1e-9 >= KIND * wall)
        .map(|part| {
            let time = Nanos::from_secs_f64(part.time.value * 1e-9);
            let share = percent(part.time.value * 1e-9 / wall);
            phrases::kind(time, share, &part.label)
        })
        .collect();
    match message.as_slice() {
        [] => String::new(),
        all => phrases::kinds(all.join(&phrases::and())),
    }
}
