//! Samples whose weight cannot be right: more than a CPU can count in the time of the recording.

use crate::loss::LossKind;
use crate::profile::{Profile, ProfileEvent, Samples, WeightUnit};
use crate::quantity::count;
use crate::units::Nanos;

/// Most events of any kind per nanosecond on one CPU: some forty instructions fit.
const MOST_PER_NANOSECOND: u64 = 100;
/// Most cycles per nanosecond: no CPU has a clock of 10 GHz.
const MOST_CYCLES: u64 = 10;
/// A sample may stand for this many nanoseconds before the first one of the recording.
const BEFORE: u64 = 1_000_000_000;
/// An impossible weight is this many times as large as most; where all are, the clock is wrong.
const TIMES_USUAL: u64 = 100;

/// Leaves out samples whose weight cannot be, counts them and names them.
pub fn set_apart(profile: &mut Profile) {
    let mut largest = vec![0; profile.events.len()];
    let rows = profile.samples.events.iter();
    for (event, weight) in rows.zip(profile.samples.weights.iter()) {
        let known: &mut u64 = &mut largest[usize::from(event)];
        *known = weight.max(*known);
    }
    let limits: Vec<u64> = (0_u16..)
        .zip(profile.events.iter().zip(largest))
        .map(|(at, (event, largest))| limit(profile, at, event, largest))
        .collect();
    let is_wrong = |event: u16, weight: u64| {
        let limit = limits.get(usize::from(event));
        limit.is_some_and(|&limit| weight > limit)
    };
    let rows = profile.samples.events.iter();
    let mut wrong = rows.zip(profile.samples.weights.iter());
    if !wrong.any(|(event, weight)| is_wrong(event, weight)) {
        return;
    }
    let mut kept = Samples::default();
    for sample in profile.samples.iter() {
        if !is_wrong(sample.event, sample.weight) {
            kept.push(sample);
            continue;
        }
        if profile.losses.count(LossKind::ImpossibleWeight) == 0 {
            let event = profile.events.get(usize::from(sample.event));
            profile.notes.push(format!(
                "A sample was left out that claims to stand for {} {}, at {}: no CPU counts that many in the {} of the recording.",
                count(sample.weight),
                event.map_or("events", |event| &*event.name),
                Nanos(sample.time),
                profile.span
            ));
        }
        profile.losses.add(LossKind::ImpossibleWeight, 1);
    }
    profile.samples = kept;
}

/// The largest weight that a sample of an event can have.
fn limit(profile: &Profile, at: u16, event: &ProfileEvent, largest: u64) -> u64 {
    if !profile.has_times || event.unit == WeightUnit::Samples {
        return u64::MAX;
    }
    let rate = match event.unit {
        WeightUnit::Nanoseconds => 1,
        _ if event.name.contains("cycles") => MOST_CYCLES,
        _ => MOST_PER_NANOSECOND,
    };
    let span = profile.span.0.saturating_add(BEFORE);
    let possible = span.saturating_mul(rate);
    if largest <= possible {
        return u64::MAX;
    }
    let rows = profile.samples.events.iter();
    let rows = rows.zip(profile.samples.weights.iter());
    let rows = rows.filter(|&(of, _)| of == at);
    let mut weights: Vec<u64> = rows.map(|(_, weight)| weight).collect();
    let middle = weights.len() / 2;
    let (_, &mut usual, _) = weights.select_nth_unstable(middle);
    possible.max(usual.saturating_mul(TIMES_USUAL))
}
