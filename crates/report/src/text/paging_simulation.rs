//! Policies on a recorded run, for a person.

use super::Style;
use super::columns::{Row, named};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::paging_simulation::PagingSimulation;
use pagewise_model::quantity::{count, counted};

/// A table of the policies, the bound last, with the limits of the simulation, of at most `width`
/// columns.
#[must_use]
pub fn render(document: &Document<PagingSimulation>, width: usize, style: Style) -> String {
    let answer = &document.evidence;
    let mut page = Page::new(width, style);
    let trace = &answer.trace;
    let memory = counted(answer.memory_pages.into(), "page");
    let about = format!(
        "{} of {}, simulated with {memory} of memory",
        counted(trace.uses as u64, "use"),
        counted(trace.footprint_pages, "page")
    );
    page.marked("● run", Ink::Strong, &visible(&document.verdict));
    page.indented(0, Ink::Plain, &about);
    page.gap();
    let heads = named(
        "policy",
        &["waits", "read", "early", "in vain", "evicted", "written"],
    );
    let rows = answer.policies.iter().chain([&answer.bound]).map(|row| {
        Row::new([
            row.policy.clone(),
            count(row.refaults),
            count(row.pages_read),
            count(row.read_early),
            count(row.read_in_vain),
            count(row.evictions),
            count(row.pages_written),
        ])
    });
    page.rows(&heads, rows);
    page.gap();
    let bound = "MIN is Belady's bound: no policy reads fewer pages. Waits are faults that waited for the store.";
    page.indented(0, Ink::Plain, bound);
    if answer.policies.iter().any(|row| row.knew_the_run) {
        let text = "It was given the run that is simulated. In the same order it knows what comes; in another order it knows which pages, as for most servers. To see which holds, simulate a second recording with replay of the first.";
        page.bullet("replay", text);
    }
    missing(&mut page, answer);
    page.finish()
}

fn missing(page: &mut Page, answer: &PagingSimulation) {
    let trace = &answer.trace;
    let mut label = "Missing";
    let with = trace.recorded_with_pages;
    if u64::from(answer.memory_pages) < with {
        let text = format!(
            "The trace was recorded with {}: uses of pages that were resident are not in it, so figures for less memory are lower bounds.",
            counted(with, "page")
        );
        page.bullet(label, &text);
        label = "";
    }
    let lost = [
        (
            trace.presumed_uses,
            "pages read early by the recorded run count as used then",
        ),
        (
            trace.unknown_records,
            "records of unknown kind were skipped",
        ),
        (
            trace.cut_bytes as u64,
            "bytes at the end are an incomplete record",
        ),
    ];
    for (lost, what) in lost.iter().filter(|(lost, _)| *lost > 0) {
        page.bullet(label, &format!("{} {what}.", count(*lost)));
        label = "";
    }
}
