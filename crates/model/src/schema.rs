//! One JSON Schema for all documents that Pagewise writes, generated from their types.

use crate::answer::{Document, Evidence, SCHEMA_VERSION};
use crate::{
    balance, bench, capability, fault_diff, fault_paths, findings, gate, huge_simulation,
    huge_undo, memory, memory_limit, mined, paged_run, paging, paging_simulation, probe,
    profile_diff, profile_findings, run_diff, tuning, watch,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Schema (draft 2020-12) of every document, by `kind`. All fields are listed and no others are
/// allowed, so that tests find a forgotten one; a reader should be more lenient.
///
/// # Panics
/// When two documents have types of the same name, which a test rules out.
#[must_use]
pub fn schema() -> Value {
    let mut all = Documents {
        types: SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator(),
        parts: Map::new(),
    };
    all.part::<findings::Run>();
    all.part::<profile_findings::ProfileSummary>();
    all.part::<fault_paths::TracedFaults>();
    all.part::<run_diff::RunDiff>();
    all.part::<profile_diff::ProfileDiff>();
    all.part::<fault_diff::FaultDiff>();
    all.part::<tuning::Tuning>();
    all.part::<gate::Gate>();
    all.part::<gate::Baseline>();
    all.part::<paged_run::PagedRun>();
    all.part::<paging::PagingTimeline>();
    all.part::<paging_simulation::PagingSimulation>();
    all.part::<balance::Balance>();
    all.part::<huge_undo::HugeUndo>();
    all.part::<probe::Probe>();
    all.part::<huge_simulation::HugeSimulation>();
    all.part::<mined::Mined>();
    all.part::<memory::Memory>();
    all.part::<memory_limit::MemoryLimit>();
    all.part::<capability::Check>();
    all.part::<bench::AllocatorBench>();
    all.part::<bench::FaultBench>();
    all.part::<watch::Row>();
    all.finish()
}

struct Documents {
    types: SchemaGenerator,
    /// Parts of a document's evidence by name.
    parts: Map<String, Value>,
}

impl Documents {
    fn part<E: Evidence + JsonSchema>(&mut self) {
        let name = serde_json::to_value(E::KIND).expect("a kind is a word");
        let name = name.as_str().expect("a kind is a word").to_owned();
        let part = self.types.subschema_for::<E>();
        self.parts.insert(name, part.to_value());
    }

    fn finish(mut self) -> Value {
        // The evidence type does not matter: it is replaced by all the parts.
        self.types.subschema_for::<Document<capability::Check>>();
        let mut defs = self.types.take_definitions(true);
        let sums = "Next to fault_paths, with --sums: the sums that pagewise report adds up when it merges reports.";
        let sums = json!({"type": "object", "description": sums});
        self.parts.insert("sums".to_owned(), sums);
        let parts = json!({
            "type": "object",
            "description": "What it rests on: the part that has the name of the document's kind.",
            "properties": self.parts,
        });
        defs.insert("Evidence".to_owned(), parts);
        let of = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
        set_field(&mut defs, "Document", "evidence", of("Evidence"));
        set_field(
            &mut defs,
            "Document",
            "schema_version",
            json!({"const": SCHEMA_VERSION}),
        );
        let mut defs = Value::Object(defs);
        close(&mut defs);
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Document",
            "description": "Every JSON document that Pagewise writes; `kind` says which.",
            "oneOf": [of("Document")],
            "$defs": defs,
        })
    }
}

/// Replaces the schema of a field, which keeps its description.
fn set_field(defs: &mut Map<String, Value>, document: &str, name: &str, mut schema: Value) {
    let root = defs
        .get_mut(document)
        .and_then(|root| root.get_mut("properties"));
    let fields = root.and_then(Value::as_object_mut);
    let fields = fields.expect("a document is an object");
    let described = fields.get(name).and_then(|field| field.get("description"));
    if let (Some(words), Some(schema)) = (described, schema.as_object_mut()) {
        schema.insert("description".to_owned(), words.clone());
    }
    fields.insert(name.to_owned(), schema);
}

/// Optional fields are left out and never null.
fn strip_null(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|one| one != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            object.insert("type".to_owned(), one);
        }
    }
    let is_null = |one: &Value| one.get("type").is_some_and(|name| name == "null");
    if let Some(Value::Array(all)) = object.get_mut("anyOf") {
        all.retain(|one| !is_null(one));
        if let [Value::Object(one)] = all.as_slice() {
            let one = one.clone();
            object.remove("anyOf");
            object.extend(one);
        }
    }
}

/// Allows no fields other than those listed, and drops the widths of integers.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // A field may have these names, too; its schema is an object.
            if object.get("format").is_some_and(Value::is_string) {
                object.remove("format");
            }
            if object
                .get("default")
                .is_some_and(|value| value.get("type").is_none())
            {
                object.remove("default");
            }
            if object.get("properties").is_some_and(Value::is_object)
                && object.get("type").is_some_and(Value::is_string)
            {
                object.entry("additionalProperties").or_insert(json!(false));
            }
            let required = object.get("required").and_then(Value::as_array).cloned();
            let fields = object.get_mut("properties").and_then(Value::as_object_mut);
            for (name, field) in fields.into_iter().flatten() {
                let is_required = |all: &Vec<Value>| all.iter().any(|one| one == name);
                if !required.as_ref().is_some_and(is_required) {
                    strip_null(field);
                }
            }
            object.values_mut().for_each(close);
            if let Some(Value::String(words)) = object.get_mut("description") {
                // Links of rustdoc.
                *words = words.replace("[`", "`").replace("`]", "`");
            }
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        _ => {}
    }
}
