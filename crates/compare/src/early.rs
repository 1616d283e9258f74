//! Decisions after few pairs: effects far beyond the noise, and arms that can no longer be proved.

use super::{Clock, Criteria, FEWEST_PAIRS, faster_by, sides};
use pagewise_model::proof::{Comparison, Verdict};
use pagewise_model::run::RunCost;
use pagewise_stats::{student, student_tail};

/// Below this number of pairs nothing is decided: two pairs have no meaningful spread.
pub const FEWEST_EARLY: u32 = 3;
/// Level of Student's test at each look at an effect. Looks after each pair add up (Haybittle and
/// Peto: at a thousandth they add next to nothing to an error of 5 %).
const OVERWHELMING: f64 = 0.001;
/// Further pairs are not worth their time if the chance of a proof is below this.
const CHANCE: f64 = 0.1;

/// Runs of both sides on one clock, as logarithms of seconds.
pub(super) struct Sides {
    pub(super) baseline: Vec<f64>,
    pub(super) arm: Vec<f64>,
}

/// Mean difference of the pairs and its deviation.
struct Spread {
    mean: f64,
    deviation: f64,
    pairs: f64,
}

impl Sides {
    /// The gain of the arm in each pair.
    pub(super) fn differences(&self) -> Vec<f64> {
        let pairs = self.baseline.iter().zip(&self.arm);
        pairs.map(|(baseline, arm)| baseline - arm).collect()
    }

    fn spread(&self) -> Option<Spread> {
        let differences = self.differences();
        let pairs = differences.len();
        let mean = differences.iter().sum::<f64>() / pairs as f64;
        let squares: f64 = differences.iter().map(|one| (one - mean).powi(2)).sum();
        (pairs >= FEWEST_EARLY as usize).then(|| Spread {
            mean,
            deviation: (squares / (pairs - 1) as f64).sqrt(),
            pairs: pairs as f64,
        })
    }

    /// Whether every run of one side is faster than every run of the other.
    fn is_apart(&self) -> bool {
        let ends = |side: &[f64]| {
            let least = side.iter().copied().fold(f64::INFINITY, f64::min);
            (
                least,
                side.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            )
        };
        let (baseline, arm) = (ends(&self.baseline), ends(&self.arm));
        baseline.0 > arm.1 || arm.0 > baseline.1
    }

    /// Two-sided p-value of Student's test, if it is small enough to stop at any look.
    fn overwhelming(&self) -> Option<f64> {
        let found = self.spread()?;
        let error = found.deviation / found.pairs.sqrt();
        let p = match error > 0.0 {
            true => student_tail(found.mean / error, (self.arm.len() - 1) as f64),
            false if found.mean == 0.0 => 1.0,
            false => 0.0,
        };
        (p <= OVERWHELMING).then_some(p)
    }

    /// p-value of an effect far beyond the noise, if the two sides do not overlap. It is at least
    /// the chance that a machine with two speeds has all runs of one side at one speed and all of
    /// the other at the other; no test of the differences alone bounds that.
    pub(super) fn p_value(&self) -> Option<f64> {
        let p = self.overwhelming().filter(|_| self.is_apart())?;
        Some(p.max(2.0 * 0.25_f64.powi(i32::try_from(self.arm.len()).ok()?)))
    }

    /// Whether a gain can no longer be proved with `pairs` pairs, given the pairs so far: the best
    /// mean that is still plausible does not exceed the interval's half-width.
    fn is_hopeless(&self, pairs: u32, least: f64) -> bool {
        let Some(found) = self.spread() else {
            return false;
        };
        let all = self.arm.len().max(pairs as usize);
        let to_come = (1.0 / found.pairs - 1.0 / all as f64).sqrt();
        let now = student(CHANCE, self.arm.len() - 1);
        let best = found.mean + now * found.deviation * to_come;
        let takes = student(0.025, all - 1) * found.deviation / (all as f64).sqrt();
        best < takes.max(least.ln())
    }
}

/// Whether a gain is so far beyond the noise that no more pairs are needed, as one of `arms`.
#[must_use]
pub fn is_overwhelming(
    comparison: &Comparison,
    [baseline, arm]: [&[RunCost]; 2],
    arms: usize,
    criteria: &Criteria,
) -> bool {
    let Some(clock) = faster_by(comparison, criteria) else {
        return false;
    };
    let is_proved = comparison.verdict == Verdict::Faster
        && comparison.p_adjusted * arms.max(1) as f64 <= criteria.level;
    is_proved && sides(baseline, arm, clock).overwhelming().is_some()
}

/// Whether an arm can no longer be proved faster with `pairs` pairs, on either clock.
#[must_use]
pub fn is_hopeless([baseline, arm]: [&[RunCost]; 2], pairs: u32, criteria: &Criteria) -> bool {
    let pairs = pairs.max(FEWEST_PAIRS);
    [Clock::Wall, Clock::Cpu]
        .into_iter()
        .all(|clock| sides(baseline, arm, clock).is_hopeless(pairs, criteria.min_gain))
}
