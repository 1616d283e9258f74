//! Settings of hosts: which values go with some of them.

use super::units::Units;
use crate::engine::Engine;
use anyhow::Result;
use datafusion::arrow::array::AsArray;
use pagewise_stats::hosts::{FALSE_DISCOVERIES, discoveries};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Hosts by setting and value.
pub struct Settings(BTreeMap<(String, String), BTreeSet<u32>>);

/// A value that some hosts have more often than others.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shared {
    /// The setting.
    pub setting: String,
    /// Its value there.
    pub value: String,
    /// How many of the hosts in question have it, and of how many.
    pub hosts: usize,
    pub of_hosts: usize,
    /// The same of all others.
    pub others: usize,
    pub of_others: usize,
    /// The chance of at least as many if it had nothing to do with them.
    pub p_value: f64,
}

impl Settings {
    /// Reads the settings of these units.
    pub fn read(engine: &mut Engine, units: &Units) -> Result<Self> {
        let mut held: BTreeMap<(String, String), BTreeSet<u32>> = BTreeMap::new();
        let sql = "SELECT run_id, name, value FROM settings";
        for batch in &engine.query(sql, &[("settings", &units.folders)])? {
            let runs = batch.column(0).as_binary_view();
            let (names, values) = (
                batch.column(1).as_string_view(),
                batch.column(2).as_string_view(),
            );
            for row in 0..batch.num_rows() {
                let Some((unit, _)) = units.get(runs.value(row)) else {
                    continue;
                };
                let key = (names.value(row).to_owned(), values.value(row).to_owned());
                held.entry(key).or_default().insert(unit as u32);
            }
        }
        Ok(Self(held))
    }

    /// The same for findings that cost something: each has one value.
    pub fn of_findings(engine: &mut Engine, units: &Units) -> Result<Self> {
        let findings = super::findings::lost(engine, units)?.into_iter();
        let held = findings.map(|(_, lost)| {
            let units = (0..)
                .zip(lost.weights)
                .filter(|pair| pair.1 > 0.0)
                .map(|pair| pair.0);
            ((lost.title, String::new()), units.collect())
        });
        Ok(Self(held.collect()))
    }

    /// The values that these units share beyond chance, by Fisher's exact test.
    pub fn shared_by(&self, some: &BTreeSet<u32>, all: usize) -> Vec<Shared> {
        let others = all - some.len();
        let tested = self.0.iter().filter(|(_, units)| units.len() < all);
        let tested: Vec<Shared> = tested
            .map(|((setting, value), units)| {
                let inside = units.intersection(some).count();
                let outside = units.len() - inside;
                Shared {
                    setting: setting.clone(),
                    value: value.clone(),
                    hosts: inside,
                    of_hosts: some.len(),
                    others: outside,
                    of_others: others,
                    p_value: at_least(inside, some.len(), units.len(), all),
                }
            })
            .collect();
        let p: Vec<f64> = tested.iter().map(|shared| shared.p_value).collect();
        let found = discoveries(&p, FALSE_DISCOVERIES);
        let mut shared: Vec<Shared> = tested
            .into_iter()
            .zip(found)
            .filter(|pair| pair.1)
            .map(|pair| pair.0)
            .collect();
        shared.sort_by(|a, b| a.p_value.total_cmp(&b.p_value));
        shared
    }

    /// Hosts by setting and value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &BTreeSet<u32>)> {
        self.0
            .iter()
            .map(|((setting, value), units)| (&**setting, &**value, units))
    }
}

/// The chance that of `drawn` units at least `inside` are among the `marked` of `all`: the upper tail
/// of the hypergeometric distribution.
fn at_least(inside: usize, drawn: usize, marked: usize, all: usize) -> f64 {
    let choose = |n: usize, k: usize| {
        let gamma = |x: usize| libm::lgamma(x as f64 + 1.0);
        gamma(n) - gamma(k) - gamma(n - k)
    };
    let whole = choose(all, drawn);
    let most = drawn.min(marked);
    let tail = (inside..=most).filter(|&k| drawn - k <= all - marked);
    let tail = tail.map(|k| (choose(marked, k) + choose(all - marked, drawn - k) - whole).exp());
    tail.sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_fishers() {
        // Fisher's tea: of 70 choices, 16 have three right and 1 has four.
        assert!((at_least(3, 4, 4, 8) - 17.0 / 70.0).abs() < 1e-9);
        assert!((at_least(0, 4, 4, 8) - 1.0).abs() < 1e-9);
        assert!((at_least(4, 4, 4, 8) - 1.0 / 70.0).abs() < 1e-9);
    }

    #[test]
    fn a_value_that_only_some_have_is_found() {
        let both = |name: &str, units: &[u32]| {
            (
                (name.to_owned(), "1".to_owned()),
                units.iter().copied().collect(),
            )
        };
        let all: Vec<u32> = (0..40).collect();
        let settings = Settings(BTreeMap::from([
            both("planted", &[0, 1, 2, 3, 4]),
            both("everywhere", &all),
            both("elsewhere", &[7, 9, 11]),
        ]));
        let found = settings.shared_by(&BTreeSet::from([0, 1, 2, 3, 4]), 40);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (&*found[0].setting, found[0].hosts, found[0].others),
            ("planted", 5, 0)
        );
    }
}
