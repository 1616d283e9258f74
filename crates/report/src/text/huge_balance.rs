//! A finished session for a person.

use super::Style;
use super::page::wrap;
use pagewise_model::balance::{Balance, Basis, Changes, Effect, PageState};
use std::fmt::Write;

/// Columns of labels.
const LABEL: usize = 13;

/// The whole answer, verdict first.
pub fn render(found: &Balance, width: usize, style: Style) -> String {
    let mut page = Page {
        out: String::new(),
        width: width.clamp(60, 120),
        style,
    };
    page.verdict(found);
    page.row("basis", &basis(found));
    page.row("pages", &pages(found));
    if found.applied {
        page.row("built", &changes(found.built, "no huge page"));
        page.row("split", &changes(found.split, "none"));
    }
    for refused in &found.refused {
        page.row(
            "refused",
            &format!("{} times: {}", refused.count, refused.reason),
        );
    }
    page.row("memory", &memory(found));
    page.row("controller", &controller(found));
    for process in &found.processes {
        for guest in &process.guest_memory {
            let aligned = match guest.misaligned_by.0 {
                0 => "aligned to huge pages".to_owned(),
                _ => format!(
                    "NOT aligned: {} off, so the guest's huge pages cannot be the host's",
                    guest.misaligned_by
                ),
            };
            page.row(
                "guest RAM",
                &format!("{} at {}: {aligned}", guest.length, guest.start),
            );
        }
    }
    for note in &found.notes {
        page.row("note", note);
    }
    if !found.journals.is_empty() {
        let pids: Vec<String> = found
            .processes
            .iter()
            .map(|one| format!(" -p {}", one.pid))
            .collect();
        if !pids.is_empty() {
            page.row(
                "take back",
                &format!("pagewise huge balance --undo{}", pids.concat()),
            );
        }
    }
    page.out
}

/// The same for a page without scripts.
pub fn plain(found: &Balance) -> String {
    let style = Style {
        color: false,
        unicode: true,
    };
    render(found, 100, style)
}

struct Page {
    out: String,
    width: usize,
    style: Style,
}

impl Page {
    fn verdict(&mut self, found: &Balance) {
        let colour = match found.verdict.effect {
            Effect::Help => "1;32",
            Effect::Hurt => "1;31",
            Effect::NoMeasurableEffect | Effect::Unknown => "1",
        };
        for line in wrap(&found.verdict.sentence, self.width) {
            let _ = match self.style.color {
                true => writeln!(self.out, "\u{1b}[{colour}m{line}\u{1b}[0m"),
                false => writeln!(self.out, "{line}"),
            };
        }
        self.out.push('\n');
    }

    fn row(&mut self, label: &str, text: &str) {
        let mut label = label.to_owned();
        for line in wrap(text, self.width - LABEL) {
            let _ = writeln!(self.out, "{label:LABEL$}{line}");
            label.clear();
        }
    }
}

fn basis(found: &Balance) -> String {
    let how = match found.verdict.basis {
        Basis::Interleaved => "this process, base and huge pages in turn",
        Basis::Measured => "this process at different times (--prove compares in turn)",
        Basis::Walks => "page walks, counted by hardware",
        Basis::Probe => "a chase on this machine, not this program",
        Basis::None => "nothing",
    };
    let mut text = format!("{how}; {}", found.signal);
    if let Some(events) = &found.walk_events {
        let _ = write!(text, "; {events}");
    }
    if let Some(why) = &found.no_counters {
        let _ = write!(text, "; {why}");
    }
    text
}

fn pages(found: &Balance) -> String {
    let share = |state: &PageState| format!("{} of {}", state.huge, state.huge + state.small);
    let mut text = match found.applied {
        true => format!(
            "{} huge before, {} now, of {} each",
            share(&found.before),
            share(&found.after),
            found.huge_page
        ),
        false => format!("{} huge, of {} each", share(&found.after), found.huge_page),
    };
    if found.after.blocked > 0 {
        let _ = write!(text, "; {} more left alone", found.after.blocked);
    }
    text
}

fn changes(changes: Changes, none: &str) -> String {
    match (changes.median, changes.p95) {
        (Some(median), Some(p95)) => {
            format!(
                "{}, {median} each (95 % below {p95}), verified in the page map",
                changes.count
            )
        }
        _ => none.to_owned(),
    }
}

fn memory(found: &Balance) -> String {
    let mut text = format!("resident {}", found.before.rss);
    if found.applied {
        let _ = write!(
            text,
            " before, {} now, {} at most",
            found.after.rss, found.peak_rss
        );
    }
    if let Some(most) = found.max_rss {
        let kept = found.peak_rss <= most;
        let _ = write!(
            text,
            "; {most} promised: {}",
            match kept {
                true => "kept",
                false => "exceeded by the program itself",
            }
        );
    }
    text
}

fn controller(found: &Balance) -> String {
    let used = found.controller_cpu.as_secs_f64() / found.elapsed.as_secs_f64().max(1e-9);
    let name = match found.applied {
        true => found.controller.as_str(),
        false => "dry run (--apply acts)",
    };
    format!(
        "{name}; {} of CPU time in {} ({:.2} %)",
        found.controller_cpu,
        found.elapsed,
        used * 100.0
    )
}
