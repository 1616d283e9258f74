//! Everything that is compared, as sums by block.

mod making;

use super::super::layer::Layer;
use super::super::signature::Class;
use super::super::stretches::bin_start;
use super::side::{FunctionSums, Row, Side};
use crate::compare::blocks::{Figure, Outcome, Tested, compare_blocks, difference, ratio};
use making::Making;
use pagewise_model::fault_diff::Pair;
use std::collections::{BTreeMap, HashMap};

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

/// The bound on own time of an interval, ns.
pub(super) fn bound(bin: u32) -> u64 {
    bin_start(bin)
}
