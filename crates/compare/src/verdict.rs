//! The verdict of a comparison.

use super::stopping::half_width;
use pagewise_model::proof::{Clock, Comparison, Verdict};
use pagewise_model::units::{Bytes, Estimate};

/// What an arm must show to be called faster.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criteria {
    /// Whether faults must have decreased: a fix for faults that avoids none is luck.
    pub fewer_faults: bool,
    /// Largest peak resident memory allowed, if limited.
    pub max_rss: Option<Bytes>,
    /// Gains below this ratio are not worth a setting.
    pub min_gain: f64,
    /// Half-width of the interval (as a share of the ratio) up to which "no difference" can be
    /// claimed.
    pub half_width: f64,
    /// Level of the p-value after Holm's correction.
    pub level: f64,
}

impl Default for Criteria {
    fn default() -> Self {
        Self {
            fewer_faults: true,
            max_rss: None,
            min_gain: 1.01,
            half_width: 0.02,
            level: 0.05,
        }
    }
}

/// Fault counts of unchanged runs repeat within about 1 %; a change of less than twice that is not
/// a decrease.
const FAULTS_FELL: f64 = 0.98;
/// A median elapsed-time ratio below this is "worse" even if its interval contains 1.
const WALL_NOT_WORSE: f64 = 0.98;

/// Whether the whole interval is above 1 and the gain worth naming.
fn gains(ratio: &Estimate, criteria: &Criteria) -> bool {
    ratio.low > 1.0 && ratio.value >= criteria.min_gain
}

/// The clock by which the arm is certainly faster, if any.
#[must_use]
pub fn faster_by(comparison: &Comparison, criteria: &Criteria) -> Option<Clock> {
    let wall = &comparison.wall_speedup;
    if gains(wall, criteria) {
        return Some(Clock::Wall);
    }
    let wall_not_worse = wall.high >= 1.0 && wall.value >= WALL_NOT_WORSE;
    (gains(&comparison.cpu_speedup, criteria) && wall_not_worse).then_some(Clock::Cpu)
}

/// The verdict from measured ratios; `rss` is the arm's median peak.
pub(super) fn judge(comparison: &Comparison, rss: Bytes, criteria: &Criteria) -> Verdict {
    let faults = &comparison.fault_ratio;
    if faster_by(comparison, criteria).is_some() && comparison.p_adjusted <= criteria.level {
        return if criteria.fewer_faults && faults.low >= FAULTS_FELL {
            Verdict::NoDifference
        } else if criteria.fewer_faults && faults.high >= FAULTS_FELL {
            Verdict::Undecided
        } else if criteria.max_rss.is_some_and(|most| rss > most) {
            Verdict::TooMuchMemory
        } else {
            Verdict::Faster
        };
    }
    if is_slower(comparison, criteria) {
        return Verdict::Slower;
    }
    let narrow = |ratio: &Estimate| half_width(ratio) <= criteria.half_width;
    if narrow(&comparison.wall_speedup) && narrow(&comparison.cpu_speedup) {
        Verdict::NoDifference
    } else {
        Verdict::Undecided
    }
}

/// Slower in elapsed time, or in CPU time without a gain in elapsed time.
fn is_slower(comparison: &Comparison, criteria: &Criteria) -> bool {
    let loses = |ratio: &Estimate| ratio.high < 1.0 && ratio.value <= 1.0 / criteria.min_gain;
    loses(&comparison.wall_speedup)
        || loses(&comparison.cpu_speedup) && !gains(&comparison.wall_speedup, criteria)
}
