//! Simulations as text.

use pagewise_model::huge_simulation::{
    Controlled, HugeSimulation, Paper, PaperFit, PaperTarget, ReuseCurve,
};
use pagewise_model::units::Bytes;
use std::fmt::Write;

/// The result in words and tables.
pub fn text(result: &HugeSimulation) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", result.machine, result.workloads.join(", "));
    for note in &result.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    if let Some(paper) = &result.paper {
        paper_text(&mut text, paper);
    } else {
        configurations(&mut text, result);
        sweep(&mut text, result);
        for curve in &result.reuse {
            reuse(&mut text, curve);
        }
    }
    if !result.controlled.is_empty() {
        controlled(&mut text, &result.controlled);
    }
    text
}

fn configurations(text: &mut String, result: &HugeSimulation) {
    let mut workload = "";
    for row in &result.configurations {
        if row.workload != workload {
            workload = &row.workload;
            let _ = writeln!(
                text,
                "\n{:<31} {:>6} {:>9} {:>7} {:>10} {:>10}",
                workload, "speed", "ns/access", "refills", "small/1000", "huge/1000"
            );
        }
        let _ = writeln!(
            text,
            "  {:<29} {:>5.2}× {:>9.2} {:>5.1} % {:>10.3} {:>10.3}",
            row.name,
            row.speed,
            row.ns_per_access,
            row.refill_share * 100.0,
            row.small_per_1000,
            row.huge_per_1000
        );
    }
    if !result.configurations.is_empty() {
        *text += "\nrefills: share of the time that goes into TLB refills; small/1000 and huge/1000: \
            refills\n  of small and of huge pages in a thousand accesses\n";
    }
    let of = |name: &str, workload: &str| {
        let mut rows = result.configurations.iter();
        rows.find(|row| row.name == name && row.workload == workload)
            .map(|row| row.speed)
    };
    for workload in &result.workloads {
        let native = of("native, huge pages", workload);
        let pair = (
            of("guest, huge at both levels", workload),
            of("guest, small at both levels", workload),
        );
        let Some(native) = native else { continue };
        let _ = match pair {
            (Some(both), Some(none)) => writeln!(
                text,
                "\n{workload}, simulated: huge pages {} natively,\n  {} in a guest",
                verdict(native - 1.0),
                verdict(both / none - 1.0)
            ),
            _ => writeln!(
                text,
                "\n{workload}, simulated: huge pages {} natively",
                verdict(native - 1.0)
            ),
        };
    }
}

fn verdict(change: f64) -> String {
    if change.abs() < 0.01 {
        return format!("do not matter ({:+.1} %)", change * 100.0);
    }
    let word = if change > 0.0 { "help" } else { "hurt" };
    format!("{word} ({:+.1} % speed)", change * 100.0)
}

fn sweep(text: &mut String, result: &HugeSimulation) {
    if result.sweep.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:>10} {:>11} {:>14} {:>14}",
        "huge pages", "ns/access", "small/1000", "huge/1000"
    );
    for point in &result.sweep {
        let _ = writeln!(
            text,
            "{:>10} {:>11.2} {:>14.3} {:>14.3}",
            point.huge, point.ns_per_access, point.small_per_1000, point.huge_per_1000
        );
    }
}

fn reuse(text: &mut String, curve: &ReuseCurve) {
    let wanted = [16, 64, 256, 1024, 2048, 4096];
    let mut line = format!(
        "\nmisses of a fully associative LRU TLB, {} pages (1 in {:.0}, ± {:.1} %):\n ",
        Bytes(curve.page_bytes),
        1.0 / curve.sampled,
        curve.error * 100.0
    );
    for entries in wanted {
        let point = curve.points.iter().rev().find(|(n, _)| *n <= entries);
        if let Some((_, misses)) = point {
            let _ = write!(line, " {entries}: {:.1} % ", misses * 100.0);
        }
    }
    let _ = writeln!(text, "{}", line.trim_end());
}

fn controlled(text: &mut String, rows: &[Controlled]) {
    let _ = writeln!(
        text,
        "\n{:<18} {:<9} {:>8} {:>9} {:>12} {:>6} {:>6}",
        "program", "by", "at rest", "whole run", "huge pages", "split", "built"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<18} {:<9} {:>+7.1}% {:>+8.1}% {:>4} of {:<4} {:>6} {:>6}",
            row.workload,
            row.controller,
            row.gain * 100.0,
            row.gain_whole * 100.0,
            row.huge,
            row.possible,
            row.split,
            row.built
        );
        if let Some(reason) = &row.reason {
            let _ = writeln!(text, "  last: {reason}");
        }
    }
    let shares: Vec<f64> = rows.iter().filter_map(|row| row.against_alone).collect();
    if shares.len() > 1 {
        // Jain, Chiu and Hawe (1984): 1 where all slow down alike, 1/n where one has everything.
        let sum: f64 = shares.iter().sum();
        let squares: f64 = shares.iter().map(|share| share * share).sum();
        #[allow(clippy::cast_precision_loss, reason = "a handful of programs")]
        let jain = sum * sum / (shares.len() as f64 * squares);
        for row in rows {
            let share = row.against_alone.unwrap_or(1.0);
            let _ = writeln!(text, "{}: {:.2}× as fast as alone", row.workload, share);
        }
        let _ = writeln!(text, "fairness {jain:.3} (Jain's index, 1 is even)");
    }
}

fn paper_text(text: &mut String, paper: &Paper) {
    let _ = writeln!(
        text,
        "\n{:<36} {:>6} {:>9} {:>9} {:>9} {:>5}",
        "mcf; refills in k/s", "score", "ns/access", "huge", "small", "N_h"
    );
    for case in &paper.cases {
        let _ = writeln!(
            text,
            "  {:<34} {:>6.3} {:>9.2} {:>9.1} {:>9.1} {:>5}",
            case.label,
            case.score,
            case.ns_per_access,
            case.huge_per_s / 1e3,
            case.small_per_s / 1e3,
            case.huge
        );
    }
    let _ = writeln!(
        text,
        "\n{:<43} {:>9} {:>10} {:>8}",
        "", "paper", "simulated", "within"
    );
    for target in &paper.targets {
        target_line(text, target);
    }
    let _ = writeln!(text);
    for ordering in &paper.orderings {
        let mark = if ordering.holds { "holds" } else { "FAILS" };
        let _ = writeln!(text, "{mark}  {}", ordering.name);
    }
    let _ = writeln!(
        text,
        "\n{:<9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  huge left:",
        "", "THP on", "both", "paper", "whole", "min-cost", "whole"
    );
    let _ = writeln!(
        text,
        "{:<9} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8}  paper, min, all",
        "suite", "the host", "in guest", "at rest", "run", "at rest", "run"
    );
    for row in &paper.suite {
        let _ = write!(text, "{:<9}", row.name);
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
    sensitivity(text, paper);
    if let Some(fit) = &paper.fit {
        fit_text(text, fit);
    }
    let _ = writeln!(
        text,
        "\nCalibrated: both refill costs, the time of an access, the share of sweeps: four\n\
         numbers on five of the paper's. Predicted: all orderings, where controllers rest,\n\
         the suite. A calibration, no validation. {}",
        if paper.holds {
            "Everything holds."
        } else {
            "Not everything holds."
        }
    );
}

fn target_line(text: &mut String, target: &PaperTarget) {
    let (paper, found, tolerance) = match target.unit.as_str() {
        "change" => (
            format!("{:+.1} %", target.paper * 100.0),
            format!("{:+.1} %", target.simulated * 100.0),
            format!("±{:.1}", target.tolerance * 100.0),
        ),
        "per_second" => (
            format!("{:.2} M/s", target.paper / 1e6),
            format!("{:.2} M/s", target.simulated / 1e6),
            format!("±{:.2}", target.tolerance / 1e6),
        ),
        _ => (
            format!("{:.2}", target.paper),
            format!("{:.2}", target.simulated),
            format!("±{:.2}", target.tolerance),
        ),
    };
    let mark = if target.holds { "" } else { "  FAILS" };
    let _ = writeln!(
        text,
        "{:<43} {paper:>9} {found:>10} {tolerance:>8}{mark}",
        target.name
    );
}

fn sensitivity(text: &mut String, paper: &Paper) {
    if paper.sensitivity.is_empty() {
        return;
    }
    let _ = writeln!(
        text,
        "\n{:<35} {:>7} {:>7} {:>7} {:>7} {:>7} {:>4}",
        "other assumptions (* is too far off)", "host", "both", "control", "huge/s", "off/s", "N_h"
    );
    for variant in &paper.sensitivity {
        let _ = write!(text, "{:<36}", variant.name);
        for (target, (found, holds)) in paper.targets.iter().zip(&variant.targets) {
            let shown = if target.unit == "change" {
                format!("{:+.1}%", found * 100.0)
            } else {
                format!("{:.2}M", found / 1e6)
            };
            let mark = if *holds { "" } else { "*" };
            let _ = write!(text, "{:>7} ", shown + mark);
        }
        let _ = writeln!(text, "{:>4}", variant.left);
        for failing in &variant.failing {
            let _ = writeln!(text, "    fails: {failing}");
        }
    }
}

fn fit_text(text: &mut String, fit: &PaperFit) {
    let _ = writeln!(
        text,
        "\n{:<40} {:>8} {:>8} {:>10} {:>7}",
        "fit", "before", "after", "own share", "slack"
    );
    for parameter in &fit.parameters {
        let note = match (parameter.is_fitted, parameter.is_identified) {
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
    for target in &fit.targets {
        target_line(text, target);
    }
}
