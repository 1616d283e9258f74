//! What findings say is lost.

use super::units::Units;
use crate::engine::Engine;
use anyhow::Result;
use datafusion::arrow::array::AsArray;
use datafusion::arrow::datatypes::Float64Type;
use std::collections::BTreeMap;

/// Nanoseconds of CPU time that each finding takes, by unit. `healthy` says that nothing is lost.
pub fn lost(engine: &mut Engine, units: &Units) -> Result<BTreeMap<String, Vec<f64>>> {
    let sql = "SELECT run_id, finding, share_of_cpu FROM findings \
               WHERE share_of_cpu > 0 AND finding <> 'healthy'";
    let mut lost: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    for batch in &engine.query(sql, &[("findings", &units.folders)])? {
        let runs = batch.column(0).as_binary_view();
        let findings = batch.column(1).as_string_view();
        let shares = batch.column(2).as_primitive::<Float64Type>();
        for row in 0..batch.num_rows() {
            let Some((unit, cpu)) = units.of(runs.value(row)) else {
                continue;
            };
            let sums = lost.entry(findings.value(row).to_owned());
            let sums = sums.or_insert_with(|| vec![0.0; units.len()]);
            sums[unit] += shares.value(row) * cpu;
        }
    }
    Ok(lost)
}
