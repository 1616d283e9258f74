//! Builds the figures of both traces, family by family.

use super::super::super::layer::Layer;
use super::super::super::signature::Class;
use super::super::blocked::{Blocked, FunctionSums, Row};
use super::super::least::{CALLS, LEAST_NS, OF_MEAN};
use super::{About, SLOW_SHARES, TESTED, Tests, Wait, thousandths};
use crate::fault_paths::figures::whole;
use pagewise_stats::blocks::Figure;
use std::collections::{BTreeMap, BTreeSet};

/// Least number of faults or calls, in both traces together, behind a figure.
pub(super) const FEWEST: f64 = 10.0;

/// Faults that a class needs in both traces to be compared.
const FEWEST_FAULTS: f64 = 20.0;

/// Both traces while figures are built from them.
pub(super) struct Making<'a> {
    pub(super) sides: &'a [Blocked<'a>; 2],
    pub(super) made: Tests<'a>,
}

impl<'a> Making<'a> {
    pub(super) fn questions(&mut self) {
        let faults = self.denominator(|side| side.faults(None));
        if let [Some(a), Some(b)] = [0, 1].map(|place: usize| self.sides[place].durations()) {
            self.add(About::Rate, [a, b].concat(), faults);
        }
        for class in self.classes() {
            let of_class = self.both(|side| side.faults(Some(class)));
            if of_class.iter().sum::<f64>() >= FEWEST {
                self.add(About::ClassShare(class), of_class, faults);
            }
        }
        let logged = self.logged(None, faults);
        self.times(None, logged);
        self.same_paths();
    }

    pub(super) fn parts(&mut self) {
        let faults = self.denominator(|side| side.faults(None));
        let logged = self.logged(None, faults);
        self.waits_and_layers(None, logged);
    }

    pub(super) fn details(&mut self) {
        for (class, _) in self.compared_classes() {
            self.paths(class);
        }
        self.functions_of_all();
    }

    pub(super) fn kinds(&mut self) {
        for (class, faults) in self.compared_classes() {
            let logged = self.logged(Some(class), faults);
            self.times(Some(class), logged);
            self.waits_and_layers(Some(class), logged);
            self.functions(class, faults);
        }
    }

    /// Kinds with enough faults in both, with their denominators.
    fn compared_classes(&mut self) -> Vec<(Class, usize)> {
        let mut found = Vec::new();
        for class in self.classes() {
            let of_class = self.denominator(|side| side.faults(Some(class)));
            let (in_a, in_b) = self.split(of_class);
            if in_a >= FEWEST_FAULTS && in_b >= FEWEST_FAULTS {
                found.push((class, of_class));
            }
        }
        found
    }

    fn classes(&self) -> BTreeSet<Class> {
        let sides = self.sides.iter();
        sides
            .flat_map(|side| side.rows.iter().map(|row| row.class))
            .collect()
    }

    pub(super) fn denominator(&mut self, of: impl Fn(&Blocked<'a>) -> Vec<f64>) -> usize {
        let both = self.both(of);
        self.made.denominators.push(both);
        self.made.denominators.len() - 1
    }

    pub(super) fn both(&self, of: impl Fn(&Blocked<'a>) -> Vec<f64>) -> Vec<f64> {
        self.sides.iter().flat_map(of).collect()
    }

    /// A denominator's sums over A's and over B's blocks.
    fn split(&self, denominator: usize) -> (f64, f64) {
        let (a, b) = self.made.denominators[denominator].split_at(self.made.blocks_a);
        (a.iter().sum(), b.iter().sum())
    }

    pub(super) fn add(&mut self, about: About<'a>, numerators: Vec<f64>, denominator: usize) {
        self.add_deviation(about, numerators, denominator, 0.0);
    }

    fn add_deviation(
        &mut self,
        about: About<'a>,
        numerators: Vec<f64>,
        denominator: usize,
        base: f64,
    ) {
        self.made.index.insert(about, self.made.about.len());
        self.made.about.push(about);
        self.made.base.push(base);
        self.made.figures.push(Figure {
            numerators,
            denominator,
        });
    }

    /// Sums are over logged faults, and so are their denominators.
    fn logged(&mut self, class: Option<Class>, faults: usize) -> usize {
        match self.sides.iter().all(|side| side.collector.log.every == 1) {
            true => faults,
            false => self.denominator(|side| side.sums(class, |_| 1.0)),
        }
    }

    /// Times of the faults of a class or of all.
    fn times(&mut self, class: Option<Class>, logged: usize) {
        let means = self.both(|side| side.sums(class, |row| whole(row.corrected)));
        self.add(About::Mean(class), means, logged);
        self.quantiles(class, logged);
    }

    fn waits_and_layers(&mut self, class: Option<Class>, logged: usize) {
        for wait in Wait::ALL {
            let sums = self.both(|side| side.sums(class, |row| whole(wait.time(row))));
            if sums.iter().any(|sum| *sum > 0.0) {
                self.add(About::Wait(wait, class), sums, logged);
            }
        }
        // The whole fault has its own figures.
        for layer in Layer::ALL
            .into_iter()
            .filter(|layer| *layer != Layer::Fault)
        {
            self.layer(layer, class, logged);
        }
    }

    fn layer(&mut self, layer: Layer, class: Option<Class>, faults: usize) {
        let time = |side: &Blocked<'a>, row: &Row| side.layer(row, layer).map(|(_, ns)| ns);
        let with = self.both(|side| side.sums(class, |row| f64::from(time(side, row).is_some())));
        if with.iter().sum::<f64>() < FEWEST {
            return;
        }
        let sums = self.both(|side| side.sums(class, |row| whole(time(side, row).unwrap_or(0))));
        self.add(About::Layer(layer, class), sums, faults);
    }

    /// Shares of faults beyond the quantiles of both traces together.
    fn quantiles(&mut self, class: Option<Class>, denominator: usize) {
        let sides = self.sides.iter();
        let values = sides.flat_map(|side| side.rows(class).map(|row| row.corrected));
        let mut pooled: Vec<u64> = values.collect();
        pooled.sort_unstable();
        for quantile in TESTED {
            let Some(bound) = at_rank(&pooled, quantile) else {
                continue;
            };
            let is_beyond = |row: &Row| f64::from(row.corrected > bound);
            let beyond = self.both(|side| side.sums(class, is_beyond));
            if beyond.iter().sum::<f64>() >= FEWEST {
                self.add(
                    About::Quantile(class, thousandths(quantile)),
                    beyond,
                    denominator,
                );
            }
        }
    }

    fn functions(&mut self, class: Class, faults: usize) {
        let of_class: Vec<&'a str> = self
            .made
            .functions
            .keys()
            .filter(|(found, _)| *found == class)
            .map(|(_, function)| *function)
            .collect();
        for function in of_class {
            let both = &self.made.functions[&(class, function)];
            let calls = joined(both, |sums| &sums.calls);
            if calls.iter().sum::<f64>() < FEWEST {
                continue;
            }
            let corrected = joined(both, |sums| &sums.corrected);
            let slow = bounds(both, self.split(faults));
            let slow: Vec<_> = slow
                .into_iter()
                .map(|bin| (bin, beyond(both, bin)))
                .collect();
            let class = Some(class);
            self.add(About::FunctionTime(class, function), corrected, faults);
            self.add(About::FunctionCalls(class, function), calls, faults);
            for (bin, count) in slow {
                self.add(About::SlowCalls(class, function, bin), count, faults);
            }
        }
    }

    /// Activity of functions in all faults, each compared with that in faults of the same kind.
    fn functions_of_all(&mut self) {
        let classes = self.compared_classes();
        let least_ns = LEAST_NS.min(OF_MEAN * self.mean());
        let mut by_name: BTreeMap<&'a str, Vec<(Class, usize)>> = BTreeMap::new();
        for &(class, faults) in &classes {
            let of_class = self
                .made
                .functions
                .keys()
                .filter(|(found, _)| *found == class);
            for (_, function) in of_class {
                by_name.entry(function).or_default().push((class, faults));
            }
        }
        for (function, kinds) in by_name {
            let all = self.both_sums(function, &kinds);
            if all.iter().flat_map(|sums| &sums.calls).sum::<f64>() < FEWEST {
                continue;
            }
            let of_kinds: Vec<Vec<f64>> = kinds
                .iter()
                .map(|(_, faults)| self.made.denominators[*faults].clone())
                .collect();
            let blocks = of_kinds.first().map_or(0, Vec::len);
            let sum = |block: usize| of_kinds.iter().map(|faults| faults[block]).sum();
            self.made.denominators.push((0..blocks).map(sum).collect());
            let faults = self.made.denominators.len() - 1;
            let within = self.split(faults);
            let own = |sums: &[FunctionSums; 2]| joined(sums, |sums| &sums.corrected);
            if self.could_change(&own(&all), faults, least_ns) {
                let about = About::FunctionTime(None, function);
                self.stratified(about, function, &kinds, faults, own);
            }
            let calls = |sums: &[FunctionSums; 2]| joined(sums, |sums| &sums.calls);
            if self.could_change(&calls(&all), faults, CALLS) {
                let about = About::FunctionCalls(None, function);
                self.stratified(about, function, &kinds, faults, calls);
            }
            for bin in bounds(&all, within) {
                let about = About::SlowCalls(None, function, bin);
                self.stratified(about, function, &kinds, faults, |both| beyond(both, bin));
            }
        }
    }

    /// Mean whole time of both traces' faults, ns.
    fn mean(&self) -> f64 {
        let rows = || self.sides.iter().flat_map(|side| &side.rows);
        let time: f64 = rows().map(|row| whole(row.corrected)).sum();
        time / whole(rows().count().max(1) as u64)
    }

    /// The share of a kind among the faults, averaged over both traces.
    pub(super) fn share(&self, class: Class) -> f64 {
        let share = |side: &Blocked<'a>| {
            let [of_class, all] = [Some(class), None].map(|class| side.faults(class).iter().sum());
            let (of_class, all): (f64, f64) = (of_class, all);
            of_class / all.max(1.0)
        };
        let [a, b] = self.sides;
        f64::midpoint(share(a), share(b))
    }

    /// Whether a figure could differ by `least`, however it is distributed over both traces: if
    /// not, testing it only makes all other differences harder to find.
    pub(super) fn could_change(&self, numerators: &[f64], denominator: usize, least: f64) -> bool {
        let most: f64 = numerators.iter().map(|value| value.abs()).sum();
        let (in_a, in_b) = self.split(denominator);
        most >= least * in_a.min(in_b)
    }

    /// Sums of a function over several kinds of faults.
    fn both_sums(&self, function: &str, kinds: &[(Class, usize)]) -> [FunctionSums; 2] {
        let [a, b] = self.sides;
        let mut all = [a.blocks.len(), b.blocks.len()].map(FunctionSums::new);
        for (class, _) in kinds {
            let both = &self.made.functions[&(*class, function)];
            for (sum, sums) in all.iter_mut().zip(both) {
                sum.add(sums);
            }
        }
        all
    }

    /// A figure as deviations from the mean of each kind of fault, in both traces.
    fn stratified(
        &mut self,
        about: About<'a>,
        function: &str,
        kinds: &[(Class, usize)],
        faults: usize,
        of: impl Fn(&[FunctionSums; 2]) -> Vec<f64>,
    ) {
        let mut deviations = vec![0.0; self.made.denominators[faults].len()];
        let mut total = 0.0;
        for (class, of_class) in kinds {
            let values = of(&self.made.functions[&(*class, function)]);
            let below = &self.made.denominators[*of_class];
            let sum: f64 = values.iter().sum();
            let usual = sum / below.iter().sum::<f64>();
            total += sum;
            for ((deviation, value), faults) in deviations.iter_mut().zip(values).zip(below) {
                *deviation += value - usual * faults;
            }
        }
        let base = total / self.made.denominators[faults].iter().sum::<f64>();
        self.add_deviation(about, deviations, faults, base);
    }
}

/// Bounds on self time that few calls of a function exceed, as intervals.
fn bounds(both: &[FunctionSums; 2], (in_a, in_b): (f64, f64)) -> Vec<u32> {
    let bins: BTreeSet<u32> = both
        .iter()
        .flat_map(|sums| sums.bins.keys().copied())
        .collect();
    let all: f64 = both.iter().flat_map(|sums| &sums.calls).sum();
    let step = |slow: f64| {
        let within = SLOW_SHARES
            .iter()
            .filter(|share| slow <= **share * (in_a + in_b));
        within.count()
    };
    let mut found: Vec<(u32, usize)> = Vec::new();
    let mut slow = 0.0;
    for &bin in bins.iter().rev() {
        let calls = both
            .iter()
            .flat_map(|sums| sums.bins.get(&bin).into_iter().flatten());
        slow += calls.sum::<f64>();
        if step(slow) == 0 || slow > all / 4.0 {
            break;
        }
        // Of several bounds within one step of shares, the lowest: it has the most calls.
        if slow >= FEWEST {
            if found.last().is_some_and(|(_, last)| *last == step(slow)) {
                found.pop();
            }
            found.push((bin, step(slow)));
        }
    }
    found.into_iter().map(|(bin, _)| bin).collect()
}

/// Calls with self times from an interval on, by block.
fn beyond(both: &[FunctionSums; 2], from: u32) -> Vec<f64> {
    let of = |sums: &FunctionSums| {
        let mut calls = vec![0.0; sums.calls.len()];
        for bin in sums.bins.range(from..).map(|(_, bin)| bin) {
            calls
                .iter_mut()
                .zip(bin)
                .for_each(|(sum, calls)| *sum += calls);
        }
        calls
    };
    both.iter().flat_map(of).collect()
}

/// The value at a rank among sorted values; `None` if too few are beyond it.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a rank within a count"
)]
fn at_rank(sorted: &[u64], quantile: f64) -> Option<u64> {
    let beyond = (1.0 - quantile) * sorted.len() as f64;
    if beyond < FEWEST {
        return None;
    }
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.saturating_sub(1)).copied()
}

fn joined(both: &[FunctionSums; 2], of: impl Fn(&FunctionSums) -> &Vec<f64>) -> Vec<f64> {
    [&of(&both[0])[..], of(&both[1])].concat()
}
