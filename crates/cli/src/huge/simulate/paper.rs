//! The paper's experiment.

use super::{Args, controlled};
use pagewise_analyse::tlb::Machine;
use pagewise_analyse::tlb::paper::{
    BASE_NS, Case, Comparison, Results, Scale, Target, Unit, calibrate, orderings, sensitivity,
    suite, targets,
};
use pagewise_model::huge_simulation::{
    Controlled, HugeSimulation, Paper, PaperCase, PaperFit, PaperOrdering, PaperParameter,
    PaperTarget, PaperVariant, PaperWorkload,
};

/// Runs the experiment into `result`.
pub fn run(machine: &Machine, args: &Args, result: &mut HugeSimulation) {
    let scale = Scale::FULL;
    eprintln!("Simulating the paper's configurations…");
    let results = Results::simulate(machine, scale);
    eprintln!("Simulating the suite…");
    let suite = suite(machine, scale);
    let of_suite = of_suite(&suite);
    let suite: Vec<PaperWorkload> = suite
        .into_iter()
        .map(|row| PaperWorkload {
            name: row.workload.to_owned(),
            host: row.host,
            both: row.both,
            paper: row.paper,
            paper_whole: row.paper_whole,
            min_cost: row.min_cost,
            min_cost_whole: row.min_cost_whole,
            huge: row.huge,
        })
        .collect();
    let mut orderings: Vec<PaperOrdering> = orderings(&results)
        .into_iter()
        .map(|ordering| PaperOrdering {
            name: ordering.name.to_owned(),
            holds: ordering.holds,
        })
        .collect();
    orderings.extend(of_suite);
    let targets: Vec<PaperTarget> = targets(&results).iter().map(target).collect();
    result.workloads = vec!["mcf".to_owned()];
    result.controlled = vec![
        shown(machine, &results, Case::Controlled, "paper"),
        shown(machine, &results, Case::MinCost, "min-cost"),
    ];
    result.paper = Some(Paper {
        holds: orderings.iter().all(|o| o.holds) && targets.iter().all(|t| t.holds),
        cases: Case::ALL
            .into_iter()
            .map(|case| row(&results, case))
            .collect(),
        targets,
        orderings,
        suite,
        sensitivity: if args.sweep {
            variants(machine, scale)
        } else {
            Vec::new()
        },
        fit: args.calibrate.then(|| fit(machine, scale)),
    });
}

fn of_suite(suite: &[Comparison]) -> Vec<PaperOrdering> {
    let ordering = |name: &str, holds| PaperOrdering {
        name: name.to_owned(),
        holds,
    };
    let oltp = suite.iter().find(|row| row.workload == "oltp");
    vec![
        ordering(
            "figure 10: no workload of the suite loses more than 1 % with either controller",
            suite.iter().all(Comparison::loses_nothing),
        ),
        ordering(
            "min-cost is not worse than the paper's controller on any workload",
            suite.iter().all(Comparison::is_min_cost_no_worse),
        ),
        ordering(
            "table 1: transactions gain from the paper's controller",
            oltp.is_some_and(|row| row.paper > 0.0),
        ),
    ]
}

fn row(results: &Results, case: Case) -> PaperCase {
    let run = results.of(case);
    let (huge_per_s, small_per_s) = run.refill_rates();
    PaperCase {
        name: case.name().to_owned(),
        label: case.label().to_owned(),
        ns_per_access: 1.0 / run.speed(),
        score: run.speed() / results.of(Case::HostSmall).speed(),
        huge_per_s,
        small_per_s,
        huge: run.pages.huge,
    }
}

fn shown(machine: &Machine, results: &Results, case: Case, controller: &str) -> Controlled {
    let (run, before) = (results.of(case), results.of(Case::GuestBoth));
    Controlled {
        workload: "mcf".to_owned(),
        ..controlled::outcome(machine, controller, run, before)
    }
}

fn target(target: &Target) -> PaperTarget {
    PaperTarget {
        name: target.name.to_owned(),
        unit: match target.unit {
            Unit::Change => "change".to_owned(),
            Unit::PerSecond => "per_second".to_owned(),
        },
        paper: target.paper,
        simulated: target.simulated,
        tolerance: target.tolerance,
        holds: target.holds(),
    }
}

fn variants(machine: &Machine, scale: Scale) -> Vec<PaperVariant> {
    eprintln!("Simulating other assumptions…");
    let variants = sensitivity(machine, scale).into_iter();
    variants
        .map(|variant| PaperVariant {
            name: variant.name,
            targets: variant
                .targets
                .iter()
                .map(|t| (t.simulated, t.holds()))
                .collect(),
            failing: variant.failing.into_iter().map(str::to_owned).collect(),
            left: variant.left,
        })
        .collect()
}

fn fit(machine: &Machine, scale: Scale) -> PaperFit {
    eprintln!("Fitting, from {BASE_NS} ns an access…");
    let fit = calibrate(machine, scale);
    PaperFit {
        parameters: fit
            .parameters
            .iter()
            .map(|parameter| PaperParameter {
                name: parameter.name.to_owned(),
                is_fitted: parameter.is_fitted,
                is_identified: parameter.is_identified(),
                before: parameter.before,
                after: parameter.after,
                own_share: parameter.own_share,
                slack: parameter.slack,
            })
            .collect(),
        targets: fit
            .targets
            .iter()
            .map(|(name, paper, found, tolerance)| PaperTarget {
                name: (*name).to_owned(),
                unit: if name.contains("M/s") {
                    "millions_per_second"
                } else {
                    "change"
                }
                .to_owned(),
                paper: *paper,
                simulated: *found,
                tolerance: *tolerance,
                holds: (paper - found).abs() <= *tolerance,
            })
            .collect(),
    }
}
