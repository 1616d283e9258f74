//! The cost of page faults, for a person.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::bench::{FaultBench, FaultRow, Times, Way};

/// Tables by fault handler and by number of threads, of at most `width` columns.
#[must_use]
pub fn render(document: &Document<FaultBench>, width: usize, style: Style) -> String {
    let found = &document.evidence;
    let mut page = Page::new(width, style);
    page.marked("● bench", Ink::Strong, &visible(&document.verdict));
    let scattered = "First write to a page, scattered, p50 / p99 in nanoseconds";
    table(&mut page, found, scattered, |times| {
        format!("{} / {}", times.p50_ns, times.p99_ns)
    });
    let in_order = "One page after the other, nanoseconds per page";
    table(&mut page, found, in_order, |times| {
        times.in_order_ns.to_string()
    });
    page.gap();
    let about = format!(
        "Medians of {} processes each. kernel: no paging. fd: handler threads. sigbus: the \
         faulting thread.",
        found.runs
    );
    page.indented(0, Ink::Plain, &about);
    page.finish()
}

/// A row for each handler, a column for each number of threads.
fn table(page: &mut Page, document: &FaultBench, title: &str, cell: fn(&Times) -> String) {
    let mut threads: Vec<u16> = document.rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let heads: Vec<String> = threads
        .iter()
        .map(|&count| pagewise_model::quantity::counted(count.into(), "thread"))
        .collect();
    let heads: Vec<_> = std::iter::once(words(""))
        .chain(heads.iter().map(|head| figures(head)))
        .collect();
    let rows = Way::ALL.into_iter().map(|way| {
        let of = |&threads: &u16| {
            let is_it = |row: &&FaultRow| row.way == way && row.threads == threads;
            let row = document.rows.iter().find(is_it);
            row.map_or("–".to_owned(), |row| cell(&row.times))
        };
        let name = format!("{way:?}").to_lowercase();
        let cells = std::iter::once(name).chain(threads.iter().map(of));
        Row::new(cells.collect::<Vec<_>>())
    });
    page.table(title, &heads, rows);
}
