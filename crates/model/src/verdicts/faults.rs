//! What a page fault costs.

use crate::answer::{Evidence, Kind};
use crate::bench::{FaultBench, Way};
use crate::units::Nanos;

impl Evidence for FaultBench {
    const KIND: Kind = Kind::FaultBench;

    fn verdict(&self) -> String {
        verdict(self)
    }
}

/// The cost with the fewest threads, by what resolves the faults.
fn verdict(found: &FaultBench) -> String {
    let Some(threads) = found.rows.iter().map(|row| row.threads).min() else {
        return String::new();
    };
    let costs: Vec<String> = Way::ALL
        .into_iter()
        .filter_map(|way| {
            let mut rows = found.rows.iter();
            let row = rows.find(|row| (row.way, row.threads) == (way, threads))?;
            let by = match way {
                Way::Kernel => "in the kernel",
                Way::Fd => "by handler threads",
                Way::Sigbus => "by SIGBUS",
            };
            Some(format!("{} {by}", Nanos(row.times.p50_ns)))
        })
        .collect();
    format!(
        "At the median, the first write to a page takes {}.",
        costs.join(", ")
    )
}
