//! When growth is certain: a rule on ranks that is exact for any noise.
//!
//! The order of all runs is drawn at random, so that if old and new are the same program, each of
//! the C(2n, n) arrangements of old and new among the sorted figures is equally likely, whatever
//! the distribution of the figures and the behaviour of the machine: heavy tails, two modes, a
//! machine that gets slower, a load that comes and goes. Growth is certain if all old figures
//! except `spared` are below all new ones. With six against six and one spared, 7 of 924
//! arrangements meet this: 0.76 %, for six figures together 4.5 % at most.
//!
//! ```text
//! o o o o o N o N N N N N      sure: five old runs below all new ones
//! o o o o N o o N N N N N      not sure
//! ```
//!
//! Old runs are spared at the top, not new ones at the bottom, because disturbances make a run take
//! more. Rank tests on pairs cannot decide here: six pairs that all agree have a chance of 1 in 64,
//! 1.6 %, too much for six figures. Student's test has more power on quiet machines, but no bound
//! if runs have two modes.

/// Chance of any false alarm over all figures of one gate.
pub const LEVEL: f64 = 0.05;

/// Number of old runs that may rank anywhere, such that growth seems certain in at most `level` of
/// gates on two equal programs; `None` if even zero gives too many.
#[must_use]
pub fn spared(old: usize, new: usize, level: f64) -> Option<usize> {
    let ways = ways(old + new, new);
    (0..old)
        .take_while(|&spared| self::ways(new + spared, new) / ways <= level)
        .last()
}

/// Ways to choose `chosen` of `all`.
fn ways(all: usize, chosen: usize) -> f64 {
    (1..=chosen).fold(1.0, |ways, at| {
        ways * (all - chosen + at) as f64 / at as f64
    })
}

/// Fewest runs of each side that can make growth certain for one of `figures`.
#[must_use]
pub fn fewest_runs(figures: usize) -> usize {
    let level = LEVEL / figures.max(1) as f64;
    (1..)
        .find(|&runs| spared(runs, runs, level).is_some())
        .unwrap_or(usize::MAX)
}

/// How much more does not count as growth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// As a fraction of the old figure.
    pub share: f64,
    /// In the figure's unit.
    pub least: f64,
}

impl Allowance {
    /// The largest new figure that is allowed for this old one.
    fn limit(self, old: f64) -> f64 {
        (old * (1.0 + self.share)).max(old + self.least)
    }

    /// Whether a new figure exceeds the allowance.
    pub(super) fn is_passed(self, old: f64, new: f64) -> bool {
        new > self.limit(old)
    }
}

/// One figure of all runs so far, and the planned number of runs.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    /// Old runs so far.
    pub old: &'a [f64],
    /// New runs so far.
    pub new: &'a [f64],
    /// Planned old and new runs.
    pub planned: (usize, usize),
    /// Chance of a false alarm allowed for this figure.
    pub level: f64,
}

impl Sample<'_> {
    /// Whether all planned runs are done and the new figures are certainly beyond the allowance.
    #[must_use]
    pub fn has_grown(&self, allowance: Allowance) -> bool {
        (self.old.len(), self.new.len()) == self.planned && self.can_grow(allowance)
    }

    /// Whether the remaining runs could still make growth certain: that becomes impossible once too
    /// many old figures reach a new one.
    #[must_use]
    pub fn can_grow(&self, allowance: Allowance) -> bool {
        let lowest = self.new.iter().copied().fold(f64::INFINITY, f64::min);
        let reach = |old: &&f64| allowance.limit(**old) >= lowest;
        let reaching = self.old.iter().filter(reach).count();
        self.spared().is_some_and(|spared| reaching <= spared)
    }

    /// Growth, as a fraction of the old figures, that is certainly exceeded; `None` before all runs
    /// are done.
    #[must_use]
    pub fn surely_more_than(&self) -> Option<f64> {
        if (self.old.len(), self.new.len()) != self.planned {
            return None;
        }
        let mut old = self.old.to_vec();
        old.sort_by(f64::total_cmp);
        let decisive = old[old.len() - 1 - self.spared()?];
        let lowest = self.new.iter().copied().fold(f64::INFINITY, f64::min);
        (decisive > 0.0).then(|| lowest / decisive - 1.0)
    }

    fn spared(&self) -> Option<usize> {
        spared(self.planned.0, self.planned.1, self.level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_stats::Random;

    /// Share of all arrangements in which `spared` old ones may rank anywhere and the rest are
    /// below all new ones, counted one by one.
    fn naive(old: u32, new: u32, spared: u32) -> f64 {
        let all = old + new;
        let ways = (0u32..1 << all).filter(|places| places.count_ones() == new);
        let sure = |places: &u32| places.trailing_zeros() >= old - spared;
        ways.clone().filter(sure).count() as f64 / ways.count() as f64
    }

    #[test]
    fn chances_are_those_of_all_ways_counted() {
        for (old, new) in [(4, 4), (5, 5), (6, 6), (6, 4), (4, 7), (8, 8)] {
            for level in [0.05, 0.05 / 3.0, LEVEL / 6.0, 0.001] {
                let found = spared(old as usize, new as usize, level);
                let expected = (0..old).filter(|&r| naive(old, new, r) <= level).max();
                assert_eq!(found, expected.map(|r| r as usize), "{old} {new} {level}");
            }
        }
        assert_eq!(spared(6, 6, LEVEL / 6.0), Some(1));
        assert!((naive(6, 6, 1) - 7.0 / 924.0).abs() < 1e-12);
    }

    #[test]
    fn five_runs_of_each_are_the_fewest_for_six_figures() {
        assert_eq!([1, 3, 6].map(fewest_runs), [3, 4, 5]);
    }

    fn sample<'a>(old: &'a [f64], new: &'a [f64]) -> Sample<'a> {
        Sample {
            old,
            new,
            planned: (6, 6),
            level: LEVEL / 6.0,
        }
    }

    const ANY: Allowance = Allowance {
        share: 0.0,
        least: 0.0,
    };

    #[test]
    fn one_disturbed_old_run_does_not_hide_growth_and_two_do() {
        let new = [110.0, 111.0, 112.0, 113.0, 114.0, 115.0];
        let grown = |old: [f64; 6], allowance| sample(&old, &new).has_grown(allowance);
        assert!(grown([100.0, 101.0, 102.0, 103.0, 104.0, 300.0], ANY));
        assert!(!grown([100.0, 101.0, 102.0, 103.0, 110.0, 300.0], ANY));
        let five = Allowance {
            share: 0.05,
            least: 0.0,
        };
        assert!(grown([100.0, 101.0, 102.0, 103.0, 104.0, 104.5], five));
        assert!(!grown([100.0, 101.0, 102.0, 103.0, 104.9, 104.9], five));
        let twelve = Allowance {
            share: 0.0,
            least: 12.0,
        };
        assert!(!grown([100.0; 6], twelve));
    }

    #[test]
    fn the_sure_growth_is_where_the_rule_turns() {
        let (old, new) = ([100.0, 101.0, 99.0, 102.0, 100.5, 107.0], [110.0; 6]);
        let found = sample(&old, &new);
        let sure = found.surely_more_than().unwrap();
        assert!((sure - (110.0 / 102.0 - 1.0)).abs() < 1e-12);
        let by = |share| found.has_grown(Allowance { share, least: 0.0 });
        assert!(by(sure - 1e-6) && !by(sure + 1e-6));
    }

    #[test]
    fn stopping_early_never_changes_the_answer() {
        let mut random = Random::seeded(11);
        let mut early = 0;
        for _ in 0..2_000 {
            let mut draw = |of: f64| 100.0 + of + (random.below(1_000) as f64) / 100.0;
            let old: Vec<f64> = (0..6).map(|_| draw(0.0)).collect();
            let new: Vec<f64> = (0..6).map(|_| draw(6.0)).collect();
            let whole = sample(&old, &new).has_grown(ANY);
            for runs in 0..6 {
                if !sample(&old[..runs], &new[..runs]).can_grow(ANY) {
                    assert!(!whole);
                    early += 1;
                }
            }
        }
        assert!(early > 1_000, "{early}");
    }
}
