//! Which hosts are apart from their like.
//!
//! A host is set against the median of the others of its group, figure by figure, on a logarithmic
//! scale ([`super::adjusted`] says what comes off before). A small group hardly knows how far its hosts
//! lie apart, so spreads are moderated: what a group shows of a figure, what the other groups show of it,
//! and what is usual among all figures, each by what it knows. Groups in which a function hardly occurs are pooled apart from those in which it does.
//! No spread is less than what sampling leaves open. How long the tails are, all distances of the other
//! hosts together show: no p-value rests on shorter ones.
//!
//! The p-value of a host is its smallest, corrected for the number of figures (Bonferroni).

mod tails;

use super::adjusted::{Adjusted, Factors};
use super::alike::{Alike, Group};
use super::figure::Figure;
use super::spreads::{Others, Spread, usual};
use super::{quantile, share_of};
use crate::student_tail;
use tails::Tails;

/// What is said of a host.
#[derive(Clone, Copy, Debug)]
pub struct Judgement {
    /// Corrected for the number of figures; infinite where the host was not compared.
    pub p_value: f64,
    /// The figure that differs most.
    pub figure: usize,
    /// Its median among the others of the group.
    pub median: f64,
}

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
    /// What came off, and who is judged.
    effects: Vec<f64>,
    is_judged: Vec<bool>,
    /// Of each: the places of the others that have the same value of a key that is free in the group, by key.
    closer: Vec<Vec<Vec<usize>>>,
    spread: Spread,
    /// Whether the figure is more than noise there.
    is_there: bool,
}

impl Cell {
    fn new(
        figure: &Figure,
        group: &Group,
        alike: &Alike,
        adjusted: &[Option<Adjusted>],
    ) -> Option<Self> {
        let adjusted = adjusted.get(group.free)?.as_ref()?;
        let log = |host: usize| adjusted.logs[host];
        let mut hosts = group.hosts.clone();
        hosts.sort_by(|&a, &b| log(a).total_cmp(&log(b)).then(a.cmp(&b)));
        let sorted: Vec<f64> = hosts.iter().map(|&host| log(host)).collect();
        let all = Others::all(&sorted);
        let is_judged = hosts
            .iter()
            .map(|host| group.judged.binary_search(host).is_ok());
        let closer = |at: usize| {
            let keys = alike.free_keys(group.free).iter();
            let others = |values: &Vec<usize>| {
                let same = |&other: &usize| values[hosts[other]] == values[hosts[at]];
                (0..hosts.len())
                    .filter(|&other| other != at)
                    .filter(same)
                    .collect()
            };
            keys.map(others).collect()
        };
        Some(Self {
            closer: (0..hosts.len()).map(closer).collect(),
            effects: hosts.iter().map(|&host| adjusted.effects[host]).collect(),
            is_judged: is_judged.collect(),
            spread: all.spread().at_least(LEAST_SPREAD * LEAST_SPREAD),
            is_there: all.median() >= (2.0 * figure.least).ln(),
            hosts,
            sorted,
        })
    }
}

/// What all groups know of a figure, where it is there and where it is not.
type Pools = [Spread; 2];

/// Judges all hosts that are alike to others. `samples` are those of each host, on which shares rest.
pub fn judge(figures: &[Figure], alike: &Alike, samples: &[f64]) -> Vec<Judgement> {
    let none = Judgement {
        p_value: f64::INFINITY,
        figure: 0,
        median: 0.0,
    };
    let mut judgements = vec![none; samples.len()];
    for &host in alike.groups.iter().flat_map(|group| &group.judged) {
        judgements[host].p_value = 1.0;
    }
    let factors = Factors::new(figures, alike);
    let cells_of = |figure: &Figure| -> Vec<Cell> {
        let most = alike.groups.iter().map(|group| group.free).max();
        let is_used = |free: usize| alike.groups.iter().any(|group| group.free == free);
        let adjusted: Vec<Option<Adjusted>> = (0..=most.unwrap_or(0))
            .map(|free| is_used(free).then(|| Adjusted::new(figure, &factors, alike, free)))
            .collect();
        let cells = alike.groups.iter();
        cells
            .filter_map(|group| Cell::new(figure, group, alike, &adjusted))
            .collect()
    };
    let mut pools: Vec<Pools> = Vec::new();
    let mut spreads: Vec<Vec<(usize, Spread)>> = Vec::new();
    for figure in figures {
        let mut pool = Pools::default();
        let mut of_groups = Vec::new();
        for cell in cells_of(figure) {
            let side = usize::from(cell.is_there);
            pool[side] = pool[side].with(cell.spread);
            of_groups.push((side, cell.spread));
        }
        pools.push(pool);
        spreads.push(of_groups);
    }
    let kinds = [0, 1].map(|side| Usual::new(side, &pools, &spreads));
    let mut distances = Vec::new();
    for (number, (figure, pool)) in figures.iter().zip(&pools).enumerate() {
        let cells = cells_of(figure);
        let wide = [false, true].map(|side| wide(&cells, side, pool[usize::from(side)]));
        for cell in &cells {
            let side = usize::from(cell.is_there);
            let lent = kinds[side].lent(pool[side].less(cell.spread));
            distances.extend(cell.distances(number, figure, lent, wide[side], samples));
        }
    }
    let tails = Tails::new(&distances);
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
    /// The same from the median of all others: no less.
    of_all: f64,
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
        let judged = (0..self.hosts.len()).filter(|&at| self.is_judged[at]);
        judged.map(move |at| {
            let host = self.hosts[at];
            let others = Others::without(&self.sorted, at);
            let of_all = others.median();
            let log = self.nearest(at, of_all);
            // Where nothing is there, rounding leaves a trace.
            let median = (log + self.effects[at]).exp() - figure.least;
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
                of_all: (self.sorted[at] - of_all).abs() / variance.sqrt(),
                freedom: spread.freedom,
                median,
                is_there: self.is_there,
            }
        })
    }
}

impl Cell {
    /// Of the median of all others and those of its kernel or CPU alone, the one to which a host is nearest:
    /// what these share is no difference of the host.
    fn nearest(&self, at: usize, of_all: f64) -> f64 {
        let here = self.sorted[at];
        let closer = self.closer[at].iter().map(|others| {
            let logs: Vec<f64> = others.iter().map(|&other| self.sorted[other]).collect();
            quantile(&logs, 0.5)
        });
        let nearest = closer.min_by(|a, b| (a - here).abs().total_cmp(&(b - here).abs()));
        match nearest {
            Some(nearest) if (nearest - here).abs() < (of_all - here).abs() => nearest,
            _ => of_all,
        }
    }
}

/// What is usual among figures, and among groups of one figure.
struct Usual {
    figures: Spread,
    /// Degrees of freedom: fewer, the more groups differ.
    groups: f64,
}

impl Usual {
    fn new(side: usize, pools: &[Pools], spreads: &[Vec<(usize, Spread)>]) -> Self {
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

/// How many times as large as the middle half says a variance is by the middle eight tenths of all hosts
/// that are not apart from the rest.
fn wide(cells: &[Cell], is_there: bool, pool: Spread) -> f64 {
    let mut distances: Vec<f64> = Vec::new();
    for cell in cells.iter().filter(|cell| cell.is_there == is_there) {
        let median = Others::all(&cell.sorted).median();
        let judged = cell.sorted.iter().zip(&cell.is_judged);
        let judged = judged.filter(|pair| *pair.1);
        distances.extend(judged.map(|(log, _)| log - median));
    }
    distances.sort_by(f64::total_cmp);
    let distances = together(&distances);
    if distances.len() < HOSTS_WITH_TAILS {
        return 1.0;
    }
    let most = (quantile(distances, 0.9) - quantile(distances, 0.1)) / MIDDLE_EIGHT_TENTHS;
    (most * most / pool.variance).max(1.0)
}

/// Hosts that are apart are a quarter of all on either side, at most.
const MOST_APART: f64 = 0.25;

/// Values without those at either end that a gap separates from all others: one that is wider than these lie
/// apart, and than hosts that look equal do. Such values are no tail but another kind of host.
fn together(sorted: &[f64]) -> &[f64] {
    let few = share_of(sorted.len(), MOST_APART);
    let is_gap = |gap: f64, width: f64| gap > width.max(MIDDLE_EIGHT_TENTHS * LEAST_SPREAD);
    let (mut from, mut to) = (0, sorted.len());
    for end in sorted.len() - few..sorted.len() {
        // What lies below the middle by as much is cut off next.
        let width = sorted[end - 1] - sorted[few.min(end - 1)];
        if end > 0 && is_gap(sorted[end] - sorted[end - 1], width) {
            to = end;
            break;
        }
    }
    for start in (1..=few).rev() {
        let width = sorted[to - 1] - sorted[start];
        if start < to && is_gap(sorted[start] - sorted[start - 1], width) {
            from = start;
            break;
        }
    }
    &sorted[from..to]
}

#[cfg(test)]
mod planted;
#[cfg(test)]
mod tests;
