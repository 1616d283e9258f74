use super::*;
use crate::Random;
use crate::hosts::{FALSE_DISCOVERIES, discoveries};

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
    fn make(&self, seed: u64) -> (Vec<Figure>, Alike, Vec<f64>) {
        let mut random = Random::seeded(seed);
        let all = self.groups * self.hosts;
        let groups = (0..all).map(|host| vec![(host / self.hosts).to_string()]);
        let groups = Alike::new(&groups.collect::<Vec<_>>());
        let figures = (0..80).map(|number| {
            let level = 0.002 * 10_f64.powf(even(&mut random) * 1.5);
            let deviation = 0.1 * 2_f64.powf(even(&mut random) * 2.0 - 1.0);
            let only = (number % 5 == 0).then_some(number / 5 % self.groups);
            let values = (0..all).map(|host| {
                let is_there = only.is_none_or(|only| only == host / self.hosts);
                let is_planted = host < self.planted * 7 && host.is_multiple_of(7) && number == 1;
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
    fn rates(&self, fleets: u64) -> [f64; 3] {
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

fn one_group(hosts: usize) -> Alike {
    Alike::new(&vec![vec![String::new()]; hosts])
}

#[test]
fn hosts_that_are_alike_are_not_claimed_to_differ() {
    for (groups, hosts) in [(1, 8), (1, 30), (4, 8), (4, 16), (12, 8)] {
        let fleet = Fleet {
            groups,
            hosts,
            ..NORMAL
        };
        let [_, _, claims] = fleet.rates(100);
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
        let [found, rate, _] = fleet.rates(100);
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
        let [_, rate, _] = fleet.rates(50);
        assert!(rate <= 0.05, "{groups} groups of {hosts}: {rate} false");
    }
}

/// The table of docs/notes/fleet.md, of 400 fleets each.
#[test]
#[ignore = "takes minutes: cargo test --release likeness -- --ignored --nocapture"]
fn table() {
    let fleets = 400;
    println!("groups × hosts, planted | ×4 | ×2 | long tails, ×8 | most false | A/A normal; long");
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
        let [four, two, eight] = planted_in.map(|fleet| fleet.rates(fleets));
        let alike = [normal as fn(&mut Random) -> f64, long_tailed];
        let [short, long] = alike.map(|draw| fleet(0, 1.0, draw).rates(fleets)[2]);
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
    let judged = judge(&[figure(vec![1.0, 1.0, 9.0])], &one_group(3), &[1e6; 3]);
    assert!(judged.iter().all(|judged| judged.p_value.is_infinite()));
    // Two of 200 samples are chance; two of a hundred thousandths of 20 million are not.
    let mut values = vec![0.0; 60];
    values[17] = 0.01;
    let of = |samples: f64| judge(&[figure(values.clone())], &one_group(60), &[samples; 60]);
    assert!(of(200.0)[17].p_value > 0.01);
    let many = of(200_000.0);
    assert!(many[17].p_value < 1e-6 && many[17].median.abs() < 1e-9);
    assert!(many[16].p_value >= 0.99);
}
