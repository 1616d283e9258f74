//! The pages of `pagewise bench`.

use super::sheet;
use crate::html::Error;
use crate::html::document::render_sheets;
use crate::html::sheets::{Cell, Look, Sheet, Sheets, Tone};
use pagewise_model::answer::Document;
use pagewise_model::bench::{AllocatorBench, AllocatorRow, FaultBench, Way};
use pagewise_model::quantity::few;
use pagewise_model::units::Nanos;

/// The page about what allocators cost.
///
/// # Errors
/// Only if it could not be encoded, which the model's types rule out.
pub fn render_allocators(document: &Document<AllocatorBench>, text: &str) -> Result<String, Error> {
    let found = &document.evidence;
    let rows_of = |is_together: bool| -> Vec<&[AllocatorRow]> {
        let rows = found.allocators.iter();
        rows.map(|one| {
            if is_together {
                &*one.together
            } else {
                &*one.single
            }
        })
        .collect()
    };
    let behaviour = found.sentences().map(|one| vec![Cell::from(one)]);
    let columns = [("what it does with memory that is freed", Look::Text)];
    let mut sheets = vec![sheet(
        "behaviour",
        "Each allocator",
        &columns,
        behaviour.collect(),
    )];
    for (is_together, title) in [
        (false, "one block"),
        (true, "16 KiB blocks, freed together"),
    ] {
        let rows = rows_of(is_together);
        let first = rows.first().copied().unwrap_or_default();
        if first.is_empty() {
            continue;
        }
        let table = |what: &str, cell: &dyn Fn(&AllocatorRow) -> Cell| {
            let heads: Vec<String> = first.iter().map(|row| row.bytes.to_string()).collect();
            let columns = heads.iter().map(|head| (&**head, Look::Number));
            let columns: Vec<_> = std::iter::once(("allocator", Look::Code))
                .chain(columns)
                .collect();
            let rows = found.allocators.iter().zip(&rows).map(|(one, rows)| {
                let name = Cell::from(&*one.contender.name);
                std::iter::once(name).chain(rows.iter().map(cell)).collect()
            });
            let id = format!(
                "{}-{}",
                what.to_lowercase().replace(' ', "-"),
                sheets_id(is_together)
            );
            Sheet {
                intro: "Per round: allocate, touch, free. A column for each size.".to_owned(),
                ..sheet(&id, &format!("{what}, {title}"), &columns, rows.collect())
            }
        };
        sheets.push(table("Faults", &|row| few(row.cost.faults).into()));
        sheets.push(table("CPU time", &|row| row.cpu().to_string().into()));
        if rows
            .iter()
            .copied()
            .flatten()
            .any(|row| row.cost.calls.is_some())
        {
            sheets.push(table("Memory calls", &|row| match &row.cost.calls {
                Some(calls) => few(calls.values().sum()).into(),
                None => "–".into(),
            }));
        }
    }
    let sheets = Sheets {
        badge: ("Measured".to_owned(), Tone::Neutral),
        tiles: Vec::new(),
        sheets,
    };
    // All of them are a table: the heading is about the system's.
    let short = Document {
        verdict: found.sentences().next().unwrap_or_default(),
        ..document.clone()
    };
    render_sheets(&short, "What allocators cost", &sheets, text)
}

fn sheets_id(is_together: bool) -> &'static str {
    if is_together { "together" } else { "single" }
}

/// The page about what page faults cost.
///
/// # Errors
/// As [`render_allocators`].
pub fn render_faults(document: &Document<FaultBench>, text: &str) -> Result<String, Error> {
    let rows = document.evidence.rows.iter().map(|row| {
        let time = |ns: u64| Cell::figure(Nanos(ns).to_string(), ns as f64);
        let way = match row.way {
            Way::Kernel => "the kernel",
            Way::Fd => "handler threads (userfaultfd)",
            Way::Sigbus => "the thread that faults (SIGBUS)",
        };
        vec![
            Cell::from(way),
            row.threads.to_string().into(),
            time(row.times.p50_ns),
            time(row.times.p99_ns),
            time(row.times.in_order_ns),
        ]
    });
    let columns = [
        ("resolved by", Look::Text),
        ("threads", Look::Number),
        ("median", Look::Bar),
        ("99th percentile", Look::Bar),
        ("mean in order", Look::Bar),
    ];
    let mut table = sheet("faults", "First touches of pages", &columns, rows.collect());
    table.intro = "Median and 99th percentile are those of scattered pages.".to_owned();
    let sheets = Sheets {
        badge: ("Measured".to_owned(), Tone::Neutral),
        tiles: Vec::new(),
        sheets: vec![table],
    };
    render_sheets(document, "What page faults cost", &sheets, text)
}
