//! Where the time of a run went: CPU time and elapsed time, each in parts that add up.

use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::account::TimePart;
use pagewise_model::findings::Findings;
use pagewise_model::quantity::{percent, percent_interval};
use pagewise_model::units::Nanos;

/// Parts shown of each time; the others are summed up.
const MOST: usize = 5;
/// Parts below this share are summed up with the others.
const LEAST: f64 = 0.01;

/// Both accounts, as far as evidence for them was recorded.
pub fn accounts(page: &mut Page, findings: &Findings) {
    let (cpu, wall) = (findings.cost.cpu(), findings.cost.wall);
    let account = &findings.account;
    line(page, "CPU", cpu, &account.cpu, &account.faults);
    line(page, "Elapsed", wall, &account.elapsed, &[]);
    page.gap();
}

/// `faults` are the parts of the part called `fault`.
fn line(page: &mut Page, label: &str, all: Nanos, parts: &[TimePart], faults: &[TimePart]) {
    let all = all.as_secs_f64() * 1e9;
    if parts.is_empty() || all <= 0.0 {
        return;
    }
    let large = |part: &&TimePart| part.time.value >= LEAST * all;
    let shown = parts.iter().take(MOST).take_while(large);
    let words = shown.map(|part| {
        let share = percent_interval(&part.time.scaled(1.0 / all));
        let place = part.places.first().filter(|_| part.is_waiting());
        let place = place.map_or(String::new(), |place| format!(" ({})", visible(place)));
        let within = match part.id.as_str() {
            "fault" => within(faults, all),
            _ => String::new(),
        };
        format!("{share} {}{place}{within}", visible(&part.label))
    });
    let mut words: Vec<String> = words.collect();
    let rest = parts.iter().skip(words.len());
    let rest: f64 = rest.map(|part| part.time.value).sum();
    if rest >= LEAST * all {
        words.push(format!("{} the rest", percent(rest / all)));
    }
    page.paragraph(label, Ink::Plain, &words.join(" · "));
}

/// The largest components of a part: ` (50 % zeroing pages, 3 % handling the fault)`.
fn within(parts: &[TimePart], all: f64) -> String {
    let large = parts.iter().filter(|part| part.time.value >= LEAST * all);
    let words = large.map(|part| {
        let share = percent(part.time.value / all);
        format!("{share} {}", visible(&part.label))
    });
    let words: Vec<String> = words.collect();
    match words.is_empty() {
        true => String::new(),
        false => format!(" ({})", words.join(", ")),
    }
}
