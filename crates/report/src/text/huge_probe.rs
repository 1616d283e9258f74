//! A probe's findings for a person.

use super::Style;
use super::page::wrap;
use pagewise_model::probe::{Probe, TlbLevel};
use pagewise_model::units::{Bytes, Estimate};
use std::fmt::Write;

/// The whole answer.
pub fn render(found: &Probe, width: usize, style: Style) -> String {
    let width = width.clamp(60, 110);
    let mut out = String::new();
    heading(
        &mut out,
        style,
        &format!("TLB of this machine ({})", found.cpu),
    );
    for level in &found.levels {
        let _ = writeln!(out, "  {}", level_line(level));
    }
    if found.levels.is_empty() {
        let _ = writeln!(
            out,
            "  no step was found: the machine is too noisy, or nothing misses"
        );
    }
    if let (Some(walk), Some(last)) = (
        &found.walk_ns,
        found.curves.first().and_then(|c| c.points.last()),
    ) {
        let _ = writeln!(
            out,
            "  a step through {} base pages costs {} more than its data: mostly page walks",
            last.pages,
            interval(walk, "ns")
        );
    }
    heading(&mut out, style, "Host");
    for line in wrap(&found.host.sentence, width - 2) {
        let _ = writeln!(out, "  {line}");
    }
    if let Some(share) = &found.host.missed_share {
        let _ = writeln!(
            out,
            "  base-sized steps within huge pages miss {:.0} % as much as base pages [{:.0}, {:.0}]",
            share.value * 100.0,
            share.low * 100.0,
            share.high * 100.0
        );
    }
    heading(
        &mut out,
        style,
        &format!(
            "Random chase through {}, by share of huge pages",
            found.effect_memory
        ),
    );
    for point in &found.effect {
        let walks = point.walks.map_or_else(String::new, |[small, huge]| {
            format!("   walks per step: {small:.2} base, {huge:.2} huge")
        });
        let _ = writeln!(
            out,
            "  {:>4.0} % {:>26}   {}{walks}",
            point.huge_share * 100.0,
            interval(&point.step_ns, "ns"),
            change(&point.change),
        );
    }
    heading(&mut out, style, "Changing page sizes of another process");
    for one in &found.actuators {
        let how = match one.median {
            Some(median) => format!("{median} for {}", huge_page(found)),
            None => "does not work here".to_owned(),
        };
        let _ = writeln!(out, "  {:<9}{how}, by {}", one.change, one.call);
    }
    if let Some(why) = &found.no_counters {
        note(&mut out, width, why);
    }
    if let Some(events) = &found.walk_events {
        note(&mut out, width, &format!("walks counted by {events}"));
    }
    for text in &found.notes {
        note(&mut out, width, text);
    }
    out
}

fn heading(out: &mut String, style: Style, text: &str) {
    if !out.is_empty() {
        out.push('\n');
    }
    let _ = match style.color {
        true => writeln!(out, "\u{1b}[1m{text}\u{1b}[0m"),
        false => writeln!(out, "{text}"),
    };
}

fn note(out: &mut String, width: usize, text: &str) {
    out.push('\n');
    for line in wrap(&format!("Note: {text}."), width) {
        let _ = writeln!(out, "{}", line.replace("..", "."));
    }
}

fn level_line(level: &TlbLevel) -> String {
    format!(
        "level {} of {} pages: {} entries [{:.0}, {:.0}]; a miss costs {}",
        level.level,
        level.page,
        entries(&level.entries),
        level.entries.low,
        level.entries.high,
        interval(&level.miss_ns, "ns")
    )
}

fn entries(estimate: &Estimate) -> String {
    match estimate.value {
        few if few < 1000.0 => format!("{few:.0}"),
        many => format!("{:.0}", (many / 10.0).round() * 10.0),
    }
}

fn interval(estimate: &Estimate, unit: &str) -> String {
    let digits = usize::from(estimate.value < 100.0);
    format!(
        "{:.digits$} {unit} [{:.digits$}, {:.digits$}]",
        estimate.value, estimate.low, estimate.high
    )
}

fn change(estimate: &Estimate) -> String {
    if estimate.value == 0.0 {
        return "(compared with)".to_owned();
    }
    let signed = |share: f64| format!("{:+.1}", share * 100.0).replace('-', "−");
    format!(
        "{} % [{}, {}]",
        signed(estimate.value),
        signed(estimate.low),
        signed(estimate.high)
    )
}

fn huge_page(found: &Probe) -> Bytes {
    found
        .curves
        .last()
        .map_or(Bytes(2 << 20), |curve| curve.page)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::document::Kind;
    use pagewise_model::probe::{EffectPoint, HostFinding, HostPages, PROBE_VERSION};
    use pagewise_model::units::Nanos;

    #[test]
    fn every_figure_has_its_interval() {
        let estimate = |value| Estimate {
            value,
            low: value - 1.0,
            high: value + 1.0,
        };
        let found = Probe {
            kind: Kind::HugeProbe,
            schema_version: PROBE_VERSION,
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
            notes: Vec::new(),
            curves: Vec::new(),
        };
        let text = render(
            &found,
            100,
            Style {
                color: false,
                unicode: true,
            },
        );
        assert!(
            text.contains(
                "level 1 of 4.00 KiB pages: 72 entries [71, 73]; a miss costs 1.9 ns [0.9, 2.9]"
            ),
            "{text}"
        );
        assert!(
            text.contains("miss 100 % as much as base pages [90, 110]"),
            "{text}"
        );
        assert!(
            text.contains("100 %          150 ns [149, 151]   −30.0 % [−31.0, −29.0]"),
            "{text}"
        );
    }
}
