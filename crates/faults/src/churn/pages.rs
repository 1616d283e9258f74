//! How many pages are behind sampled faults, if some are touched once and others repeatedly.
//!
//! Of a page that faults `k` times, samples at rate `p` see `j` with the binomial probability B(j;
//! k, p). From how many pages were seen once, twice, … the number of pages of each `k` follows by
//! maximum likelihood (expectation maximisation over a grid of `k`, all faults known to be `F`).
//! Few samples allow many solutions: the ends of the interval are the fewest and the most pages
//! whose likelihood is within 95 % of the best one's (the likelihood-ratio test, one degree of
//! freedom).

/// Pages by how often samples saw them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sightings {
    /// Pages seen once, twice, …
    pages: Vec<u64>,
    /// Samples of pages seen more often than that, and the number of such pages.
    frequent: (u64, u64),
}

/// Pages seen more often certainly churn: their number of faults follows without a model.
const MOST_SEEN: usize = 64;

impl Sightings {
    /// Records a sample of a page that had been seen `before` times.
    pub fn see(&mut self, before: u32) {
        let mut before = before as usize;
        if before > MOST_SEEN && self.frequent.1 > 0 {
            self.frequent.0 += 1;
            return;
        }
        // A child of fork(2) shares its parent's sightings: the page may have been moved already.
        match before.checked_sub(1).and_then(|at| self.pages.get_mut(at)) {
            Some(held) if *held > 0 => *held -= 1,
            _ => before = 0,
        }
        if before == MOST_SEEN {
            self.frequent.0 += MOST_SEEN as u64 + 1;
            self.frequent.1 += 1;
            return;
        }
        if self.pages.len() <= before {
            self.pages.resize(before + 1, 0);
        }
        self.pages[before] += 1;
    }

    /// Number of samples.
    #[must_use]
    pub fn samples(&self) -> u64 {
        let seen = self
            .pages
            .iter()
            .zip(1..)
            .map(|(pages, times)| pages * times);
        seen.sum::<u64>() + self.frequent.0
    }

    /// Distinct pages.
    #[must_use]
    pub fn distinct(&self) -> u64 {
        self.pages.iter().sum::<u64>() + self.frequent.1
    }
}

/// Likeliest number of pages behind the samples of `faults` faults, and the fewest and most that
/// the samples allow.
pub(crate) fn pages_behind(seen: &Sightings, faults: f64) -> (f64, f64, f64) {
    let samples = to_f64(seen.samples());
    let rate = (samples / faults).min(1.0);
    let frequent = to_f64(seen.frequent.1);
    let rest = faults - to_f64(seen.frequent.0) / rate;
    let observed: Vec<f64> = seen.pages.iter().map(|&pages| to_f64(pages)).collect();
    if observed.iter().sum::<f64>() == 0.0 || rest < 1.0 {
        return (frequent, frequent, frequent);
    }
    let model = Model::new(&observed, rest, rate);
    let best = model.fit(0.0);
    let (few, many) = (model.extreme(1.0, &best), model.extreme(-1.0, &best));
    let pages = |fit: &Fit| fit.pages() + frequent;
    (
        pages(&best),
        pages(&few).min(pages(&best)),
        pages(&many).max(pages(&best)),
    )
}

/// Half the 95 % quantile of chi squared with one degree of freedom.
const MOST_DROP: f64 = 1.92;
const ROUNDS: usize = 400;
/// Ratio of successive numbers of faults per page on the grid.
const STEP: f64 = 1.25;

struct Model<'a> {
    observed: &'a [f64],
    faults: f64,
    /// Faults of a page.
    times: Vec<f64>,
    /// For each of these: the chances to see the page once, twice, …; and at all.
    seen: Vec<Vec<f64>>,
    at_all: Vec<f64>,
}

/// Number of pages by their number of faults.
#[derive(Clone)]
struct Fit {
    pages: Vec<f64>,
    likelihood: f64,
}

impl Fit {
    fn pages(&self) -> f64 {
        self.pages.iter().sum()
    }
}

impl<'a> Model<'a> {
    fn new(observed: &'a [f64], faults: f64, rate: f64) -> Self {
        let most = (2.0 * to_f64(observed.len() as u64) / rate).clamp(2.0, faults.max(2.0));
        let mut times = vec![1.0];
        while let Some(&last) = times.last().filter(|&&last| last < most) {
            times.push((last * STEP).floor().max(last + 1.0));
        }
        let seen: Vec<Vec<f64>> = times
            .iter()
            .map(|&times| binomial(times, rate, observed.len()))
            .collect();
        let at_all = times
            .iter()
            .map(|times| -(times * (-rate).ln_1p()).exp_m1())
            .collect();
        Self {
            observed,
            faults,
            times,
            seen,
            at_all,
        }
    }

    /// The likeliest numbers of pages if each page costs `price`.
    fn fit(&self, price: f64) -> Fit {
        let share = self.faults / to_f64(self.times.len() as u64);
        let mut pages: Vec<f64> = self.times.iter().map(|times| share / times).collect();
        for _ in 0..ROUNDS {
            let expected = self.expected(&pages);
            for (at, held) in pages.iter_mut().enumerate() {
                let message: f64 = self.seen[at]
                    .iter()
                    .zip(self.observed.iter().zip(&expected))
                    .filter(|(_, (_, expected))| **expected > 0.0)
                    .map(|(chance, (observed, expected))| observed * chance / expected)
                    .sum();
                *held *= message / (self.at_all[at] + price).max(f64::MIN_POSITIVE);
            }
            let faults: f64 = pages
                .iter()
                .zip(&self.times)
                .map(|(pages, times)| pages * times)
                .sum();
            let scale = self.faults / faults.max(f64::MIN_POSITIVE);
            pages.iter_mut().for_each(|pages| *pages *= scale);
        }
        let likelihood = self.likelihood(&pages);
        Fit { pages, likelihood }
    }

    fn expected(&self, pages: &[f64]) -> Vec<f64> {
        (0..self.observed.len())
            .map(|at| {
                pages
                    .iter()
                    .zip(&self.seen)
                    .map(|(pages, seen)| pages * seen[at])
                    .sum()
            })
            .collect()
    }

    fn likelihood(&self, pages: &[f64]) -> f64 {
        let expected = self.expected(pages);
        let seen = self.observed.iter().zip(expected);
        let message: f64 = seen
            .map(|(observed, expected)| observed * expected.max(1e-300).ln())
            .sum();
        // Pages that would have been seen more often than any was also count.
        let visible: f64 = pages.iter().zip(&self.at_all).map(|(a, b)| a * b).sum();
        message - visible
    }

    /// The fewest pages (`sign` is 1) or the most (−1) that are likely enough.
    fn extreme(&self, sign: f64, best: &Fit) -> Fit {
        // A page that is never seen costs nothing, so its price must stay below its chance to be
        // seen.
        let dearest = if sign > 0.0 {
            1.0
        } else {
            self.at_all[0] * 0.999
        };
        let (mut low, mut high) = (0.0, dearest);
        let mut kept = best.clone();
        for _ in 0..12 {
            let middle = f64::midpoint(low, high);
            let fit = self.fit(sign * middle);
            if best.likelihood - fit.likelihood <= MOST_DROP {
                (low, kept) = (middle, fit);
            } else {
                high = middle;
            }
        }
        kept
    }
}

/// Chances to see 1, 2, … `most` of `of` faults, each at `rate`.
fn binomial(of: f64, rate: f64, most: usize) -> Vec<f64> {
    if rate >= 1.0 {
        return (1..=most)
            .map(|times| f64::from(u8::from(times as f64 == of)))
            .collect();
    }
    let mut log = of * (-rate).ln_1p();
    let odds = rate.ln() - (-rate).ln_1p();
    (0..most)
        .map(|before| {
            let left = of - to_f64(before as u64);
            if left < 1.0 {
                log = f64::NEG_INFINITY;
            } else {
                log += (left / (to_f64(before as u64) + 1.0)).ln() + odds;
            }
            log.exp()
        })
        .collect()
}

fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_stats::Random;
    use std::collections::BTreeMap;

    fn uniform(random: &mut Random) -> f64 {
        (random.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Samples, each with chance `rate`, of pages that fault the given number of times.
    fn sampled(pages: &[(u32, u32)], rate: f64, random: &mut Random) -> Sightings {
        let mut seen = Sightings::default();
        for &(pages, times) in pages {
            for _ in 0..pages {
                let mut before = 0;
                for _ in 0..times {
                    if uniform(random) < rate {
                        seen.see(before);
                        before += 1;
                    }
                }
            }
        }
        seen
    }

    #[test]
    fn each_sample_is_counted_once_also_of_pages_seen_often() {
        let mut seen = Sightings::default();
        let mut times = BTreeMap::new();
        let mut random = Random::seeded(1);
        for _ in 0..20_000 {
            let page = random.below(10 * (1 + random.clone().below(10)));
            let before = times.entry(page).or_insert(0);
            seen.see(*before);
            *before += 1;
        }
        assert_eq!(seen.samples(), 20_000);
        assert_eq!(seen.distinct(), times.len() as u64);
        assert!(seen.frequent.1 > 10);
    }

    #[test]
    fn memory_touched_once_beside_memory_that_churns_is_told_apart() {
        let mixes: [(&[(u32, u32)], f64); 6] = [
            (&[(3_000, 1), (64, 39)], 1.0 / 13.0),
            (&[(834, 183)], 1.0 / 153.0),
            (&[(60_000, 1), (500, 400)], 1.0 / 101.0),
            (&[(20_000, 1), (10_000, 4)], 1.0 / 29.0),
            (&[(5_000, 2), (100, 300)], 1.0 / 31.0),
            (&[(30_000, 1)], 1.0 / 53.0),
        ];
        let mut random = Random::seeded(3);
        for (mix, rate) in mixes {
            let pages: f64 = mix.iter().map(|&(pages, _)| f64::from(pages)).sum();
            let faults: f64 = mix
                .iter()
                .map(|&(pages, times)| f64::from(pages * times))
                .sum();
            let mut covered = 0;
            for _ in 0..6 {
                let seen = sampled(mix, rate, &mut random);
                let (_, few, many) = pages_behind(&seen, faults);
                covered += usize::from(few <= pages * 1.001 && pages <= many * 1.001);
            }
            assert!(covered >= 5, "{mix:?}: {covered} of 6");
        }
    }
}
