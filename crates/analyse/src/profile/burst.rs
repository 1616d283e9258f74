//! Finds the stretch of time in which far more happened than usual: FlameScope's dark column,
//! without eyes.

use super::weigh::{Idle, by_frame, by_stack};
use pagewise_model::profile::{Profile, ProfileSample};
use pagewise_model::profile_findings::Burst;
use pagewise_model::units::Nanos;

/// Stretches that are tried, in nanoseconds: from a stall of a tenth of a second to a slow phase.
const WIDTHS: [u64; 4] = [100_000_000, 500_000_000, 1_000_000_000, 5_000_000_000];
/// Fewest stretches from which "usual" can be told.
const FEWEST: usize = 8;
/// How far above the usual a burst must be, in robust standard deviations, ...
const DEVIATIONS: f64 = 5.0;
/// ... and as a factor.
const FACTOR: f64 = 1.5;
/// Turns a median absolute deviation into a standard deviation of a normal distribution.
const MAD_TO_SIGMA: f64 = 1.4826;

/// The burst that stands out most among all widths, if any does.
pub(super) fn find(profile: &Profile, event: u8, idle: &Idle) -> Option<Burst> {
    if !profile.has_times {
        return None;
    }
    let samples: Vec<ProfileSample> = profile
        .samples
        .iter()
        .filter(|sample| sample.event == event && !idle.is(sample.stack))
        .collect();
    let end = samples.last()?.time;
    let candidates = WIDTHS.iter().filter_map(|&width| {
        let stretches = usize::try_from(end / width).ok()? + 1;
        (stretches >= FEWEST).then(|| outstanding(&samples, width, stretches))?
    });
    let best = candidates.max_by(|a, b| a.score.total_cmp(&b.score))?;
    Some(describe(profile, &samples, &best))
}

struct Candidate {
    from: u64,
    to: u64,
    weight: u64,
    usual: u64,
    score: f64,
}

/// The run of neighbouring stretches of one width that stands out most.
fn outstanding(samples: &[ProfileSample], width: u64, stretches: usize) -> Option<Candidate> {
    let mut weights = vec![0_u64; stretches];
    let mut heaviest_sample = 0;
    for sample in samples {
        weights[usize::try_from(sample.time / width).ok()?] += sample.weight;
        heaviest_sample = heaviest_sample.max(sample.weight);
    }
    let usual = median(&weights);
    let deviations: Vec<u64> = weights
        .iter()
        .map(|&weight| weight.abs_diff(usual))
        .collect();
    // Counts of samples scatter by their square root even where the median deviation is zero.
    let by_counting = (usual.max(heaviest_sample) as f64 * heaviest_sample as f64).sqrt();
    let sigma = (median(&deviations) as f64 * MAD_TO_SIGMA).max(by_counting);
    let limit = (usual as f64 * FACTOR).max(usual as f64 + DEVIATIONS * sigma);
    let peak = (0..stretches).max_by_key(|&at| weights[at])?;
    if (weights[peak] as f64) <= limit {
        return None;
    }
    let above = |at: usize| weights[at] as f64 > limit;
    let first = (0..=peak).rev().take_while(|&at| above(at)).last()?;
    let last = (peak..stretches).take_while(|&at| above(at)).last()?;
    let length = (last - first + 1) as u64;
    Some(Candidate {
        from: first as u64 * width,
        to: (last as u64 + 1) * width,
        weight: weights[first..=last].iter().sum(),
        usual: usual * length,
        score: (weights[peak] as f64 - usual as f64) / sigma,
    })
}

fn median(values: &[u64]) -> u64 {
    let mut sorted = values.to_vec();
    let middle = sorted.len() / 2;
    *sorted.select_nth_unstable(middle).1
}

/// Names the function that makes the difference: whose total weight exceeds most what the rest of
/// the time would let expect, the innermost one where several do alike.
fn describe(profile: &Profile, samples: &[ProfileSample], burst: &Candidate) -> Burst {
    let inside = |sample: &ProfileSample| (burst.from..burst.to).contains(&sample.time);
    let sums = |wanted: bool| {
        let chosen = samples.iter().copied().filter(|s| inside(s) == wanted);
        by_frame(profile, &by_stack(profile, chosen))
    };
    let (within, elsewhere) = (sums(true), sums(false));
    let outside: u64 = samples
        .iter()
        .filter(|s| !inside(s))
        .map(|s| s.weight)
        .sum();
    let share_in = |at: usize| within[at].1 as f64 / burst.weight.max(1) as f64;
    let share_out = |at: usize| elsewhere[at].1 as f64 / outside.max(1) as f64;
    let excess = |at: usize| share_in(at) - share_out(at);
    let most = (0..within.len()).map(excess).fold(0.0, f64::max);
    // Callers have at least their callees' excess; the one with most weight of its own among
    // those that explain at least half of it is the place to look at.
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
    use super::super::tests::Maker;
    use super::*;

    /// Ten seconds at 99 samples a second, some of them idle, with a stall from second 4.2 to 5.2.
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
        let burst = find(&profile, 0, &Idle::of(&profile)).unwrap();
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
    fn steady_load_has_no_burst() {
        let profile = stalled(false);
        assert_eq!(find(&profile, 0, &Idle::of(&profile)), None);
    }
}
