//! Policies on a recorded run, for a person.

use super::Style;
use pagewise_model::paging_simulation::{PagingSimulation, UsesOfPages};
use std::fmt::Write;

/// A table of the policies, the bound last, and what to mind.
#[must_use]
pub fn render(answer: &PagingSimulation, _width: usize, _style: Style) -> String {
    let mut text = String::new();
    let UsesOfPages {
        uses,
        footprint_pages,
        recorded_with_pages,
        ..
    } = answer.trace;
    let _ = writeln!(
        text,
        "{uses} uses of {footprint_pages} pages, simulated with {} pages of memory\n",
        answer.memory_pages
    );
    let _ = writeln!(
        text,
        "{:<20}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
        "policy", "waits", "read", "early", "in vain", "evicted", "written"
    );
    for row in answer.policies.iter().chain([&answer.bound]) {
        let _ = writeln!(
            text,
            "{:<20}{:>12}{:>12}{:>12}{:>12}{:>12}{:>12}",
            row.policy,
            row.refaults,
            row.pages_read,
            row.read_early,
            row.read_in_vain,
            row.evictions,
            row.pages_written
        );
    }
    let _ = writeln!(
        text,
        "\nMIN is Belady's bound: no policy reads fewer pages. Waits count threads held up by the store."
    );
    if u64::from(answer.memory_pages) < recorded_with_pages {
        let _ = writeln!(
            text,
            "The trace was recorded with {recorded_with_pages} pages: uses of pages that were resident then are not in \
             it, so figures for less memory are lower bounds."
        );
    }
    let lost = [
        (
            answer.trace.presumed_uses,
            "pages read early by the recorded run count as used then",
        ),
        (
            answer.trace.unknown_records,
            "records of unknown kind were passed over",
        ),
        (
            answer.trace.cut_bytes as u64,
            "bytes at the end are no whole record",
        ),
    ];
    for (count, what) in lost.iter().filter(|(count, _)| *count > 0) {
        let _ = writeln!(text, "{count} {what}.");
    }
    text
}
