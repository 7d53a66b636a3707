//! The properties of a structural schema, in the order of their paths.

use serde_json::Value;

use super::path::PropertyPath;

/// A property: its path and the part of the schema that describes it.
#[derive(Clone, Debug)]
pub(super) struct Property {
    pub(super) path: PropertyPath,
    pub(super) schema: Value,
}

/// The form of a property's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Boolean,
    Integer,
    Number,
    Text,
    IntOrString,
    List,
    Map,
    /// An object with declared fields.
    Object,
    /// An object whose fields the schema does not know.
    Open,
}

/// All properties below the spec of a schema, as it stands in a CRD: each before those below it.
pub(super) fn properties(schema: &Value) -> Vec<Property> {
    let mut found = Vec::new();
    if let Some(spec) = schema.pointer("/properties/spec") {
        walk(&PropertyPath::root("spec"), spec, &mut found);
    }
    found
}

fn walk(path: &PropertyPath, schema: &Value, found: &mut Vec<Property>) {
    let mut visit = |path: PropertyPath, schema: &Value| {
        found.push(Property { path: path.clone(), schema: schema.clone() });
        walk(&path, schema, found);
    };
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        visit(path.field(name), schema);
    }
    if let Some(items) = schema.get("items") {
        visit(path.item(), items);
    }
    if let Some(values) = schema.get("additionalProperties").filter(|values| values.is_object()) {
        visit(path.entry(), values);
    }
}

/// The form of the values that a schema describes.
pub(super) fn form(schema: &Value) -> Form {
    let is = |mark: &str| schema[mark] == true;
    let has_fields = schema["properties"].as_object().is_some_and(|fields| !fields.is_empty());
    match schema["type"].as_str() {
        _ if is("x-kubernetes-int-or-string") => Form::IntOrString,
        Some("boolean") => Form::Boolean,
        Some("integer") => Form::Integer,
        Some("number") => Form::Number,
        Some("string") => Form::Text,
        Some("array") => Form::List,
        Some("object") if has_fields => Form::Object,
        Some("object") if schema["additionalProperties"].is_object() => Form::Map,
        _ => Form::Open,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_property_is_found_with_its_form() {
        let schema = json!({"properties": {"status": {"type": "object"}, "spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"},
            "ratio": {"type": "number"},
            "enabled": {"type": "boolean"},
            "name": {"type": "string"},
            "limit": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "hosts": {"type": "array", "items": {"type": "object", "properties": {"port": {"type": "integer"}}}},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "affinity": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
        }}}});
        let found: Vec<(String, Form)> =
            properties(&schema).iter().map(|one| (one.path.to_string(), form(&one.schema))).collect();
        let expected = [
            ("spec.affinity", Form::Open),
            ("spec.enabled", Form::Boolean),
            ("spec.hosts", Form::List),
            ("spec.hosts[]", Form::Object),
            ("spec.hosts[].port", Form::Integer),
            ("spec.labels", Form::Map),
            ("spec.labels{}", Form::Text),
            ("spec.limit", Form::IntOrString),
            ("spec.name", Form::Text),
            ("spec.ratio", Form::Number),
            ("spec.replicas", Form::Integer),
        ];
        assert_eq!(found, expected.map(|(path, form)| (path.to_owned(), form)));
    }
}
