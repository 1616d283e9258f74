//! Verifies that `docs/schema/schema.json` matches the types of the documents, and that documents
//! match the schema.

use serde_json::{Value, json};

mod checker;
mod sample;

use std::sync::LazyLock;

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/schema.json");

fn churning() -> Value {
    serde_json::to_value(sample::churning()).expect("findings serialise")
}

/// The schema of the types; `UPDATE_GOLDEN=1 cargo test -p pagewise-report --test schema` rewrites
/// the file, once, before any test reads it.
static OF_THE_TYPES: LazyLock<String> = LazyLock::new(|| {
    let schema =
        serde_json::to_string_pretty(&pagewise_model::schema::schema()).expect("JSON") + "\n";
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(PATH, &schema).expect("docs/schema");
    }
    schema
});

fn errors(document: &Value) -> Vec<String> {
    LazyLock::force(&OF_THE_TYPES);
    checker::errors(document)
}

#[test]
fn the_schema_is_that_of_the_types() {
    let of_the_types = OF_THE_TYPES.as_str();
    let kept = std::fs::read_to_string(PATH).expect("docs/schema");
    assert!(
        kept == of_the_types,
        "docs/schema/schema.json is not fresh: UPDATE_GOLDEN=1 cargo test -p pagewise-report --test schema"
    );
}

#[test]
fn all_samples_fit_the_schema() {
    for findings in [
        sample::churning(),
        sample::healthy(),
        sample::bare(),
        sample::hostile(),
    ] {
        let text = pagewise_report::json::to_string(&findings).expect("findings serialise");
        let document: Value = serde_json::from_str(&text).expect("the output is JSON");
        assert_eq!(errors(&document), [""; 0]);
    }
}

#[test]
fn wrong_documents_are_refused() {
    let breakages: [(&str, Value); 6] = [
        ("/schema_version", json!(2)),
        ("/evidence/run/cost/wall", json!(-1)),
        ("/verdict", Value::Null),
        ("/evidence/run/by_cause/0/key", json!("moon_phase")),
        ("/evidence/run/ending", json!({"exited": "zero"})),
        ("/advice/0/settings/0/kind", json!("magic")),
    ];
    for (pointer, value) in breakages {
        let mut document = churning();
        *document.pointer_mut(pointer).expect("the sample has it") = value;
        assert!(!errors(&document).is_empty(), "{pointer} passed");
    }
    let mut document = churning();
    document["surprise"] = json!(1);
    assert_eq!(
        errors(&document),
        ["/surprise: not described by the schema"]
    );
    let mut document = churning();
    let run = &mut document["evidence"]["run"];
    run.as_object_mut().expect("an object").remove("cost");
    assert_eq!(errors(&document), ["/evidence/run: lacks cost"]);
}
