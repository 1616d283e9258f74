//! Other workloads with and without the controllers (the paper's figure 10 and table 1).

use crate::experiment::{BASE_NS, Ordering, run_one};
use pagewise_simulate::in_parallel;
use pagewise_simulate::page_sizes::{Scale, controller};
use pagewise_simulate::tlb::workload::{NAMES, named};
use pagewise_simulate::tlb::{Machine, PageSize, Space};

/// A workload in a guest with huge pages at both levels, without and with controllers.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The workload.
    pub workload: &'static str,
    /// What huge pages at both levels bring against none.
    pub both: f64,
    /// The same on the host.
    pub host: f64,
    /// What the paper's controller brings against both.
    pub paper: f64,
    /// The same over the whole run, from the start.
    pub paper_whole: f64,
    /// What min-cost brings against both.
    pub min_cost: f64,
    /// The same over the whole run, from the start.
    pub min_cost_whole: f64,
    /// Huge pages at the end with the paper's controller, with min-cost, and all.
    pub huge: [u64; 3],
}

/// What min-cost may be below the paper's controller: noise of phases in the measured part.
const NOT_WORSE: f64 = 0.001;
/// Share that a controller may lose.
const MOST_LOSS: f64 = 0.01;

impl Comparison {
    /// Whether neither controller loses more than 1 %, at rest or over the whole run.
    pub fn loses_nothing(&self) -> bool {
        let gains = [
            self.paper,
            self.paper_whole,
            self.min_cost,
            self.min_cost_whole,
        ];
        gains.iter().all(|gain| *gain >= -MOST_LOSS)
    }

    /// Whether min-cost ends no slower than the paper's controller.
    pub fn is_min_cost_no_worse(&self) -> bool {
        (1.0 + self.min_cost) / (1.0 + self.paper) >= 1.0 - NOT_WORSE
    }
}

/// Runs each generator.
pub fn suite(machine: &Machine, scale: Scale) -> Vec<Comparison> {
    let names: Vec<&'static str> = NAMES.iter().map(|(name, _)| *name).collect();
    in_parallel(&names, |name| compare(machine, name, scale))
}

fn compare(machine: &Machine, name: &'static str, scale: Scale) -> Comparison {
    use PageSize::{Huge, Small};
    let run = |space, by: Option<&str>| {
        let workload = named(name, None, 1).expect("a workload of the table");
        let controller = by.and_then(|by| controller(by, machine));
        run_one(machine, name, space, workload, controller, scale, BASE_NS)
    };
    let guest = Space::guest(Huge, Huge);
    // A controller that does nothing runs as long as the others, for the whole run's sake.
    let both = run(guest, Some("always"));
    let paper = run(guest, Some("paper"));
    let min_cost = run(guest, Some("min-cost"));
    let none = run(Space::guest(Small, Small), None);
    let (host, host_small) = (
        run(Space::native(Huge), None),
        run(Space::native(Small), None),
    );
    Comparison {
        workload: name,
        both: both.speed() / none.speed() - 1.0,
        host: host.speed() / host_small.speed() - 1.0,
        paper: paper.speed() / both.speed() - 1.0,
        paper_whole: paper.whole_speed() / both.whole_speed() - 1.0,
        min_cost: min_cost.speed() / both.speed() - 1.0,
        min_cost_whole: min_cost.whole_speed() / both.whole_speed() - 1.0,
        huge: [paper.pages.huge, min_cost.pages.huge, both.pages.possible],
    }
}

/// What the paper's figure 10 and table 1 say of the suite.
pub fn orderings(suite: &[Comparison]) -> Vec<Ordering> {
    let oltp = suite.iter().find(|row| row.workload == "oltp");
    vec![
        Ordering {
            name: "figure 10: no workload of the suite loses more than 1 % with either controller",
            holds: suite.iter().all(Comparison::loses_nothing),
        },
        Ordering {
            name: "min-cost is not worse than the paper's controller on any workload",
            holds: suite.iter().all(Comparison::is_min_cost_no_worse),
        },
        Ordering {
            name: "table 1: transactions gain from the paper's controller",
            holds: oltp.is_some_and(|row| row.paper > 0.0),
        },
    ]
}
