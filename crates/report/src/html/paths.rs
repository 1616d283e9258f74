//! The parts of a page about traces: one, or two for comparison.

use super::Error;
use pagewise_model::fault_diff::FaultDiff;
use pagewise_model::fault_paths::{Class, FaultPaths, Layer};
use pagewise_model::histogram::{bucket_of, bucket_range};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Numbers of fine buckets to merge, tried in turn: merging 4 leaves 32 per doubling, which is
/// finer than any bar drawn.
const COARSENING: [u32; 3] = [4, 16, 64];

/// The faults of a trace (`web/src/data/faultPaths.ts`).
#[derive(Serialize)]
pub(super) struct Paths {
    findings: Value,
    labels: Labels,
    #[serde(skip)]
    coarsened: usize,
}

impl Paths {
    pub(super) fn new(findings: &FaultPaths) -> Result<Self, Error> {
        let mut findings = serde_json::to_value(&findings.evidence)?;
        coarsen(&mut findings, COARSENING[0]);
        Ok(Self {
            findings,
            labels: labels(),
            coarsened: 1,
        })
    }

    /// Makes distributions coarser; returns whether that was possible.
    pub(super) fn shrink(&mut self) -> bool {
        coarsen_more(&mut self.findings, &mut self.coarsened)
    }
}

/// Two traces side by side (`web/src/data/faultDiff.ts`).
#[derive(Serialize)]
pub(super) struct PathsDiff {
    diff: Value,
    labels: Labels,
    #[serde(skip)]
    coarsened: usize,
}

impl PathsDiff {
    pub(super) fn new(diff: &FaultDiff) -> Result<Self, Error> {
        let mut diff = serde_json::to_value(diff)?;
        coarsen(&mut diff, COARSENING[0]);
        Ok(Self {
            diff,
            labels: labels(),
            coarsened: 1,
        })
    }

    /// As [`Paths::shrink`].
    pub(super) fn shrink(&mut self) -> bool {
        coarsen_more(&mut self.diff, &mut self.coarsened)
    }
}

fn coarsen_more(value: &mut Value, done: &mut usize) -> bool {
    let Some(&factor) = COARSENING.get(*done) else {
        return false;
    };
    coarsen(value, factor);
    *done += 1;
    true
}

/// Human-readable names, defined once, in the model.
#[derive(Serialize)]
struct Labels {
    classes: BTreeMap<Class, &'static str>,
    layers: BTreeMap<Layer, &'static str>,
}

fn labels() -> Labels {
    let classes = Class::ALL.map(|class| (class, class.describe()));
    let layers = Layer::ALL.map(|layer| (layer, layer.describe()));
    Labels {
        classes: classes.into(),
        layers: layers.into(),
    }
}

/// Makes every distribution coarser: merges `factor` fine buckets into one.
fn coarsen(value: &mut Value, factor: u32) {
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
