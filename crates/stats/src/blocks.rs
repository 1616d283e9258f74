//! Compares many figures of two traces at once, block by block.
//!
//! Successive events of a trace are similar, so single events are not independent draws, and tests
//! that treat them as such find differences in a trace compared with itself. Here whole blocks of
//! the traces are exchanged. Every figure is a ratio of sums over blocks, for example nanoseconds
//! over faults. Its score is the difference of both traces' ratios in standard errors,
//!
//! ```text
//!            Σ_B n / Σ_B d  −  Σ_A n / Σ_A d                      e = n − (Σ n / Σ d) d
//! score = ─────────────────────────────────────────
//!          √( Σ_A e² / (Σ_A d)²  +  Σ_B e² / (Σ_B d)² )
//! ```
//!
//! which keeps its level even if the traces' variances differ (Chung & Romano, 2013). The largest
//! score of all figures, over random exchanges of blocks, shows how large a score chance makes
//! anywhere (Westfall & Young, 1993, single-step maxT): the chance of any false finding in a whole
//! comparison is the level, whatever the number of figures and their correlation.
//!
//! Scores of rare and of skewed figures vary more by chance than others, and would set the bound
//! for all: every score is first divided by its own figure's width over exchanges
//! ([`Prepared::widths`]).
//!
//! If neighbouring blocks are similar nevertheless, sums over many blocks vary more than exchanges
//! show: the observed scores are divided by that factor ([`lengthening`]; Newey & West, 1987),
//! unless the question is only whether these recordings differ ([`Asked::Recordings`]).

use crate::Random;

/// A figure to compare: sums by block, first those of A, then those of B.
#[derive(Clone, Debug)]
pub struct Figure {
    /// One per block.
    pub numerators: Vec<f64>,
    /// Index of its denominator.
    pub denominator: usize,
}

/// The test result of a figure.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Outcome {
    /// B minus A in standard errors.
    pub score: f64,
    /// Chance of a score this large anywhere if there were no difference.
    pub p_adjusted: f64,
}

/// All outcomes with the number of exchanges made.
#[derive(Clone, Debug, Default)]
pub struct Tested {
    /// One per figure, in their order.
    pub outcomes: Vec<Outcome>,
    /// Exchanges made.
    pub permutations: u32,
    /// Difference in standard errors that a typical figure needs to be significant (one comparison
    /// in [`PER_FALSE_FINDING`]).
    pub critical: f64,
}

/// What a difference must exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// Variation between a program's phases, which neighbouring blocks share: a difference is one
    /// between the programs.
    Programs,
    /// Chance variation from block to block: a difference is one between the recordings, and may be
    /// due to phases of which another recording has more or fewer.
    Recordings,
}

/// How blocks are exchanged.
#[derive(Clone, Copy, Debug)]
pub struct Exchanges {
    /// What a difference must exceed.
    pub asked: Asked,
    /// Most exchanges.
    pub number: u32,
    /// Of the random exchanges.
    pub seed: u64,
}

/// Once this many exchanges beat the strongest figure, it is chance and no more are needed (Besag &
/// Clifford, 1991).
const BEATEN: u32 = 30;

/// One comparison in this many of equal traces may find something.
const PER_FALSE_FINDING: usize = 20;

/// Compares all figures; the first `blocks_a` of their blocks are A's.
pub fn compare_blocks(
    figures: &[Figure],
    denominators: &[Vec<f64>],
    blocks_a: usize,
    exchanges: Exchanges,
) -> Tested {
    let blocks = denominators.first().map_or(0, Vec::len);
    if figures.is_empty() || blocks_a == 0 || blocks_a >= blocks {
        return Tested::default();
    }
    let prepared = Prepared::new(figures, denominators);
    let mut order: Vec<usize> = (0..blocks).collect();
    let mut observed = prepared.scores(&order[..blocks_a]);
    if exchanges.asked == Asked::Programs {
        for (score, figure) in observed.iter_mut().zip(figures) {
            let below = &denominators[figure.denominator];
            *score /= lengthening(&figure.numerators, below, blocks_a);
        }
    }
    let mut random = Random::seeded(exchanges.seed);
    let widths = prepared.widths(&mut order, blocks_a, &mut random);
    let strongest = largest(&observed, &widths);
    let mut by_chance = Vec::new();
    let (mut permutations, mut beaten) = (0, 0);
    while permutations < exchanges.number && beaten < BEATEN {
        random.shuffle(&mut order);
        permutations += 1;
        let most = largest(&prepared.scores(&order[..blocks_a]), &widths);
        by_chance.push(most);
        beaten += u32::from(most >= strongest);
    }
    by_chance.sort_by(f64::total_cmp);
    let outcome = |(&score, &width): (&f64, &f64)| {
        let size = score.abs() / width;
        let below = by_chance.partition_point(|&most| most < size - 1e-9);
        Outcome {
            score,
            p_adjusted: ((by_chance.len() - below) as f64 + 1.0) / (by_chance.len() as f64 + 1.0),
        }
    };
    Tested {
        outcomes: observed.iter().zip(&widths).map(outcome).collect(),
        permutations,
        critical: critical(&by_chance, widths.clone()),
    }
}

/// The score that chance exceeds anywhere in one comparison of [`PER_FALSE_FINDING`], for a figure
/// of median width.
fn critical(by_chance: &[f64], mut widths: Vec<f64>) -> f64 {
    let at = by_chance.len() - 1 - by_chance.len() / PER_FALSE_FINDING;
    widths.sort_by(f64::total_cmp);
    by_chance[at] * widths[widths.len() / 2]
}

fn largest(scores: &[f64], widths: &[f64]) -> f64 {
    let sizes = scores.iter().zip(widths);
    sizes.fold(0.0, |most, (score, width)| most.max(score.abs() / width))
}

/// Exchanges that show how widely a figure's score varies by chance, the number of them beyond the
/// width, and the score that as few exceed in a standard normal distribution.
const TRIALS: usize = 400;
const BEYOND: usize = TRIALS / 50;
const NORMAL: f64 = 2.326;

struct Prepared {
    blocks: usize,
    denominators: Vec<Vec<f64>>,
    totals: Vec<f64>,
    figures: Vec<Residuals>,
}

struct Residuals {
    denominator: usize,
    /// By block: e and e².
    by_block: Vec<[f64; 2]>,
    total: [f64; 2],
    /// Differences below this are rounding errors.
    rounding: f64,
}

impl Prepared {
    fn new(figures: &[Figure], denominators: &[Vec<f64>]) -> Self {
        let totals: Vec<f64> = denominators.iter().map(|all| all.iter().sum()).collect();
        let residuals = figures.iter().map(|figure| {
            let below = &denominators[figure.denominator];
            let total: f64 = figure.numerators.iter().sum();
            let ratio = divide(total, totals[figure.denominator]);
            let pairs = figure.numerators.iter().zip(below);
            let by_block: Vec<[f64; 2]> = pairs
                .map(|(n, d)| n - ratio * d)
                .map(|e| [e, e * e])
                .collect();
            Residuals {
                denominator: figure.denominator,
                total: sum(by_block.iter()),
                by_block,
                rounding: ratio.abs() * 1e-9,
            }
        });
        Self {
            blocks: denominators.first().map_or(0, Vec::len),
            figures: residuals.collect(),
            denominators: denominators.to_vec(),
            totals,
        }
    }

    /// The score of each figure if `a` are A's blocks.
    fn scores(&self, a: &[usize]) -> Vec<f64> {
        debug_assert!(a.len() < self.blocks);
        let sums = self.denominators.iter();
        let sums: Vec<f64> = sums
            .map(|all| a.iter().map(|&block| all[block]).sum())
            .collect();
        let score = |figure: &Residuals| {
            let below_a = sums[figure.denominator];
            let below_b = self.totals[figure.denominator] - below_a;
            if below_a <= 0.0 || below_b <= 0.0 {
                return 0.0;
            }
            let [e, squares] = sum(a.iter().map(|&block| &figure.by_block[block]));
            let (e_b, squares_b) = (figure.total[0] - e, figure.total[1] - squares);
            let difference = e_b / below_b - e / below_a;
            let variance = squares / below_a.powi(2) + squares_b.max(0.0) / below_b.powi(2);
            if difference.abs() <= figure.rounding || variance <= 0.0 {
                return 0.0;
            }
            difference / variance.sqrt()
        };
        self.figures.iter().map(score).collect()
    }

    /// The chance variation of each figure's score, relative to a normal score.
    fn widths(&self, order: &mut [usize], blocks_a: usize, random: &mut Random) -> Vec<f64> {
        let mut sizes = vec![Vec::with_capacity(TRIALS); self.figures.len()];
        for _ in 0..TRIALS {
            random.shuffle(order);
            let scores = self.scores(&order[..blocks_a]);
            for (sizes, score) in sizes.iter_mut().zip(scores) {
                sizes.push(score.abs());
            }
        }
        let width = |mut sizes: Vec<f64>| {
            let at = TRIALS - BEYOND - 1;
            let (_, width, _) = sizes.select_nth_unstable_by(at, f64::total_cmp);
            if *width > 0.0 { *width / NORMAL } else { 1.0 }
        };
        sizes.into_iter().map(width).collect()
    }
}

fn sum<'a, const N: usize>(values: impl Iterator<Item = &'a [f64; N]>) -> [f64; N] {
    let mut sum = [0.0; N];
    for value in values {
        for (sum, value) in sum.iter_mut().zip(value) {
            *sum += value;
        }
    }
    sum
}

/// The difference of a ratio between both traces, with the standard error from the blocks of each.
pub fn difference(numerators: &[f64], denominators: &[f64], blocks_a: usize) -> (f64, f64) {
    let (na, nb) = numerators.split_at(blocks_a);
    let (da, db) = denominators.split_at(blocks_a);
    let ((a, error_a), (b, error_b)) = (ratio(na, da), ratio(nb, db));
    let longer = lengthening(numerators, denominators, blocks_a);
    (b - a, error_a.hypot(error_b) * longer)
}

/// Neighbours whose similarity counts, with decreasing weight.
const LAGS: usize = 3;

/// Factor by which similar neighbours increase the standard error of a difference, compared with
/// independent blocks; at least 1. One standard error of this estimate for independent blocks is
/// subtracted, because few blocks look similar by chance.
fn lengthening(numerators: &[f64], denominators: &[f64], blocks_a: usize) -> f64 {
    let (na, nb) = numerators.split_at(blocks_a);
    let (da, db) = denominators.split_at(blocks_a);
    let (mut independent, mut dependent) = (0.0, 0.0);
    for (n, d) in [(na, da), (nb, db)] {
        let below: f64 = d.iter().sum();
        let ratio = divide(n.iter().sum(), below);
        let residuals: Vec<f64> = n.iter().zip(d).map(|(n, d)| n - ratio * d).collect();
        let product = |lag: usize| -> f64 {
            let pairs = residuals.iter().zip(residuals.iter().skip(lag));
            pairs.map(|(x, y)| x * y).sum()
        };
        let weight = |lag: usize| 2.0 * (1.0 - lag as f64 / (LAGS + 1) as f64);
        let neighbours: f64 = (1..=LAGS).map(|lag| weight(lag) * product(lag)).sum();
        independent += divide(product(0), below.powi(2));
        dependent += divide(product(0) + neighbours, below.powi(2));
    }
    // Twice the root of the squared weights' sum (7/8), over that of the blocks.
    let by_chance = 1.87 / (numerators.len() as f64).sqrt();
    match independent > 0.0 {
        true => (dependent / independent - by_chance).max(1.0).sqrt(),
        false => 1.0,
    }
}

/// A ratio of sums over blocks and its standard error.
pub fn ratio(numerators: &[f64], denominators: &[f64]) -> (f64, f64) {
    let (n, d): (f64, f64) = (numerators.iter().sum(), denominators.iter().sum());
    let ratio = divide(n, d);
    let blocks = numerators.len() as f64;
    let residuals = numerators.iter().zip(denominators);
    let squares: f64 = residuals.map(|(n, d)| (n - ratio * d).powi(2)).sum();
    let error = divide((squares * blocks / (blocks - 1.0).max(1.0)).sqrt(), d);
    (ratio, error)
}

fn divide(n: f64, d: f64) -> f64 {
    if d > 0.0 { n / d } else { 0.0 }
}

/// Correlation of neighbouring values.
pub fn neighbour_correlation(values: &[f64]) -> f64 {
    let mean = divide(values.iter().sum(), values.len() as f64);
    let variance: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let pairs = values.windows(2);
    let covariance: f64 = pairs.map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    divide(covariance, variance)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCKS: usize = 40;

    fn programs(number: u32, seed: u64) -> Exchanges {
        Exchanges {
            asked: Asked::Programs,
            number,
            seed,
        }
    }

    /// A roughly normal draw.
    fn normal(random: &mut Random) -> f64 {
        let uniform = |random: &mut Random| random.below(1 << 20) as f64 / f64::from(1 << 20);
        (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
    }

    /// 50 figures over one denominator, equal in both traces except for `planted` on the first.
    fn figures(random: &mut Random, planted: f64) -> (Vec<Figure>, Vec<Vec<f64>>) {
        let faults: Vec<f64> = (0..BLOCKS)
            .map(|_| 50.0 + random.below(30) as f64)
            .collect();
        let figure = |number: usize, random: &mut Random| {
            // Skewed.
            let value = |block: usize, random: &mut Random| {
                let draw = normal(random);
                let shift = if number == 0 && block >= BLOCKS / 2 {
                    planted
                } else {
                    0.0
                };
                faults[block] * (10.0 + shift + draw * draw)
            };
            Figure {
                numerators: (0..BLOCKS).map(|block| value(block, random)).collect(),
                denominator: 0,
            }
        };
        let all = (0..50).map(|number| figure(number, random)).collect();
        (all, vec![faults])
    }

    #[test]
    fn chance_alone_is_rarely_called_a_difference() {
        let mut random = Random::seeded(11);
        let false_findings = (0..200)
            .filter(|_| {
                let (figures, below) = figures(&mut random, 0.0);
                let tested = compare_blocks(&figures, &below, BLOCKS / 2, programs(199, 3));
                tested
                    .outcomes
                    .iter()
                    .any(|outcome| outcome.p_adjusted <= 0.05)
            })
            .count();
        // 10 are expected; a binomial has 20 or more once in 700 times.
        assert!((1..20).contains(&false_findings), "{false_findings}");
    }

    #[test]
    fn a_planted_difference_is_found_alone() {
        let mut random = Random::seeded(5);
        let (figures, below) = figures(&mut random, 3.0);
        let tested = compare_blocks(&figures, &below, BLOCKS / 2, programs(499, 3));
        let found: Vec<usize> = (0..50)
            .filter(|&at| tested.outcomes[at].p_adjusted <= 0.01)
            .collect();
        assert_eq!(found, [0]);
        assert!(tested.outcomes[0].score > 4.0);
        let (change, error) = difference(&figures[0].numerators, &below[0], BLOCKS / 2);
        assert!((change - 3.0).abs() < 3.0 * error, "{change} ± {error}");
    }

    /// Phases that last for several blocks: few phases are drawn, not many blocks.
    #[test]
    fn phases_longer_than_blocks_are_no_difference() {
        let mut random = Random::seeded(17);
        let mut found = 0;
        for _ in 0..200 {
            let mut level = 0.0;
            let value = |block: usize| {
                if block.is_multiple_of(3) {
                    level = normal(&mut random);
                }
                50.0 * (10.0 + level + 0.5 * normal(&mut random))
            };
            let numerators: Vec<f64> = (0..2 * BLOCKS).map(value).collect();
            let figure = Figure {
                numerators,
                denominator: 0,
            };
            let faults = vec![50.0; 2 * BLOCKS];
            let tested = compare_blocks(&[figure], &[faults], BLOCKS, programs(199, 3));
            found += usize::from(tested.outcomes[0].p_adjusted <= 0.05);
        }
        // 10 are expected; with exchanges alone there were 35 and more.
        assert!(found <= 22, "{found}");
    }

    #[test]
    fn equal_and_empty_figures_are_no_difference() {
        let faults = vec![10.0; 8];
        let figures = [vec![70.0; 8], vec![0.0; 8]].map(|numerators| Figure {
            numerators,
            denominator: 0,
        });
        let tested = compare_blocks(&figures, &[faults], 4, programs(99, 1));
        assert!(
            tested
                .outcomes
                .iter()
                .all(|o| o.score == 0.0 && o.p_adjusted == 1.0)
        );
        assert!(
            compare_blocks(&[], &[], 4, programs(99, 1))
                .outcomes
                .is_empty()
        );
    }
}
