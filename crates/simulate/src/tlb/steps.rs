//! Steps in curves of timed pointer chases: where a level of the TLB ends, and what that costs.
//!
//! Noise of a shared machine only ever adds time, so a point's value is a low order statistic of
//! its repetitions: the second smallest of nine. A step is where a curve leaves its level for good:
//! two successive points above it by more than the noise. Intervals come from the bootstrap:
//! repetitions are drawn again, and the step is searched in each draw. Nothing here assumes numbers
//! of entries, page sizes or levels.

use pagewise_model::units::Estimate;
use pagewise_stats::Random;

/// Repeated measurements at one number of pages.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// Pages visited in turn.
    pub pages: u64,
    /// Nanoseconds per step through that many pages, one value per round.
    pub samples: Vec<f64>,
    /// Nanoseconds per step through the same number of adjacent cache lines, one value per round.
    pub data: Vec<f64>,
}

/// Where a curve leaves a level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Number of pages up to which the level reaches.
    pub entries: Estimate,
    /// Height of the next level above this one, in nanoseconds.
    pub height: Estimate,
}

/// Draws of the bootstrap.
const DRAWS: usize = 200;
/// Smaller steps in nanoseconds do not count: half a cycle of a slow core.
const LEAST_HEIGHT: f64 = 0.4;
/// … nor do those below this share of the level that they leave.
const LEAST_SHARE: f64 = 0.3;
/// … or below this many standard errors.
const NOISE: f64 = 6.0;
/// Points of a level differ by at most this share of it.
const LEVEL_SPREAD: f64 = 0.1;
/// A level has at least this many points; anything shorter is a slope.
const LEVEL_POINTS: usize = 4;

impl Reading {
    /// Time of a step minus that of the data itself.
    #[must_use]
    pub fn extra(&self) -> f64 {
        value(&self.samples) - value(&self.data)
    }

    /// The same with its 95 % interval by bootstrap.
    #[must_use]
    pub fn extra_estimate(&self, random: &mut Random) -> Estimate {
        let draws = (0..DRAWS).map(|_| self.redrawn(random).extra());
        spread(self.extra(), draws.collect())
    }

    fn redrawn(&self, random: &mut Random) -> Self {
        Self {
            pages: self.pages,
            samples: redrawn(&self.samples, random),
            data: redrawn(&self.data, random),
        }
    }
}

/// A point's value: the second smallest of nine repetitions. Zero if there are none.
#[must_use]
pub fn value(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 8).copied().unwrap_or(0.0)
}

/// A point's value with its 95 % interval by bootstrap.
#[must_use]
pub fn estimate(samples: &[f64], random: &mut Random) -> Estimate {
    let draws = (0..DRAWS).map(|_| value(&redrawn(samples, random)));
    spread(value(samples), draws.collect())
}

/// The steps of a curve, in order of pages. Readings must be in order of pages.
#[must_use]
pub fn steps(curve: &[Reading], random: &mut Random) -> Vec<Step> {
    let found = find(&values(curve), noise(curve));
    let mut drawn: Vec<Vec<Edge>> = Vec::with_capacity(DRAWS);
    for _ in 0..DRAWS {
        let draw: Vec<Reading> = curve
            .iter()
            .map(|reading| reading.redrawn(random))
            .collect();
        drawn.push(find(&values(&draw), noise(curve)));
    }
    found
        .iter()
        .map(|edge| step(curve, *edge, &drawn))
        .collect()
}

/// Time of one chase beyond its data relative to that of another, with its interval by bootstrap.
/// `None` if the other takes none.
#[must_use]
pub fn extra_share(above: &Reading, below: &Reading, random: &mut Random) -> Option<Estimate> {
    let base = below.extra();
    if base < LEAST_HEIGHT {
        return None;
    }
    let draws = (0..DRAWS).map(|_| {
        let below = below.redrawn(random).extra().max(LEAST_HEIGHT);
        above.redrawn(random).extra() / below
    });
    let draws = draws.collect();
    Some(spread(above.extra() / base, draws))
}

/// A ratio of two points' values with its interval by bootstrap.
#[must_use]
pub fn ratio(above: &[f64], below: &[f64], random: &mut Random) -> Option<Estimate> {
    let base = value(below);
    if base < LEAST_HEIGHT {
        return None;
    }
    let draws = (0..DRAWS).map(|_| {
        let below = value(&redrawn(below, random)).max(LEAST_HEIGHT);
        value(&redrawn(above, random)) / below
    });
    Some(spread(value(above) / base, draws.collect()))
}

/// A step between points `last` (still on the level) and `last + 1`.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Edge {
    last: usize,
    height: f64,
}

/// Time of each point beyond its data: the same number of adjacent lines exceeds the first level of
/// the data cache at the same point, which would otherwise look like a step.
fn values(curve: &[Reading]) -> Vec<f64> {
    curve.iter().map(Reading::extra).collect()
}

/// Typical scatter of a point's value: median over the curve of the distance between the smallest
/// and the lower quartile.
fn noise(curve: &[Reading]) -> f64 {
    let mut scatters: Vec<f64> = curve
        .iter()
        .map(|reading| {
            let mut sorted = reading.samples.clone();
            sorted.sort_by(f64::total_cmp);
            let quartile = sorted.get(sorted.len() / 4).copied().unwrap_or(0.0);
            (quartile - sorted.first().copied().unwrap_or(0.0)) / 2.0
        })
        .collect();
    scatters.sort_by(f64::total_cmp);
    scatters.get(scatters.len() / 2).copied().unwrap_or(0.0)
}

fn find(values: &[f64], noise: f64) -> Vec<Edge> {
    let mut edges = Vec::new();
    let mut start = 0;
    while let Some(edge) = leave(values, start, noise) {
        edges.push(edge);
        match next_level(values, edge.last + 1, noise) {
            Some(level) => start = level,
            None => break,
        }
    }
    edges
}

/// Where the level that begins at `start` ends.
fn leave(values: &[f64], start: usize, noise: f64) -> Option<Edge> {
    for at in start + 1..values.len().saturating_sub(1) {
        let level = median(&values[start..at]);
        let limit = level + threshold(level, noise);
        // A bump that disappears again (lines that share a set of the data cache) is not a step.
        let rest = &values[at..];
        let back = rest.iter().filter(|&&value| value <= limit).count();
        if values[at] > limit && values[at + 1] > limit && back * 10 <= rest.len() {
            let behind = &values[at..(at + LEVEL_POINTS).min(values.len())];
            return Some(Edge {
                last: at - 1,
                height: median(behind) - level,
            });
        }
    }
    None
}

/// First point from `from` on of a stretch of [`LEVEL_POINTS`] that are about equal.
fn next_level(values: &[f64], from: usize, noise: f64) -> Option<usize> {
    (from..values.len().checked_sub(LEVEL_POINTS)?).find(|&at| {
        let stretch = &values[at..at + LEVEL_POINTS];
        let level = median(stretch);
        let most = LEAST_HEIGHT.max(level * LEVEL_SPREAD).max(noise * NOISE);
        stretch.iter().all(|value| (value - level).abs() < most)
    })
}

fn threshold(level: f64, noise: f64) -> f64 {
    LEAST_HEIGHT.max(level * LEAST_SHARE).max(noise * NOISE)
}

fn step(curve: &[Reading], edge: Edge, drawn: &[Vec<Edge>]) -> Step {
    // In each draw the edge nearest to this one, if any is near.
    let twins = drawn.iter().filter_map(|edges| {
        let nearest = edges
            .iter()
            .min_by_key(|other| other.last.abs_diff(edge.last))?;
        (nearest.last.abs_diff(edge.last) <= LEVEL_POINTS).then_some(*nearest)
    });
    let twins: Vec<Edge> = twins.collect();
    let pages = |at: usize| curve.get(at).map_or(0.0, |reading| reading.pages as f64);
    let lows = twins.iter().map(|twin| pages(twin.last)).collect();
    let highs = twins.iter().map(|twin| pages(twin.last + 1)).collect();
    let low = spread(pages(edge.last), lows).low;
    // The first point beyond the level already exceeds it.
    let high = spread(pages(edge.last + 1), highs).high - 1.0;
    Step {
        entries: Estimate {
            value: f64::midpoint(
                pages(edge.last),
                (pages(edge.last + 1) - 1.0).max(pages(edge.last)),
            ),
            low,
            high: high.max(low),
        },
        height: spread(edge.height, twins.iter().map(|twin| twin.height).collect()),
    }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
}

fn redrawn(samples: &[f64], random: &mut Random) -> Vec<f64> {
    let draw = |_: &f64| samples[random.below(samples.len())];
    samples.iter().map(draw).collect()
}

fn spread(value: f64, mut draws: Vec<f64>) -> Estimate {
    draws.sort_by(f64::total_cmp);
    let at = |part: usize| {
        draws
            .get(draws.len() * part / 1000)
            .copied()
            .unwrap_or(value)
    };
    Estimate {
        value,
        low: at(25).min(value),
        high: at(975).max(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TLB of 72 and 3072 entries: 0, then 1.9 ns, then a slope towards 300 ns, with noise that
    /// only adds.
    fn curve(random: &mut Random, noise: f64) -> Vec<Reading> {
        let mut pages = 16.0_f64;
        let mut curve = Vec::new();
        while pages <= 16384.0 {
            let truth = match pages {
                small if small <= 72.0 => 0.0,
                middle if middle <= 3072.0 => 1.9,
                large => 1.9 + 40.0 * (large / 3072.0).log2(),
            };
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "small numbers of a test"
            )]
            let reading = Reading {
                pages: pages as u64,
                samples: (0..9)
                    .map(|_| 1.4 + truth + noise * (random.below(1000) as f64 / 1000.0).powi(4))
                    .collect(),
                data: vec![1.4; 9],
            };
            curve.push(reading);
            pages *= 2_f64.powf(0.25);
        }
        curve
    }

    #[test]
    fn finds_both_levels_of_a_quiet_and_of_a_noisy_machine() {
        let mut random = Random::seeded(1);
        for noise in [0.05, 3.0] {
            let curve = curve(&mut random, noise);
            let found = steps(&curve, &mut random);
            assert_eq!(found.len(), 2, "noise {noise}: {found:?}");
            let holds =
                |step: &Step, truth: f64| step.entries.low <= truth && truth <= step.entries.high;
            assert!(holds(&found[0], 72.0), "{:?}", found[0]);
            // The slope begins at 3072: the first point that stands out is a little beyond.
            assert!(found[1].entries.low <= 3444.0 && found[1].entries.high >= 3072.0);
            assert!((found[0].height.value - 1.9).abs() < 0.5, "{:?}", found[0]);
        }
    }

    #[test]
    fn the_end_of_the_data_cache_is_no_level() {
        let mut random = Random::seeded(3);
        let mut curve = curve(&mut random, 0.05);
        for reading in curve.iter_mut().filter(|reading| reading.pages > 512) {
            let beyond = |value: &mut f64| *value += 2.5;
            reading.samples.iter_mut().for_each(beyond);
            reading.data.iter_mut().for_each(beyond);
        }
        let found = steps(&curve, &mut random);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].entries.low > 2000.0, "{:?}", found[1]);
    }

    #[test]
    fn a_bump_that_goes_away_is_no_step() {
        let mut values = vec![0.0; 8];
        values.extend([1.9; 8]);
        values.extend([4.2; 3]);
        values.extend([2.2; 12]);
        values.extend([20.0, 30.0, 40.0, 50.0, 60.0]);
        let lasts: Vec<usize> = find(&values, 0.05).iter().map(|edge| edge.last).collect();
        assert_eq!(lasts, [7, 30]);
    }

    #[test]
    fn noise_alone_is_no_step() {
        let mut random = Random::seeded(2);
        for round in 0..50 {
            let flat: Vec<Reading> = (1..40)
                .map(|at| Reading {
                    pages: at * 100,
                    samples: (0..9).map(|_| random.below(1000) as f64 / 500.0).collect(),
                    data: vec![0.5; 9],
                })
                .collect();
            assert_eq!(steps(&flat, &mut random), [], "round {round}");
        }
    }

    #[test]
    fn a_ratio_needs_something_to_compare_with() {
        let mut random = Random::seeded(3);
        assert_eq!(ratio(&[1.0; 9], &[0.1; 9], &mut random), None);
        let same = ratio(&[1.9; 9], &[1.9; 9], &mut random).unwrap();
        assert!((same.value - 1.0).abs() < 1e-9);
        let reading = |step: f64| Reading {
            pages: 200,
            samples: vec![step; 9],
            data: vec![1.4; 9],
        };
        let half = extra_share(&reading(2.4), &reading(3.4), &mut random).unwrap();
        assert!((half.value - 0.5).abs() < 1e-9);
        assert_eq!(extra_share(&reading(2.4), &reading(1.5), &mut random), None);
    }
}
