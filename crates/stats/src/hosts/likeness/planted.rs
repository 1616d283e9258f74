//! Fleets of several roles, kernels and CPUs whose shares add up to one, as those of real hosts do.

use super::*;
use crate::Random;
use crate::hosts::{FALSE_DISCOVERIES, discoveries};

/// Fifty hosts of four roles, three kernels and two CPUs. On six of them compaction takes a share that it takes
/// nowhere else; on hosts with one kernel, some functions have other names.
struct Fleet {
    share: f64,
    kernels_differ: bool,
}

const HOSTS: usize = 50;
const ROLES: usize = 4;
const FUNCTIONS: usize = 60;
const SAMPLES: f64 = 20_000.0;

fn even(random: &mut Random) -> f64 {
    (random.bits() as f64 + 0.5) / u64::MAX as f64
}

fn varied(random: &mut Random) -> f64 {
    let (a, b) = (even(random), even(random));
    (0.1 * (-2.0 * a.ln()).sqrt() * (std::f64::consts::TAU * b).cos()).exp()
}

fn is_planted(host: usize) -> bool {
    host % 8 == host / 8 % 8 && host / 8 < 6
}

impl Fleet {
    fn make(&self, seed: u64) -> (Vec<Figure>, Alike) {
        let mut random = Random::seeded(seed);
        let levels: Vec<Vec<f64>> = (0..ROLES)
            .map(|_| {
                let level = |_| match even(&mut random) < 0.5 {
                    true => 10_f64.powf(even(&mut random) * 2.0),
                    false => 0.0,
                };
                (0..FUNCTIONS).map(level).collect()
            })
            .collect();
        let mut values = vec![vec![0.0; HOSTS]; FUNCTIONS + 2];
        let mut keys = Vec::new();
        let hosts = 0..HOSTS;
        for host in hosts {
            let (role, kernel, cpu) = (
                host % ROLES,
                [0, 1, 1, 2, 2, 2][random.below(6)],
                random.below(2),
            );
            keys.push([role, kernel, cpu].map(|key| key.to_string()).to_vec());
            let mut weights: Vec<f64> = levels[role]
                .iter()
                .map(|level| level * varied(&mut random))
                .collect();
            if self.kernels_differ {
                for (at, weight) in weights.iter_mut().take(6).enumerate() {
                    *weight = if at % 3 == kernel { *weight + 8.0 } else { 0.0 };
                }
            }
            let whole: f64 = weights.iter().sum();
            let planted = match is_planted(host) {
                true => self.share / (1.0 - self.share) * varied(&mut random),
                false => 0.0,
            };
            weights.iter_mut().for_each(|weight| *weight /= whole);
            weights.push(planted);
            values[0][host] = varied(&mut random) * (1.0 + planted);
            for (at, weight) in weights.iter().enumerate() {
                let drawn = weight / (1.0 + planted) * SAMPLES;
                let noise = drawn.sqrt() * varied(&mut random).ln() * 10.0;
                values[at + 1][host] = (drawn + noise).max(0.0).round() / SAMPLES;
            }
        }
        let figures = values.into_iter().enumerate().map(|(at, values)| Figure {
            name: String::new(),
            values,
            least: if at == 0 { 0.01 } else { 0.002 },
            is_share: at > 0,
        });
        (figures.collect(), Alike::new(&keys))
    }

    /// The share of planted hosts that is found, and the mean share of discoveries that are false.
    fn rates(&self, fleets: u64) -> [f64; 2] {
        let (mut found, mut rate) = (0, 0.0);
        for seed in 1..=fleets {
            let (figures, alike) = self.make(seed);
            let judged = judge(&figures, &alike, &[SAMPLES; HOSTS]);
            let tested: Vec<usize> = (0..HOSTS)
                .filter(|&host| judged[host].p_value.is_finite())
                .collect();
            let p: Vec<f64> = tested.iter().map(|&host| judged[host].p_value).collect();
            let claimed = tested.iter().zip(discoveries(&p, FALSE_DISCOVERIES));
            let claimed: Vec<usize> = claimed.filter(|pair| pair.1).map(|pair| *pair.0).collect();
            let right = claimed.iter().filter(|&&host| is_planted(host)).count();
            found += right;
            rate += (claimed.len() - right) as f64 / claimed.len().max(1) as f64;
        }
        [found as f64 / (6 * fleets) as f64, rate / fleets as f64]
    }
}

#[test]
fn six_of_fifty_hosts_with_compaction_are_found() {
    for kernels_differ in [false, true] {
        for (share, least) in [(0.22, 0.9), (0.05, 0.85)] {
            let [found, rate] = Fleet {
                share,
                kernels_differ,
            }
            .rates(60);
            assert!(found >= least, "{share}, {kernels_differ}: {found} found");
            assert!(rate <= 0.05, "{share}, {kernels_differ}: {rate} false");
        }
    }
}

#[test]
fn what_kernels_do_is_no_difference_of_hosts() {
    let fleet = Fleet {
        share: 0.0,
        kernels_differ: true,
    };
    let [_, rate] = fleet.rates(60);
    assert!(rate <= 0.05, "{rate}");
}
