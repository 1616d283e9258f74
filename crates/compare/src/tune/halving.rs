//! Successive halving: all arms get a few runs, the better half gets more, and so on (Jamieson and
//! Talwalkar, 2016), so that time is spent where the result is undecided.

use pagewise_model::proof::Comparison;

/// The better half of `arms`, by the geometric mean of their elapsed-time and CPU-time speed-ups;
/// at least `least`. Another arm stays if its interval still reaches the worst of those kept:
/// halving must not remove an arm because of noise that a few more runs would resolve.
#[must_use]
pub fn survivors(arms: &[(usize, Comparison)], least: usize) -> Vec<usize> {
    let mut ranked: Vec<&(usize, Comparison)> = arms.iter().collect();
    ranked.sort_by(|a, b| score(&b.1).total_cmp(&score(&a.1)));
    let kept = arms.len().div_ceil(2).max(least).min(arms.len());
    let Some((_, worst)) = kept.checked_sub(1).map(|at| ranked[at]) else {
        return Vec::new();
    };
    let bar = score(worst);
    let doubtful =
        |arm: &Comparison| arm.pairs >= 2 && reach(arm) >= bar && score(arm) >= bar * CLOSE;
    ranked
        .iter()
        .enumerate()
        .filter(|(rank, (_, arm))| *rank < kept || doubtful(arm))
        .map(|(_, (at, _))| *at)
        .collect()
}

/// Arms within 1 % of the worst one kept count as equally good.
const CLOSE: f64 = 0.99;

fn score(arm: &Comparison) -> f64 {
    (arm.wall_speedup.value * arm.cpu_speedup.value).sqrt()
}

fn reach(arm: &Comparison) -> f64 {
    (arm.wall_speedup.high * arm.cpu_speedup.high).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::proof::Verdict;
    use pagewise_model::units::Estimate;

    fn arm(at: usize, speed: f64) -> (usize, Comparison) {
        let ratio = Estimate {
            value: speed,
            low: speed * 0.999,
            high: speed * 1.001,
        };
        let comparison = Comparison {
            arm: at.to_string(),
            wall_speedup: ratio,
            cpu_speedup: ratio,
            fault_ratio: Estimate::exact(1.0),
            rss_change_bytes: 0.0,
            p_adjusted: 1.0,
            pairs: 3,
            verdict: Verdict::Undecided,
        };
        (at, comparison)
    }

    #[test]
    fn the_better_half_stays_best_first() {
        let arms = [arm(1, 1.0), arm(2, 3.0), arm(3, 0.8), arm(4, 2.0)];
        assert_eq!(survivors(&arms, 1), [2, 4]);
        assert_eq!(survivors(&arms, 3), [2, 4, 1]);
        assert_eq!(survivors(&arms, 9), [2, 4, 1, 3]);
        assert!(survivors(&[], 3).is_empty());
    }

    #[test]
    fn an_arm_as_good_as_the_last_kept_stays_too() {
        let arms = [arm(1, 2.0), arm(2, 1.9995), arm(3, 1.0), arm(4, 3.0)];
        assert_eq!(survivors(&arms, 1), [4, 1, 2]);
    }
}
