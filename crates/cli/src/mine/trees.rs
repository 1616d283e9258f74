//! Call trees shared by a trace's faults.

use super::database::warn_of_losses;
use super::support::MinSupport;
use crate::open::{Opened, open};
use anyhow::{Context, Result, bail};
use pagewise_model::fault_paths::TreePattern;
use pagewise_traces::fault_paths::{
    Collector, TreeQuery, calibrate_by_notes, estimate, frequent_trees,
};
use std::path::Path;

/// Trees with this minimum support in a trace's faults, by their share of time.
pub fn find(path: &Path, min_support: MinSupport) -> Result<Vec<TreePattern>> {
    let name = path.display();
    let Opened::Trace(trace) = open(path)? else {
        bail!("{name} is not a function_graph trace: only calls form trees");
    };
    let mut collector = Collector::default();
    let summary = trace
        .read(&mut collector)
        .with_context(|| format!("cannot read {name}"))?;
    warn_of_losses(&summary);
    if collector.faults() == 0 {
        eprintln!("pagewise: {name} contains no complete page fault");
    }
    let calibration = calibrate_by_notes(&collector).unwrap_or_else(|| estimate(&collector));
    let query = TreeQuery {
        min_faults: min_support.sequences(collector.faults()),
        min_share: f64::INFINITY,
        most: usize::MAX,
    };
    Ok(frequent_trees(&collector, &summary.names, calibration, query).trees)
}
