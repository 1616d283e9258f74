//! Simulations as text.

use super::Style;
use pagewise_model::huge_simulation::{Controlled, HugeSimulation, ReuseCurve};
use pagewise_model::units::Bytes;
use std::fmt::Write;

/// The result in words and tables.
#[must_use]
pub fn render(result: &HugeSimulation, _width: usize, _style: Style) -> String {
    let mut text = String::new();
    let _ = writeln!(text, "{}: {}", result.machine, result.workloads.join(", "));
    for note in &result.notes {
        let _ = writeln!(text, "  note: {note}");
    }
    configurations(&mut text, result);
    sweep(&mut text, result);
    for curve in &result.reuse {
        reuse(&mut text, curve);
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
