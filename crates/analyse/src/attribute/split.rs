//! Faults by stack, cause and region, with first touches and churn told apart where releases were
//! not on record.

use crate::churn::repeats;
use crate::faults::{Attribution, Cell, Route, is_private_anonymous, refault_by};
use pagewise_model::findings::{Cause, RegionKind};
use pagewise_model::units::Estimate;
use std::collections::BTreeMap;

/// Faults by all that is known of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ledger {
    /// By stack, cause and region, in that order.
    pub(crate) cells: Vec<(Cell, f64)>,
    /// By cause.
    pub(crate) causes: BTreeMap<Cause, f64>,
    /// By cause and region.
    pub(crate) routes: BTreeMap<(Cause, RegionKind), f64>,
    /// Share of repeats among sampled faults by region, where that decided.
    pub(crate) repeats: BTreeMap<RegionKind, Estimate>,
}

/// The ledger of an attribution; `major` is the number of faults that needed I/O, on the scale of
/// the attribution's weights, where it is known.
pub(crate) fn ledger(attribution: &Attribution, major: Option<f64>) -> Ledger {
    let repeats = attribution
        .tally
        .census
        .iter()
        .filter_map(|(&region, census)| Some((region, repeats(*census)?)))
        .collect();
    let mut ledger = Ledger {
        repeats,
        ..Ledger::default()
    };
    for (&cell, &faults) in &attribution.tally.cells {
        ledger.enter(attribution, cell, faults);
    }
    if let Some(major) = major.filter(|_| !attribution.sees_every_fault) {
        ledger.match_major_faults(major);
    }
    ledger
        .cells
        .sort_by_key(|(cell, _)| (cell.stack, cell.cause, cell.region));
    ledger
}

impl Ledger {
    fn enter(&mut self, attribution: &Attribution, cell: Cell, faults: f64) {
        let is_first = matches!(cell.cause, Cause::FirstTouch | Cause::StackGrowth);
        let again = match self.repeats.get(&cell.region) {
            Some(share) if is_first => share.value,
            _ => 0.0,
        };
        if again > 0.0 {
            let cause = refault_by(likely_route(attribution, cell.region));
            self.add(Cell { cause, ..cell }, faults * again);
        }
        self.add(cell, faults * (1.0 - again));
    }

    fn add(&mut self, cell: Cell, faults: f64) {
        if faults == 0.0 {
            return;
        }
        self.cells.push((cell, faults));
        *self.causes.entry(cell.cause).or_default() += faults;
        *self.routes.entry((cell.cause, cell.region)).or_default() += faults;
    }

    /// Sampled faults seldom show how they ended, but the kernel counts those that needed I/O: as
    /// many file pages as are missing from that count were read from disk.
    fn match_major_faults(&mut self, major: f64) {
        let sum = |cause| self.causes.get(&cause).copied().unwrap_or(0.0);
        let missing = major - sum(Cause::FileMajor) - sum(Cause::SwapIn);
        let cached = sum(Cause::FileMinor);
        let moved = missing.min(cached);
        if moved <= 0.0 {
            return;
        }
        let share = moved / cached;
        for (cell, faults) in self.cells_of(Cause::FileMinor) {
            self.add(cell, -faults * share);
            self.add(
                Cell {
                    cause: Cause::FileMajor,
                    ..cell
                },
                faults * share,
            );
        }
    }

    fn cells_of(&self, cause: Cause) -> Vec<(Cell, f64)> {
        let of = |(cell, _): &&(Cell, f64)| cell.cause == cause;
        self.cells.iter().filter(of).copied().collect()
    }

    /// Faults on private anonymous memory.
    pub(crate) fn private_faults(&self) -> f64 {
        self.routes
            .iter()
            .filter(|((_, region), _)| is_private_anonymous(*region))
            .map(|(_, faults)| faults)
            .sum()
    }

    /// Faults by churn.
    pub(crate) fn churn_faults(&self) -> f64 {
        self.causes
            .iter()
            .filter(|(cause, _)| cause.is_churn())
            .map(|(_, faults)| faults)
            .sum()
    }

    /// Churn's share of the faults on one kind of memory.
    pub(crate) fn churn_share(&self, region: RegionKind) -> f64 {
        let of = |churn: bool| -> f64 {
            self.routes
                .iter()
                .filter(|((cause, at), _)| *at == region && (!churn || cause.is_churn()))
                .map(|(_, faults)| faults)
                .sum()
        };
        let all = of(false);
        if all > 0.0 { of(true) / all } else { 0.0 }
    }
}

/// The route by which memory of a kind goes back. Releases seen during part of the run decide;
/// without any, what the kind of memory does: the heap shrinks, blocks that are mapped again and
/// again were unmapped in between, and the rest (thread arenas, allocators that keep their
/// mappings) is given back by advice.
fn likely_route(attribution: &Attribution, region: RegionKind) -> Route {
    let tally = &attribution.tally;
    let seen = tally
        .releases
        .iter()
        .filter(|((_, of), _)| *of == region)
        .max_by_key(|(_, totals)| totals.pages)
        .map(|((route, _), _)| *route);
    let remapped = tally
        .census
        .get(&region)
        .is_some_and(|census| census.remapped > 0);
    seen.unwrap_or(match region {
        RegionKind::Heap => Route::Brk,
        RegionKind::MmappedChunk => Route::Munmap,
        RegionKind::Anonymous if remapped => Route::Munmap,
        _ => Route::Dontneed,
    })
}
