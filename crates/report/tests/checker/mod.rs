//! A strict checker for the part of JSON Schema 2020-12 that our schemas use. A keyword that it
//! does not know fails the check, so that none is passed over in silence.
#![allow(dead_code, reason = "shared by test targets that each use a part")]

use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Checks documents against one schema and remembers which properties it has seen.
pub struct Checker<'a> {
    root: &'a Value,
    seen: BTreeSet<String>,
    pub errors: Vec<String>,
}

impl<'a> Checker<'a> {
    pub fn new(root: &'a Value) -> Self {
        Self {
            root,
            seen: BTreeSet::new(),
            errors: Vec::new(),
        }
    }

    pub fn check(&mut self, document: &Value) {
        self.visit("", "", document);
    }

    /// Schema paths of properties that no document had.
    pub fn unused_properties(&self) -> Vec<String> {
        let mut all = Vec::new();
        collect_properties(self.root, String::new(), &mut all);
        all.retain(|path| !self.seen.contains(path));
        all
    }

    fn fail(&mut self, at: &str, what: &str) {
        self.errors.push(format!("{at}: {what}"));
    }

    /// Checks the value at `at` against the schema at `path` (both JSON pointers).
    fn visit(&mut self, path: &str, at: &str, value: &Value) {
        let schema = match self.root.pointer(path) {
            Some(Value::Object(schema)) => schema,
            Some(Value::Bool(true)) => return,
            _ => return self.fail(at, &format!("not allowed by {path}")),
        };
        for (keyword, rule) in schema {
            self.apply(path, schema, keyword, rule, at, value);
        }
    }

    fn apply(
        &mut self,
        path: &str,
        schema: &Map<String, Value>,
        keyword: &str,
        rule: &Value,
        at: &str,
        value: &Value,
    ) {
        match keyword {
            "$schema" | "$defs" | "title" | "description" => {}
            "$ref" => self.visit(&target(path, rule.as_str().unwrap_or("")), at, value),
            "type" if !has_type(value, rule.as_str().unwrap_or("")) => {
                self.fail(at, &format!("is not of type {rule}"))
            }
            "type" => {}
            "const" if value != rule => self.fail(at, &format!("is not {rule}")),
            "enum" if !rule.as_array().is_some_and(|all| all.contains(value)) => {
                self.fail(at, "is no value of the enumeration")
            }
            "const" | "enum" => {}
            "minimum" if value.as_f64() < rule.as_f64() => {
                self.fail(at, &format!("is below {rule}"))
            }
            "maximum" if value.as_f64() > rule.as_f64() => {
                self.fail(at, &format!("is above {rule}"))
            }
            "minimum" | "maximum" => {}
            "minItems"
                if value
                    .as_array()
                    .is_some_and(|items| (items.len() as u64) < rule.as_u64().unwrap_or(0)) =>
            {
                self.fail(at, "has too few items")
            }
            "maxItems"
                if value
                    .as_array()
                    .is_some_and(|items| Some(items.len() as u64) > rule.as_u64()) =>
            {
                self.fail(at, "has too many items")
            }
            "minItems" | "maxItems" => {}
            "pattern" => self.pattern(rule, at, value),
            "required" => self.required(rule, at, value),
            "properties" => self.properties(path, rule, at, value),
            "additionalProperties" => self.additional(path, schema, at, value),
            "propertyNames" => self.names(path, at, value),
            "prefixItems" => self.prefix(path, rule, at, value),
            "items" => self.items(path, schema, at, value),
            "anyOf" | "oneOf" => self.alternatives(path, keyword, rule, at, value),
            other => self.fail(at, &format!("the checker does not know {other}")),
        }
    }

    /// The two patterns that our schemas use, spelled out.
    fn pattern(&mut self, rule: &Value, at: &str, value: &Value) {
        let Some(text) = value.as_str() else { return };
        let fits = match rule.as_str() {
            Some("^[0-9]+$") => !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()),
            Some("^0x[0-9a-f]+$") => text.strip_prefix("0x").is_some_and(|hex| {
                !hex.is_empty()
                    && hex
                        .bytes()
                        .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
            }),
            _ => return self.fail(at, &format!("the checker does not know the pattern {rule}")),
        };
        if !fits {
            self.fail(at, &format!("does not match {rule}"));
        }
    }

    fn required(&mut self, rule: &Value, at: &str, value: &Value) {
        let Some(object) = value.as_object() else {
            return;
        };
        for name in rule
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
        {
            if !object.contains_key(name) {
                self.fail(at, &format!("lacks {name}"));
            }
        }
    }

    fn properties(&mut self, path: &str, rule: &Value, at: &str, value: &Value) {
        for (name, inner) in value.as_object().into_iter().flatten() {
            if rule.get(name).is_some() {
                let inner_path = format!("{path}/properties/{name}");
                self.seen.insert(inner_path.clone());
                self.visit(&inner_path, &format!("{at}/{name}"), inner);
            }
        }
    }

    fn additional(&mut self, path: &str, schema: &Map<String, Value>, at: &str, value: &Value) {
        let known = schema.get("properties").and_then(Value::as_object);
        for (name, inner) in value.as_object().into_iter().flatten() {
            if known.is_some_and(|known| known.contains_key(name)) {
                continue;
            }
            if schema.get("additionalProperties") == Some(&Value::Bool(false)) {
                self.fail(&format!("{at}/{name}"), "not described by the schema");
            } else {
                self.visit(
                    &format!("{path}/additionalProperties"),
                    &format!("{at}/{name}"),
                    inner,
                );
            }
        }
    }

    fn names(&mut self, path: &str, at: &str, value: &Value) {
        for name in value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name)
        {
            self.visit(
                &format!("{path}/propertyNames"),
                &format!("{at}/{name}"),
                &Value::from(name.as_str()),
            );
        }
    }

    fn prefix(&mut self, path: &str, rule: &Value, at: &str, value: &Value) {
        let fixed = rule.as_array().map_or(0, Vec::len);
        for (index, item) in value
            .as_array()
            .into_iter()
            .flatten()
            .take(fixed)
            .enumerate()
        {
            self.visit(
                &format!("{path}/prefixItems/{index}"),
                &format!("{at}/{index}"),
                item,
            );
        }
    }

    fn items(&mut self, path: &str, schema: &Map<String, Value>, at: &str, value: &Value) {
        let fixed = schema
            .get("prefixItems")
            .and_then(Value::as_array)
            .map_or(0, Vec::len);
        for (index, item) in value
            .as_array()
            .into_iter()
            .flatten()
            .enumerate()
            .skip(fixed)
        {
            self.visit(&format!("{path}/items"), &format!("{at}/{index}"), item);
        }
    }

    fn alternatives(&mut self, path: &str, keyword: &str, rule: &Value, at: &str, value: &Value) {
        let before = self.errors.len();
        let mut fitting = 0;
        for index in 0..rule.as_array().map_or(0, Vec::len) {
            let seen = self.seen.clone();
            self.visit(&format!("{path}/{keyword}/{index}"), at, value);
            if self.errors.len() == before {
                fitting += 1;
            } else {
                self.seen = seen;
                self.errors.truncate(before);
            }
        }
        if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
            self.fail(at, &format!("fits {fitting} of the alternatives"));
        }
    }
}

/// Where a reference leads. Another file's schema lies under `$defs` by its name; references
/// inside it stay inside it.
fn target(path: &str, reference: &str) -> String {
    let (file, pointer) = reference.split_once('#').unwrap_or((reference, ""));
    let here = path
        .strip_prefix("/$defs/")
        .and_then(|rest| rest.split_once(".json/"))
        .map_or(String::new(), |(name, _)| format!("{name}.json"));
    let file = if file.is_empty() { &here } else { file };
    if file.is_empty() {
        pointer.to_owned()
    } else {
        format!("/$defs/{file}{pointer}")
    }
}

fn has_type(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        _ => false,
    }
}

fn collect_properties(schema: &Value, path: String, all: &mut Vec<String>) {
    match schema {
        Value::Object(map) => {
            for (name, inner) in map {
                let here = format!("{path}/{name}");
                if path.ends_with("/properties") {
                    all.push(here.clone());
                }
                collect_properties(inner, here, all);
            }
        }
        Value::Array(items) => {
            for (index, inner) in items.iter().enumerate() {
                collect_properties(inner, format!("{path}/{index}"), all);
            }
        }
        _ => {}
    }
}
