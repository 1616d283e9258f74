//! A strict checker for the part of JSON Schema 2020-12 that our schemas use. An unknown keyword
//! fails the check, so that none is silently ignored.

use serde_json::{Map, Value};

/// All differences between a document and the schema of its kind in `docs/schema/schema.json`.
pub fn errors(document: &Value) -> Vec<String> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/schema/schema.json");
    let text = std::fs::read_to_string(path).expect("the schema is there");
    let schema = serde_json::from_str(&text).expect("the schema is JSON");
    let mut checker = Checker::new(&schema);
    checker.check(document);
    checker.errors
}

/// Checks documents against one schema.
struct Checker<'a> {
    root: &'a Value,
    errors: Vec<String>,
}

impl<'a> Checker<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            errors: Vec::new(),
        }
    }

    /// Checks a document against the schema of all documents.
    fn check(&mut self, document: &Value) {
        self.visit("/$defs/Document", "", document);
        self.evidence(document);
    }

    /// Checks that the evidence has the part that the kind names.
    fn evidence(&mut self, document: &Value) {
        let kind = document.get("kind").and_then(Value::as_str).unwrap_or("");
        if document.pointer(&format!("/evidence/{kind}")).is_none() {
            self.fail("/evidence", &format!("has no part of the kind \"{kind}\""));
        }
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
            "$ref" => self.visit(
                rule.as_str().unwrap_or("").trim_start_matches('#'),
                at,
                value,
            ),
            "type" => {
                let of = |rule: &Value| has_type(value, rule.as_str().unwrap_or(""));
                if !rule
                    .as_array()
                    .map_or_else(|| of(rule), |all| all.iter().any(of))
                {
                    self.fail(at, &format!("is not of type {rule}"));
                }
            }
            "const" if value != rule => self.fail(at, &format!("is not {rule}")),
            "enum" if !rule.as_array().is_some_and(|all| all.contains(value)) => {
                self.fail(at, "is no value of the enumeration")
            }
            "const" | "enum" => {}
            "minimum" if value.is_number() && value.as_f64() < rule.as_f64() => {
                self.fail(at, &format!("is below {rule}"))
            }
            "maximum" if value.is_number() && value.as_f64() > rule.as_f64() => {
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
            "required" => self.required(rule, at, value),
            "properties" => self.properties(path, rule, at, value),
            "patternProperties" => self.keys(path, rule, at, value),
            "additionalProperties" => self.additional(path, schema, at, value),
            "propertyNames" => self.names(path, at, value),
            "prefixItems" => self.prefix(path, rule, at, value),
            "items" => self.items(path, schema, at, value),
            "anyOf" | "oneOf" => self.alternatives(path, keyword, rule, at, value),
            other => self.fail(at, &format!("the checker does not know {other}")),
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
                self.visit(&inner_path, &format!("{at}/{name}"), inner);
            }
        }
    }

    fn additional(&mut self, path: &str, schema: &Map<String, Value>, at: &str, value: &Value) {
        let known = schema.get("properties").and_then(Value::as_object);
        if schema.contains_key("patternProperties") {
            return;
        }
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

    /// Maps with numbers as keys.
    fn keys(&mut self, path: &str, rule: &Value, at: &str, value: &Value) {
        for (name, inner) in value.as_object().into_iter().flatten() {
            match name.bytes().all(|byte| byte.is_ascii_digit()) && rule.get("^\\d+$").is_some() {
                true => self.visit(
                    &format!("{path}/patternProperties/^\\d+$"),
                    &format!("{at}/{name}"),
                    inner,
                ),
                false => self.fail(&format!("{at}/{name}"), "is no number"),
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
            self.visit(&format!("{path}/{keyword}/{index}"), at, value);
            if self.errors.len() == before {
                fitting += 1;
            } else {
                self.errors.truncate(before);
            }
        }
        if fitting == 0 || (keyword == "oneOf" && fitting > 1) {
            self.fail(at, &format!("fits {fitting} of the alternatives"));
        }
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
