//! Figures of hosts on a logarithmic scale, without what is no difference of the host itself.
//!
//! Shares add up to one: where one function takes a fifth more, all others take less. So shares are
//! relative to the middle of the host's functions, which a few do not move. Where hosts that are alike may have
//! different kernels or CPUs, what each kernel and CPU does to a figure comes off: by medians of role, kernel and
//! CPU in turn (median polish: Tukey, 1977).

use super::alike::Alike;
use super::figure::Figure;
use super::quantile;

/// Fewest figures that show by how much all shares of a host are larger or smaller.
const LEAST_FIGURES: usize = 8;
/// Rounds after which medians hardly move.
const ROUNDS: usize = 3;

/// By host: what is added to the logarithm of each share.
pub struct Factors(Vec<f64>);

impl Factors {
    /// From the figures that are there.
    pub fn new(figures: &[Figure], alike: &Alike) -> Self {
        let mut differences: Vec<Vec<f64>> = vec![Vec::new(); alike.hosts()];
        let shares = figures.iter().filter(|figure| figure.is_share);
        for figure in shares {
            let log = |host: usize| (figure.values[host] + figure.least).ln();
            for group in &alike.groups {
                let median = median(group.hosts.iter().map(|&host| log(host)));
                if median < (2.0 * figure.least).ln() {
                    continue;
                }
                for &host in &group.judged {
                    differences[host].push(log(host) - median);
                }
            }
        }
        let factors =
            differences
                .into_iter()
                .map(|differences| match differences.len() < LEAST_FIGURES {
                    true => 0.0,
                    false => -median(differences.into_iter()),
                });
        Self(factors.collect())
    }

    /// The logarithms of a figure.
    fn logs(&self, figure: &Figure) -> Vec<f64> {
        let pairs = figure.values.iter().zip(&self.0);
        let log = |(value, factor): (&f64, &f64)| match figure.is_share {
            true => (value * factor.exp() + figure.least).ln(),
            false => (value + figure.least).ln(),
        };
        pairs.map(log).collect()
    }
}

/// A figure for the groups in which as many keys are free.
pub struct Adjusted {
    /// By host.
    pub logs: Vec<f64>,
    /// What came off.
    pub effects: Vec<f64>,
}

impl Adjusted {
    /// A figure in groups whose last `free` keys may differ.
    pub fn new(figure: &Figure, factors: &Factors, alike: &Alike, free: usize) -> Self {
        let logs = factors.logs(figure);
        let keys = alike.free_keys(free);
        let mut effects = vec![vec![0.0; logs.len()]; keys.len()];
        let groups = alike.groups.iter().filter(|group| group.free == free);
        let groups: Vec<&[usize]> = groups.map(|group| &*group.hosts).collect();
        let total = |effects: &[Vec<f64>], host: usize| -> f64 {
            effects.iter().map(|effect| effect[host]).sum()
        };
        for _ in 0..if keys.is_empty() { 0 } else { ROUNDS } {
            let mut middles = vec![None; logs.len()];
            for group in &groups {
                let rest = group.iter().map(|&host| logs[host] - total(&effects, host));
                let middle = median(rest);
                group.iter().for_each(|&host| middles[host] = Some(middle));
            }
            for (key, values) in keys.iter().enumerate() {
                let mut rests: Vec<Vec<f64>> = Vec::new();
                rests.resize_with(values.iter().max().map_or(0, |most| most + 1), Vec::new);
                for (host, middle) in middles.iter().enumerate() {
                    if let Some(middle) = middle {
                        let others = total(&effects, host) - effects[key][host];
                        rests[values[host]].push(logs[host] - middle - others);
                    }
                }
                let of_values: Vec<f64> = rests
                    .into_iter()
                    .map(|rest| median(rest.into_iter()))
                    .collect();
                for (effect, &value) in effects[key].iter_mut().zip(values) {
                    *effect = of_values[value];
                }
            }
        }
        let effects: Vec<f64> = (0..logs.len()).map(|host| total(&effects, host)).collect();
        let logs = logs.iter().zip(&effects).map(|(log, effect)| log - effect);
        Self {
            logs: logs.collect(),
            effects,
        }
    }
}

/// 0 of nothing.
fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    quantile(&values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(values: Vec<f64>) -> Figure {
        Figure {
            name: String::new(),
            values,
            least: 1e-6,
            is_share: true,
        }
    }

    #[test]
    fn one_share_that_grew_does_not_make_the_others_smaller() {
        let alike = Alike::new(&vec![vec![String::new()]; 6]);
        // The last host spends a fifth elsewhere.
        let mut figures: Vec<Figure> = (0..10)
            .map(|_| share(vec![0.1, 0.1, 0.1, 0.1, 0.1, 0.08]))
            .collect();
        figures.push(share(vec![0.0, 0.0, 0.0, 0.0, 0.0, 0.2]));
        let factors = Factors::new(&figures, &alike);
        let logs = Adjusted::new(&figures[0], &factors, &alike, 0).logs;
        assert!(
            logs.iter().all(|log| (log - logs[0]).abs() < 1e-4),
            "{logs:?}"
        );
        let logs = Adjusted::new(&figures[10], &factors, &alike, 0).logs;
        assert!((logs[5].exp() - 0.25).abs() < 1e-4, "{logs:?}");
    }

    #[test]
    fn what_a_kernel_does_comes_off_and_what_a_host_does_stays() {
        let keys = |role: usize, kernel: usize| vec![role.to_string(), kernel.to_string()];
        let hosts: Vec<(usize, usize)> = (0..24).map(|host| (host % 2, host / 2 % 4)).collect();
        let alike = Alike::new(&hosts.iter().map(|&(r, k)| keys(r, k)).collect::<Vec<_>>());
        assert!(alike.groups.iter().all(|group| group.free == 1));
        let level =
            |(role, kernel): &(usize, usize)| 0.01 * (role + 1) as f64 * (kernel + 1) as f64;
        let mut values: Vec<f64> = hosts.iter().map(level).collect();
        values[5] *= 3.0;
        let figure = share(values);
        let factors = Factors::new(std::slice::from_ref(&figure), &alike);
        let adjusted = Adjusted::new(&figure, &factors, &alike, 1);
        for (host, (role, _)) in hosts.iter().enumerate() {
            let like = adjusted.logs[*role];
            let expected = if host == 5 { 3_f64.ln() } else { 0.0 };
            assert!(
                (adjusted.logs[host] - like - expected).abs() < 1e-3,
                "{host}"
            );
        }
    }
}
