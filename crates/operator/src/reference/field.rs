//! One field of the reference page: its path, its type, its description.

use std::fmt;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};

/// A row of a table.
pub(super) struct Field<'a> {
    path: String,
    schema: &'a JSONSchemaProps,
    required: bool,
    /// The anchor of the section that has its own fields, if they are not in this table.
    elsewhere: Option<String>,
}

impl<'a> Field<'a> {
    /// Returns the fields of a schema with all nested fields; or, with an anchor, without nested fields that
    /// have sections of their own.
    pub(super) fn all(schema: &'a JSONSchemaProps, anchor: Option<&str>) -> Vec<Self> {
        let mut fields = Vec::new();
        collect(schema, "", anchor, &mut fields);
        fields
    }
}

fn collect<'a>(schema: &'a JSONSchemaProps, prefix: &str, anchor: Option<&str>, fields: &mut Vec<Field<'a>>) {
    let Some((step, schema)) = nested(schema) else { return };
    let prefix = format!("{prefix}{step}");
    for (name, field) in schema.properties.iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        let required = schema.required.iter().flatten().any(|required| required == name);
        let elsewhere = anchor
            .filter(|_| nested(field).is_some())
            .map(|anchor| format!("{anchor}{}", name.to_lowercase()));
        fields.push(Field { path: path.clone(), schema: field, required, elsewhere });
        if anchor.is_none() {
            collect(field, &path, anchor, fields);
        }
    }
}

/// Returns the schema that has the fields of a field: itself, the items of a list, or the values of a map.
pub(super) fn nested(schema: &JSONSchemaProps) -> Option<(&'static str, &JSONSchemaProps)> {
    let has_fields =
        |schema: &JSONSchemaProps| schema.properties.as_ref().is_some_and(|fields| !fields.is_empty());
    if has_fields(schema) {
        return Some(("", schema));
    }
    let (step, inner) =
        if let Some(items) = items(schema) { ("[]", items) } else { (".<key>", values(schema)?) };
    has_fields(inner).then_some((step, inner))
}

fn items(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.items.as_ref()? {
        JSONSchemaPropsOrArray::Schema(items) => Some(items),
        JSONSchemaPropsOrArray::Schemas(_) => None,
    }
}

fn values(schema: &JSONSchemaProps) -> Option<&JSONSchemaProps> {
    match schema.additional_properties.as_ref()? {
        JSONSchemaPropsOrBool::Schema(values) => Some(values),
        JSONSchemaPropsOrBool::Bool(_) => None,
    }
}

/// Returns the messages of the rules of a schema, with the fields that they are about.
pub(super) fn rules(schema: &JSONSchemaProps, deep: bool) -> Vec<String> {
    let mut rules = of(schema, "");
    if deep {
        for field in Field::all(schema, None) {
            rules.extend(of(field.schema, &field.path));
        }
    }
    rules
}

fn of(schema: &JSONSchemaProps, path: &str) -> Vec<String> {
    let rules = schema.x_kubernetes_validations.iter().flatten();
    let messages = rules.map(|rule| rule.message.clone().unwrap_or_else(|| format!("`{}`", rule.rule)));
    messages.map(|text| if path.is_empty() { text } else { format!("`{path}`: {text}") }).collect()
}

impl fmt::Display for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is = self.schema.description.as_deref().unwrap_or_default();
        write!(f, "| `{}` | {} | {} |", self.path, in_cell(&self.takes()), in_cell(is))
    }
}

impl Field<'_> {
    fn takes(&self) -> String {
        let mut facts = vec![match &self.elsewhere {
            Some(anchor) => format!("[fields](#{anchor})"),
            None => kind(self.schema),
        }];
        if self.required {
            facts.push("required".to_owned());
        }
        facts.extend(limits(self.schema));
        facts.join(", ")
    }
}

/// Returns the type of a field in a word or two.
fn kind(schema: &JSONSchemaProps) -> String {
    if schema.x_kubernetes_int_or_string == Some(true) {
        return "number or text".to_owned();
    }
    match schema.type_.as_deref() {
        Some("string") => match schema.format.as_deref() {
            Some("date-time") => "time",
            Some("byte") => "base64",
            _ => "text",
        }
        .to_owned(),
        Some("boolean") => "true or false".to_owned(),
        Some("integer") => "integer".to_owned(),
        Some("number") => "number".to_owned(),
        Some("array") => match items(schema) {
            Some(items) if nested(schema).is_none() => format!("list of {}", kind(items)),
            _ => "list".to_owned(),
        },
        Some("object") => match values(schema) {
            Some(values) if nested(schema).is_none() => format!("map of {}", kind(values)),
            Some(_) => "map".to_owned(),
            None if nested(schema).is_some() => "fields".to_owned(),
            None => "any fields".to_owned(),
        },
        _ => "anything".to_owned(),
    }
}

/// Returns the other limits that the server checks.
fn limits(schema: &JSONSchemaProps) -> Vec<String> {
    let mut limits = Vec::new();
    if let Some(values) = &schema.enum_ {
        let values: Vec<String> = values.iter().map(|value| shown(&value.0)).collect();
        limits.push(format!("one of {}", values.join(", ")));
    }
    for (bound, word) in [(schema.minimum, "at least"), (schema.maximum, "at most")] {
        limits.extend(bound.map(|bound| format!("{word} {bound}")));
    }
    for (bound, word) in [(schema.min_length, "at least"), (schema.max_length, "at most")] {
        limits.extend(bound.map(|bound| format!("{word} {bound} characters")));
    }
    for (bound, word) in [(schema.min_items, "at least"), (schema.max_items, "at most")] {
        limits.extend(bound.map(|bound| format!("{word} {bound} of them")));
    }
    limits.extend(schema.pattern.as_ref().map(|pattern| format!("pattern: `{pattern}`")));
    limits.extend(schema.default.as_ref().map(|default| format!("default {}", shown(&default.0))));
    limits
}

fn shown(value: &serde_json::Value) -> String {
    match value.as_str() {
        Some("") => "`\"\"`".to_owned(),
        Some(text) => format!("`{text}`"),
        None => format!("`{value}`"),
    }
}

/// Returns a text in one line, with the characters escaped that would end the cell.
fn in_cell(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}
