//! The line that `run --stats` shows on a terminal while the program runs.

use pagewise_model::quantity::count;
use pagewise_model::units::Bytes;

/// Current figures of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunLine {
    /// Resident memory.
    pub resident: Bytes,
    /// The budget of resident memory.
    pub budget: Bytes,
    /// Live processes.
    pub processes: usize,
    /// Share of resident memory that is in use, if known.
    pub hot: Option<f64>,
    /// Size of the stores.
    pub store: Bytes,
    /// Faults on evicted pages.
    pub refaults: u64,
    /// Pages read.
    pub read: u64,
    /// Pages written.
    pub written: u64,
}

/// One line, of fewer than `columns` columns.
#[must_use]
pub fn render(now: &RunLine, columns: usize) -> String {
    let of_several = match now.processes {
        0 | 1 => String::new(),
        many => format!(" in {many} processes"),
    };
    let hot = now
        .hot
        .map_or_else(String::new, |share| format!(", {:.0} % hot", share * 100.0));
    let text = format!(
        "resident {} of {}{of_several}{hot} | store {} | refaults {} | read {} written {} pages",
        now.resident,
        now.budget,
        now.store,
        count(now.refaults),
        count(now.read),
        count(now.written),
    );
    text.chars().take(columns.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_processes_and_heat_are_named_and_the_line_fits() {
        let now = RunLine {
            resident: Bytes(1 << 20),
            budget: Bytes(2 << 20),
            processes: 3,
            hot: Some(0.25),
            store: Bytes(0),
            refaults: 1234,
            read: 5,
            written: 6,
        };
        let line = render(&now, 200);
        assert!(
            line.starts_with("resident 1.00 MiB of 2.00 MiB in 3 processes, 25 % hot | store 0 B"),
            "{line}"
        );
        assert!(
            line.ends_with("refaults 1,234 | read 5 written 6 pages"),
            "{line}"
        );
        assert_eq!(render(&now, 20).chars().count(), 19);
    }
}
