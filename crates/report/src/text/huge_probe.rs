//! A probe's findings, for a person.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::probe::{Probe, TlbLevel};
use pagewise_model::quantity::{percent, percent_interval, signed_percent, with_interval};
use pagewise_model::units::{Bytes, Estimate};

/// The whole answer, of at most `width` columns.
#[must_use]
pub fn render(document: &Document<Probe>, width: usize, style: Style) -> String {
    let found = &document.evidence;
    let mut page = Page::new(width, style);
    page.marked("● probe", Ink::Strong, &visible(&document.verdict));
    tlb(&mut page, found);
    page.heading("Host");
    page.indented(2, Ink::Plain, &visible(&found.host.sentence));
    if let Some(share) = &found.host.missed_share {
        let text = format!(
            "base-sized steps within huge pages miss {} as much as base pages",
            percent_interval(share)
        );
        page.indented(2, Ink::Plain, &text);
    }
    effect(&mut page, found);
    actuators(&mut page, found);
    page.gap();
    let walks = found.walk_events.iter();
    let walks = walks.map(|events| format!("walks counted by {events}"));
    let notes = found.no_counters.iter().cloned().chain(walks);
    let notes = notes.chain(document.notes.iter().cloned());
    page.list("Notes", notes.map(|note| visible(&note).into_owned()));
    page.finish()
}

fn tlb(page: &mut Page, found: &Probe) {
    page.heading(&format!("TLB of this machine ({})", visible(&found.cpu)));
    for level in &found.levels {
        page.indented(2, Ink::Plain, &level_line(level));
    }
    if found.levels.is_empty() {
        let none = "no step was found: the machine is too noisy, or nothing misses the TLB";
        page.indented(2, Ink::Caution, none);
    }
    let points = found.curves.first().and_then(|curve| curve.points.last());
    if let (Some(walk), Some(last)) = (&found.walk_ns, points) {
        let text = format!(
            "a step through {} base pages costs {} more than its data: mostly page walks",
            last.pages,
            nanoseconds(walk)
        );
        page.indented(2, Ink::Plain, &text);
    }
}

fn level_line(level: &TlbLevel) -> String {
    format!(
        "level {} of {} pages: {} entries; a miss costs {}",
        level.level,
        level.page,
        with_interval(&level.entries, "", entries),
        nanoseconds(&level.miss_ns)
    )
}

fn entries(estimate: f64) -> String {
    match estimate {
        few if few < 1000.0 => format!("{few:.0}"),
        many => format!("{:.0}", (many / 10.0).round() * 10.0),
    }
}

/// Steps are compared in nanoseconds, whatever their cost.
fn nanoseconds(estimate: &Estimate) -> String {
    let digits = usize::from(estimate.value < 100.0);
    with_interval(estimate, " ns", |end| format!("{end:.digits$}"))
}

fn effect(page: &mut Page, found: &Probe) {
    let heads = [
        figures("huge"),
        figures("step"),
        figures("change"),
        words("walks per step"),
    ];
    let rows = found.effect.iter().map(|point| {
        let walks = point.walks.map_or(String::new(), |[small, huge]| {
            format!("{small:.2} base, {huge:.2} huge")
        });
        Row::new([
            percent(point.huge_share),
            nanoseconds(&point.step_ns),
            change(&point.change),
            walks,
        ])
    });
    let memory = found.effect_memory;
    let title = format!("Random chase through {memory}, by share of huge pages");
    page.table(&title, &heads, rows);
}

fn change(estimate: &Estimate) -> String {
    match estimate.value {
        0.0 => "(compared with)".to_owned(),
        _ => with_interval(estimate, " %", |end| {
            let sign = if end > 0.0 { "+" } else { "" };
            let size = signed_percent(end);
            format!("{sign}{}", size.trim_end_matches(" %"))
        }),
    }
}

fn actuators(page: &mut Page, found: &Probe) {
    if found.actuators.is_empty() {
        return;
    }
    page.heading("Changing page sizes of another process");
    let huge = found
        .curves
        .last()
        .map_or(Bytes(2 << 20), |curve| curve.page);
    for one in &found.actuators {
        let how = match one.median {
            Some(median) => format!("{median} for {huge}"),
            None => "does not work here".to_owned(),
        };
        let text = format!("{how}, by {}", visible(&one.call));
        page.paragraph(&format!("  {}", visible(&one.change)), Ink::Plain, &text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::probe::{EffectPoint, HostFinding, HostPages};
    use pagewise_model::units::Nanos;

    #[test]
    fn every_figure_has_its_interval() {
        let estimate = |value| Estimate {
            value,
            low: value - 1.0,
            high: value + 1.0,
        };
        let found = Probe {
            cpu: "Example CPU".into(),
            elapsed: Nanos(1),
            rounds: 9,
            levels: vec![TlbLevel {
                level: 1,
                page: Bytes(4096),
                entries: estimate(72.0),
                miss_ns: estimate(1.9),
            }],
            walk_ns: None,
            host: HostFinding {
                pages: HostPages::Small,
                is_guest: true,
                missed_share: Some(Estimate {
                    value: 1.0,
                    low: 0.9,
                    high: 1.1,
                }),
                sentence: "Small.".into(),
            },
            effect_memory: Bytes(512 << 20),
            effect: vec![EffectPoint {
                huge_share: 1.0,
                step_ns: estimate(150.0),
                change: Estimate {
                    value: -0.3,
                    low: -0.31,
                    high: -0.29,
                },
                walks: None,
            }],
            actuators: Vec::new(),
            walk_events: None,
            no_counters: None,
            curves: Vec::new(),
        };
        let text = render(&Document::new(found), 100, Style::PLAIN);
        assert!(
            text.contains(
                "level 1 of 4.00 KiB pages: 72 [71, 73] entries; a miss costs 1.9 ns [0.9, 2.9]"
            ),
            "{text}"
        );
        assert!(
            text.contains("miss 100 % [90, 110] as much as base pages"),
            "{text}"
        );
        assert!(
            text.contains("100 %  150 ns [149, 151]  −30 % [−31, −29]"),
            "{text}"
        );
    }
}
