//! A finished session, for a person.

use super::Style;
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::balance::{Balance, Basis, Changes, Effect, GuestRange, PageState};
use pagewise_model::quantity::{counted, percent};
use std::fmt::Write;

/// The whole answer, verdict first, of at most `width` columns.
#[must_use]
pub fn render(document: &Document<Balance>, width: usize, style: Style) -> String {
    let found = &document.evidence;
    let mut page = Page::new(width, style);
    let (word, ink) = match found.verdict.effect {
        Effect::Help => ("● help", Ink::Good),
        Effect::Hurt => ("● hurt", Ink::Bad),
        Effect::NoMeasurableEffect => ("● no gain", Ink::Strong),
        Effect::Unknown => ("● unknown", Ink::Strong),
    };
    page.marked(word, ink, &visible(&document.verdict));
    page.gap();
    page.paragraph("Basis", Ink::Plain, &visible(&basis(found)));
    page.paragraph("Pages", Ink::Plain, &pages(found));
    if found.applied {
        let (built, split) = (
            changes(found.built, "no huge page"),
            changes(found.split, "none"),
        );
        page.paragraph("Built", Ink::Plain, &built);
        page.paragraph("Split", Ink::Plain, &split);
    }
    for refused in &found.refused {
        let text = format!(
            "{}: {}",
            counted(refused.count, "time"),
            visible(&refused.reason)
        );
        page.paragraph("Refused", Ink::Caution, &text);
    }
    page.paragraph("Memory", Ink::Plain, &memory(found));
    page.paragraph("Controller", Ink::Plain, &controller(found));
    for guest in found.processes.iter().flat_map(|one| &one.guest_memory) {
        page.paragraph("Guest RAM", Ink::Plain, &guest_memory(guest));
    }
    page.list("Notes", document.notes.iter().map(|note| visible(note)));
    if !found.journals.is_empty() && !found.processes.is_empty() {
        let pids = found.processes.iter().map(|one| format!(" -p {}", one.pid));
        let undo = format!("pagewise huge balance --undo{}", pids.collect::<String>());
        page.paragraph("Undo", Ink::Code, &undo);
    }
    page.finish()
}

/// The same for a page without scripts.
#[must_use]
pub fn plain(document: &Document<Balance>) -> String {
    render(document, 100, Style::PLAIN)
}

fn guest_memory(guest: &GuestRange) -> String {
    let aligned = match guest.misaligned_by.0 {
        0 => "aligned to huge pages".to_owned(),
        _ => format!(
            "NOT aligned: {} off, so the guest's huge pages cannot be huge in the host",
            guest.misaligned_by
        ),
    };
    format!("{} at {}: {aligned}", guest.length, guest.start)
}

fn basis(found: &Balance) -> String {
    let how = match found.verdict.basis {
        Basis::Interleaved => "this process, alternating between base and huge pages",
        Basis::Measured => "this process at different times (--prove alternates)",
        Basis::Walks => "page walks, counted by hardware",
        Basis::Probe => "a pointer chase on this machine, not this program",
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
            " at the first look, {} now ({} of it added by huge pages), {} at most",
            found.after.rss, found.verdict.rss_growth, found.peak_rss
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
        "{name}; {} of CPU time in {} ({})",
        found.controller_cpu,
        found.elapsed,
        percent(used)
    )
}
