//! The page about the faults of a function_graph trace.

use super::{Encoded, Error, TRACE_DATA_LIMIT, encode, generator, page};
use crate::fault_paths::render as render_text;
use pagewise_model::fault_paths::{Class, FaultPaths, Layer};
use pagewise_model::histogram::{bucket_of, bucket_range};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Fine buckets that become one, tried in turn: 4 leave 32 to each doubling, which is finer than
/// any bar that is drawn.
pub(super) const COARSENING: [u32; 3] = [4, 16, 64];

/// The data as the page expects them (`web/src/data/faultPaths.ts`).
#[derive(Serialize)]
struct FaultPathsPage<'a> {
    kind: &'static str,
    generator: String,
    /// The file.
    name: &'a str,
    findings: Value,
    labels: Labels,
}

/// Names for people, worded once, in the model.
#[derive(Serialize)]
pub(super) struct Labels {
    classes: BTreeMap<Class, &'static str>,
    layers: BTreeMap<Layer, &'static str>,
}

/// The page about the faults of the trace called `name`.
///
/// # Errors
/// Only if the findings could not be encoded, which the model's types rule out.
pub fn render_fault_paths(findings: &FaultPaths, name: &str) -> Result<String, Error> {
    Ok(page(
        &fitting_data(findings, name)?,
        &render_text(findings, 100),
    ))
}

fn fitting_data(findings: &FaultPaths, name: &str) -> Result<Encoded, Error> {
    let mut data = FaultPathsPage {
        kind: "fault_paths",
        generator: generator(),
        name,
        findings: serde_json::to_value(findings)?,
        labels: labels(),
    };
    let mut encoded = encode(&data)?;
    for factor in COARSENING {
        coarsen(&mut data.findings, factor);
        encoded = encode(&data)?;
        if encoded.text.len() <= TRACE_DATA_LIMIT {
            break;
        }
    }
    Ok(encoded)
}

pub(super) fn labels() -> Labels {
    let classes = Class::ALL.map(|class| (class, class.describe()));
    let layers = Layer::ALL.map(|layer| (layer, layer.describe()));
    Labels {
        classes: classes.into(),
        layers: layers.into(),
    }
}

/// Makes every distribution coarser: `factor` fine buckets become one.
pub(super) fn coarsen(value: &mut Value, factor: u32) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| coarsen(item, factor)),
        Value::Object(fields) => {
            for (name, field) in fields {
                match field {
                    Value::Array(buckets) if name == "buckets" => {
                        *buckets = coarser(buckets, factor);
                    }
                    other => coarsen(other, factor),
                }
            }
        }
        _ => {}
    }
}

/// Buckets are (first value, first value past it, count).
fn coarser(buckets: &[Value], factor: u32) -> Vec<Value> {
    let mut merged: Vec<(u64, u64, u64)> = Vec::new();
    for bucket in buckets {
        let part = |at: usize| bucket.get(at).and_then(Value::as_u64).unwrap_or(0);
        let first = bucket_of(part(0)) / factor * factor;
        let (low, high) = (
            bucket_range(first).0,
            bucket_range(first + factor - 1).1.max(part(1)),
        );
        match merged.last_mut() {
            Some(last) if last.0 == low => last.2 += part(2),
            _ => merged.push((low, high, part(2))),
        }
    }
    merged
        .into_iter()
        .map(|bucket| serde_json::json!(bucket))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn coarse_buckets_keep_every_count_and_hold_the_fine_ones() {
        let mut value = json!({
            "a": [{"buckets": [[300, 302, 1], [302, 304, 2], [306, 308, 4], [5000, 5032, 8]]}],
            "count": 15
        });
        coarsen(&mut value, 4);
        let expected = json!([[296, 304, 3], [304, 312, 4], [4992, 5120, 8]]);
        assert_eq!(value["a"][0]["buckets"], expected);
        assert_eq!(value["count"], 15);
    }
}
