//! One JSON Schema of all documents that Pagewise writes, made from their types.

use crate::document::Kind;
use crate::{
    balance, bench, capability, fault_diff, fault_paths, findings, gate, huge_simulation,
    huge_undo, mined, paged_run, paging, paging_simulation, probe, profile_diff, profile_findings,
    run_diff, tuning, watch,
};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};

/// Schema (draft 2020-12) of every document, by `kind`. All fields are listed and no others are
/// allowed, so that tests find one that was forgotten; a reader should be more lenient.
///
/// # Panics
/// When two documents have types of one name, which a test rules out.
#[must_use]
pub fn schema() -> Value {
    let mut all = Documents(
        SchemaSettings::draft2020_12()
            .for_serialize()
            .into_generator(),
        Vec::new(),
    );
    all.add::<findings::Findings>(Kind::Run, findings::FINDINGS_VERSION);
    all.add::<profile_findings::ProfileFindings>(Kind::Profile, profile_findings::PROFILE_VERSION);
    all.add::<run_diff::RunDiff>(Kind::RunDiff, run_diff::RUN_DIFF_VERSION);
    all.add::<profile_diff::ProfileDiff>(Kind::ProfileDiff, profile_diff::PROFILE_DIFF_VERSION);
    all.add::<fault_paths::FaultPaths>(Kind::FaultPaths, fault_paths::SCHEMA_VERSION);
    all.add::<fault_diff::FaultDiff>(Kind::FaultDiff, fault_diff::SCHEMA_VERSION);
    all.add::<tuning::Tuning>(Kind::Tuning, tuning::TUNING_VERSION);
    all.add::<gate::Gate>(Kind::Gate, gate::GATE_VERSION);
    all.add::<gate::Baseline>(Kind::GateBaseline, gate::BASELINE_VERSION);
    all.add::<paged_run::PagedRun>(Kind::PagedRun, paged_run::PAGED_RUN_VERSION);
    all.add::<paging::PagingTimeline>(Kind::PagingTimeline, paging::PAGING_TIMELINE_VERSION);
    all.add::<paging_simulation::PagingSimulation>(
        Kind::PagingSimulation,
        paging_simulation::PAGING_SIMULATION_VERSION,
    );
    all.add::<balance::Balance>(Kind::HugeBalance, balance::BALANCE_VERSION);
    all.add::<huge_undo::HugeUndo>(Kind::HugeUndo, huge_undo::HUGE_UNDO_VERSION);
    all.add::<probe::Probe>(Kind::HugeProbe, probe::PROBE_VERSION);
    all.add::<huge_simulation::HugeSimulation>(
        Kind::HugeSimulation,
        huge_simulation::SCHEMA_VERSION,
    );
    all.add::<mined::Mined>(Kind::Mined, mined::MINED_VERSION);
    all.add::<capability::Check>(Kind::Check, capability::CHECK_VERSION);
    all.add::<bench::AllocatorBench>(Kind::AllocatorBench, bench::ALLOCATOR_BENCH_VERSION);
    all.add::<bench::FaultBench>(Kind::FaultBench, bench::FAULT_BENCH_VERSION);
    all.add::<watch::Row>(Kind::Watch, watch::WATCH_VERSION);
    all.finish()
}

struct Documents(SchemaGenerator, Vec<(&'static str, Kind, u32)>);

impl Documents {
    fn add<D: JsonSchema>(&mut self, kind: Kind, version: u32) {
        self.0.subschema_for::<D>();
        // Its name in `$defs`.
        self.1.push((std::any::type_name::<D>(), kind, version));
    }

    fn finish(mut self) -> Value {
        let mut defs = self.0.take_definitions(true);
        let mut each = Vec::new();
        for (path, kind, version) in self.1 {
            let name = path.rsplit("::").next().unwrap_or(path);
            let kind = serde_json::to_value(kind).unwrap_or_default();
            let fields = defs
                .get_mut(name)
                .and_then(|root| root.get_mut("properties"));
            let fields = fields
                .and_then(Value::as_object_mut)
                .expect("a document is an object");
            for (field, value) in [("kind", kind), ("schema_version", json!(version))] {
                let described = fields
                    .get(field)
                    .and_then(|field| field.get("description"))
                    .cloned();
                fields.insert(
                    field.to_owned(),
                    json!({"const": value, "description": described}),
                );
            }
            each.push(json!({"$ref": format!("#/$defs/{name}")}));
        }
        // Written with them, and described apart.
        let of = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
        add_field(&mut defs, "Findings", "profile", of("ProfileFindings"));
        let sums = "With --sums: what pagewise report adds up when it merges reports.";
        add_field(
            &mut defs,
            "FaultPaths",
            "sums",
            json!({"type": "object", "description": sums}),
        );
        let mut defs = Value::Object(defs);
        close(&mut defs);
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Document",
            "description": "Every JSON document that Pagewise writes; `kind` says which.",
            "oneOf": each,
            "$defs": defs,
        })
    }
}

fn add_field(defs: &mut Map<String, Value>, document: &str, name: &str, schema: Value) {
    if let Some(fields) = defs
        .get_mut(document)
        .and_then(|root| root.get_mut("properties"))
        && let Some(fields) = fields.as_object_mut()
    {
        fields.insert(name.to_owned(), schema);
    }
}

/// Fields that may be left out are never null.
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

/// Allows no fields but those that are listed, and drops the widths of integers.
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
