//! Samples in the order of their times, without those that cannot be right.

use pagewise_model::implausible;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::outliers::{self, Pause, WeightSum, credible};
use pagewise_model::profile::{Profile, Samples};
use pagewise_model::units::Nanos;

/// Shifts times to start at the first sample that has one, sorts by them, and leaves out samples
/// whose time or weight cannot be right.
pub(super) fn in_time_order(mut profile: Profile) -> Profile {
    profile.samples.sort_by_time();
    let times: Vec<u64> = profile.samples.times.iter().collect();
    let unknown = times.partition_point(|&time| time == 0);
    let known = &times[unknown..];
    let right = credible(known, |&time| time, Pause::HundredTimes);
    let bounds = known[right.clone()]
        .first()
        .zip(known[right.clone()].last());
    let (start, end) = bounds.map_or((0, 0), |(&start, &end)| (start, end));
    let wrong = known.len() - right.len();
    if wrong > 0 {
        let example = if right.start > 0 {
            known[0]
        } else {
            known[right.end]
        };
        let kept = Nanos(start)..Nanos(end);
        let count = wrong as u64;
        profile
            .notes
            .push(outliers::describe(count, Nanos(example), kept));
        profile.losses.add(LossKind::ImpossibleTime, count);
    }
    let weights = profile.samples.weights.iter();
    let samples = match wrong == 0 && WeightSum::default().admits_all(weights) {
        true => shifted(std::mem::take(&mut profile.samples), start),
        false => {
            let kept = (0..unknown).chain(unknown + right.start..unknown + right.end);
            credible_weights(&profile.samples, kept, start, &mut profile.losses)
        }
    };
    let mut profile = Profile {
        samples,
        start: Nanos(start),
        span: Nanos(end - start),
        ..profile
    };
    implausible::set_apart(&mut profile);
    profile
}

/// Samples with times since `start`.
fn shifted(mut samples: Samples, start: u64) -> Samples {
    samples.times.map(|time| time.saturating_sub(start));
    samples
}

/// The samples at these indices whose weights can be right, with times since `start`.
fn credible_weights(
    samples: &Samples,
    kept: impl Iterator<Item = usize>,
    start: u64,
    losses: &mut Losses,
) -> Samples {
    let mut weights = WeightSum::default();
    let mut credible = Samples::default();
    for sample in kept.map(|at| samples.get(at)) {
        match weights.admits(sample.weight) {
            true => credible.push(sample),
            false => losses.add(LossKind::ImpossibleWeight, 1),
        }
    }
    shifted(credible, start)
}
