//! What could have been found: in small fleets, a host must differ by much.

use super::alike::Alike;
use super::figure::Figure;
use super::likeness::judge;
use serde::Serialize;

/// How much a host must differ to be found, on half of the hosts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Power {
    /// The share of its CPU time in a function that no other host has; absent where not even half is.
    pub share_of_a_function: Option<f64>,
    /// How many times the CPU time of its like; absent where not even ten times is.
    pub factor_of_cpu_time: Option<f64>,
}

/// Larger fleets find what matters, and trying would take long.
const MOST_HOSTS: usize = 250;
/// Hosts on which this is tried.
const TRIED: usize = 5;
const SHARES: [f64; 7] = [0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5];
const FACTORS: [f64; 6] = [1.2, 1.5, 2.0, 3.0, 5.0, 10.0];

impl Power {
    /// Of these figures, of which the first is CPU time; nothing where no host is judged.
    pub fn new(figures: &[Figure], alike: &Alike, samples: &[f64], rate: f64) -> Option<Self> {
        let judged: Vec<usize> = alike
            .groups
            .iter()
            .flat_map(|group| group.judged.iter().copied())
            .collect();
        if alike.hosts() > MOST_HOSTS || figures.is_empty() {
            return None;
        }
        // The one discovery of all hosts.
        let limit = rate / judged.len().max(1) as f64;
        let step = judged.len().div_ceil(TRIED).max(1);
        let tried: Vec<usize> = judged.iter().copied().step_by(step).collect();
        let is_found =
            |figures: &[Figure], host: usize| judge(figures, alike, samples)[host].p_value <= limit;
        let share = |host: usize, share: f64| {
            let mut values = vec![0.0; samples.len()];
            values[host] = share;
            let mut figures = figures.to_vec();
            figures.push(Figure {
                name: String::new(),
                values,
                least: SMALL,
                is_share: true,
            });
            is_found(&figures, host)
        };
        let factor = |host: usize, factor: f64| {
            let mut figures = figures.to_vec();
            figures[0].values[host] *= factor;
            is_found(&figures, host)
        };
        Some(Self {
            share_of_a_function: middle(
                tried.iter().map(|&host| least(&SHARES, |x| share(host, x))),
            ),
            factor_of_cpu_time: middle(
                tried
                    .iter()
                    .map(|&host| least(&FACTORS, |x| factor(host, x))),
            ),
        })
    }
}

/// As for functions in general: below it, ratios are noise.
const SMALL: f64 = 0.002;

/// The least of ascending sizes that is found.
fn least(sizes: &[f64], is_found: impl Fn(f64) -> bool) -> Option<f64> {
    let at = sizes.partition_point(|&size| !is_found(size));
    sizes.get(at).copied()
}

/// The median, where none is more than any.
fn middle(found: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    let mut found: Vec<f64> = found.map(|size| size.unwrap_or(f64::INFINITY)).collect();
    found.sort_by(f64::total_cmp);
    found
        .get(found.len() / 2)
        .copied()
        .filter(|size| size.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::FALSE_DISCOVERIES;

    fn power(hosts: usize) -> Power {
        let value =
            |host: usize, figure: usize| 0.02 * (1.0 + 0.1 * ((host * 7 + figure * 3) % 5) as f64);
        let figures: Vec<Figure> = (0..20)
            .map(|figure| Figure {
                name: String::new(),
                values: (0..hosts).map(|host| value(host, figure)).collect(),
                least: 0.002,
                is_share: figure > 0,
            })
            .collect();
        let alike = Alike::new(&vec![vec![String::new()]; hosts]);
        Power::new(&figures, &alike, &vec![50_000.0; hosts], FALSE_DISCOVERIES).unwrap()
    }

    #[test]
    fn more_hosts_find_less_and_four_find_nothing() {
        let (none, some, many) = (power(4), power(10), power(60));
        assert_eq!(none.share_of_a_function.or(none.factor_of_cpu_time), None);
        let share = |power: &Power| power.share_of_a_function.unwrap_or(1.0);
        assert!(
            share(&many) <= share(&some) && share(&many) <= 0.05,
            "{some:?} {many:?}"
        );
        let factor = |power: &Power| power.factor_of_cpu_time.unwrap_or(100.0);
        assert!(
            factor(&many) <= factor(&some) && factor(&many) <= 3.0,
            "{some:?} {many:?}"
        );
    }
}
