//! `pagewise run --forecast FILE`: what `pagewise doctor --json` expected of such a run.

use crate::stored;
use anyhow::{Context, Result, anyhow};
use pagewise_model::paging_forecast::ForecastBasis;
use std::path::Path;

/// What the forecast in `path` rests on.
pub fn read(path: &Path) -> Result<ForecastBasis> {
    let shown = path.display();
    let text = std::fs::read(path).with_context(|| format!("cannot read {shown}"))?;
    let findings = stored::findings(&text)
        .with_context(|| shown.to_string())?
        .ok_or_else(|| anyhow!("{shown} is not of pagewise doctor --json"))?;
    let forecast = findings
        .evidence
        .paging_forecast
        .ok_or_else(|| anyhow!("{shown} has no forecast: no memory limit held the program down"))?;
    forecast.basis.ok_or_else(|| {
        let why = forecast.unknown.unwrap_or_default();
        anyhow!("{shown} has no forecast: {why}")
    })
}
