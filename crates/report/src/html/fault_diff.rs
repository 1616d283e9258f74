//! The page about two traces side by side.

use super::fault_paths::{COARSENING, Labels, coarsen, labels};
use super::{Encoded, Error, TRACE_DATA_LIMIT, encode, generator, page};
use pagewise_model::fault_diff::FaultDiff;
use serde::Serialize;
use serde_json::Value;

/// The data as the page expects them (`web/src/data/faultDiff.ts`).
#[derive(Serialize)]
struct FaultDiffPage {
    kind: &'static str,
    generator: String,
    diff: Value,
    labels: Labels,
}

/// The page about the comparison of two traces; `text` is what a browser without scripts shows.
///
/// # Errors
/// Only if the comparison could not be encoded, which the model's types rule out.
pub fn render_fault_diff(diff: &FaultDiff, text: &str) -> Result<String, Error> {
    Ok(page(&fitting_data(diff)?, text))
}

fn fitting_data(diff: &FaultDiff) -> Result<Encoded, Error> {
    let mut data = FaultDiffPage {
        kind: "fault_diff",
        generator: generator(),
        diff: serde_json::to_value(diff)?,
        labels: labels(),
    };
    let mut encoded = encode(&data)?;
    for factor in COARSENING {
        coarsen(&mut data.diff, factor);
        encoded = encode(&data)?;
        if encoded.text.len() <= TRACE_DATA_LIMIT {
            break;
        }
    }
    Ok(encoded)
}
