//! How many huge pages a process or guest should have: decisions from observations.
//!
//! A [`Controller`] gets an [`Observation`] per interval and returns an [`Order`]. It uses neither
//! clocks nor page tables, so that the same logic runs in the simulator's loop ([`crate::tlb`]) and
//! on live processes. The caller carries orders out (splits, collapses, verifies, undoes). An order
//! never names pages: which page is split first follows from [`Victims`], ranked by the caller by
//! heat and density.
//!
//! | controller | bases its decision on |
//! |---|---|
//! | [`Paper`] | imbalance of refills per TLB entry, as published by Zhu Chen et al. |
//! | [`MinCost`] | the number of huge pages at which a unit of work costs least |
//! | [`Fixed`] | nothing: `always`, `never`, and `oracle` where the best number is known |

mod fixed;
mod min_cost;
mod paper;
#[cfg(test)]
mod tests;

pub use fixed::Fixed;
pub use min_cost::{MinCost, MinCostSettings};
pub use paper::{Paper, PaperSettings};

use pagewise_model::quantity::rounded;
use pagewise_model::units::Nanos;
use std::fmt;

/// What happened in one interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observation {
    /// Length of the interval.
    pub interval: Nanos,
    /// TLB refills (page walks) of the process in the interval; `None` where no counter exists.
    pub refills: Option<Refills>,
    /// Share of CPU time spent in refills, 0 to 1; `None` where it is unknown.
    pub refill_share: Option<f64>,
    /// CPU time per unit of work in any fixed unit, lower is better; `None` where no work was
    /// counted.
    pub cost: Option<f64>,
    /// Pages at the end of the interval.
    pub pages: Pages,
}

/// TLB refills in an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refills {
    /// All of them.
    pub all: u64,
    /// Refills for huge pages; `None` while their counter is off or missing.
    pub huge: Option<u64>,
}

/// Huge pages of the process or guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pages {
    /// In use now (N_hc in the paper).
    pub huge: u64,
    /// The number its memory could contain.
    pub possible: u64,
}

/// What to do until the next observation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Order {
    /// Whether to count refills of huge pages separately, which may cost something.
    pub count_huge: bool,
    /// What to do with huge pages.
    pub action: Action,
    /// The reason, for the journal.
    pub reason: Reason,
}

/// What to do with huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Leave them.
    Hold,
    /// Split down to this number; the kernel builds none above it, but may below it (N_hl in the
    /// paper).
    Limit(u64),
    /// Split or build until this number is reached.
    Reach(u64),
}

/// Why a controller gave an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reason {
    /// Refills take little time, or not for long enough yet.
    Calm,
    /// Refills of huge and small pages are being compared.
    Comparing,
    /// Huge pages' TLB entries are overloaded by this factor.
    HugeOverloaded(f64),
    /// Small pages' TLB entries are overloaded by this factor.
    SmallOverloaded(f64),
    /// Load is balanced within the threshold, or its sign turned.
    Balanced,
    /// This number of huge pages is on trial.
    Trying(u64),
    /// A number proved best: it takes less time than the start of the search, by this share.
    Best {
        /// Huge pages.
        huge: u64,
        /// Share of time saved, 0 to 1.
        saves: f64,
    },
    /// No number proved better than the one before the search.
    NothingBetter,
    /// The number is fixed.
    Fixed,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Calm => f.write_str("refills take too little time to act on"),
            Self::Comparing => f.write_str("refills of huge and small pages are compared"),
            Self::HugeOverloaded(by) => {
                write!(
                    f,
                    "entries for huge pages are {} times as busy",
                    rounded(*by)
                )
            }
            Self::SmallOverloaded(by) => {
                write!(
                    f,
                    "entries for small pages are {} times as busy",
                    rounded(*by)
                )
            }
            Self::Balanced => f.write_str("both kinds of entries are about equally busy"),
            Self::Trying(huge) => write!(f, "{huge} huge pages on trial"),
            Self::Best { huge, saves } => {
                write!(
                    f,
                    "{huge} huge pages save {:.1} % of the time",
                    saves * 100.0
                )
            }
            Self::NothingBetter => f.write_str("no other number of huge pages is better"),
            Self::Fixed => f.write_str("the number of huge pages is fixed"),
        }
    }
}

/// Which huge pages are split first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// Any, at random: what the paper's kernel does.
    Random,
    /// Those in which a program touches the fewest small pages in a given time: first cold ones,
    /// which are not needed, then sparse ones, which need few small entries.
    Sparsest,
}

/// Internal state of a controller, for plots.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Gauge {
    /// For how many intervals refills have taken much time (C_L in the paper).
    pub load: u32,
    /// Factor by which one kind of entries is busier (y in the paper), when last computed.
    pub imbalance: Option<f64>,
}

/// Decides on the number of huge pages, one interval after another.
pub trait Controller {
    /// The name used to select it.
    fn name(&self) -> &'static str;
    /// Which huge pages to split first.
    fn victims(&self) -> Victims;
    /// Takes the observation of the last interval; returns what to do until the next.
    fn decide(&mut self, seen: &Observation) -> Order;
    /// For plots.
    fn gauge(&self) -> Gauge {
        Gauge::default()
    }
}

/// Which kind of TLB entry is busier, and by what factor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imbalance {
    /// The larger refill rate per entry over the smaller one (y in the paper), at least 1.
    pub factor: f64,
    /// Whether entries for huge pages are the busier ones.
    pub on_huge: bool,
}

/// Entries of the TLB for each page size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries {
    /// For huge pages.
    pub huge: u32,
    /// For small pages.
    pub small: u32,
}

impl Entries {
    /// Compares refills per entry. Zero refills of a kind count as one, so that the factor stays
    /// finite; zero of both kinds is balance. `None` where huge refills were not counted.
    #[must_use]
    pub fn imbalance(self, refills: Refills) -> Option<Imbalance> {
        let huge = refills.huge?;
        let small = refills.all.saturating_sub(huge);
        if refills.all == 0 {
            return Some(Imbalance {
                factor: 1.0,
                on_huge: false,
            });
        }
        let f_huge = huge.max(1) as f64 / f64::from(self.huge.max(1));
        let f_small = small.max(1) as f64 / f64::from(self.small.max(1));
        Some(Imbalance {
            factor: (f_huge / f_small).max(f_small / f_huge),
            on_huge: f_huge > f_small,
        })
    }
}
