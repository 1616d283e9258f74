//! Which hosts are apart from their like.
//!
//! A host is set against the median of the others of its group, figure by figure, on a logarithmic
//! scale. A small group hardly knows how far its hosts lie apart, so spreads are moderated: what a group
//! shows of a figure, what the other groups show of it, and what is usual among all figures, each by
//! what it knows. Groups in which a function hardly occurs are pooled apart from those in which it does.
//! No spread is less than what sampling leaves open. How long the tails are, all distances of the other
//! hosts together show: no p-value rests on shorter ones.
//!
//! The p-value of a host is its smallest, corrected for the number of figures (Bonferroni).

use super::spreads::{Others, Spread, usual};
use super::{quantile, student_tail};

/// A figure of every host.
pub struct Figure {
    /// What it is.
    pub name: String,
    /// By host.
    pub values: Vec<f64>,
    /// Added before the logarithm is taken: below it, ratios mean little.
    pub least: f64,
    /// Whether it is a share of samples.
    pub is_share: bool,
}

/// What is said of a host.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    /// Corrected for the number of figures; infinite where the host was not compared.
    pub p_value: f64,
    /// The figure that differs most, and the median of the others of the group.
    pub figure: usize,
    pub median: f64,
}

/// Fewest hosts that are a group: the others must have a middle half.
pub const LEAST_HOSTS: usize = 5;
/// Hosts of a group differ by this much (in logarithms) even where they look equal.
const LEAST_SPREAD: f64 = 0.05;
/// Degrees of freedom that a figure takes from what is usual among figures, at most: figures are not
/// independent of each other, and shares add up to one.
const MOST_BORROWED: f64 = 10.0;
/// Hosts from which on a figure shows its tails.
const HOSTS_WITH_TAILS: usize = 40;
/// The middle eight tenths of the normal distribution, in standard deviations: a tenth of all hosts may be
/// apart on one side.
const MIDDLE_EIGHT_TENTHS: f64 = 2.563;

/// A figure in a group.
struct Cell {
    /// By value.
    hosts: Vec<usize>,
    sorted: Vec<f64>,
    spread: Spread,
    /// Whether the figure is more than noise there.
    is_there: bool,
}

impl Cell {
    fn of(figure: &Figure, group: &[usize]) -> Self {
        let log = |host: usize| (figure.values[host] + figure.least).ln();
        let mut hosts = group.to_vec();
        hosts.sort_by(|&a, &b| log(a).total_cmp(&log(b)).then(a.cmp(&b)));
        let sorted: Vec<f64> = hosts.iter().map(|&host| log(host)).collect();
        let all = Others::all(&sorted);
        Self {
            spread: all.spread().at_least(LEAST_SPREAD * LEAST_SPREAD),
            is_there: all.median() >= (2.0 * figure.least).ln(),
            hosts,
            sorted,
        }
    }
}

/// What all groups know of a figure, where it is there and where it is not.
type Pools = [Spread; 2];

/// Judges all hosts in groups of [`LEAST_HOSTS`] and more. `samples` are those of each host, on which
/// shares rest.
pub fn judge(figures: &[Figure], groups: &[Vec<usize>], samples: &[f64]) -> Vec<Judgement> {
    let none = Judgement {
        p_value: f64::INFINITY,
        figure: 0,
        median: 0.0,
    };
    let mut judgements = vec![none; samples.len()];
    let groups = groups.iter().filter(|group| group.len() >= LEAST_HOSTS);
    let groups: Vec<&Vec<usize>> = groups.collect();
    for &host in groups.iter().copied().flatten() {
        judgements[host].p_value = 1.0;
    }
    let mut pools: Vec<Pools> = Vec::new();
    let mut spreads: Vec<Vec<(usize, Spread)>> = Vec::new();
    for figure in figures {
        let mut pool = Pools::default();
        let mut of_groups = Vec::new();
        for group in &groups {
            let cell = Cell::of(figure, group);
            let side = usize::from(cell.is_there);
            pool[side] = pool[side].with(cell.spread);
            of_groups.push((side, cell.spread));
        }
        pools.push(pool);
        spreads.push(of_groups);
    }
    let kinds = [0, 1].map(|side| Usual::of(side, &pools, &spreads));
    let mut distances = Vec::new();
    for (number, (figure, pool)) in figures.iter().zip(&pools).enumerate() {
        let cells: Vec<Cell> = groups.iter().map(|group| Cell::of(figure, group)).collect();
        let wide = [false, true].map(|side| wide(&cells, side, pool[usize::from(side)]));
        for cell in &cells {
            let side = usize::from(cell.is_there);
            let lent = kinds[side].lent(pool[side].less(cell.spread));
            distances.extend(cell.distances(number, figure, lent, wide[side], samples));
        }
    }
    let tails = Tails::of(&distances);
    for distance in &distances {
        let freedom = distance.freedom.min(tails.without(distance.host));
        let p_value = student_tail(distance.size, freedom) * figures.len() as f64;
        let judgement = &mut judgements[distance.host];
        if p_value < judgement.p_value {
            *judgement = Judgement {
                p_value,
                figure: distance.figure,
                median: distance.median,
            };
        }
    }
    judgements
}

/// How far a host is from its like in one figure.
struct Distance {
    host: usize,
    figure: usize,
    /// In standard deviations.
    size: f64,
    /// How well these are known.
    freedom: f64,
    /// Of the others.
    median: f64,
    is_there: bool,
}

impl Cell {
    fn distances<'a>(
        &'a self,
        number: usize,
        figure: &'a Figure,
        lent: Spread,
        wide: f64,
        samples: &'a [f64],
    ) -> impl Iterator<Item = Distance> + 'a {
        // The median of the others is an estimate, too: its variance is π/2 that of a mean.
        let widened = 1.0 + std::f64::consts::FRAC_PI_2 / (self.hosts.len() - 1) as f64;
        self.hosts.iter().enumerate().map(move |(at, &host)| {
            let others = Others::without(&self.sorted, at);
            let log = others.median();
            // Where nothing is there, rounding leaves a trace.
            let median = log.exp() - figure.least;
            let median = if median < figure.least * 1e-9 {
                0.0
            } else {
                median
            };
            let noise = match figure.is_share {
                true => noise(median, figure.least, samples[host]),
                false => 0.0,
            };
            let own = others.spread().at_least(LEAST_SPREAD * LEAST_SPREAD);
            let spread = lent.with(own);
            let variance = (spread.variance * wide).max(noise) * widened;
            Distance {
                host,
                figure: number,
                size: (self.sorted[at] - log).abs() / variance.sqrt(),
                freedom: spread.freedom,
                median,
                is_there: self.is_there,
            }
        })
    }
}

/// What is usual among figures, and among groups of one figure.
struct Usual {
    figures: Spread,
    /// Degrees of freedom: fewer, the more groups differ.
    groups: f64,
}

impl Usual {
    fn of(side: usize, pools: &[Pools], spreads: &[Vec<(usize, Spread)>]) -> Self {
        let of_figures: Vec<Spread> = pools.iter().map(|pool| pool[side]).collect();
        let mut of_groups = Vec::new();
        for (pool, spreads) in of_figures.iter().zip(spreads) {
            for (_, spread) in spreads.iter().filter(|pair| pair.0 == side) {
                if pool.less(*spread).freedom > 0.0 {
                    of_groups.push(Spread {
                        variance: spread.variance / pool.variance,
                        ..*spread
                    });
                }
            }
        }
        Self {
            figures: usual(&of_figures).at_most(MOST_BORROWED),
            groups: usual(&of_groups).freedom,
        }
    }

    /// What a group is lent, whose other groups know this of a figure.
    fn lent(&self, elsewhere: Spread) -> Spread {
        match elsewhere.freedom > 0.0 && self.groups > 0.0 {
            true => self.figures.with(elsewhere).at_most(self.groups),
            false => self.figures,
        }
    }
}

/// The variance of the logarithm that sampling leaves: of a share, and one sample more, since none may
/// stand for some.
fn noise(share: f64, least: f64, samples: f64) -> f64 {
    let samples = samples.max(1.0);
    let share = share.max(0.0);
    (share + 1.0 / samples) / samples / (share + least).powi(2)
}

/// How many times as large as the middle half says a variance is by the middle eight tenths of all hosts.
fn wide(cells: &[Cell], is_there: bool, pool: Spread) -> f64 {
    let mut distances: Vec<f64> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.is_there == is_there) {
        let median = Others::all(&cell.sorted).median();
        distances.extend(cell.sorted.iter().map(|log| log - median));
    }
    if distances.len() < HOSTS_WITH_TAILS {
        return 1.0;
    }
    distances.sort_by(f64::total_cmp);
    let most = (quantile(&distances, 0.9) - quantile(&distances, 0.1)) / MIDDLE_EIGHT_TENTHS;
    (most * most / pool.variance).max(1.0)
}

/// How long the tails of distances are: as those of Student's distribution with these degrees of freedom.
struct Tails {
    /// Distances of each host, and of all.
    counts: Vec<usize>,
    all: usize,
    median: f64,
    /// The longest distances with their hosts, the longest first.
    longest: Vec<(f64, usize)>,
    /// Degrees of freedom, and how many times the median the distance is that a hundredth exceeds.
    known: Vec<(f64, f64)>,
}

/// The part of the distances that are the tails.
const TAIL: f64 = 0.01;
/// Fewest distances that show tails: two are in them.
const LEAST_DISTANCES: usize = 200;
const FREEDOMS: [f64; 16] = [
    1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 13.0, 20.0, 50.0, 200.0,
];

impl Tails {
    fn of(distances: &[Distance]) -> Self {
        // Where a figure is not there, most distances are 0.
        let there = distances.iter().filter(|distance| distance.is_there);
        let mut sorted: Vec<(f64, usize)> = there
            .map(|distance| (distance.size, distance.host))
            .collect();
        sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
        let hosts = sorted.iter().map(|pair| pair.1 + 1).max().unwrap_or(0);
        let mut counts = vec![0; hosts];
        for &(_, host) in &sorted {
            counts[host] += 1;
        }
        let most = counts.iter().max().copied().unwrap_or(0);
        let (all, median) = (sorted.len(), sorted.get(sorted.len() / 2));
        let median = median.map_or(0.0, |pair| pair.0);
        sorted.truncate((all as f64 * TAIL) as usize + most + 1);
        let ratio = |freedom: f64| point(TAIL, freedom) / point(0.5, freedom);
        Self {
            counts,
            all,
            median,
            longest: sorted,
            known: FREEDOMS.map(|freedom| (freedom, ratio(freedom))).to_vec(),
        }
    }

    /// The degrees of freedom that the hosts other than this one show; no limit where they are few.
    fn without(&self, host: usize) -> f64 {
        let others = self.all - self.counts.get(host).copied().unwrap_or(0);
        if others < LEAST_DISTANCES || self.median <= 0.0 {
            return f64::INFINITY;
        }
        let wanted = (others as f64 * TAIL) as usize;
        let longest = self.longest.iter().filter(|pair| pair.1 != host);
        let at = longest.map(|pair| pair.0).nth(wanted).unwrap_or(0.0);
        let ratio = at / self.median;
        let heavier = self.known.iter().rfind(|pair| pair.1 >= ratio);
        match heavier {
            Some(&(freedom, _)) if freedom == FREEDOMS[FREEDOMS.len() - 1] => f64::INFINITY,
            Some(&(freedom, _)) => freedom,
            None => FREEDOMS[0],
        }
    }
}

/// The distance that a part of Student's distribution exceeds.
fn point(part: f64, freedom: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1e4);
    for _ in 0..60 {
        let middle = (low + high) / 2.0;
        match student_tail(middle, freedom) > part {
            true => low = middle,
            false => high = middle,
        }
    }
    high
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{FALSE_DISCOVERIES, discoveries};
    use pagewise_stats::Random;

    fn even(random: &mut Random) -> f64 {
        (random.bits() as f64 + 0.5) / u64::MAX as f64
    }

    fn normal(random: &mut Random) -> f64 {
        let (a, b) = (even(random), even(random));
        (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()
    }

    /// Student's distribution with five degrees of freedom: long tails.
    fn long_tailed(random: &mut Random) -> f64 {
        let squares: f64 = (0..5).map(|_| normal(random).powi(2)).sum();
        normal(random) / (squares / 5.0).sqrt()
    }

    /// Groups of hosts with 80 figures, a fifth of them of one group only, and some hosts on which one
    /// figure is larger by a factor.
    struct Fleet {
        groups: usize,
        hosts: usize,
        planted: usize,
        factor: f64,
        draw: fn(&mut Random) -> f64,
    }

    impl Fleet {
        fn make(&self, seed: u64) -> (Vec<Figure>, Vec<Vec<usize>>, Vec<f64>) {
            let mut random = Random::seeded(seed);
            let all = self.groups * self.hosts;
            let groups: Vec<Vec<usize>> = (0..self.groups)
                .map(|group| (group * self.hosts..(group + 1) * self.hosts).collect())
                .collect();
            let figures = (0..80).map(|number| {
                let level = 0.002 * 10_f64.powf(even(&mut random) * 1.5);
                let deviation = 0.1 * 2_f64.powf(even(&mut random) * 2.0 - 1.0);
                let only = (number % 5 == 0).then_some(number / 5 % self.groups);
                let values = (0..all).map(|host| {
                    let is_there = only.is_none_or(|only| only == host / self.hosts);
                    let is_planted =
                        host < self.planted * 7 && host.is_multiple_of(7) && number == 1;
                    let usual = level * (deviation * (self.draw)(&mut random)).exp();
                    match (is_there, is_planted) {
                        (false, _) => 0.0,
                        (true, true) => usual * self.factor,
                        (true, false) => usual,
                    }
                });
                Figure {
                    name: String::new(),
                    values: values.collect(),
                    least: 0.002,
                    is_share: true,
                }
            });
            (figures.collect(), groups, vec![50_000.0; all])
        }

        /// Of this many fleets: the share of planted hosts that is found, the mean share of discoveries
        /// that are false, and the share of fleets with any false one.
        fn of(&self, fleets: u64) -> [f64; 3] {
            let (mut found, mut rate, mut with_false) = (0, 0.0, 0);
            for seed in 1..=fleets {
                let (figures, groups, samples) = self.make(seed);
                let judged = judge(&figures, &groups, &samples);
                let p: Vec<f64> = judged.iter().map(|judged| judged.p_value).collect();
                let claimed = discoveries(&p, FALSE_DISCOVERIES);
                let is_planted = |host: usize| host < self.planted * 7 && host.is_multiple_of(7);
                let all = claimed.iter().filter(|&&claimed| claimed).count();
                let right = (0..p.len()).filter(|&host| claimed[host] && is_planted(host));
                let right = right.count();
                found += right;
                rate += (all - right) as f64 / all.max(1) as f64;
                with_false += usize::from(all > right);
            }
            let planted = (self.planted as u64 * fleets).max(1) as f64;
            [
                found as f64 / planted,
                rate / fleets as f64,
                with_false as f64 / fleets as f64,
            ]
        }
    }

    const NORMAL: Fleet = Fleet {
        groups: 4,
        hosts: 16,
        planted: 0,
        factor: 4.0,
        draw: normal,
    };

    #[test]
    fn hosts_that_are_alike_are_not_claimed_to_differ() {
        for (groups, hosts) in [(1, 8), (1, 30), (4, 8), (4, 16), (12, 8)] {
            let fleet = Fleet {
                groups,
                hosts,
                ..NORMAL
            };
            let [_, _, claims] = fleet.of(100);
            assert!(claims <= 0.05, "{groups} groups of {hosts}: {claims}");
        }
    }

    #[test]
    fn hosts_apart_are_found_in_small_groups() {
        // Groups, hosts in each, planted hosts, and the share of these that is found.
        let fleets = [
            (1, 8, 1, 0.35),
            (1, 16, 1, 0.8),
            (1, 30, 2, 0.9),
            (4, 8, 2, 0.75),
            (12, 8, 4, 0.85),
        ];
        for (groups, hosts, planted, least) in fleets {
            let fleet = Fleet {
                groups,
                hosts,
                planted,
                ..NORMAL
            };
            let [found, rate, _] = fleet.of(100);
            assert!(found >= least, "{groups} groups of {hosts}: {found} found");
            assert!(rate <= 0.05, "{groups} groups of {hosts}: {rate} false");
        }
    }

    #[test]
    fn long_tails_are_not_taken_for_hosts_apart() {
        for (groups, hosts) in [(4, 16), (12, 8)] {
            let fleet = Fleet {
                groups,
                hosts,
                planted: 4,
                draw: long_tailed,
                ..NORMAL
            };
            let [_, rate, _] = fleet.of(50);
            assert!(rate <= 0.05, "{groups} groups of {hosts}: {rate} false");
        }
    }

    /// The table of docs/notes/fleet.md, of 400 fleets each.
    #[test]
    #[ignore = "takes minutes: cargo test --release likeness -- --ignored --nocapture"]
    fn table() {
        let fleets = 400;
        println!(
            "groups × hosts, planted | ×4 | ×2 | long tails, ×8 | most false | A/A normal; long"
        );
        for (groups, hosts, planted) in [
            (1, 8, 1),
            (1, 16, 1),
            (1, 30, 2),
            (4, 8, 2),
            (4, 16, 3),
            (12, 8, 4),
            (4, 30, 4),
        ] {
            let fleet = |planted, factor, draw| Fleet {
                groups,
                hosts,
                planted,
                factor,
                draw,
            };
            let planted_in = [
                fleet(planted, 4.0, normal as fn(&mut Random) -> f64),
                fleet(planted, 2.0, normal),
                fleet(planted, 8.0, long_tailed),
            ];
            let [four, two, eight] = planted_in.map(|fleet| fleet.of(fleets));
            let alike = [normal as fn(&mut Random) -> f64, long_tailed];
            let [short, long] = alike.map(|draw| fleet(0, 1.0, draw).of(fleets)[2]);
            let most = four[1].max(two[1]).max(eight[1]);
            println!(
                "{groups} × {hosts}, {planted} | {:.0} % | {:.0} % | {:.0} % | {:.1} % | {:.1} %; {:.1} %",
                four[0] * 100.0,
                two[0] * 100.0,
                eight[0] * 100.0,
                most * 100.0,
                short * 100.0,
                long * 100.0,
            );
            assert!(most <= 0.05 && short <= 0.05 && long <= 0.05);
        }
    }

    #[test]
    fn one_cause_on_a_sixteenth_of_all_hosts_does_not_hide_itself() {
        let fleet = Fleet {
            groups: 4,
            ..NORMAL
        };
        let (mut figures, groups, samples) = fleet.make(1);
        let share = |host: usize| if host % 17 == 3 { 0.1 } else { 0.0 };
        figures[1].values = (0..64).map(share).collect();
        let judged = judge(&figures, &groups, &samples);
        let p: Vec<f64> = judged.iter().map(|judged| judged.p_value).collect();
        let claimed = discoveries(&p, FALSE_DISCOVERIES);
        let claimed: Vec<usize> = (0..64).filter(|&host| claimed[host]).collect();
        assert_eq!(claimed, [3, 20, 37, 54]);
        assert!(claimed.iter().all(|&host| judged[host].figure == 1));
    }

    #[test]
    fn too_few_are_not_compared_and_samples_limit_what_is_seen() {
        let figure = |values: Vec<f64>| Figure {
            name: "x".to_owned(),
            values,
            least: 0.002,
            is_share: true,
        };
        let judged = judge(&[figure(vec![1.0, 1.0, 9.0])], &[vec![0, 1, 2]], &[1e6; 3]);
        assert!(judged.iter().all(|judged| judged.p_value.is_infinite()));
        // Two of 200 samples are chance; two of a hundred thousandths of 20 million are not.
        let mut values = vec![0.0; 60];
        values[17] = 0.01;
        let group: Vec<usize> = (0..60).collect();
        let of = |samples: f64| {
            judge(
                &[figure(values.clone())],
                std::slice::from_ref(&group),
                &[samples; 60],
            )
        };
        assert!(of(200.0)[17].p_value > 0.01);
        let many = of(200_000.0);
        assert!(many[17].p_value < 1e-6 && many[17].median.abs() < 1e-9);
        assert!(many[16].p_value >= 0.99);
    }
}
