//! mcf in every configuration of the paper, the paper's figures compared with the simulated ones,
//! and the orderings that it states.

use pagewise_simulate::balance::Controller;
use pagewise_simulate::in_parallel;
use pagewise_simulate::page_sizes::{Scale, controller, settings};
use pagewise_simulate::tlb::workload::{Mcf, Workload};
use pagewise_simulate::tlb::{Machine, PageSize, Program, Run, Simulation, Space};

/// Nanoseconds of an access of mcf whose translation is free: CALIBRATED.
pub const BASE_NS: f64 = 28.4;
/// Accesses of a round of mcf's two phases.
pub const ROUND: u64 = 500_000;

/// Scale of the tables.
pub const FULL: Scale = Scale {
    time: 32.0,
    measured: 4_000_000,
    ticks: 20_000,
};
/// Scale of tests: the same shape in a fraction of the time.
#[cfg(test)]
pub const SMALL: Scale = Scale {
    time: 64.0,
    measured: 1_500_000,
    ticks: 16_000,
};

/// A configuration of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Case {
    /// Host, small pages.
    HostSmall,
    /// Host, transparent huge pages.
    HostThp,
    /// Guest, small pages at both levels.
    GuestNone,
    /// Guest, huge pages in the guest only: KVM's are off.
    GuestOnly,
    /// Guest, huge pages in the host only: the guest's are off.
    KvmOnly,
    /// Guest, huge pages at both levels.
    GuestBoth,
    /// The same with host memory that is not aligned to the guest's (figure 4).
    Misaligned,
    /// Both levels with the paper's controller.
    Controlled,
    /// Both levels with the controller that minimises cost.
    MinCost,
}

impl Case {
    /// All, in the order of tables.
    pub const ALL: [Self; 9] = [
        Self::HostSmall,
        Self::HostThp,
        Self::GuestNone,
        Self::GuestOnly,
        Self::KvmOnly,
        Self::GuestBoth,
        Self::Misaligned,
        Self::Controlled,
        Self::MinCost,
    ];

    /// For people.
    pub fn label(self) -> &'static str {
        match self {
            Self::HostSmall => "host, small pages",
            Self::HostThp => "host, THP",
            Self::GuestNone => "guest, none",
            Self::GuestOnly => "guest, THP in the guest only",
            Self::KvmOnly => "guest, THP in the host only",
            Self::GuestBoth => "guest, THP at both levels",
            Self::Misaligned => "guest, both, host memory misaligned",
            Self::Controlled => "guest, both, the paper's controller",
            Self::MinCost => "guest, both, min-cost",
        }
    }

    /// Its address space.
    pub fn space(self) -> Space {
        use PageSize::{Huge, Small};
        match self {
            Self::HostSmall => Space::native(Small),
            Self::HostThp => Space::native(Huge),
            Self::GuestNone => Space::guest(Small, Small),
            Self::GuestOnly => Space::guest(Huge, Small),
            Self::KvmOnly => Space::guest(Small, Huge),
            Self::GuestBoth | Self::Controlled | Self::MinCost => Space::guest(Huge, Huge),
            Self::Misaligned => Space {
                is_aligned: false,
                ..Space::guest(Huge, Huge)
            },
        }
    }

    fn controller(self, machine: &Machine) -> Option<Box<dyn Controller>> {
        match self {
            Self::Controlled => Some(controller("paper", machine)?),
            Self::MinCost => Some(controller("min-cost", machine)?),
            _ => None,
        }
    }
}

/// Runs mcf in one configuration.
pub fn run(machine: &Machine, case: Case, scale: Scale) -> Run {
    let workload = Box::new(Mcf::new(1).with_round(ROUND));
    let controller = case.controller(machine);
    run_one(
        machine,
        case.label(),
        case.space(),
        workload,
        controller,
        scale,
        BASE_NS,
    )
}

/// Runs one program alone.
pub fn run_one(
    machine: &Machine,
    name: &str,
    space: Space,
    workload: Box<dyn Workload>,
    controller: Option<Box<dyn Controller>>,
    scale: Scale,
    base_ns: f64,
) -> Run {
    let settings = settings(scale, base_ns, controller.is_some());
    let program = Program {
        name: name.to_owned(),
        space,
        workload,
        controller,
    };
    let mut runs = Simulation::new(machine, settings, vec![program]).run();
    runs.remove(0)
}

/// One of the paper's numbers beside what was simulated.
#[derive(Clone, Debug)]
pub struct Target {
    /// What it is.
    pub name: &'static str,
    /// In the paper.
    pub paper: f64,
    /// Simulated.
    pub simulated: f64,
    /// Allowed difference, in the unit of the two.
    pub tolerance: f64,
    /// Unit for people.
    pub unit: Unit,
}

/// Unit of a [`Target`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A change, as a share.
    Change,
    /// Refills per second.
    PerSecond,
}

impl Target {
    /// Whether the simulated number is near enough.
    pub fn holds(&self) -> bool {
        (self.simulated - self.paper).abs() <= self.tolerance
    }
}

/// All runs of mcf.
#[derive(Clone, Debug)]
pub struct Results {
    /// In the order of [`Case::ALL`].
    pub runs: Vec<Run>,
}

impl Results {
    /// Runs every configuration; two at a time, as each is independent.
    pub fn simulate(machine: &Machine, scale: Scale) -> Self {
        Self {
            runs: in_parallel(&Case::ALL, |case| run(machine, *case, scale)),
        }
    }

    /// The run of a configuration.
    ///
    /// # Panics
    /// Never: there is one for each.
    pub fn run(&self, case: Case) -> &Run {
        let at = Case::ALL.iter().position(|known| *known == case);
        &self.runs[at.unwrap_or(0)]
    }

    fn change(&self, from: Case, to: Case) -> f64 {
        self.run(to).speed() / self.run(from).speed() - 1.0
    }
}

/// The paper's numbers beside the simulated ones (sections 2, 3 and 5).
pub fn targets(results: &Results) -> Vec<Target> {
    let change = |name, paper, tolerance, from, to| Target {
        name,
        paper,
        simulated: results.change(from, to),
        tolerance,
        unit: Unit::Change,
    };
    let (huge, _) = results.run(Case::GuestBoth).refill_rates();
    let off = results.run(Case::GuestOnly).refill_rates();
    let rate = |name, paper: f64, simulated| Target {
        name,
        paper,
        simulated,
        tolerance: paper * 0.05,
        unit: Unit::PerSecond,
    };
    vec![
        change(
            "host: THP against small pages",
            0.162,
            0.03,
            Case::HostSmall,
            Case::HostThp,
        ),
        change(
            "guest: both levels against none",
            -0.092,
            0.03,
            Case::GuestNone,
            Case::GuestBoth,
        ),
        change(
            "guest: the paper's controller against both",
            0.451,
            0.051,
            Case::GuestBoth,
            Case::Controlled,
        ),
        rate("guest, both: refills of huge pages", 2.18e6, huge),
        rate("guest, KVM's THP off: all refills", 1.28e6, off.0 + off.1),
    ]
}

/// A relation that the paper's figures show.
#[derive(Clone, Debug)]
pub struct Ordering {
    /// Where, and what.
    pub name: &'static str,
    /// Whether it holds in simulation.
    pub holds: bool,
}

/// The orderings that the paper states of figures 4 to 9.
pub fn orderings(results: &Results) -> Vec<Ordering> {
    let speed = |case| results.run(case).speed();
    let below = |slow, fast| speed(slow) < speed(fast);
    let rates = |case: Case| results.run(case).refill_rates();
    let all = |case| rates(case).0 + rates(case).1;
    let ordering = |name, holds| Ordering { name, holds };
    let as_off = |case| (speed(case) / speed(Case::GuestOnly) - 1.0).abs() < 0.01;
    vec![
        ordering(
            "figure 4: misaligned host memory fills small entries, as if KVM's THP were off",
            as_off(Case::Misaligned) && results.run(Case::Misaligned).counts.refills[1][1] == 0,
        ),
        ordering(
            "figure 5: host THP > host small > guest none > guest both",
            below(Case::GuestBoth, Case::GuestNone)
                && below(Case::GuestNone, Case::HostSmall)
                && below(Case::HostSmall, Case::HostThp),
        ),
        ordering(
            "figure 6: either level alone helps",
            below(Case::GuestNone, Case::GuestOnly) && below(Case::GuestNone, Case::KvmOnly),
        ),
        ordering(
            "figure 6: both levels together hurt",
            below(Case::GuestBoth, Case::GuestNone),
        ),
        ordering(
            "figure 7: host THP has fewest refills; both levels more than KVM's THP off",
            all(Case::HostThp) < all(Case::GuestOnly)
                && all(Case::GuestOnly) < all(Case::GuestBoth),
        ),
        ordering(
            "figure 7: with both levels, small pages have under 450 refills per second",
            rates(Case::GuestBoth).1 < 450.0,
        ),
        ordering(
            "figure 7: score falls as refills rise (rank correlation at most −0.8)",
            rank_correlation(results) <= -0.8,
        ),
        ordering(
            "figure 9: the controller is above both, none and one level alone",
            [
                Case::GuestBoth,
                Case::GuestNone,
                Case::GuestOnly,
                Case::KvmOnly,
            ]
            .into_iter()
            .all(|case| below(case, Case::Controlled)),
        ),
        ordering(
            "figure 9: the controller is above the host's small pages",
            below(Case::HostSmall, Case::Controlled),
        ),
        ordering(
            "min-cost is nowhere worse than the paper's controller (1 ‰ allowed)",
            speed(Case::MinCost) > speed(Case::Controlled) * 0.999,
        ),
    ]
}

/// Spearman's correlation of refills per second and score over the environments of figure 7.
fn rank_correlation(results: &Results) -> f64 {
    let cases = [
        Case::HostSmall,
        Case::HostThp,
        Case::GuestNone,
        Case::GuestOnly,
        Case::GuestBoth,
    ];
    let rank = |value: &dyn Fn(Case) -> f64, case: Case| {
        let (mut below, mut equal) = (0.0, 0.0);
        for other in cases {
            // Values within 2 % share a rank.
            if (value(other) - value(case)).abs() <= 0.02 * value(case).abs() {
                equal += 1.0;
            } else if value(other) < value(case) {
                below += 1.0;
            }
        }
        below + (equal + 1.0) / 2.0
    };
    let refills = |case| {
        let (huge, small) = results.run(case).refill_rates();
        huge + small
    };
    let score = |case| results.run(case).speed();
    let middle = (cases.len() as f64 + 1.0) / 2.0;
    let (mut both, mut one, mut other) = (0.0, 0.0, 0.0);
    for case in cases {
        let (a, b) = (rank(&refills, case) - middle, rank(&score, case) - middle);
        both += a * b;
        one += a * a;
        other += b * b;
    }
    both / (one * other).sqrt()
}
