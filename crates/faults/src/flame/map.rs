//! Faults by address and time, for drawing.

use crate::attribute::{Ledger, Scale};
use crate::causes::Attribution;
use crate::causes::heat::Heat;
use pagewise_model::findings::{FaultMap, FaultMapCell, FaultMapRow, RegionKind};
use pagewise_model::units::{Bytes, Nanos};
use std::collections::BTreeMap;

/// Rows of the map.
const MOST_ROWS: usize = 120;

/// The map of the process that faulted most: addresses of different processes cannot be compared.
/// Only touched stretches have rows, all of equal size.
pub(crate) fn fault_map(attribution: &Attribution, ledger: &Ledger, scale: &Scale) -> FaultMap {
    let Some(pid) = busiest_process(attribution) else {
        return FaultMap::default();
    };
    let heat = &attribution.heat;
    let mut shift = heat.shift;
    let mut cells: BTreeMap<(u64, u32), Heat> = BTreeMap::new();
    for (&(_, granule, bin), &held) in heat.cells.iter().filter(|((of, ..), _)| *of == pid) {
        cells.insert((granule, bin), held);
    }
    let mut rows = granules(&cells);
    while rows.len() > MOST_ROWS {
        shift += 1;
        cells = coarser(cells);
        rows = granules(&cells);
    }
    let position: BTreeMap<u64, u32> = rows.keys().copied().zip(0_u32..).collect();
    FaultMap {
        time_step: Nanos(heat.step),
        columns: cells.keys().map(|(_, bin)| bin + 1).max().unwrap_or(0),
        rows: rows
            .iter()
            .map(|(&granule, &region)| row(granule, region, shift))
            .collect(),
        cells: cells
            .iter()
            .map(|(&(granule, bin), held)| FaultMapCell {
                row: position.get(&granule).copied().unwrap_or(0),
                column: bin,
                faults: held.faults * scale.factor,
                churn: churn_of(held, ledger),
            })
            .collect(),
    }
}

fn busiest_process(attribution: &Attribution) -> Option<i32> {
    let mut faults: BTreeMap<i32, f64> = BTreeMap::new();
    for (&(pid, ..), held) in &attribution.heat.cells {
        *faults.entry(pid).or_default() += held.faults;
    }
    faults
        .into_iter()
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(pid, _)| pid)
}

/// Granules with the region that faulted in them.
fn granules(cells: &BTreeMap<(u64, u32), Heat>) -> BTreeMap<u64, RegionKind> {
    let mut heaviest: BTreeMap<u64, (f64, RegionKind)> = BTreeMap::new();
    for (&(granule, _), held) in cells {
        let best = heaviest.entry(granule).or_insert((0.0, held.region));
        if held.faults > best.0 {
            *best = (held.faults, held.region);
        }
    }
    heaviest
        .into_iter()
        .map(|(granule, (_, region))| (granule, region))
        .collect()
}

fn coarser(cells: BTreeMap<(u64, u32), Heat>) -> BTreeMap<(u64, u32), Heat> {
    let mut coarse: BTreeMap<(u64, u32), Heat> = BTreeMap::new();
    for ((granule, bin), held) in cells {
        coarse
            .entry((granule >> 1, bin))
            .and_modify(|into| {
                if held.faults > into.faults {
                    into.region = held.region;
                }
                into.faults += held.faults;
                into.churn += held.churn;
            })
            .or_insert(held);
    }
    coarse
}

fn row(granule: u64, region: RegionKind, shift: u32) -> FaultMapRow {
    FaultMapRow {
        start: format!("{:#x}", granule << shift),
        length: Bytes(1 << shift),
        region,
    }
}

/// Churn in a cell: counted if releases were recorded, otherwise the region's share.
fn churn_of(held: &Heat, ledger: &Ledger) -> f64 {
    if ledger.repeats.contains_key(&held.region) {
        return ledger.churn_share(held.region);
    }
    if held.faults > 0.0 {
        held.churn / held.faults
    } else {
        0.0
    }
}
