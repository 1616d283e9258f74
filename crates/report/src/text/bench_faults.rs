//! What page faults cost, for a person.

use super::Style;
use pagewise_model::bench::{FaultBench, FaultRow, Times, Way};

/// Tables by who resolves the faults and by threads.
#[must_use]
pub fn render(document: &FaultBench, _width: usize, _style: Style) -> String {
    let mut threads: Vec<u16> = document.rows.iter().map(|row| row.threads).collect();
    threads.sort_unstable();
    threads.dedup();
    let threads = &threads;
    let scattered = table(document, threads, |times| {
        format!("{} / {}", times.p50_ns, times.p99_ns)
    });
    let in_order = table(document, threads, |times| times.in_order_ns.to_string());
    format!(
        "First write to a page, scattered, p50 / p99 in nanoseconds\n\n{scattered}\n\n\
         One page after the other, nanoseconds per page\n\n{in_order}\n\n\
         Medians of {} processes each. kernel: no paging. fd: handler threads.\n\
         sigbus: the faulting thread.\n",
        document.runs
    )
}

/// A row for each way, a column for each number of threads.
fn table(document: &FaultBench, threads: &[u16], cell: impl Fn(&Times) -> String) -> String {
    let mut text = " ".repeat(8);
    for count in threads {
        let plural = if *count == 1 { "" } else { "s" };
        text += &format!("{:>18}", format!("{count} thread{plural}"));
    }
    for way in Way::ALL {
        text += &format!("\n{:<8}", format!("{way:?}").to_lowercase());
        for &count in threads {
            let is_it = |row: &&FaultRow| row.way == way && row.threads == count;
            let times = document.rows.iter().find(is_it);
            text += &format!(
                "{:>18}",
                times.map_or("–".to_owned(), |row| cell(&row.times))
            );
        }
    }
    text
}
