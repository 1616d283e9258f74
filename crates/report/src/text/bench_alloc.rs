//! The cost of allocators, for a person.

use super::Style;
use super::columns::{Row, figures, words};
use super::page::{Ink, Page};
use crate::visible::visible;
use pagewise_model::answer::Document;
use pagewise_model::bench::{AllocatorBench, AllocatorRow, Measured};
use pagewise_model::quantity::{count as grouped, rounded};
use pagewise_model::units::{Bytes, Nanos};

/// Sentences, tables and a plot, of at most `width` columns.
#[must_use]
pub fn render(document: &Document<AllocatorBench>, width: usize, style: Style) -> String {
    let found = &document.evidence;
    let mut page = Page::new(width, style);
    let mut mark = "● bench";
    for allocator in &found.allocators {
        page.marked(mark, Ink::Strong, &sentence(allocator, found));
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

/// The behaviour of an allocator, in one sentence.
fn sentence(allocator: &Measured, document: &AllocatorBench) -> String {
    let name = match (&document.glibc, allocator.contender.name.as_str()) {
        (Some(version), "system") => format!("The system's malloc (glibc {version})"),
        (_, name) => name.to_owned(),
    };
    let single = match allocator.threshold_bytes {
        None => "keeps single blocks up to 64 MiB".to_owned(),
        Some(edge) => {
            let cost = fresh_cost(allocator, edge, document.page_bytes);
            format!(
                "requests blocks of {} and more from the kernel anew each time{cost}",
                exact(edge)
            )
        }
    };
    format!(
        "{name} {single}{}.",
        small_blocks(allocator, document.page_bytes)
    )
}

/// The total from which small blocks that are freed together use fresh memory, if they were
/// measured.
fn small_blocks(allocator: &Measured, page: Bytes) -> String {
    let fresh = |row: &&AllocatorRow| row.cost.faults >= FRESH * pages(row, page);
    match (
        allocator.together.iter().find(fresh),
        allocator.together.last(),
    ) {
        (Some(row), _) => {
            format!(
                "; small blocks freed together are requested anew from a total of {} on",
                row.bytes
            )
        }
        (None, Some(last)) => format!("; keeps small blocks freed together, up to {}", last.bytes),
        (None, None) => String::new(),
    }
}

/// Share of faulting pages from which a round counts as using fresh memory.
const FRESH: f64 = 0.25;

#[allow(
    clippy::cast_precision_loss,
    reason = "pages of blocks that fit into memory"
)]
fn pages(row: &AllocatorRow, page: Bytes) -> f64 {
    row.bytes.0.div_ceil(page.0.max(1)).max(1) as f64
}

/// Exact to the KiB: rounded to three digits, 32,764 KiB would read as 32.0 MiB.
fn exact(size: Bytes) -> String {
    match size.0 {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", grouped(bytes >> 10)),
    }
}

/// ` (16,385 faults and 27.4 ms for 64.0 MiB)`, for the largest block measured.
fn fresh_cost(allocator: &Measured, edge: Bytes, page: Bytes) -> String {
    let largest = allocator.single.iter().filter(|row| row.bytes >= edge);
    match largest.max_by_key(|row| row.bytes) {
        Some(row) if row.cost.faults >= FRESH * pages(row, page) => {
            format!(
                " ({} faults and {} for {})",
                few(row.cost.faults),
                time(row),
                row.bytes
            )
        }
        _ => String::new(),
    }
}

/// Three tables: faults, time and calls of each round.
fn section(page: &mut Page, document: &AllocatorBench, rows: &[&[AllocatorRow]], title: &str) {
    let faults = format!("Faults per round, {title}");
    table(page, document, rows, &faults, |row| few(row.cost.faults));
    let cpu = format!("CPU time per round, {title}");
    table(page, document, rows, &cpu, time);
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
    match row.cost.cpu_ns / pages(row, page) {
        ns if ns < 60.0 => '·',
        ns if ns < 125.0 => '▂',
        ns if ns < 250.0 => '▄',
        ns if ns < 500.0 => '▆',
        _ => '█',
    }
}

fn time(row: &AllocatorRow) -> String {
    Nanos::from_secs_f64(row.cost.cpu_ns / 1e9).to_string()
}

/// `16,384`, `2.1` for small figures, `0` for values that round to it.
fn few(value: f64) -> String {
    if !(0.05..10.0).contains(&value) {
        rounded(value)
    } else {
        format!("{value:.1}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::advice::Settings;
    use pagewise_model::bench::{Contender, Cost};

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
        Document::of(found).with_notes(vec!["A note.".to_owned()])
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
