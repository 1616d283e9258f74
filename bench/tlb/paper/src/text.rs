//! The experiment's tables.

use crate::experiment::{Case, Ordering, Results, Target, Unit};
use crate::fit::Fit;
use crate::sensitivity::Variant;
use crate::suite::Comparison;
use std::fmt::Write;

/// mcf in every configuration, and what the controllers made of it.
pub fn cases(results: &Results) -> String {
    let mut text = format!(
        "{:<36} {:>6} {:>9} {:>9} {:>9} {:>5}\n",
        "mcf; refills in k/s", "score", "ns/access", "huge", "small", "pages"
    );
    for case in Case::ALL {
        let run = results.run(case);
        let (huge_per_s, small_per_s) = run.refill_rates();
        let _ = writeln!(
            text,
            "  {:<34} {:>6.3} {:>9.2} {:>9.1} {:>9.1} {:>5}",
            case.label(),
            run.speed() / results.run(Case::HostSmall).speed(),
            1.0 / run.speed(),
            huge_per_s / 1e3,
            small_per_s / 1e3,
            run.pages.huge
        );
    }
    text += "pages: huge pages at the end, at the stage that a controller acts on\n";
    let before = results.run(Case::GuestBoth);
    for case in [Case::Controlled, Case::MinCost] {
        let run = results.run(case);
        let _ = writeln!(
            text,
            "{}: {:+.1} % at rest, {:+.1} % over the whole run, {} split, {} built",
            case.label(),
            (run.speed() / before.speed() - 1.0) * 100.0,
            (run.whole_speed() / before.whole_speed() - 1.0) * 100.0,
            run.changes.0,
            run.changes.1
        );
    }
    text
}

/// The paper's figures beside the simulated ones.
pub fn targets(targets: &[Target]) -> String {
    let mut text = format!(
        "\n{:<43} {:>9} {:>10} {:>8}\n",
        "", "paper", "simulated", "within"
    );
    for target in targets {
        text += &target_line(target);
    }
    text
}

fn target_line(target: &Target) -> String {
    let (paper, found, tolerance) = match target.unit {
        Unit::Change => (
            format!("{:+.1} %", target.paper * 100.0),
            format!("{:+.1} %", target.simulated * 100.0),
            format!("±{:.1}", target.tolerance * 100.0),
        ),
        Unit::PerSecond => (
            format!("{:.2} M/s", target.paper / 1e6),
            format!("{:.2} M/s", target.simulated / 1e6),
            format!("±{:.2}", target.tolerance / 1e6),
        ),
    };
    let mark = if target.holds() { "" } else { "  FAILS" };
    format!(
        "{:<43} {paper:>9} {found:>10} {tolerance:>8}{mark}\n",
        target.name
    )
}

/// Relations of the paper's figures.
pub fn orderings(orderings: &[Ordering]) -> String {
    let mut text = String::from("\n");
    for ordering in orderings {
        let mark = if ordering.holds { "holds" } else { "FAILS" };
        let _ = writeln!(text, "{mark}  {}", ordering.name);
    }
    text
}

/// Other workloads with controllers.
pub fn suite(suite: &[Comparison]) -> String {
    let mut text = format!(
        "\n{:<9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  huge left:\n",
        "", "THP on", "both", "paper", "whole", "min-cost", "whole"
    );
    let _ = writeln!(
        text,
        "{:<9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  paper, min, all",
        "suite", "the host", "in guest", "at rest", "run", "at rest", "run"
    );
    for row in suite {
        let _ = write!(text, "{:<9}", row.workload);
        let changes = [
            row.host,
            row.both,
            row.paper,
            row.paper_whole,
            row.min_cost,
            row.min_cost_whole,
        ];
        for change in changes {
            let _ = write!(text, " {:>+7.1}%", change * 100.0);
        }
        let [paper, min_cost, all] = row.huge;
        let _ = writeln!(text, "  {paper}, {min_cost}, {all}");
    }
    text
}

/// The experiment under other assumptions.
pub fn sensitivity(variants: &[Variant]) -> String {
    let mut text = format!(
        "\n{:<35} {:>7} {:>7} {:>7} {:>7} {:>7} {:>5}\n",
        "other assumptions (* is too far off)",
        "host",
        "both",
        "control",
        "huge/s",
        "off/s",
        "pages"
    );
    for variant in variants {
        let _ = write!(text, "{:<36}", variant.name);
        for target in &variant.targets {
            let shown = match target.unit {
                Unit::Change => format!("{:+.1}%", target.simulated * 100.0),
                Unit::PerSecond => format!("{:.2}M", target.simulated / 1e6),
            };
            let mark = if target.holds() { "" } else { "*" };
            let _ = write!(text, "{:>7} ", shown + mark);
        }
        let _ = writeln!(text, "{:>5}", variant.left);
        for failing in &variant.failing {
            let _ = writeln!(text, "    fails: {failing}");
        }
    }
    text
}

/// The fit, and what it can't tell.
pub fn fit(fit: &Fit) -> String {
    let mut text = format!(
        "\n{:<40} {:>8} {:>8} {:>10} {:>7}\n",
        "fit", "before", "after", "own share", "slack"
    );
    for parameter in &fit.parameters {
        let note = match (parameter.is_fitted, parameter.is_identified()) {
            (true, true) => "",
            (true, false) => "\n      not identified",
            (false, true) => "\n      held; could be told apart",
            (false, false) => "\n      held; not identified",
        };
        let _ = writeln!(
            text,
            "  {:<38} {:>8.3} {:>8.3} {:>9.0}% {:>6.0}%{note}",
            parameter.name,
            parameter.before,
            parameter.after,
            parameter.own_share * 100.0,
            parameter.slack * 100.0
        );
    }
    let held = fit.parameters.iter().filter(|p| !p.is_fitted).count();
    let _ = writeln!(
        text,
        "  Fitting the {held} held ones too would leave nothing identified: more parameters\n  than targets."
    );
    for (name, paper, found, tolerance) in &fit.targets {
        let mark = if (paper - found).abs() <= *tolerance {
            ""
        } else {
            "  FAILS"
        };
        // Changes are shares; rates are millions a second.
        let (scale, unit) = if name.contains("M/s") {
            (1.0, "")
        } else {
            (100.0, " %")
        };
        let _ = writeln!(
            text,
            "{name:<43} {:>9} {:>10} {:>8}{mark}",
            format!("{:.2}{unit}", paper * scale),
            format!("{:.2}{unit}", found * scale),
            format!("±{:.2}", tolerance * scale)
        );
    }
    text
}

/// What all this shows.
pub fn end(holds: bool) -> String {
    format!(
        "\nCalibrated: both refill costs, the time of an access, the share of sweeps: four\n\
         numbers on five of the paper's. Predicted: all orderings, where controllers rest,\n\
         the suite. A calibration, no validation. {}\n",
        if holds {
            "Everything holds."
        } else {
            "Not everything holds."
        }
    )
}
