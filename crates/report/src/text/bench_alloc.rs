//! The cost of allocators, for a person.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::bench::{AllocatorBench, AllocatorRow};
use pagewise_model::quantity::few;
use pagewise_model::units::Bytes;

/// Sentences, tables and a plot, of at most `width` columns.
#[must_use]
pub fn render(document: &Document<AllocatorBench>, width: usize, style: Style) -> String {
    let found = &document.evidence;
    let mut page = Page::new(width, style);
    let mut mark = "● bench";
    for sentence in found.sentences() {
        page.marked(mark, Ink::Strong, &sentence);
        mark = "";
    }
    let all = || found.allocators.iter();
    let single: Vec<&[AllocatorRow]> = all().map(|one| one.single.as_slice()).collect();
    section(
        &mut page,
        found,
        &single,
        "one block: allocate, touch, free",
    );
    let together: Vec<&[AllocatorRow]> = all().map(|one| one.together.as_slice()).collect();
    if together.iter().any(|rows| !rows.is_empty()) {
        let title = "16 KiB blocks, freed together";
        section(&mut page, found, &together, title);
    }
    plot(&mut page, found);
    page.gap();
    page.list("Notes", document.notes.iter().map(|note| visible(note)));
    page.finish()
}

/// Three tables: faults, time and calls of each round.
fn section(page: &mut Page, document: &AllocatorBench, rows: &[&[AllocatorRow]], title: &str) {
    let faults = format!("Faults per round, {title}");
    table(page, document, rows, &faults, |row| few(row.cost.faults));
    let cpu = format!("CPU time per round, {title}");
    table(page, document, rows, &cpu, |row| row.cpu().to_string());
    let mut all = rows.iter().flat_map(|rows| rows.iter());
    if all.any(|row| row.cost.calls.is_some()) {
        let calls = format!("Memory calls per round, {title}");
        table(page, document, rows, &calls, |row| {
            let calls = row.cost.calls.iter().flat_map(|calls| calls.values());
            few(calls.fold(0.0, |sum, calls| sum + calls))
        });
    }
}

/// A row for each allocator, a column for each size.
fn table(
    page: &mut Page,
    document: &AllocatorBench,
    rows: &[&[AllocatorRow]],
    title: &str,
    cell: impl Fn(&AllocatorRow) -> String,
) {
    let sizes: Vec<String> = rows
        .first()
        .map_or(&[][..], |rows| rows)
        .iter()
        .map(|row| row.bytes.to_string())
        .collect();
    let heads: Vec<_> = std::iter::once(words("allocator"))
        .chain(sizes.iter().map(|size| figures(size)))
        .collect();
    let rows = document.allocators.iter().zip(rows).map(|(one, rows)| {
        let name = visible(&one.contender.name).into_owned();
        Row::new(
            std::iter::once(name)
                .chain(rows.iter().map(&cell))
                .collect::<Vec<_>>(),
        )
    });
    page.table(title, &heads, rows);
}

/// CPU time per page, a mark for each size: from a few nanoseconds (kept) to a microsecond (fresh).
fn plot(page: &mut Page, document: &AllocatorBench) {
    let rows = document.allocators.iter().map(|allocator| {
        let marks = allocator.single.iter();
        let marks: String = marks.map(|row| mark(row, document.page_bytes)).collect();
        let name = visible(&allocator.contender.name).into_owned();
        Row::new([name, format!("│{marks}│")])
    });
    let title = "CPU time per page of a single block, small to large";
    let heads = [words("allocator"), words("")];
    page.table(title, &heads, rows);
    let key = "· <60 ns  ▂ <125 ns  ▄ <250 ns  ▆ <500 ns  █ more";
    page.indented(2, Ink::Faint, key);
}

fn mark(row: &AllocatorRow, page: Bytes) -> char {
    match row.cost.cpu_ns / row.pages(page) {
        ns if ns < 60.0 => '·',
        ns if ns < 125.0 => '▂',
        ns if ns < 250.0 => '▄',
        ns if ns < 500.0 => '▆',
        _ => '█',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::advice::Settings;
    use pagewise_model::bench::{Contender, Cost, Measured};

    fn row(mib: u64, blocks: u64, faults: f64) -> AllocatorRow {
        let cost = Cost {
            faults,
            cpu_ns: faults * 1_600.0 + 500.0,
            calls: None,
        };
        let bytes = Bytes(mib << 20);
        AllocatorRow {
            bytes,
            block_bytes: Bytes(bytes.0 / blocks),
            cost,
        }
    }

    fn document(threshold: Option<Bytes>, faults: f64) -> Document<AllocatorBench> {
        let contender = Contender {
            name: "system".to_owned(),
            settings: Settings::default(),
        };
        let found = AllocatorBench {
            page_bytes: Bytes(4096),
            glibc: Some("2.36".to_owned()),
            allocators: vec![Measured {
                contender,
                threshold_bytes: threshold,
                single: vec![row(1, 1, 0.01), row(64, 1, faults)],
                together: vec![row(4, 256, 989.0)],
            }],
        };
        Document::new(found).with_notes(vec!["A note.".to_owned()])
    }

    #[test]
    fn the_answer_names_edge_cost_and_small_blocks() {
        let text = render(
            &document(Some(Bytes((32 << 20) - 4096)), 16_385.0),
            200,
            Style::PLAIN,
        );
        let words: Vec<&str> = text.split_whitespace().collect();
        assert!(
            words.join(" ").starts_with(
                "● bench The system's malloc (glibc 2.36) requests blocks of 32,764 KiB and more from the kernel \
             anew each time (16,385 faults and 26.2 ms for 64.0 MiB); small blocks freed together are \
             requested anew from a total of 4.00 MiB on."
            ),
            "{text}"
        );
        assert!(text.contains("  system     │·█│"), "{text}");
        assert!(text.ends_with("Notes      • A note.\n"));
    }

    #[test]
    fn an_allocator_that_keeps_everything_is_said_to() {
        let text = render(&document(None, 0.0), 200, Style::PLAIN);
        assert!(text.starts_with(
            "● bench    The system's malloc (glibc 2.36) keeps single blocks up to 64"
        ));
    }
}
