//! Whether functions took more CPU time in one whole run of a program than in another.
//!
//! A run does the same work, so its CPU time is compared, whatever its elapsed time and the other
//! load. Blocks of time do not measure chance here: a program's phases make them differ by nature.
//! Two runs of one program differ by
//!
//! * sampling: a function gets its number of samples by chance (binomial),
//! * the machine's speed: other work on the same core, cache or hypervisor slows all functions
//!   down, up to a limit that depends on how contended the CPUs were. The slowdown is estimated
//!   from the functions themselves, as the one on which most of them agree, and removed,
//! * each function's own noise: memory-bound ones suffer more from neighbours than others.

use super::chance::{Tested, two_sided};
use pagewise_model::units::Estimate;

/// One side's CPU time and the samples that divide it among functions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Run {
    /// CPU time, or events, of the whole run.
    pub(super) total: f64,
    /// Effective number of samples, as if of equal weights.
    pub(super) samples: f64,
    /// How contended its CPUs were, from 0 to 1; `None` if not known.
    pub(super) contended: Option<f64>,
    /// Share of the CPUs' time that a hypervisor gave to others; 0 if not known.
    pub(super) stolen: f64,
    /// Elapsed seconds.
    pub(super) seconds: f64,
}

/// The general slowdown of B's run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Slowdown {
    /// B's time over A's for the same work.
    pub(super) factor: f64,
    /// Standard error of its logarithm.
    pub(super) error: f64,
}

/// Spread of a whole run's CPU time between equal runs (standard deviation of the logarithm), on
/// dedicated CPUs and on fully contended ones. Eight runs of a second of `bench/diff/functions.c`
/// on two busy virtual CPUs varied by 1 to 2 % in arithmetic and by 10 % in cache misses; no wider
/// set of programs has been measured yet.
const WHOLE: (f64, f64) = (0.03, 0.10);
/// The same for one function relative to the rest of its run. With 0.045 on contended CPUs, 2 of 20
/// pairs of similar runs next to a load reported a change: one in a table's lookups, which depend
/// on the run's random seed for hashes, one in the return from interrupts, which are now left out.
const ONE: (f64, f64) = (0.010, 0.060);
/// Least change of one function that is reported, as the logarithm of its ratio, if all its time
/// may be within one episode: a hypervisor's other guests slow down code that depends on caches and
/// memory by up to 2.1, in episodes that no counter of this machine shows. A function that runs for
/// longer contains its share of them: this value divided by its seconds in the shorter run. Without
/// this limit, 4 of 24 pairs of equal runs reported a change on idle CPUs; with 0.6 in place of 0.8,
/// 2 of 20 next to other work (Python's lookups: 142 and 266 ms, 162 and 329 ms).
const IN_EPISODES: f64 = 0.8;
const OVER_SECONDS: f64 = 0.2;
/// How much longer and deeper such episodes are assumed to be, per share of stolen time: while a
/// hypervisor took a fifth of the time, lookups in a table of 4 MiB took 320 ms in one run and 690
/// ms in another.
const OF_STOLEN: f64 = 10.0;
/// Contention that is assumed if it is unknown.
const UNKNOWN: f64 = 0.5;
/// Functions this many standard errors off the slowdown are ignored when it is estimated: they
/// changed.
const CHANGED: f64 = 3.0;
/// Smaller functions contribute little to the estimate of the slowdown.
const LEAST_WITNESS: f64 = 0.02;
/// Steps of the search for the slowdown on either side of zero.
const STEPS: i32 = 100;
/// Changes below this share of a run do not matter.
const LEAST_CHANGE: f64 = 0.01;

/// How a run's noise grows with contention.
fn spread((alone, contended): (f64, f64), runs: &[Run; 2]) -> f64 {
    let degree = |run: &Run| run.contended.unwrap_or(UNKNOWN);
    let most = degree(&runs[0]).max(degree(&runs[1]));
    alone + (contended - alone) * most
}

/// The least change of a function that takes `seconds` that episodes do not explain, given the
/// stolen time.
fn beyond_episodes(seconds: f64, stolen: f64) -> f64 {
    IN_EPISODES.min(OVER_SECONDS / seconds) * (1.0 + OF_STOLEN * stolen)
}

/// The parameters of a comparison, before any function is examined.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparing {
    runs: [Run; 2],
    pub(super) slowdown: Slowdown,
    /// Each function's own noise.
    noise: f64,
}

impl Comparing {
    /// `own` contains the self time of each function in both runs.
    pub(super) fn new(runs: [Run; 2], own: &[(f64, f64)]) -> Self {
        let mut comparing = Self {
            runs,
            slowdown: Slowdown {
                factor: 1.0,
                error: 0.0,
            },
            noise: spread(ONE, &runs),
        };
        comparing.slowdown = comparing.slowdown_of(own);
        comparing
    }

    /// The slowdown with which fewest functions disagree, limited to what contention can cause.
    fn slowdown_of(&self, own: &[(f64, f64)]) -> Slowdown {
        let whole = spread(WHOLE, &self.runs);
        let witnesses: Vec<(f64, f64)> = own
            .iter()
            .filter_map(|&amounts| self.witness(amounts))
            .collect();
        let disagreement = |log: f64| {
            let of = |&(ratio, error): &(f64, f64)| ((ratio - log) / error).powi(2);
            let each = |witness: &(f64, f64)| of(witness).min(CHANGED.powi(2));
            (log / whole).powi(2) + witnesses.iter().map(each).sum::<f64>()
        };
        let log = (-STEPS..=STEPS)
            .map(|step| 3.0 * whole * f64::from(step) / f64::from(STEPS))
            .min_by(|a, b| disagreement(*a).total_cmp(&disagreement(*b)))
            .unwrap_or(0.0);
        let agree = witnesses
            .iter()
            .filter(|(ratio, error)| ((ratio - log) / error).abs() < CHANGED);
        let weight: f64 = agree.map(|(_, error)| error.powi(-2)).sum();
        Slowdown {
            factor: log.exp(),
            error: (whole.powi(-2) + weight).sqrt().recip(),
        }
    }

    /// Logarithm of a function's growth, with its standard error.
    fn witness(&self, (a, b): (f64, f64)) -> Option<(f64, f64)> {
        let [in_a, in_b] = self.runs;
        let shares = [a / in_a.total, b / in_b.total];
        if shares[0].min(shares[1]) < LEAST_WITNESS {
            return None;
        }
        let relative = |share: f64, run: Run| (1.0 - share).max(0.0) / (share * run.samples);
        let variance =
            relative(shares[0], in_a) + relative(shares[1], in_b) + 2.0 * self.noise.powi(2);
        Some(((b / a).ln(), variance.sqrt()))
    }

    /// B's amounts at A's speed, minus A's: each of `amounts`, with its chance among all of them.
    pub(super) fn test(&self, amounts: &[(f64, f64)]) -> Vec<Tested> {
        let least = LEAST_CHANGE * self.runs[0].total.max(self.total_b());
        let one = |&(a, b): &(f64, f64)| {
            let b = b / self.slowdown.factor;
            let beyond = self.beyond_episodes(self.seconds_of(a).min(self.seconds_of(b)));
            let (change, error) = (b - a, self.error(a, b));
            let chance = two_sided(change / error) * amounts.len() as f64;
            Tested {
                change: Estimate {
                    value: change,
                    low: change - 1.96 * error,
                    high: change + 1.96 * error,
                },
                error,
                p_adjusted: chance.min(1.0),
                matters: change.abs() >= least && (b / a).ln().abs() >= beyond,
            }
        };
        amounts.iter().map(one).collect()
    }

    /// The least change that is reported of a function with this share of the run.
    pub(super) fn least_of_large(&self, share: f64) -> f64 {
        let size = share * self.runs[0].total;
        let grown = size * self.beyond_episodes(self.seconds_of(size)).exp_m1();
        grown.max(LEAST_CHANGE * self.runs[0].total)
    }

    fn beyond_episodes(&self, seconds: f64) -> f64 {
        let [a, b] = self.runs;
        beyond_episodes(seconds, a.stolen.max(b.stolen))
    }

    /// Elapsed seconds that an amount stands for.
    fn seconds_of(&self, amount: f64) -> f64 {
        let [in_a, in_b] = self.runs;
        let both = in_a.total + self.total_b();
        (in_a.seconds + in_b.seconds) * amount / both.max(f64::MIN_POSITIVE)
    }

    fn total_b(&self) -> f64 {
        self.runs[1].total / self.slowdown.factor
    }

    /// Standard error of a difference, if both are equal.
    fn error(&self, a: f64, b: f64) -> f64 {
        let [in_a, in_b] = self.runs;
        let totals = [in_a.total, self.total_b()];
        let seen = a / totals[0] * in_a.samples + b / totals[1] * in_b.samples;
        let all = in_a.samples + in_b.samples;
        // Half a sample either way is always uncertain.
        let share = (seen.max(1.0) / all).min(1.0);
        let mean = f64::midpoint(a, b);
        let sampling = share
            * (1.0 - share)
            * (totals[0].powi(2) / in_a.samples + totals[1].powi(2) / in_b.samples);
        let noise = 2.0 * (self.noise * mean).powi(2);
        let speed = (self.slowdown.error * mean).powi(2);
        (sampling + noise + speed).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_stats::Random;

    const ALONE: Option<f64> = Some(0.0);

    /// A thousand samples per second.
    fn run(total: f64, samples: f64, contended: Option<f64>) -> Run {
        Run {
            total,
            samples,
            contended,
            stolen: 0.0,
            seconds: samples / 1_000.0,
        }
    }

    /// Both runs' amounts of functions with these shares, sampled; B's take `grown` times as long.
    fn sampled(
        random: &mut Random,
        work: &[f64],
        grown: &[f64],
        samples: usize,
        contended: Option<f64>,
    ) -> (Comparing, Vec<(f64, f64)>) {
        let mut side = |times: &[f64]| -> (Vec<f64>, f64) {
            let total: f64 = times.iter().sum();
            let mut counts = vec![0.0; times.len()];
            for _ in 0..samples {
                let mut draw = random.below(1_000_000) as f64 / 1e6 * total;
                let at = times.iter().position(|time| {
                    draw -= time;
                    draw < 0.0
                });
                counts[at.unwrap_or(times.len() - 1)] += total / samples as f64;
            }
            (counts, total)
        };
        let later: Vec<f64> = work.iter().zip(grown).map(|(time, by)| time * by).collect();
        let ((a, total_a), (b, total_b)) = (side(work), side(&later));
        let amounts: Vec<(f64, f64)> = a.into_iter().zip(b).collect();
        let mut runs = [total_a, total_b].map(|total| run(total, samples as f64, contended));
        runs[1].seconds *= total_b / total_a;
        (Comparing::new(runs, &amounts), amounts)
    }

    fn claims(comparing: &Comparing, amounts: &[(f64, f64)]) -> Vec<usize> {
        let tested = comparing.test(amounts);
        let sure = tested
            .iter()
            .enumerate()
            .filter(|(_, t)| t.is_significant());
        sure.map(|(at, _)| at).collect()
    }

    const WORK: [f64; 5] = [3.0, 2.5, 2.0, 1.5, 1.0];

    #[test]
    fn equal_runs_differ_in_nothing_even_if_one_is_slowed() {
        let mut random = Random::seeded(1);
        for slower in [1.0, 1.08, 1.2, 0.85] {
            let wrong = (0..100)
                .filter(|_| {
                    let (comparing, amounts) =
                        sampled(&mut random, &WORK, &[slower; 5], 2_000, Some(1.0));
                    !claims(&comparing, &amounts).is_empty()
                })
                .count();
            assert!(wrong <= 2, "{slower}: {wrong} of 100");
        }
    }

    #[test]
    fn growth_by_half_is_found_in_a_busier_second_run() {
        let mut random = Random::seeded(2);
        for slower in [1.0, 1.15] {
            for at in 0..3 {
                let mut grown = [slower; 5];
                grown[at] *= 1.5;
                let (comparing, amounts) = sampled(&mut random, &WORK, &grown, 4_000, Some(1.0));
                assert_eq!(claims(&comparing, &amounts), [at], "{slower}");
                assert!(comparing.test(&amounts)[at].change.value > 0.0);
            }
        }
    }

    /// For a function that is a third of the run, on dedicated CPUs.
    #[test]
    fn a_tenth_more_is_found_with_twenty_thousand_samples() {
        let mut random = Random::seeded(3);
        let found = (0..40).filter(|_| {
            let grown = [1.1, 1.0, 1.0, 1.0, 1.0];
            let (comparing, amounts) = sampled(&mut random, &WORK, &grown, 20_000, ALONE);
            claims(&comparing, &amounts) == [0]
        });
        let found = found.count();
        assert!(found >= 36, "{found} of 40");
    }

    #[test]
    fn twice_as_long_in_everything_is_growth_on_quiet_cpus() {
        let mut random = Random::seeded(4);
        let (comparing, amounts) = sampled(&mut random, &WORK, &[2.0; 5], 6_000, ALONE);
        assert_eq!(claims(&comparing, &amounts), [0, 1, 2, 3, 4]);
    }

    #[test]
    fn a_program_of_one_function_is_judged_by_its_cpu_time() {
        let one = |b: f64, contended: Option<f64>| {
            let runs = [run(10.0, 1_000.0, contended), run(b, 1_000.0, contended)];
            let comparing = Comparing::new(runs, &[(10.0, b)]);
            claims(&comparing, &[(10.0, b)])
        };
        assert_eq!(one(15.0, Some(1.0)), [0]);
        assert_eq!(one(15.0, ALONE), [0]);
        assert!(one(10.5, ALONE).is_empty() && one(12.0, Some(1.0)).is_empty());
    }

    /// Based on two runs of sort of half a second on idle CPUs.
    #[test]
    fn a_short_run_may_be_inside_one_slow_episode() {
        let amounts = [(0.332, 0.444), (0.1, 0.12), (0.06, 0.07), (0.027, 0.03)];
        let claims_of = |scale: f64| {
            let amounts = amounts.map(|(a, b)| (a * scale, b * scale));
            let totals = [0.519 * scale, 0.677 * scale];
            let runs = totals.map(|total| run(total, total * 1_000.0, ALONE));
            claims(&Comparing::new(runs, &amounts), &amounts)
        };
        assert!(claims_of(1.0).is_empty());
        assert_eq!(claims_of(60.0).first(), Some(&0));
        let beyond = [0.0, 0.5, 10.0].map(|seconds| beyond_episodes(seconds, 0.0));
        assert_eq!(beyond, [0.8, 0.4, 0.02]);
        // Python's lookups next to other work.
        let amounts = [(0.142, 0.266), (0.5, 0.6), (0.28, 0.4)];
        let runs = [0.925, 1.275].map(|total| run(total, total * 1_000.0, Some(0.3)));
        assert!(claims(&Comparing::new(runs, &amounts), &amounts).is_empty());
    }

    /// Based on two runs of `functions.c` while the hypervisor took a fifth of the time.
    #[test]
    fn stolen_time_allows_cache_bound_code_twice_as_long() {
        let amounts = [(0.32, 0.69), (0.4, 0.42), (0.3, 0.31), (0.2, 0.21)];
        let claims_of = |stolen: f64| {
            let runs = [1.22, 1.63].map(|total| Run {
                stolen,
                ..run(total, total * 1_000.0, Some(1.0))
            });
            claims(&Comparing::new(runs, &amounts), &amounts)
        };
        assert_eq!(claims_of(0.0), [0]);
        assert!(claims_of(0.2).is_empty());
    }

    #[test]
    fn a_few_samples_prove_nothing() {
        let runs = [run(0.1, 10.0, ALONE), run(0.1, 10.0, ALONE)];
        let amounts = [(0.03, 0.06), (0.07, 0.04), (0.0, 0.01)];
        let comparing = Comparing::new(runs, &amounts);
        assert!(claims(&comparing, &amounts).is_empty());
        for tested in comparing.test(&[(0.0, 0.0), (0.1, 0.1)]) {
            assert!(tested.change.low.is_finite() && tested.p_adjusted <= 1.0);
        }
    }
}
