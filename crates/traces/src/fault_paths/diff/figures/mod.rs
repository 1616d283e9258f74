//! Everything that is compared, as sums by block, in stages: first a few questions; their
//! explanations only if a difference was found.

mod making;
mod paths;

use super::super::layer::Layer;
use super::super::signature::Class;
use super::super::stretches::bin_start;
use super::blocked::{Blocked, FunctionSums, Row};
use making::Making;
use pagewise_model::fault_diff::Pair;
use pagewise_stats::blocks::{
    Asked, Exchanges, Figure, Outcome, Tested, compare_blocks, difference, ratio,
};
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

/// Quantiles that are tested.
pub(super) const TESTED: [f64; 3] = [0.5, 0.9, 0.99];

/// A quantile in thousandths.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "0 to 1000"
)]
pub(super) fn thousandths(quantile: f64) -> u16 {
    (quantile * 1000.0).round() as u16
}

/// A call is slow if at most this many calls per fault take longer, in both traces together.
const SLOW_SHARES: [f64; 4] = [0.04, 0.02, 0.01, 0.005];

/// The meaning of a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum About<'a> {
    /// Time from fault to fault.
    Rate,
    ClassShare(Class),
    Mean(Option<Class>),
    /// A quantile, in thousandths.
    Quantile(Option<Class>, u16),
    /// The logarithm of whole time, relative to faults of the same path.
    SamePath,
    /// Faults slower than 99 % of their path's.
    SamePathTail,
    Layer(Layer, Option<Class>),
    Wait(Wait, Option<Class>),
    Path(Class, &'a str),
    /// In faults of a kind, or in all, compared kind by kind.
    FunctionTime(Option<Class>, &'a str),
    FunctionCalls(Option<Class>, &'a str),
    /// Calls with self times from an interval on.
    SlowCalls(Option<Class>, &'a str, u32),
}

/// Figures that are tested together, in test order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Family {
    /// How many faults, of which kinds, how long at the median, in the tail and overall.
    Questions,
    /// What single paths and functions do in faults of the same kind, all kinds together.
    Details,
    /// Layers and waits of all faults.
    Parts,
    /// What happens in faults of one kind.
    Kinds,
}

/// The share of the level that the questions get; the rest is for a change of a single path or
/// function that affects none of the questions. Once something was found, its explanations are
/// tested at the whole level: equal traces do not get that far.
const QUESTIONS: f64 = 0.5;

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

    pub(super) fn time(self, row: &Row) -> u64 {
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
    families: [Tests<'a>; 4],
    /// The questions again, about these recordings alone.
    recordings: Tests<'a>,
    /// Whether explanations of a difference were tested.
    explained: bool,
}

/// A figure's position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    family: usize,
    figure: usize,
}

/// Most random exchanges, and their seed.
pub(super) type Testing = (u32, u64);

impl<'a> Figures<'a> {
    /// Compares the traces as wholes by the blocks of `sides`, as recordings by those of `short`,
    /// faults of the same kind by those of `within`; `None` leaves out the tests.
    pub(super) fn new(
        [sides, short, within]: [&'a [Blocked<'a>; 2]; 3],
        testing: Option<Testing>,
    ) -> Self {
        let is_tested = testing.is_some();
        let functions = Rc::new(both_functions(within));
        let none = Rc::default();
        let made = |family, sides, functions: &Rc<Functions<'a>>| {
            Tests::new(family, sides, Rc::clone(functions), is_tested)
        };
        let mut recordings = made(Family::Questions, short, &none);
        let mut families = [
            made(Family::Questions, sides, &none),
            made(Family::Details, within, &functions),
            made(Family::Parts, sides, &none),
            made(Family::Kinds, within, &functions),
        ];
        if let Some(testing) = testing {
            families[0].test(Asked::Programs, testing);
            families[1].test(Asked::Programs, testing);
            recordings.test(Asked::Recordings, testing);
        }
        Self {
            families,
            recordings,
            explained: false,
        }
    }

    /// Tests the explanations of a difference that was found.
    pub(super) fn explain(&mut self, testing: Testing) {
        self.families[2].test(Asked::Programs, testing);
        self.families[3].test(Asked::Programs, testing);
        self.explained = true;
    }

    /// Activity of functions in both traces.
    pub(super) fn functions(&self) -> &Functions<'a> {
        &self.families[3].functions
    }

    /// The figures behind the questions.
    pub(super) fn questions(&self) -> impl Iterator<Item = (At, &About<'a>)> {
        self.all().filter(|(at, _)| at.family == 0)
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

    /// A figure's test, adjusted for all figures tested with it and their share of the level.
    pub(super) fn outcome(&self, at: At) -> Option<Outcome> {
        let outcome = self.families[at.family].tested.outcomes.get(at.figure)?;
        let part = match at.family {
            0 => QUESTIONS,
            1 if !self.explained => 1.0 - QUESTIONS,
            _ => 1.0,
        };
        Some(Outcome {
            p_adjusted: (outcome.p_adjusted / part).min(1.0),
            ..*outcome
        })
    }

    /// The chance of so large a difference between two recordings of the same faults in another
    /// order; for questions.
    pub(super) fn p_of_recordings(&self, about: &About<'_>) -> Option<f64> {
        let figure = *self.recordings.index.get(about)?;
        Some(self.recordings.tested.outcomes.get(figure)?.p_adjusted)
    }

    /// B minus A with its standard error.
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

    /// Number of figures that were tested, and of those for the questions.
    pub(super) fn counts(&self) -> (usize, usize) {
        let tested = |tests: &Tests<'_>| tests.tested.outcomes.len();
        let all = self.families.iter().map(tested).sum();
        (all, tested(&self.families[0]))
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
    /// The base from which figures that are sums of deviations deviate; 0 for others.
    base: Vec<f64>,
    denominators: Vec<Vec<f64>>,
    blocks_a: usize,
    tested: Tested,
    functions: Rc<Functions<'a>>,
}

impl<'a> Tests<'a> {
    fn new(
        family: Family,
        sides: &'a [Blocked<'a>; 2],
        functions: Rc<Functions<'a>>,
        is_tested: bool,
    ) -> Self {
        let mut making = Making {
            sides,
            made: Self {
                about: Vec::new(),
                index: HashMap::new(),
                figures: Vec::new(),
                base: Vec::new(),
                denominators: Vec::new(),
                blocks_a: sides[0].blocks.len(),
                tested: Tested::default(),
                functions,
            },
        };
        if is_tested {
            match family {
                Family::Questions => making.questions(),
                Family::Details => making.details(),
                Family::Parts => making.parts(),
                Family::Kinds => making.kinds(),
            }
        }
        making.made
    }

    fn test(&mut self, asked: Asked, (number, seed): Testing) {
        let Self {
            figures,
            denominators,
            blocks_a,
            ..
        } = self;
        let exchanges = Exchanges {
            asked,
            number,
            seed,
        };
        self.tested = compare_blocks(figures, denominators, *blocks_a, exchanges);
    }
}

/// Activity of functions by kind of fault, in both traces.
type Functions<'a> = BTreeMap<(Class, &'a str), [FunctionSums; 2]>;

fn both_functions<'a>(sides: &'a [Blocked<'a>; 2]) -> Functions<'a> {
    let blocks = sides.each_ref().map(|side| side.blocks.len());
    let empty = || blocks.map(FunctionSums::new);
    let mut both = Functions::new();
    for (place, side) in sides.iter().enumerate() {
        for (key, sums) in side.functions() {
            both.entry(key).or_insert_with(empty)[place] = sums;
        }
    }
    both
}

/// The bound on self time of an interval, ns.
pub(super) fn bound(bin: u32) -> u64 {
    bin_start(bin)
}
