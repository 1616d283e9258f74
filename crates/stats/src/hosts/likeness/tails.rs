//! How long the tails of distances are.

use super::Distance;
use crate::hosts::share_of;
use crate::student_tail;

/// How long the tails of distances are: as those of Student's distribution with these degrees of freedom.
pub struct Tails {
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
    pub fn new(distances: &[Distance]) -> Self {
        // Where a figure is not there, most distances are 0.
        let there = distances.iter().filter(|distance| distance.is_there);
        let mut sorted: Vec<(f64, usize)> = there
            .map(|distance| (distance.of_all, distance.host))
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
        sorted.truncate(share_of(all, TAIL) + most + 1);
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
    pub fn without(&self, host: usize) -> f64 {
        let others = self.all - self.counts.get(host).copied().unwrap_or(0);
        if others < LEAST_DISTANCES || self.median <= 0.0 {
            return f64::INFINITY;
        }
        let wanted = share_of(others, TAIL);
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
