//! Finds the stretch of time in which far more happened than usual: FlameScope's dark column, found
//! automatically.

use super::weigh::{Idle, by_frame};
use pagewise_model::profile::{Profile, ProfileSample};
use pagewise_model::profile_findings::Burst;
use pagewise_model::units::Nanos;

/// Lengths of stretches in [`NARROWEST`] ones: from a stall of a tenth of a second to a slow phase.
const WIDTHS: [u64; 4] = [1, 5, 10, 50];
/// Nanoseconds of the shortest stretch.
const NARROWEST: u64 = 100_000_000;
/// Fewest stretches needed to determine what is usual.
const FEWEST: u64 = 8;
/// How far above the usual a burst must be, in robust standard deviations, ...
const DEVIATIONS: f64 = 5.0;
/// ... and as a factor.
const FACTOR: f64 = 1.5;
/// Turns a median absolute deviation into a standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;

/// The burst that stands out most among all widths, if any does.
pub fn find(profile: &Profile, event: u16, idle: &Idle) -> Option<Burst> {
    if !profile.has_times {
        return None;
    }
    let samples = || busy(profile, event, idle);
    let narrow = Stretches::new(samples())?;
    let candidates = WIDTHS.iter().filter_map(|&width| {
        let stretches = narrow.merged(width);
        (stretches.count >= FEWEST).then(|| stretches.outstanding())?
    });
    let best = candidates.max_by(|a, b| a.score.total_cmp(&b.score))?;
    Some(describe(profile, samples(), &best))
}

/// Samples of an event while the CPU was not idle, in order of time.
fn busy<'a>(
    profile: &'a Profile,
    event: u16,
    idle: &'a Idle,
) -> impl Iterator<Item = ProfileSample> + 'a {
    let samples = profile.samples.iter();
    samples.filter(move |sample| sample.event == event && !idle.is(sample.stack))
}

struct Candidate {
    from: u64,
    to: u64,
    weight: u64,
    usual: u64,
    score: f64,
}

/// The time of a profile in stretches of one width. Stretches without a sample are only counted, so
/// that memory depends on the number of samples and not on the length of the recording.
struct Stretches {
    width: u64,
    /// All stretches, including empty ones.
    count: u64,
    /// Stretches with samples, in time order: index and sum of weights.
    filled: Vec<(u64, u64)>,
    heaviest_sample: u64,
}

impl Stretches {
    /// The narrowest, of samples in order of time.
    fn new(samples: impl Iterator<Item = ProfileSample>) -> Option<Self> {
        let mut heaviest = 0;
        let filled = summed(samples.map(|sample| {
            heaviest = heaviest.max(sample.weight);
            (sample.time / NARROWEST, sample.weight)
        }));
        Some(Self {
            width: NARROWEST,
            count: filled.last()?.0 + 1,
            filled,
            heaviest_sample: heaviest,
        })
    }

    /// Stretches as long as this many of these.
    fn merged(&self, by: u64) -> Self {
        let filled = self.filled.iter();
        Self {
            width: self.width * by,
            count: (self.count - 1) / by + 1,
            filled: summed(filled.map(|&(at, weight)| (at / by, weight))),
            heaviest_sample: self.heaviest_sample,
        }
    }

    /// The run of neighbouring stretches that stands out most.
    fn outstanding(&self) -> Option<Candidate> {
        let usual = self.median(|weight| weight);
        let deviation = self.median(|weight| weight.abs_diff(usual));
        // Counts of samples vary by their square root even if the median deviation is zero.
        let heaviest = self.heaviest_sample;
        let by_counting = (usual.max(heaviest) as f64 * heaviest as f64).sqrt();
        let sigma = (deviation as f64 * MAD_TO_SIGMA).max(by_counting);
        let limit = (usual as f64 * FACTOR).max(usual as f64 + DEVIATIONS * sigma);
        let peak = (0..self.filled.len()).max_by_key(|&at| self.filled[at].1)?;
        let (number, weight) = self.filled[peak];
        if (weight as f64) <= limit {
            return None;
        }
        let above = |at: usize, distance: usize| {
            let (other, weight) = self.filled[at];
            other.abs_diff(number) == distance as u64 && weight as f64 > limit
        };
        let before = (0..peak)
            .rev()
            .zip(1..)
            .take_while(|&(at, by)| above(at, by))
            .count();
        let after = (peak + 1..self.filled.len()).zip(1..);
        let after = after.take_while(|&(at, by)| above(at, by)).count();
        let run = &self.filled[peak - before..=peak + after];
        Some(Candidate {
            from: run[0].0 * self.width,
            to: (number + after as u64 + 1).saturating_mul(self.width),
            weight: run.iter().map(|(_, weight)| weight).sum(),
            usual: usual.saturating_mul(run.len() as u64),
            score: (weight as f64 - usual as f64) / sigma,
        })
    }

    /// The median of a figure of each stretch's weight, including empty stretches.
    fn median(&self, of: impl Fn(u64) -> u64) -> u64 {
        let mut values: Vec<u64> = self.filled.iter().map(|&(_, weight)| of(weight)).collect();
        values.sort_unstable();
        let (empty, middle) = (self.count - values.len() as u64, self.count / 2);
        let below = values.partition_point(|&value| value < of(0)) as u64;
        let at = match middle {
            _ if middle < below => middle,
            _ if middle < below + empty => return of(0),
            _ => middle - empty,
        };
        usize::try_from(at)
            .ok()
            .and_then(|at| values.get(at).copied())
            .unwrap_or(0)
    }
}

/// Sums of weights of equal numbers that follow each other.
fn summed(weights: impl Iterator<Item = (u64, u64)>) -> Vec<(u64, u64)> {
    let mut sums: Vec<(u64, u64)> = Vec::new();
    for (at, weight) in weights {
        match sums.last_mut() {
            Some((last, sum)) if *last == at => *sum += weight,
            _ => sums.push((at, weight)),
        }
    }
    sums
}

/// Names the responsible function: the one whose total weight exceeds its expectation from the rest
/// of the time most, and among similar ones the innermost.
fn describe(
    profile: &Profile,
    samples: impl Iterator<Item = ProfileSample>,
    burst: &Candidate,
) -> Burst {
    let (mut within, mut elsewhere) =
        (vec![0; profile.stacks.len()], vec![0; profile.stacks.len()]);
    let mut outside = 0_u64;
    for sample in samples {
        let at = sample.stack.0 as usize;
        if (burst.from..burst.to).contains(&sample.time) {
            within[at] += sample.weight;
        } else {
            elsewhere[at] += sample.weight;
            outside += sample.weight;
        }
    }
    let [within, elsewhere] = [within, elsewhere].map(|own| by_frame(profile, &own));
    let share_in = |at: usize| within[at].1 as f64 / burst.weight.max(1) as f64;
    let share_out = |at: usize| elsewhere[at].1 as f64 / outside.max(1) as f64;
    let excess = |at: usize| share_in(at) - share_out(at);
    let most = (0..within.len()).map(excess).fold(0.0, f64::max);
    // Callers have at least their callees' excess; among those that explain at least half of it,
    // the one with the largest self weight is reported.
    let blamed = (0..within.len())
        .filter(|&at| excess(at) >= 0.5 * most)
        .max_by_key(|&at| within[at].0);
    let (function, share, share_elsewhere) = match blamed {
        Some(at) => (
            profile.frames[at].name.to_string(),
            share_in(at),
            share_out(at),
        ),
        None => (String::new(), 0.0, 0.0),
    };
    Burst {
        from: Nanos(burst.from),
        to: Nanos(burst.to),
        weight: burst.weight,
        usual: burst.usual,
        function,
        share,
        share_elsewhere,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Maker;

    /// Ten seconds at 99 samples per second, some of them idle, with a stall from second 4.2 to
    /// 5.2.
    fn stalled(stall: bool) -> Profile {
        let mut maker = Maker::default();
        for at in 0..990_u64 {
            let time = at * 10_101_010;
            let in_stall = stall && (4_200_000_000..5_200_000_000).contains(&time);
            let stack = match at % 4 {
                _ if in_stall => "main;recv_k;copy_k",
                0 => "main;work",
                1 => "main;recv_k;copy_k",
                _ => "cpu_startup_entry_k;default_idle_k",
            };
            maker.sample_at(time, stack, 10_101_010);
        }
        maker.finish()
    }

    #[test]
    fn a_stall_of_a_second_is_found_with_its_function() {
        let profile = stalled(true);
        let burst = find(&profile, 0, &Idle::new(&profile)).unwrap();
        assert!(
            burst.from.0.abs_diff(4_200_000_000) <= 300_000_000,
            "{burst:?}"
        );
        assert!(
            burst.to.0.abs_diff(5_200_000_000) <= 300_000_000,
            "{burst:?}"
        );
        assert_eq!(burst.function, "copy");
        assert!(
            burst.share > 0.9 && burst.share_elsewhere < 0.6,
            "{burst:?}"
        );
    }

    #[test]
    fn a_sample_centuries_away_costs_no_memory() {
        let mut maker = Maker::default();
        for at in 0..990_u64 {
            maker.sample_at(at * 10_101_010, "main;work", 10_101_010);
        }
        maker.sample_at(u64::MAX, "main;work", 10_101_010);
        let profile = maker.finish();
        find(&profile, 0, &Idle::new(&profile));
    }

    #[test]
    fn medians_count_the_stretches_without_samples() {
        let naive = |all: &[u64], of: fn(u64) -> u64| {
            let mut values: Vec<u64> = all.iter().map(|&weight| of(weight)).collect();
            values.sort_unstable();
            values[values.len() / 2]
        };
        for all in [
            &[1_u64, 0, 0, 7][..],
            &[3, 9, 0, 5],
            &[0, 0, 0, 0, 2],
            &[4, 4, 4],
        ] {
            let filled = (0..).zip(all).filter(|(_, weight)| **weight > 0);
            let stretches = Stretches {
                width: 1,
                count: all.len() as u64,
                filled: filled.map(|(at, &weight)| (at, weight)).collect(),
                heaviest_sample: 1,
            };
            let figures: [fn(u64) -> u64; 2] = [|weight| weight, |weight| weight.abs_diff(4)];
            for of in figures {
                assert_eq!(stretches.median(of), naive(all, of), "{all:?}");
            }
        }
    }

    #[test]
    fn steady_load_has_no_burst() {
        let profile = stalled(false);
        assert_eq!(find(&profile, 0, &Idle::new(&profile)), None);
    }
}
