//! Compares documents with the stored ones.

use serde::Serialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

pub fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

pub fn unpacked(path: &Path) -> Vec<u8> {
    let packed = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    zstd::decode_all(&*packed).expect("it unpacks")
}

/// Smaller differences of numbers are due to another order of summation.
const SAME: f64 = 1e-9;

/// The first differences between two documents.
fn differences(at: &str, now: &Value, then: &Value, found: &mut Vec<String>) {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            let names: std::collections::BTreeSet<&String> =
                now.keys().chain(then.keys()).collect();
            for name in names {
                let of = |map: &serde_json::Map<String, Value>| map.get(name).cloned();
                let (now, then) = (of(now).unwrap_or_default(), of(then).unwrap_or_default());
                differences(&format!("{at}.{name}"), &now, &then, found);
            }
        }
        (Value::Array(now), Value::Array(then)) if now.len() == then.len() => {
            for (number, (now, then)) in now.iter().zip(then).enumerate() {
                differences(&format!("{at}[{number}]"), now, then, found);
            }
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap_or(0.0), b.as_f64().unwrap_or(0.0));
            if (a - b).abs() > SAME * a.abs().max(b.abs()) {
                found.push(format!("{at}: {a}, was {b}"));
            }
        }
        _ if now == then => {}
        _ => {
            // Values are printed in full, whatever the precision.
            let [now, then] = [now, then].map(|value| format!("{:.200}", value.to_string()));
            found.push(format!("{at}: {now}, was {then}"));
        }
    }
}

/// Compares a document with the stored one.
pub fn holds(name: &str, document: &impl Serialize) {
    let now = serde_json::to_value(document).expect("documents serialise");
    let file = fixtures().join(format!("answers/{name}.json.zst"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_vec(&now).expect("it is a document");
        let packed = zstd::encode_all(&*text, 19).expect("it packs");
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        std::fs::write(&file, packed).expect("it is written");
    }
    let then: Value = serde_json::from_slice(&unpacked(&file)).expect("a document");
    let mut found = Vec::new();
    differences(name, &now, &then, &mut found);
    let first: Vec<&String> = found.iter().take(12).collect();
    assert!(
        found.is_empty(),
        "{} places differ (UPDATE_GOLDEN=1 where this is wanted): {first:#?}",
        found.len()
    );
}
