//! First touches that a recording without mappings and memory calls cannot tell from others.

use super::{BEYOND_CHANCE, Cell, Counted, Ledger, is_first};
use pagewise_model::findings::{Cause, RegionKind};

/// Fewer faults are what rounding leaves of none.
const LEAST: f64 = 1e-6;

impl Ledger {
    /// Where neither mappings nor releases were recorded, more faults than there can be pages are no
    /// first touches; what else they are, that recording cannot tell.
    pub(super) fn withhold_first_touches(&mut self, counted: Counted) {
        let first =
            |(cell, _): &&(Cell, f64)| is_first(cell.cause) && cell.region == RegionKind::Unknown;
        let all: f64 = self.cells.iter().filter(first).map(|(_, n)| n).sum();
        if counted
            .resident
            .is_none_or(|pages| all <= BEYOND_CHANCE * pages)
        {
            return;
        }
        let withheld: Vec<(Cell, f64)> = self.cells.iter().filter(first).copied().collect();
        for (cell, faults) in withheld {
            let cause = Cause::Unknown;
            self.add(cell, -faults);
            self.add(Cell { cause, ..cell }, faults);
        }
        self.causes.retain(|_, faults| *faults > LEAST);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::held;
    use super::*;

    #[test]
    fn faults_beyond_memory_have_no_cause_without_mappings() {
        let sampled = [
            (Cause::FirstTouch, RegionKind::Unknown, 540_430.0),
            (Cause::FileMinor, RegionKind::FilePrivate, 500.0),
        ];
        let with = |pages| {
            let mut ledger = held(&sampled);
            ledger.withhold_first_touches(Counted {
                resident: pages,
                ..Counted::default()
            });
            ledger.causes
        };
        let unknown = with(Some(3_800.0));
        assert_eq!(unknown.get(&Cause::FirstTouch), None);
        assert_eq!(unknown[&Cause::Unknown], 540_430.0);
        assert_eq!(unknown[&Cause::FileMinor], 500.0);
        for pages in [None, Some(540_000.0)] {
            assert_eq!(with(pages)[&Cause::FirstTouch], 540_430.0);
        }
    }
}
