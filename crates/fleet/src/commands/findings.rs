//! What findings say is lost.

use super::units::Units;
use crate::engine::Engine;
use anyhow::Result;
use datafusion::arrow::array::{Array, AsArray};
use datafusion::arrow::datatypes::Float64Type;
use std::collections::BTreeMap;

/// What a finding takes.
#[derive(Debug, Default)]
pub struct Lost {
    /// What it says on most hosts.
    pub title: String,
    /// Nanoseconds of CPU time, by unit.
    pub weights: Vec<f64>,
}

/// What each finding takes. `healthy` says that nothing is lost.
pub fn lost(engine: &mut Engine, units: &Units) -> Result<BTreeMap<String, Lost>> {
    let sql = "SELECT run_id, finding, share_of_cpu, headline FROM findings \
               WHERE share_of_cpu > 0 AND finding <> 'healthy'";
    let mut lost: BTreeMap<String, Lost> = BTreeMap::new();
    let mut titles: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for batch in &engine.query(sql, &[("findings", &units.folders)])? {
        let runs = batch.column(0).as_binary_view();
        let findings = batch.column(1).as_string_view();
        let shares = batch.column(2).as_primitive::<Float64Type>();
        let headlines = batch.column(3).as_string_view();
        for row in 0..batch.num_rows() {
            let Some((unit, cpu)) = units.get(runs.value(row)) else {
                continue;
            };
            let finding = findings.value(row);
            let found = lost.entry(finding.to_owned()).or_insert_with(|| Lost {
                weights: vec![0.0; units.len()],
                ..Lost::default()
            });
            found.weights[unit] += shares.value(row) * cpu;
            let title = match headlines.is_valid(row) {
                true => headlines.value(row),
                false => finding,
            };
            let said = titles.entry(finding.to_owned()).or_default();
            *said.entry(title.to_owned()).or_default() += 1;
        }
    }
    for (finding, found) in &mut lost {
        let said = titles.get(finding).into_iter().flatten();
        let most = said.max_by_key(|(title, hosts)| (**hosts, std::cmp::Reverse(*title)));
        found.title = most.map_or_else(|| finding.clone(), |(title, _)| title.clone());
    }
    Ok(lost)
}
