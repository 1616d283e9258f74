//! How far values that should be alike lie apart, where each group has few of them: groups and figures
//! lend each other what they know (empirical Bayes: Smyth, 2004, "Linear models and empirical Bayes
//! methods for assessing differential expression in microarray experiments").

use super::quantile_of;
use crate::distributions::{digamma, inverse_trigamma, trigamma};

/// A variance, and how well it is known: as one from this many degrees of freedom.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// Of single values.
    pub variance: f64,
    /// 0 where nothing is known.
    pub freedom: f64,
}

/// Values in order, seen without one of them.
#[derive(Clone, Copy)]
pub struct Others<'a> {
    sorted: &'a [f64],
    without: usize,
}

/// Degrees of freedom per value of a variance from quartiles: by 200,000 draws from the normal
/// distribution, 0.45 to 0.8 up to 15 values, 0.38 from 60 on.
const EFFICIENCY: f64 = 0.38;
/// The middle half of the normal distribution, in standard deviations.
const MIDDLE_HALF: f64 = 1.349;

impl<'a> Others<'a> {
    /// All values.
    pub fn all(sorted: &'a [f64]) -> Self {
        Self {
            sorted,
            without: sorted.len(),
        }
    }

    /// All but the one at this place.
    pub fn without(sorted: &'a [f64], without: usize) -> Self {
        Self { sorted, without }
    }

    fn len(&self) -> usize {
        self.sorted.len() - usize::from(self.without < self.sorted.len())
    }

    fn quantile(&self, share: f64) -> f64 {
        quantile_of(self.len(), share, |at| {
            self.sorted[at + usize::from(at >= self.without)]
        })
    }

    /// The median.
    pub fn median(&self) -> f64 {
        self.quantile(0.5)
    }

    /// The variance from the middle half, which a few outliers do not widen. Quartiles of few values lie
    /// too close together, by one part in their number (the same draws).
    pub fn spread(&self) -> Spread {
        let n = self.len() as f64;
        let width = (self.quantile(0.75) - self.quantile(0.25)) / MIDDLE_HALF * (1.0 + 1.0 / n);
        Spread {
            variance: width * width,
            freedom: EFFICIENCY * (n - 1.0),
        }
    }
}

impl Spread {
    /// Both together, each by what it knows.
    pub fn with(self, other: Self) -> Self {
        let freedom = self.freedom + other.freedom;
        let sum = self.variance * self.freedom + other.variance * other.freedom;
        Self {
            variance: if freedom > 0.0 { sum / freedom } else { 0.0 },
            freedom,
        }
    }

    /// What is left of several together without one of them.
    pub fn less(self, one: Self) -> Self {
        let freedom = self.freedom - one.freedom;
        let sum = self.variance * self.freedom - one.variance * one.freedom;
        match freedom > 1e-9 {
            true => Self {
                variance: (sum / freedom).max(0.0),
                freedom,
            },
            false => Self::default(),
        }
    }

    /// The same, known no better than this.
    pub fn at_most(self, freedom: f64) -> Self {
        Self {
            freedom: self.freedom.min(freedom),
            ..self
        }
    }

    /// The same variance or a larger one.
    pub fn at_least(self, variance: f64) -> Self {
        Self {
            variance: self.variance.max(variance),
            ..self
        }
    }
}

/// Fewest spreads that say what is usual.
const LEAST_SPREADS: usize = 5;
/// Spreads that differ no more than by chance are known this well.
const MOST_FREEDOM: f64 = 1e3;

/// What spreads of this kind usually are: their typical variance, with fewer degrees of freedom the more
/// the true variances differ. Nothing of fewer than five.
pub fn usual(spreads: &[Spread]) -> Spread {
    let known = spreads
        .iter()
        .filter(|spread| spread.freedom > 0.0 && spread.variance > 0.0);
    let known: Vec<&Spread> = known.collect();
    if known.len() < LEAST_SPREADS {
        return Spread::default();
    }
    let n = known.len() as f64;
    // Logarithms of variances that chance alone would scatter by trigamma.
    let logs = known.iter().map(|spread| {
        let half = spread.freedom / 2.0;
        spread.variance.ln() - digamma(half) + half.ln()
    });
    let logs: Vec<f64> = logs.collect();
    let mean = logs.iter().sum::<f64>() / n;
    let scatter = logs.iter().map(|log| (log - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let chance = known
        .iter()
        .map(|spread| trigamma(spread.freedom / 2.0))
        .sum::<f64>()
        / n;
    let freedom = match scatter > chance {
        true => (2.0 * inverse_trigamma(scatter - chance)).min(MOST_FREEDOM),
        false => MOST_FREEDOM,
    };
    let half = freedom / 2.0;
    Spread {
        variance: (mean + digamma(half) - half.ln()).exp(),
        freedom,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Random;

    fn normal(random: &mut Random) -> f64 {
        let even = |random: &mut Random| (random.bits() as f64 + 0.5) / u64::MAX as f64;
        let (a, b) = (even(random), even(random));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    fn draw(random: &mut Random, values: usize, deviation: f64) -> Vec<f64> {
        let mut values: Vec<f64> = (0..values).map(|_| normal(random) * deviation).collect();
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn a_value_is_left_out() {
        let sorted = [1.0, 2.0, 3.0, 4.0, 100.0];
        assert_eq!(Others::all(&sorted).median(), 3.0);
        assert_eq!(Others::without(&sorted, 4).median(), 2.5);
        assert_eq!(Others::without(&sorted, 0).median(), 3.5);
        let (with, without) = (Others::all(&sorted), Others::without(&sorted, 4));
        assert_eq!(without.spread().freedom, EFFICIENCY * 3.0);
        assert!(with.spread().variance < 10.0);
    }

    #[test]
    fn together_and_apart_again() {
        let spread = |variance, freedom| Spread { variance, freedom };
        let both = spread(1.0, 2.0).with(spread(4.0, 1.0));
        assert_eq!(both, spread(2.0, 3.0));
        assert_eq!(both.less(spread(4.0, 1.0)), spread(1.0, 2.0));
        assert_eq!(spread(1.0, 2.0).less(spread(1.0, 2.0)), Spread::default());
        assert_eq!(spread(3.0, 2.0).with(Spread::default()), spread(3.0, 2.0));
    }

    #[test]
    fn equal_spreads_lend_much_and_unequal_ones_little() {
        let mut random = Random::seeded(1);
        let mut of = |deviation: &dyn Fn(usize) -> f64| {
            let spreads = (0..200).map(|at| {
                let values = draw(&mut random, 12, deviation(at));
                Others::all(&values).spread()
            });
            usual(&spreads.collect::<Vec<_>>())
        };
        let equal = of(&|_| 0.3);
        assert!(equal.freedom > 20.0, "{equal:?}");
        assert!((equal.variance / 0.09 - 1.0).abs() < 0.15, "{equal:?}");
        // Variances from 0.01 to 1, each as often.
        let unequal = of(&|at| 10_f64.powf((at % 11) as f64 / 10.0 - 1.0));
        assert!((0.5..4.0).contains(&unequal.freedom), "{unequal:?}");
        assert_eq!(usual(&[equal; 4]), Spread::default());
    }
}
