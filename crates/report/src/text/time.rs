//! Where the time of a run went: CPU time and elapsed time, each in parts that add up.

use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::findings::Findings;
use pagewise_model::quantity::{percent, percent_interval};
use pagewise_model::units::Estimate;

/// Parts shown of each time; the others are added up.
const MOST: usize = 5;
/// Parts below this share are added up with the others.
const LEAST: f64 = 0.01;

/// A part's name and its nanoseconds.
type Part = (String, Estimate);

/// Both accounts, as far as evidence for them was recorded.
pub fn accounts(page: &mut Page, findings: &Findings) {
    let (cpu, wall) = (findings.cost.cpu(), findings.cost.wall);
    told(page, "CPU", cpu.as_secs_f64() * 1e9, cpu_parts(findings));
    told(page, "Elapsed", wall.as_secs_f64() * 1e9, elapsed(findings));
    page.gap();
}

/// The kernel's entries, and what is left for the program.
fn cpu_parts(findings: &Findings) -> Vec<Part> {
    let account = &findings.account;
    if !account.sees_kernel() {
        return Vec::new();
    }
    let cpu = findings.cost.cpu().as_secs_f64() * 1e9;
    let own = Estimate {
        value: (cpu - account.kernel.value).max(0.0),
        low: (cpu - account.kernel.high).max(0.0),
        high: (cpu - account.kernel.low).max(0.0),
    };
    let mut parts = match &account.allocator {
        Some(allocator) => vec![
            (
                "the program's own code".to_owned(),
                less(own, allocator.time),
            ),
            ("the memory allocator's code".to_owned(), allocator.time),
        ],
        None => vec![("the program's own code".to_owned(), own)],
    };
    let entries = account.entries.iter();
    parts.extend(entries.map(|entry| (entry.label.clone(), entry.time)));
    parts.push(("the kernel, unexplained".to_owned(), account.unexplained));
    parts.sort_by(|a, b| b.1.value.total_cmp(&a.1.value));
    parts
}

fn less(all: Estimate, part: Estimate) -> Estimate {
    Estimate {
        value: (all.value - part.value).max(0.0),
        low: (all.low - part.high).max(0.0),
        high: (all.high - part.low).max(0.0),
    }
}

fn elapsed(findings: &Findings) -> Vec<Part> {
    let parts = findings.account.elapsed.iter();
    let named = parts.map(|part| match part.places.first() {
        Some(place) if part.is_waiting() => (format!("{} ({place})", part.label), part.time),
        _ => (part.label.clone(), part.time),
    });
    named.collect()
}

fn told(page: &mut Page, label: &str, all: f64, parts: Vec<Part>) {
    if parts.is_empty() || all <= 0.0 {
        return;
    }
    let shown = parts
        .iter()
        .take(MOST)
        .take_while(|(_, time)| time.value >= LEAST * all);
    let mut words: Vec<String> = shown
        .map(|(name, time)| {
            format!(
                "{} {}",
                percent_interval(&time.scaled(1.0 / all)),
                visible(name)
            )
        })
        .collect();
    let rest: f64 = parts.iter().skip(words.len()).map(|one| one.1.value).sum();
    if rest >= LEAST * all {
        words.push(format!("{} the rest", percent(rest / all)));
    }
    page.paragraph(label, Ink::Plain, &words.join(" · "));
}
