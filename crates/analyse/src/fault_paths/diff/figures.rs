//! Everything that is compared, as sums by block.

use super::super::layer::Layer;
use super::super::signature::Class;
use super::super::stretches::bin_start;
use super::side::{FunctionSums, Row, Side, whole};
use crate::compare::blocks::{Figure, Outcome, Tested, compare_blocks, difference, ratio};
use pagewise_model::fault_diff::Pair;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Faults that a class needs in both traces to be compared.
const FEWEST_FAULTS: f64 = 20.0;
/// Faults or calls, of both traces together, that a figure is about at least.
const FEWEST: f64 = 10.0;
/// Quantiles that are tested.
pub(super) const TESTED: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// A quantile in thousandths.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 1000"
)]
pub(super) fn thousandths(quantile: f64) -> u16 {
    (quantile * 1000.0).round() as u16
}

/// Slow calls are those that so many calls a fault exceed, in both traces together.
const SLOW_SHARES: [f64; 4] = [0.04, 0.02, 0.01, 0.005];

/// What a figure says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum About<'a> {
    ClassShare(Class),
    Mean(Option<Class>),
    /// A quantile, in thousandths.
    Quantile(Option<Class>, u16),
    Layer(Layer, Option<Class>),
    LayerQuantile(Layer, Option<Class>, u16),
    Wait(Wait, Option<Class>),
    Path(Class, &'a str),
    /// In faults of a kind, or in all, compared kind by kind.
    FunctionTime(Option<Class>, &'a str),
    FunctionCalls(Option<Class>, &'a str),
    /// Calls with own times from an interval on.
    SlowCalls(Option<Class>, &'a str, u32),
}

impl About<'_> {
    /// Whether it is about the faults as a whole.
    pub(super) fn is_whole(&self) -> bool {
        matches!(
            self,
            Self::ClassShare(_)
                | Self::Mean(None)
                | Self::Quantile(None, _)
                | Self::Layer(_, None)
                | Self::Wait(_, None)
        )
    }
}

/// Figures that are tested together; each family has an equal part of the level, so that a few
/// questions about the whole are not drowned by thousands about details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// The faults as a whole: kinds, latency, layers, waits.
    Whole,
    /// What functions do in faults of the same kind, all kinds together.
    Functions,
    /// What happens in faults of one kind.
    Kinds,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Wait {
    Runnable,
    Blocked,
    Unknown,
    LockBefore,
}

impl Wait {
    pub(super) const ALL: [Self; 4] = [
        Self::Runnable,
        Self::Blocked,
        Self::Unknown,
        Self::LockBefore,
    ];

    pub(super) fn of(self, row: &Row) -> u64 {
        match self {
            Self::Runnable => row.waits.runnable,
            Self::Blocked => row.waits.blocked,
            Self::Unknown => row.waits.unknown,
            Self::LockBefore => row.waits.lock,
        }
    }
}

/// All families with their tests.
pub(super) struct Figures<'a> {
    families: [Tests<'a>; 3],
}

/// A figure's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    family: usize,
    figure: usize,
}

impl<'a> Figures<'a> {
    /// Compares the traces as wholes by the blocks of `sides`, faults of the same kind by those
    /// of `within`; `None` leaves out the tests.
    pub(super) fn new(
        sides: &'a [Side<'a>; 2],
        within: &'a [Side<'a>; 2],
        testing: Option<(u32, u64)>,
    ) -> Self {
        Self {
            families: [
                Tests::new(Family::Whole, sides, testing),
                Tests::new(Family::Functions, within, testing),
                Tests::new(Family::Kinds, within, testing),
            ],
        }
    }

    /// What functions did, of both traces.
    pub(super) fn functions(&self) -> &BTreeMap<(Class, &'a str), [FunctionSums; 2]> {
        &self.families[2].functions
    }

    pub(super) fn find(&self, about: &About<'_>) -> Option<At> {
        let mut families = self.families.iter().enumerate();
        families.find_map(|(family, tests)| {
            let figure = *tests.index.get(about)?;
            Some(At { family, figure })
        })
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (At, &About<'a>)> {
        let families = self.families.iter().enumerate();
        families.flat_map(|(family, tests)| {
            let all = tests.about.iter().enumerate();
            all.map(move |(figure, about)| (At { family, figure }, about))
        })
    }

    /// A figure's test, adjusted for all figures of all families.
    pub(super) fn outcome(&self, at: At) -> Option<Outcome> {
        let outcome = self.families[at.family].tested.outcomes.get(at.figure)?;
        Some(Outcome {
            p_adjusted: (outcome.p_adjusted * 3.0).min(1.0),
            ..*outcome
        })
    }

    /// B less A with its standard error.
    pub(super) fn difference(&self, at: At) -> (f64, f64) {
        let tests = &self.families[at.family];
        let figure = &tests.figures[at.figure];
        let below = &tests.denominators[figure.denominator];
        difference(&figure.numerators, below, tests.blocks_a)
    }

    /// The figure in A and in B.
    pub(super) fn pair(&self, at: At) -> Pair {
        let tests = &self.families[at.family];
        let figure = &tests.figures[at.figure];
        let (na, nb) = figure.numerators.split_at(tests.blocks_a);
        let (da, db) = tests.denominators[figure.denominator].split_at(tests.blocks_a);
        let base = tests.base[at.figure];
        Pair {
            a: base + ratio(na, da).0,
            b: base + ratio(nb, db).0,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.families.iter().map(|tests| tests.about.len()).sum()
    }

    /// The most exchanges that a family needed.
    pub(super) fn permutations(&self) -> u32 {
        let families = self.families.iter();
        families
            .map(|tests| tests.tested.permutations)
            .max()
            .unwrap_or(0)
    }
}

/// A family of figures with their tests.
struct Tests<'a> {
    about: Vec<About<'a>>,
    index: HashMap<About<'a>, usize>,
    figures: Vec<Figure>,
    /// What figures that are sums of deviations deviate from; 0 for others.
    base: Vec<f64>,
    denominators: Vec<Vec<f64>>,
    blocks_a: usize,
    tested: Tested,
    functions: BTreeMap<(Class, &'a str), [FunctionSums; 2]>,
}

/// Both traces while figures are made of them.
struct Making<'a> {
    sides: &'a [Side<'a>; 2],
    made: Tests<'a>,
}

impl<'a> Tests<'a> {
    fn new(family: Family, sides: &'a [Side<'a>; 2], testing: Option<(u32, u64)>) -> Self {
        let [a, b] = sides;
        let functions = match family {
            Family::Whole => BTreeMap::new(),
            Family::Functions | Family::Kinds => both_functions(a, b),
        };
        let mut making = Making {
            sides,
            made: Self {
                about: Vec::new(),
                index: HashMap::new(),
                figures: Vec::new(),
                base: Vec::new(),
                denominators: Vec::new(),
                blocks_a: a.blocks.len(),
                tested: Tested::default(),
                functions,
            },
        };
        if let Some((permutations, seed)) = testing {
            match family {
                Family::Whole => making.whole(),
                Family::Functions => making.functions_of_all(),
                Family::Kinds => making.kinds(),
            }
            let made = &mut making.made;
            made.tested = compare_blocks(
                &made.figures,
                &made.denominators,
                made.blocks_a,
                permutations,
                seed,
            );
        }
        making.made
    }
}

fn both_functions<'a>(
    a: &'a Side<'a>,
    b: &'a Side<'a>,
) -> BTreeMap<(Class, &'a str), [FunctionSums; 2]> {
    let blocks = [a.blocks.len(), b.blocks.len()];
    let empty = || blocks.map(FunctionSums::new);
    let mut both: BTreeMap<(Class, &str), [FunctionSums; 2]> = BTreeMap::new();
    for (place, side) in [a, b].into_iter().enumerate() {
        for (key, sums) in side.functions() {
            both.entry(key).or_insert_with(empty)[place] = sums;
        }
    }
    both
}

impl<'a> Making<'a> {
    fn whole(&mut self) {
        let faults = self.denominator(|side| side.faults(None));
        self.scope(None, faults);
        for class in self.classes() {
            let of_class = self.both(|side| side.faults(Some(class)));
            self.add(About::ClassShare(class), of_class, faults);
        }
    }

    fn kinds(&mut self) {
        for (class, faults) in self.compared_classes() {
            self.scope(Some(class), faults);
            self.paths(class);
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

    fn denominator(&mut self, of: impl Fn(&Side<'a>) -> Vec<f64>) -> usize {
        let both = self.both(of);
        self.made.denominators.push(both);
        self.made.denominators.len() - 1
    }

    fn both(&self, of: impl Fn(&Side<'a>) -> Vec<f64>) -> Vec<f64> {
        self.sides.iter().flat_map(of).collect()
    }

    /// A denominator's sums over A's and over B's blocks.
    fn split(&self, denominator: usize) -> (f64, f64) {
        let (a, b) = self.made.denominators[denominator].split_at(self.made.blocks_a);
        (a.iter().sum(), b.iter().sum())
    }

    fn add(&mut self, about: About<'a>, numerators: Vec<f64>, denominator: usize) {
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

    /// Times of the faults of a class or of all.
    fn scope(&mut self, class: Option<Class>, faults: usize) {
        // Sums are over logged faults; so are their denominators.
        let logged = match self.sides.iter().all(|side| side.collector.log.every == 1) {
            true => faults,
            false => self.denominator(|side| side.sums(class, |_| 1.0)),
        };
        let means = self.both(|side| side.sums(class, |row| whole(row.corrected)));
        self.add(About::Mean(class), means, logged);
        let value = |_: &Side<'a>, row: &Row| Some(row.corrected);
        self.quantiles(class, logged, value, |q| {
            About::Quantile(class, thousandths(q))
        });
        for wait in Wait::ALL {
            let sums = self.both(|side| side.sums(class, |row| whole(wait.of(row))));
            if sums.iter().any(|sum| *sum > 0.0) {
                self.add(About::Wait(wait, class), sums, logged);
            }
        }
        // The whole fault has figures of its own.
        for layer in Layer::ALL
            .into_iter()
            .filter(|layer| *layer != Layer::Fault)
        {
            self.layer(layer, class, logged);
        }
    }

    fn layer(&mut self, layer: Layer, class: Option<Class>, faults: usize) {
        let time = |side: &Side<'a>, row: &Row| side.layer(row, layer).map(|(_, ns)| ns);
        let having = |side: &Side<'a>| side.sums(class, |row| f64::from(time(side, row).is_some()));
        let with = self.both(having);
        if with.iter().sum::<f64>() < FEWEST {
            return;
        }
        let sums = self.both(|side| side.sums(class, |row| whole(time(side, row).unwrap_or(0))));
        self.add(About::Layer(layer, class), sums, faults);
        self.made.denominators.push(with);
        let having = self.made.denominators.len() - 1;
        self.quantiles(class, having, time, |q| {
            About::LayerQuantile(layer, class, thousandths(q))
        });
    }

    /// Shares of values beyond the quantiles of both traces together.
    fn quantiles(
        &mut self,
        class: Option<Class>,
        denominator: usize,
        value: impl Fn(&Side<'a>, &Row) -> Option<u64>,
        about: impl Fn(f64) -> About<'a>,
    ) {
        let sides = self.sides;
        let values = |side: &'_ Side<'a>| -> Vec<u64> {
            side.of(class).filter_map(|row| value(side, row)).collect()
        };
        let mut pooled: Vec<u64> = sides.iter().flat_map(values).collect();
        pooled.sort_unstable();
        for quantile in TESTED {
            let Some(bound) = at_rank(&pooled, quantile) else {
                continue;
            };
            let is_beyond = |side: &Side<'a>, row: &Row| value(side, row) > Some(bound);
            let beyond = self.both(|side| side.sums(class, |row| f64::from(is_beyond(side, row))));
            if beyond.iter().sum::<f64>() >= FEWEST {
                self.add(about(quantile), beyond, denominator);
            }
        }
    }

    fn paths(&mut self, class: Class) {
        let logged = self.denominator(|side| side.sums(Some(class), |_| 1.0));
        let mut counts: BTreeMap<&'a str, Vec<f64>> = BTreeMap::new();
        let blocks = self.made.denominators[logged].len();
        let mut first = 0;
        let sides = self.sides;
        for side in sides {
            for row in side.of(Some(class)) {
                let path: &'a str = &side.paths[row.shape];
                let count = counts.entry(path).or_insert_with(|| vec![0.0; blocks]);
                count[first + row.block] += 1.0;
            }
            first += side.blocks.len();
        }
        for (path, count) in counts {
            if count.iter().sum::<f64>() >= FEWEST {
                self.add(About::Path(class, path), count, logged);
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

    /// What functions do in all faults, each compared with what it does in faults of its kind.
    fn functions_of_all(&mut self) {
        let classes = self.compared_classes();
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
            self.stratified(
                About::FunctionTime(None, function),
                function,
                &kinds,
                faults,
                |both| joined(both, |sums| &sums.corrected),
            );
            self.stratified(
                About::FunctionCalls(None, function),
                function,
                &kinds,
                faults,
                |both| joined(both, |sums| &sums.calls),
            );
            for bin in bounds(&all, within) {
                let about = About::SlowCalls(None, function, bin);
                self.stratified(about, function, &kinds, faults, |both| beyond(both, bin));
            }
        }
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

    /// A figure as deviations from what is usual in faults of each kind, in both traces.
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

/// Bounds on own time that few calls of a function exceed: intervals of own time.
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
        // Of several bounds within one step of shares, the lowest: it has most calls.
        if slow >= FEWEST {
            if found.last().is_some_and(|(_, last)| *last == step(slow)) {
                found.pop();
            }
            found.push((bin, step(slow)));
        }
    }
    found.into_iter().map(|(bin, _)| bin).collect()
}

/// Calls with own times from an interval on, by block.
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

fn joined(both: &[FunctionSums; 2], of: impl Fn(&FunctionSums) -> &Vec<f64>) -> Vec<f64> {
    [&of(&both[0])[..], of(&both[1])].concat()
}

/// The value of a rank among sorted values; `None` where too few are beyond it.
#[allow(
    clippy::cast_precision_loss,
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

/// The bound on own time of an interval, ns.
pub(super) fn bound(bin: u32) -> u64 {
    bin_start(bin)
}
