//! Which arms of an experiment are worth more runs, and why the others are not.

use crate::{
    Criteria, FEWEST_EARLY, Stopping, faster_by, half_width, is_hopeless, is_overwhelming,
};
use pagewise_model::proof::{Clock, Comparison};
use pagewise_model::run::RunCost;

/// What is known of an arm so far.
#[derive(Clone, Debug)]
pub struct Standing<'a> {
    /// The arm against the baseline, not corrected for many.
    pub comparison: Comparison,
    /// The runs of the baseline and of the arm.
    pub runs: [&'a [RunCost]; 2],
}

/// Whether an arm gets more runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// More pairs may decide, or narrow the result.
    Open,
    /// Its gain is known as precisely as required, or is far beyond the noise.
    Decided,
    /// No relevant gain can be proved within the budget.
    Hopeless,
    /// The arm of this name is certainly faster.
    Beaten(String),
}

/// When arms are abandoned or decided.
#[derive(Clone, Copy, Debug)]
pub struct Rules<'a> {
    /// Number of pairs, for this number of arms.
    pub stopping: Stopping,
    /// The criteria for "faster".
    pub criteria: &'a Criteria,
    /// Arms that compete.
    pub arms: usize,
    /// Pairs possible for each arm within the budget.
    pub pairs: u32,
}

/// Interval half-width up to which an arm far beyond the noise needs no more pairs to be chosen
/// among similarly good ones: the others are within this distance.
const ALIKE: f64 = 0.1;

impl Rules<'_> {
    /// The fate of each arm.
    #[must_use]
    pub fn fates(&self, arms: &[Standing<'_>]) -> Vec<Fate> {
        let leader = self.leader(arms);
        let fate = |arm: &Standing<'_>| match leader {
            Some((best, clock)) if is_beaten(&arm.comparison, best, clock) => {
                Fate::Beaten(best.arm.clone())
            }
            _ => self.alone(arm),
        };
        let mut fates: Vec<Fate> = arms.iter().map(fate).collect();
        let open = |fates: &[Fate]| fates.iter().filter(|one| **one == Fate::Open).count();
        // The last open arm has no competitor left.
        if open(&fates) == 1
            && let Some(at) = fates.iter().position(|one| *one == Fate::Open)
            && self.is_overwhelming(&arms[at])
        {
            fates[at] = Fate::Decided;
        }
        fates
    }

    /// The fate of an arm regardless of the others.
    fn alone(&self, arm: &Standing<'_>) -> Fate {
        let found = &arm.comparison;
        let message =
            faster_by(found, self.criteria).map(|clock| half_width(clock.speed_up(found)));
        let is_near = message.is_some_and(|width| width <= ALIKE);
        if self.stopping.enough(found) || is_near && self.is_overwhelming(arm) {
            Fate::Decided
        } else if is_hopeless(arm.runs, self.pairs, self.criteria) {
            Fate::Hopeless
        } else {
            Fate::Open
        }
    }

    fn is_overwhelming(&self, arm: &Standing<'_>) -> bool {
        is_overwhelming(&arm.comparison, arm.runs, self.arms, self.criteria)
    }

    /// The arm far beyond the noise whose interval begins highest.
    fn leader<'a>(&self, arms: &'a [Standing<'_>]) -> Option<(&'a Comparison, Clock)> {
        let far = arms.iter().filter(|arm| self.is_overwhelming(arm));
        let led = far
            .filter_map(|arm| Some((&arm.comparison, faster_by(&arm.comparison, self.criteria)?)));
        led.max_by(|(a, one), (b, other)| one.speed_up(a).low.total_cmp(&other.speed_up(b).low))
    }
}

/// Whether `best` is certainly faster than an arm.
fn is_beaten(arm: &Comparison, best: &Comparison, clock: Clock) -> bool {
    arm.pairs >= FEWEST_EARLY && clock.speed_up(arm).high < clock.speed_up(best).low
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare;
    use pagewise_model::units::Nanos;

    fn runs(seconds: &[f64]) -> Vec<RunCost> {
        let run = |&seconds: &f64| RunCost {
            wall: Nanos::from_secs_f64(seconds),
            user: Nanos::from_secs_f64(seconds),
            ..RunCost::default()
        };
        seconds.iter().map(run).collect()
    }

    /// The fates of arms that take these seconds, with a baseline of about one.
    fn fates(arms: &[[f64; 4]], pairs: u32) -> Vec<Fate> {
        let criteria = Criteria {
            fewer_faults: false,
            ..Criteria::default()
        };
        let baseline = runs(&[1.0, 1.02, 0.99, 1.01]);
        let arms: Vec<Vec<RunCost>> = arms.iter().map(|seconds| runs(seconds)).collect();
        let standings: Vec<Standing<'_>> = arms
            .iter()
            .enumerate()
            .map(|(at, arm)| Standing {
                comparison: compare(&at.to_string(), &baseline, arm, &criteria),
                runs: [&baseline, arm],
            })
            .collect();
        let rules = Rules {
            stopping: Stopping::default(),
            criteria: &criteria,
            arms: arms.len(),
            pairs,
        };
        rules.fates(&standings)
    }

    const EIGHTH: [f64; 4] = [0.125, 0.124, 0.126, 0.125];
    const HALF: [f64; 4] = [0.5, 0.52, 0.49, 0.5];
    const SAME: [f64; 4] = [1.01, 1.0, 1.02, 0.98];
    const SLOWER: [f64; 4] = [1.2, 1.25, 1.22, 1.19];

    #[test]
    fn clear_gains_are_decided_and_slower_arms_dropped() {
        assert_eq!(fates(&[EIGHTH], 30), [Fate::Decided]);
        assert_eq!(fates(&[SLOWER], 30), [Fate::Hopeless]);
        // Thirty pairs may still show 1 %; five will not.
        assert_eq!(fates(&[SAME], 30), [Fate::Open]);
        assert_eq!(fates(&[SAME], 5), [Fate::Hopeless]);
    }

    #[test]
    fn an_arm_that_another_passes_beyond_doubt_gets_no_more_runs() {
        let beaten = || Fate::Beaten("0".to_owned());
        assert_eq!(
            fates(&[EIGHTH, HALF, SAME], 30),
            [Fate::Decided, beaten(), beaten()]
        );
    }

    #[test]
    fn two_candidates_go_on_until_distinct_or_alike() {
        let rough = [0.5, 0.57, 0.46, 0.5];
        let other = [0.48, 0.55, 0.44, 0.5];
        assert_eq!(fates(&[rough, other], 30), [Fate::Open, Fate::Open]);
        assert_eq!(fates(&[HALF, HALF], 30), [Fate::Decided, Fate::Decided]);
    }
}
