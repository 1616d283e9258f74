//! How faults change over time, and the moments at which they change.
//!
//! Binary segmentation: the split of a series at which the means of both sides differ most is a
//! change if that difference, in standard errors that allow for similar neighbours, is larger than
//! those of the series in random order; then both sides are searched. All series share the level.

use super::cells::Logged;
use super::collector::Collector;
use super::probe::Calibration;
use super::signature::Class;
use pagewise_model::fault_paths::{ChangePoint, Changed, TimeBlock, Timeline};
use pagewise_model::histogram::Histogram;
use pagewise_stats::Random;
use std::collections::BTreeMap;

const MOST_BLOCKS: usize = 128;
/// Faults that a block needs for a median and a 90th percentile.
const FEWEST_FAULTS: usize = 20;
/// Blocks on either side of a change.
const MARGIN: usize = 3;
/// The chance of any false change, over all series.
const LEVEL: f64 = 0.01;
const ORDERS: u32 = 999;
/// Once this many random orders beat the series, it counts as steady.
const BEATEN: u32 = 10;
const SEED: u64 = 1;
/// Kinds with at least this share of faults in some block have their share searched.
const FREQUENT: f64 = 0.05;
/// Lags over which neighbours may be similar.
const LAGS: usize = 3;

/// The timeline of the logged faults.
pub(super) fn timeline(collector: &Collector, calibration: Calibration) -> Timeline {
    let log = &collector.log;
    let length = log.faults.len().div_ceil(MOST_BLOCKS).max(FEWEST_FAULTS);
    let start = collector.first_time;
    let mut blocks: Vec<TimeBlock> = Vec::new();
    let mut last_end = start;
    for chunk in log.faults.chunks(length) {
        if chunk.len() < length / 2 && !blocks.is_empty() {
            break;
        }
        let block = block(collector, calibration, chunk, start, last_end);
        last_end = chunk.last().and_then(|fault| fault.end_ns).or(last_end);
        blocks.push(block);
    }
    let changes = changes(&blocks, log.every);
    Timeline {
        blocks,
        changes,
        every: log.every,
    }
}

fn block(
    collector: &Collector,
    calibration: Calibration,
    faults: &[Logged],
    start: Option<u64>,
    from: Option<u64>,
) -> TimeBlock {
    let mut latency = Histogram::default();
    let mut classes: BTreeMap<Class, (u64, u64, u64)> = BTreeMap::new();
    for fault in faults {
        let shape = &collector.shapes.all[fault.shape as usize];
        let calls = shape.calls_inside();
        latency.record(fault.corrected(calibration.cost(calls)));
        let sum = classes.entry(shape.class).or_default();
        *sum = (sum.0 + 1, sum.1 + fault.whole(), sum.2 + calls as u64);
    }
    let since = |time: Option<u64>| Some(time?.saturating_sub(start?));
    let calls: u64 = classes.values().map(|(_, _, calls)| calls).sum();
    let classes = classes.into_iter();
    TimeBlock {
        start_ns: since(from),
        end_ns: since(faults.last().and_then(|fault| fault.end_ns)),
        faults: faults.len() as u64,
        mean_ns: latency.mean(),
        error_ns: calibration.error(calls as f64 / faults.len().max(1) as f64),
        p50_ns: latency.quantile(0.5),
        p90_ns: latency.quantile(0.9),
        p99_ns: latency.quantile(0.99),
        classes: classes
            .map(|(class, (n, ns, calls))| (class, n, ns, calls))
            .collect(),
    }
}

/// A figure by block, in the form that is searched and the form that is reported.
struct Series {
    what: Changed,
    class: Option<Class>,
    /// Variance-stabilised: a logarithm, or the arc sine of a share's root.
    values: Vec<f64>,
}

fn changes(blocks: &[TimeBlock], every: u64) -> Vec<ChangePoint> {
    let mut all: Vec<Series> = Vec::new();
    let mut add = |what, class, values: Option<Vec<f64>>| {
        all.extend(values.map(|values| Series {
            what,
            class,
            values,
        }));
    };
    let logarithm = |value: u64| (value.max(1) as f64).ln();
    let rates: Option<Vec<f64>> = blocks
        .iter()
        .map(|block| Some(rate(block, every)?.ln()))
        .collect();
    add(Changed::Rate, None, rates);
    add(
        Changed::Median,
        None,
        Some(blocks.iter().map(|b| logarithm(b.p50_ns)).collect()),
    );
    add(
        Changed::Tail,
        None,
        Some(blocks.iter().map(|b| logarithm(b.p90_ns)).collect()),
    );
    let classes: std::collections::BTreeSet<Class> = blocks
        .iter()
        .flat_map(|block| block.classes.iter().map(|(class, ..)| *class))
        .collect();
    let frequent = classes
        .into_iter()
        .filter(|class| blocks.iter().any(|block| share(block, *class) >= FREQUENT));
    for class in frequent {
        let even = |block: &TimeBlock| share(block, class).sqrt().asin();
        add(
            Changed::Mix,
            Some(class),
            Some(blocks.iter().map(even).collect()),
        );
    }
    let number = all.len() as f64;
    let mut random = Random::seeded(SEED);
    let mut found = Vec::new();
    for series in &all {
        let mut at = Vec::new();
        segment(&series.values, 0, number, &mut random, &mut at);
        at.sort_by_key(|(place, _)| *place);
        found.extend(change_points(series, &at, blocks, every));
    }
    found.sort_by_key(|change| change.faults_before);
    found
}

/// Faults per second.
fn rate(block: &TimeBlock, every: u64) -> Option<f64> {
    let ns = block.end_ns?.saturating_sub(block.start_ns?).max(1);
    Some((block.faults * every) as f64 * 1e9 / ns as f64)
}

fn share(block: &TimeBlock, class: Class) -> f64 {
    let of = block.classes.iter().find(|(found, ..)| *found == class);
    of.map_or(0.0, |(_, faults, ..)| {
        *faults as f64 / block.faults.max(1) as f64
    })
}

/// Finds changes in a part of a series that begins at `from`.
fn segment(
    values: &[f64],
    from: usize,
    series: f64,
    random: &mut Random,
    found: &mut Vec<(usize, f64)>,
) {
    let mut search = Search::over(values.len());
    let Some((at, score)) = search.best_split(values) else {
        return;
    };
    let mut order = values.to_vec();
    let (mut tried, mut beaten) = (0, 0);
    while tried < ORDERS && beaten < BEATEN {
        random.shuffle(&mut order);
        tried += 1;
        let by_chance = search.best_split(&order).map_or(0.0, |(_, score)| score);
        beaten += u32::from(by_chance >= score - 1e-9);
    }
    let p = (f64::from(beaten) + 1.0) / (f64::from(tried) + 1.0) * series;
    if p > LEVEL {
        return;
    }
    found.push((from + at, p));
    segment(&values[..at], from, series, random, found);
    segment(&values[at..], from + at, series, random, found);
}

/// Data shared by searches over series of one length.
struct Search {
    /// For each place where a series may be split, the number of values on either side, and the
    /// weight of the difference of their means.
    places: Vec<(f64, f64, f64)>,
    /// Differences from the current means.
    rest: Vec<f64>,
}

impl Search {
    fn over(all: usize) -> Self {
        let weigh = |at: usize| {
            let (left, right) = (at as f64, (all - at) as f64);
            (left, right, (left * right / (left + right)).sqrt())
        };
        let last = all.saturating_sub(MARGIN);
        Self {
            places: (MARGIN..=last).map(weigh).collect(),
            rest: Vec::with_capacity(all),
        }
    }

    /// The place where the means of both sides differ most, and the difference in standard errors.
    fn best_split(&mut self, values: &[f64]) -> Option<(usize, f64)> {
        if self.places.is_empty() {
            return None;
        }
        let total: f64 = values.iter().sum();
        let mut sum: f64 = values[..MARGIN - 1].iter().sum();
        let mut best = (0, 0.0);
        let places = (MARGIN..).zip(&self.places);
        for ((at, &(left, right, weight)), value) in places.zip(&values[MARGIN - 1..]) {
            sum += value;
            let step = (sum / left - (total - sum) / right).abs();
            let weight = step * weight;
            if weight > best.1 {
                best = (at, weight);
            }
        }
        let (at, weight) = best;
        // Below rounding, all values are the same.
        (weight > 1e-9).then(|| (at, weight / self.error(values, at).max(1e-9)))
    }

    /// The standard error of one value around the means of both sides, larger if neighbours are
    /// similar (Newey & West, 1987).
    fn error(&mut self, values: &[f64], at: usize) -> f64 {
        let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
        let (left, right) = values.split_at(at);
        let (below, above) = (mean(left), mean(right));
        let rest = &mut self.rest;
        rest.clear();
        rest.extend(left.iter().map(|value| value - below));
        rest.extend(right.iter().map(|value| value - above));
        // By lag; the sums of all lags are accumulated together.
        let mut products = [-0.0; LAGS + 1];
        let whole = rest.windows(LAGS + 1);
        for pairs in whole {
            for (sum, later) in products.iter_mut().zip(pairs) {
                *sum += pairs[0] * later;
            }
        }
        for from in rest.len().saturating_sub(LAGS)..rest.len() {
            for (sum, later) in products.iter_mut().zip(&rest[from..]) {
                *sum += rest[from] * later;
            }
        }
        let [own, alike @ ..] = products.map(|sum| sum / rest.len() as f64);
        let weigh = |(lag, sum): (usize, f64)| 2.0 * (1.0 - lag as f64 / (LAGS + 1) as f64) * sum;
        let alike: f64 = (1..).zip(alike).map(weigh).sum();
        (own + alike).max(own / 2.0).sqrt()
    }
}

/// The changes with the figures before and after them.
fn change_points(
    series: &Series,
    at: &[(usize, f64)],
    blocks: &[TimeBlock],
    every: u64,
) -> Vec<ChangePoint> {
    let borders: Vec<usize> = std::iter::once(0)
        .chain(at.iter().map(|(place, _)| *place))
        .chain([blocks.len()])
        .collect();
    let figure = |range: &[usize]| level_of(series, &blocks[range[0]..range[1]], every);
    let levels: Vec<f64> = borders.windows(2).map(figure).collect();
    let change = |(number, &(place, p)): (usize, &(usize, f64))| ChangePoint {
        what: series.what,
        class: series.class,
        at_ns: blocks[place].start_ns,
        faults_before: blocks[..place]
            .iter()
            .map(|block| block.faults * every)
            .sum(),
        before: levels[number],
        after: levels[number + 1],
        p_adjusted: p,
    };
    at.iter().enumerate().map(change).collect()
}

fn level_of(series: &Series, blocks: &[TimeBlock], every: u64) -> f64 {
    let faults: u64 = blocks.iter().map(|block| block.faults).sum();
    let middle = |of: fn(&TimeBlock) -> u64| {
        let mut all: Vec<u64> = blocks.iter().map(of).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0) as f64
    };
    match (series.what, series.class) {
        (Changed::Rate, _) => {
            let ns = |block: &TimeBlock| Some(block.end_ns?.saturating_sub(block.start_ns?));
            let ns: u64 = blocks.iter().filter_map(ns).sum();
            (faults * every) as f64 * 1e9 / ns.max(1) as f64
        }
        (Changed::Mix, Some(class)) => {
            let of_class: f64 = blocks
                .iter()
                .map(|b| share(b, class) * b.faults as f64)
                .sum();
            of_class / faults.max(1) as f64
        }
        (Changed::Tail, _) => middle(|block| block.p90_ns),
        (Changed::Median | Changed::Mix, _) => middle(|block| block.p50_ns),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Noise with similar neighbours and a step up at `step`.
    fn noise(random: &mut Random, step: Option<usize>) -> Vec<f64> {
        let mut last = 0.0;
        let draw = |random: &mut Random| random.below(2001) as f64 / 1000.0 - 1.0;
        (0..100)
            .map(|at| {
                last = 0.3 * last + draw(random);
                last + if step.is_some_and(|step| at >= step) {
                    2.0
                } else {
                    0.0
                }
            })
            .collect()
    }

    fn found(values: &[f64]) -> Vec<usize> {
        let mut found = Vec::new();
        segment(values, 0, 1.0, &mut Random::seeded(2), &mut found);
        found.into_iter().map(|(at, _)| at).collect()
    }

    /// Blocks of half a second with `faults` faults, a tenth of them of the zero page.
    fn block(at: u64, faults: u64, p50_ns: u64) -> TimeBlock {
        TimeBlock {
            start_ns: Some(at * 500_000_000),
            end_ns: Some((at + 1) * 500_000_000),
            faults,
            mean_ns: 0.0,
            error_ns: 0.0,
            p50_ns,
            p90_ns: 2 * p50_ns,
            p99_ns: 3 * p50_ns,
            classes: vec![
                (Class::Anonymous, faults * 9 / 10, 0, 0),
                (Class::ZeroPage, faults / 10, 0, 0),
            ],
        }
    }

    #[test]
    fn levels_are_rates_shares_and_the_middle_of_the_blocks() {
        let blocks = [
            block(0, 100, 5_000),
            block(1, 300, 9_000),
            block(2, 200, 7_000),
        ];
        let level = |what, class| {
            let values = Vec::new();
            let series = Series {
                what,
                class,
                values,
            };
            level_of(&series, &blocks, 2)
        };
        // 600 faults, each for two, in a second and a half.
        assert_eq!(level(Changed::Rate, None), 800.0);
        assert_eq!(level(Changed::Median, None), 7_000.0);
        assert_eq!(level(Changed::Tail, None), 14_000.0);
        assert!((level(Changed::Mix, Some(Class::ZeroPage)) - 0.1).abs() < 1e-12);
        assert_eq!(level(Changed::Mix, Some(Class::SwapIn)), 0.0);
    }

    /// [`Search::best_split`] by its definition.
    fn naive_split(values: &[f64]) -> Option<(usize, f64)> {
        let mean = |side: &[f64]| side.iter().sum::<f64>() / side.len() as f64;
        let weight = |at: usize| {
            let (left, right) = values.split_at(at);
            let (n, m) = (left.len() as f64, right.len() as f64);
            (mean(left) - mean(right)).abs() * (n * m / (n + m)).sqrt()
        };
        let places = MARGIN..(values.len() + 1).saturating_sub(MARGIN);
        let at = places.max_by(|x, y| weight(*x).total_cmp(&weight(*y)))?;
        let (left, right) = values.split_at(at);
        let rest: Vec<f64> = left
            .iter()
            .map(|value| value - mean(left))
            .chain(right.iter().map(|value| value - mean(right)))
            .collect();
        let covariance = |lag: usize| {
            let pairs = rest.iter().zip(&rest[lag..]);
            pairs.map(|(a, b)| a * b).sum::<f64>() / rest.len() as f64
        };
        let alike: f64 = (1..=LAGS)
            .map(|lag| 2.0 * (1.0 - lag as f64 / (LAGS + 1) as f64) * covariance(lag))
            .sum();
        let own = covariance(0);
        let error = (own + alike).max(own / 2.0).sqrt();
        (weight(at) > 1e-9).then(|| (at, weight(at) / error.max(1e-9)))
    }

    #[test]
    fn the_best_split_is_that_of_its_definition() {
        let mut random = Random::seeded(10);
        for length in 0..=100 {
            let values = noise(&mut random, Some(40));
            let values = &values[..length];
            let fast = Search::over(length).best_split(values);
            let slow = naive_split(values);
            assert_eq!(fast.map(|(at, _)| at), slow.map(|(at, _)| at), "{length}");
            let scores = fast.zip(slow).map(|((_, fast), (_, slow))| (fast, slow));
            assert!(scores.is_none_or(|(fast, slow)| (fast - slow).abs() < 1e-9 * slow));
        }
    }

    #[test]
    fn steady_series_are_left_alone() {
        let mut random = Random::seeded(8);
        let false_changes = (0..100).filter(|_| !found(&noise(&mut random, None)).is_empty());
        assert!(false_changes.count() <= 5);
        assert_eq!(found(&[3.0; 100]), [0; 0]);
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let mut random = Random::seeded(9);
        for step in [20, 50, 70] {
            let at = found(&noise(&mut random, Some(step)));
            assert_eq!(at.len(), 1, "{at:?}");
            assert!(at[0].abs_diff(step) <= 2, "{at:?} for {step}");
        }
    }
}
