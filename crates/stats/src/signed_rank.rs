//! Wilcoxon's signed-rank test and interval for paired differences, exact for any ties.
//!
//! Runs that are shuffled inside each round are exchangeable when the setting has no effect, so
//! their differences are symmetric around zero and the test's level is exact for any noise,
//! including heavy tails and a drifting machine.

/// Exact two-sided p-value of "the differences are symmetric around zero": the share of all
/// sign patterns whose rank sum is at least as far from its middle. 1 when all are zero.
#[must_use]
pub fn p_value(differences: &[f64]) -> f64 {
    let ranked = doubled_ranks(differences);
    let ranks: Vec<usize> = ranked.iter().map(|&(rank, _)| rank).collect();
    let total: usize = ranks.iter().sum();
    let positive: usize = ranked
        .iter()
        .filter(|(_, sign)| *sign)
        .map(|(rank, _)| rank)
        .sum();
    let extreme = positive.min(total - positive);
    let tail: f64 = distribution(&ranks)[..=extreme].iter().sum();
    (2.0 * tail).min(1.0)
}

/// Interval that contains the centre of the differences with at least 95 % confidence: the pairwise
/// means that the test at 5 % does not reject. `None` below six pairs, where no such interval
/// exists (the smallest two-sided p-value of five pairs is 2/32).
#[must_use]
pub fn interval(differences: &[f64]) -> Option<(f64, f64)> {
    let ranks: Vec<usize> = (1..=differences.len()).collect();
    let mut tail = 0.0;
    let mut rejected = 0;
    for chance in distribution(&ranks).iter() {
        tail += chance;
        if tail > 0.025 {
            break;
        }
        rejected += 1;
    }
    let means = pairwise_means(differences);
    let lowest = usize::checked_sub(rejected, 1)?;
    Some((*means.get(lowest)?, *means.get(means.len() - rejected)?))
}

/// Means of all pairs, including each value with itself, ascending (Walsh averages).
fn pairwise_means(values: &[f64]) -> Vec<f64> {
    let mut means: Vec<f64> = values
        .iter()
        .enumerate()
        .flat_map(|(at, a)| values[at..].iter().map(move |b| f64::midpoint(*a, *b)))
        .collect();
    means.sort_by(f64::total_cmp);
    means
}

/// Twice the rank of each non-zero difference by size (so that shared ranks remain integers), with
/// whether it is positive.
fn doubled_ranks(differences: &[f64]) -> Vec<(usize, bool)> {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|d| *d != 0.0).collect();
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let mut ranked = Vec::with_capacity(sorted.len());
    for tie in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let before = ranked.len();
        // Ranks before+1 ..= before+len share their mean.
        let rank = 2 * before + tie.len() + 1;
        ranked.extend(tie.iter().map(|difference| (rank, *difference > 0.0)));
    }
    ranked
}

/// Probability of each rank sum when each sign is a fair coin.
fn distribution(ranks: &[usize]) -> Vec<f64> {
    let mut chances = vec![0.0; ranks.iter().sum::<usize>() + 1];
    chances[0] = 1.0;
    for &rank in ranks {
        for sum in (0..chances.len()).rev() {
            let with = sum
                .checked_sub(rank)
                .map_or(0.0, |without| chances[without]);
            chances[sum] = f64::midpoint(chances[sum], with);
        }
    }
    chances
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// All sign patterns, one by one.
    fn naive(differences: &[f64]) -> f64 {
        let ranked = doubled_ranks(differences);
        let total: usize = ranked.iter().map(|(rank, _)| rank).sum();
        let distance = |sum: usize| (2 * sum).abs_diff(total);
        let seen = ranked
            .iter()
            .filter(|(_, sign)| *sign)
            .map(|(rank, _)| rank)
            .sum();
        let patterns = 1usize << ranked.len();
        let as_far = (0..patterns).filter(|pattern| {
            let sum = ranked.iter().enumerate();
            let sum = sum
                .filter(|(bit, _)| pattern >> bit & 1 == 1)
                .map(|(_, (rank, _))| rank);
            distance(sum.sum()) >= distance(seen)
        });
        as_far.count() as f64 / patterns as f64
    }

    proptest! {
        #[test]
        fn agrees_with_all_sign_patterns(values in proptest::collection::vec(-4i8..=4, 0..12)) {
            let differences: Vec<f64> = values.into_iter().map(f64::from).collect();
            prop_assert!((p_value(&differences) - naive(&differences)).abs() < 1e-12);
        }
    }

    #[test]
    fn agrees_with_published_critical_values() {
        // n = 6: only W = 0 is significant at 5 % two-sided (p = 2/64); n = 5 never.
        assert!((p_value(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) - 2.0 / 64.0).abs() < 1e-12);
        assert!((p_value(&[1.0, 2.0, 3.0, 4.0, 5.0]) - 2.0 / 32.0).abs() < 1e-12);
        // n = 10: W = 8 is the critical value (p = 0.0488), W = 9 is not (0.0645).
        let mut ten: Vec<f64> = (1..=10).map(f64::from).collect();
        ten[7] = -8.0;
        assert!((p_value(&ten) - 0.048_828_125).abs() < 1e-9);
        ten[7] = 8.0;
        ten[8] = -9.0;
        assert!((p_value(&ten) - 0.064_453_125).abs() < 1e-9);
    }

    #[test]
    fn intervals_begin_at_six_pairs() {
        assert_eq!(interval(&[1.0, 2.0, 3.0, 4.0, 5.0]), None);
        assert_eq!(interval(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), Some((1.0, 6.0)));
    }
}
