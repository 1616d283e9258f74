//! What allocators cost, for a person.

use super::Style;
use super::page::hanging;
use pagewise_model::bench::{AllocatorBench, AllocatorRow, Measured};
use pagewise_model::quantity::{count as grouped, rounded};
use pagewise_model::units::{Bytes, Nanos};

/// Sentence, tables, plot.
#[must_use]
pub fn render(document: &AllocatorBench, width: usize, _style: Style) -> String {
    let mut text = String::new();
    for allocator in &document.allocators {
        text += &hanging(&sentence(allocator, document), "• ", "  ", width);
    }
    let single: Vec<&[AllocatorRow]> = document
        .allocators
        .iter()
        .map(|one| one.single.as_slice())
        .collect();
    text += &section(
        document,
        &single,
        "one block: take, touch, give back",
        width,
    );
    let together: Vec<&[AllocatorRow]> = document
        .allocators
        .iter()
        .map(|one| one.together.as_slice())
        .collect();
    if together.iter().any(|rows| !rows.is_empty()) {
        text += &section(
            document,
            &together,
            "16 KiB blocks, given back together",
            width,
        );
    }
    text += &plot(document);
    for note in &document.notes {
        text += &hanging(note, "  • ", "    ", width);
    }
    text
}

/// What an allocator does, in one sentence.
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
                "takes blocks of {} and more fresh from the kernel each time{cost}",
                exact(edge)
            )
        }
    };
    format!(
        "{name} {single}{}.",
        small_blocks(allocator, document.page_bytes)
    )
}

/// From which total on small blocks that are freed together come fresh, if they were measured.
fn small_blocks(allocator: &Measured, page: Bytes) -> String {
    let fresh = |row: &&AllocatorRow| row.cost.faults >= FRESH * pages(row, page);
    match (
        allocator.together.iter().find(fresh),
        allocator.together.last(),
    ) {
        (Some(row), _) => {
            format!(
                "; small blocks freed together come fresh from a total of {} on",
                row.bytes
            )
        }
        (None, Some(last)) => format!("; small blocks freed together stay, up to {}", last.bytes),
        (None, None) => String::new(),
    }
}

/// Share of pages from which on a round counts as fresh memory.
const FRESH: f64 = 0.25;

#[allow(
    clippy::cast_precision_loss,
    reason = "pages of blocks that fit into memory"
)]
fn pages(row: &AllocatorRow, page: Bytes) -> f64 {
    row.bytes.0.div_ceil(page.0.max(1)).max(1) as f64
}

/// To the KiB: rounded to three digits, 32,764 KiB would read as 32.0 MiB.
fn exact(size: Bytes) -> String {
    match size.0 {
        bytes if bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes => format!("{} KiB", grouped(bytes >> 10)),
    }
}

/// ` (16,385 faults and 27.4 ms for 64.0 MiB)` of the largest block measured.
fn fresh_cost(allocator: &Measured, edge: Bytes, page: Bytes) -> String {
    let largest = allocator.single.iter().filter(|row| row.bytes >= edge);
    match largest.max_by_key(|row| row.bytes) {
        Some(row) if row.cost.faults >= FRESH * pages(row, page) => {
            format!(
                " ({} faults and {} for {})",
                count(row.cost.faults),
                time(row),
                row.bytes
            )
        }
        _ => String::new(),
    }
}

/// Three tables: faults, time and calls of each round.
fn section(
    document: &AllocatorBench,
    rows: &[&[AllocatorRow]],
    title: &str,
    width: usize,
) -> String {
    let mut text = table(
        document,
        rows,
        &format!("Faults per round, {title}"),
        width,
        |row| count(row.cost.faults),
    );
    text += &table(
        document,
        rows,
        &format!("CPU time per round, {title}"),
        width,
        time,
    );
    if rows
        .iter()
        .flat_map(|rows| rows.iter())
        .any(|row| row.cost.calls.is_some())
    {
        text += &table(
            document,
            rows,
            &format!("Memory calls per round, {title}"),
            width,
            |row| {
                let calls = row.cost.calls.iter().flat_map(|calls| calls.values());
                count(calls.fold(0.0, |sum, calls| sum + calls))
            },
        );
    }
    text
}

/// Columns in groups that fit the width.
fn table(
    document: &AllocatorBench,
    rows: &[&[AllocatorRow]],
    title: &str,
    width: usize,
    cell: impl Fn(&AllocatorRow) -> String,
) -> String {
    let names: Vec<(&str, &str)> = document
        .allocators
        .iter()
        .map(|one| {
            one.contender
                .name
                .split_once(", ")
                .unwrap_or((&one.contender.name, ""))
        })
        .collect();
    let columns = (width.saturating_sub(9) / COLUMN).max(1);
    let mut text = format!("\n{title}\n");
    for group in (0..names.len()).collect::<Vec<_>>().chunks(columns) {
        text += &line("", group.iter().map(|&at| names[at].0.to_owned()));
        text += &line("", group.iter().map(|&at| names[at].1.to_owned()));
        for (at, row) in rows.first().copied().unwrap_or_default().iter().enumerate() {
            let size = row.bytes.to_string();
            text += &line(&size, group.iter().map(|&one| cell(&rows[one][at])));
        }
    }
    text
}

/// Columns that one allocator takes.
const COLUMN: usize = 12;

fn line(label: &str, cells: impl Iterator<Item = String>) -> String {
    let cells: String = cells.map(|cell| format!("{cell:>COLUMN$}")).collect();
    format!("{label:>9}{cells}").trim_end().to_owned() + "\n"
}

/// CPU time per page, a mark for each size: from a few nanoseconds (kept) to a microsecond
/// (fresh).
fn plot(document: &AllocatorBench) -> String {
    let mut text = String::from("\nCPU time per page of a single block, small to large\n");
    for allocator in &document.allocators {
        let marks: String = allocator
            .single
            .iter()
            .map(|row| mark(row, document.page_bytes))
            .collect();
        text += &format!("{:>20} │{marks}│\n", allocator.contender.name);
    }
    text + "                      · <60 ns  ▂ <125 ns  ▄ <250 ns  ▆ <500 ns  █ more\n"
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

/// `16,384`, `2.1` for small figures, `0` for what rounds to it.
fn count(value: f64) -> String {
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
    use pagewise_model::document::Kind;

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

    fn document(threshold: Option<Bytes>, faults: f64) -> AllocatorBench {
        let contender = Contender {
            name: "system".to_owned(),
            settings: Settings::default(),
        };
        AllocatorBench {
            kind: Kind::AllocatorBench,
            schema_version: 1,
            page_bytes: Bytes(4096),
            glibc: Some("2.36".to_owned()),
            allocators: vec![Measured {
                contender,
                threshold_bytes: threshold,
                single: vec![row(1, 1, 0.01), row(64, 1, faults)],
                together: vec![row(4, 256, 989.0)],
            }],
            notes: vec!["A note.".to_owned()],
        }
    }

    #[test]
    fn the_answer_names_edge_cost_and_small_blocks() {
        let text = render(
            &document(Some(Bytes((32 << 20) - 4096)), 16_385.0),
            300,
            Style::PLAIN,
        );
        let first = text.lines().next().unwrap();
        assert_eq!(
            first,
            "• The system's malloc (glibc 2.36) takes blocks of 32,764 KiB and more fresh from the \
             kernel each time (16,385 faults and 26.2 ms for 64.0 MiB); small blocks freed together \
             come fresh from a total of 4.00 MiB on."
        );
        assert!(text.contains("system │·█│"), "{text}");
        assert!(text.ends_with("  • A note.\n"));
    }

    #[test]
    fn an_allocator_that_keeps_everything_is_said_to() {
        let text = render(&document(None, 0.0), 300, Style::PLAIN);
        assert!(
            text.starts_with("• The system's malloc (glibc 2.36) keeps single blocks up to 64")
        );
    }
}
