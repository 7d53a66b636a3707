//! Values of a property: valid ones and invalid ones, always the same for the same schema.

use serde_json::{Map, Value, json};

use super::overrides::Overrides;
use super::path::{KEY, PropertyPath};
use super::schema::{Form, form};

/// The number of valid values of one property that are tried.
const TRIED: usize = 4;

/// A text that is neither a name nor a number, a quantity, a duration, an address or an image.
const NONSENSE: &str = "!not-valid!";

/// The valid values of a property; empty if neither the schema nor the file tells one.
pub(super) fn valid(path: &PropertyPath, schema: &Value, overrides: &Overrides) -> Vec<Value> {
    if let Some(values) = overrides.valid(path, schema) {
        return values;
    }
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().filter(|value| !value.is_null()).take(TRIED).cloned().collect();
    }
    match form(schema) {
        Form::Boolean => vec![json!(true), json!(false)],
        Form::Integer | Form::Number => integers(schema).into_iter().map(|number| json!(number)).collect(),
        Form::IntOrString => vec![json!(2), json!("3")],
        Form::Text => texts(schema),
        Form::List => lists(path, schema, overrides),
        Form::Map => {
            let values = valid(&path.entry(), &schema["additionalProperties"], overrides);
            values.into_iter().map(|value| json!({ KEY: value })).collect()
        }
        Form::Object => vec![minimal(path, schema, overrides)],
        Form::Open => Vec::new(),
    }
}

/// An object with its required fields only.
fn minimal(path: &PropertyPath, schema: &Value, overrides: &Overrides) -> Value {
    let mut object = Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let values = valid(&path.field(name), &schema["properties"][name], overrides);
        if let Some(value) = values.into_iter().next() {
            object.insert(name.to_owned(), value);
        }
    }
    Value::Object(object)
}

fn lists(path: &PropertyPath, schema: &Value, overrides: &Overrides) -> Vec<Value> {
    let items = valid(&path.item(), &schema["items"], overrides);
    let lengths = items.len().min(2);
    (1..=lengths).map(|length| json!(items[..length])).collect()
}

/// Two numbers within the limits, as small as they go above 1.
fn integers(schema: &Value) -> Vec<i64> {
    let (least, most) = limits(schema);
    let first = least.unwrap_or(0).max(2).min(most.unwrap_or(i64::MAX));
    let second = if most.is_some_and(|most| first >= most) { least.unwrap_or(first - 1) } else { first + 1 };
    if first == second { vec![first] } else { vec![first, second] }
}

fn limits(schema: &Value) -> (Option<i64>, Option<i64>) {
    // Limits are numbers with a fraction in some definitions.
    #[allow(clippy::cast_possible_truncation)]
    let read = |name: &str| schema[name].as_i64().or_else(|| schema[name].as_f64().map(|limit| limit as i64));
    (read("minimum"), read("maximum"))
}

fn texts(schema: &Value) -> Vec<Value> {
    let texts = match schema["format"].as_str() {
        Some("date-time") => ["2026-01-02T03:04:05Z", "2026-02-03T04:05:06Z"],
        Some("duration") => ["1h", "2h"],
        Some("byte") => ["YQ==", "Yg=="],
        _ => ["mutation-a", "mutation-b"],
    };
    let most = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok());
    // The end differs, so the end is kept.
    let fit = |text: &str| match most {
        Some(most) if text.len() > most => text[text.len() - most..].to_owned(),
        _ => text.to_owned(),
    };
    texts.iter().map(|text| json!(fit(text))).collect()
}

/// The invalid values of a property, with a name for each.
pub(super) fn invalid(path: &PropertyPath, schema: &Value, overrides: &Overrides) -> Vec<(String, Value)> {
    let mut found: Vec<(String, Value)> = Vec::new();
    let mut add = |name: String, value: Value| {
        if !found.iter().any(|(other, _)| *other == name) {
            found.push((name, value));
        }
    };
    for value in overrides.invalid(path, schema) {
        add(text(&value), value);
    }
    let wrong_type = match form(schema) {
        Form::Text => json!(7),
        Form::IntOrString => json!(true),
        _ => json!("seven"),
    };
    add(text(&wrong_type), wrong_type);
    match form(schema) {
        Form::Integer | Form::Number => {
            let (least, most) = limits(schema);
            add((least.unwrap_or(0) - 1).to_string(), json!(least.unwrap_or(0) - 1));
            if let Some(most) = most {
                add((most + 1).to_string(), json!(most + 1));
            }
        }
        Form::Text | Form::IntOrString => {
            add(NONSENSE.to_owned(), json!(NONSENSE));
            if let Some(most) = schema["maxLength"].as_u64().and_then(|most| usize::try_from(most).ok()) {
                add("too-long".to_owned(), json!("a".repeat(most + 1)));
            }
        }
        Form::Open => {
            let value = json!({"mutationUnknown": 1});
            add(text(&value), value);
        }
        Form::Boolean | Form::List | Form::Map | Form::Object => {}
    }
    found
}

/// The text of a value in ids: without the quotes of a string, and without spaces.
pub(super) fn text(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    if text.is_empty() { "empty".to_owned() } else { text.replace(char::is_whitespace, "_") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec() -> PropertyPath {
        PropertyPath::root("spec")
    }

    #[test]
    fn valid_values_keep_to_the_schema() {
        let required = json!({"type": "object", "required": ["a"], "properties": {
            "a": {"type": "string"}, "b": {"type": "string"}}});
        for (schema, expected) in [
            (json!({"type": "boolean"}), json!([true, false])),
            (json!({"type": "integer"}), json!([2, 3])),
            (json!({"type": "integer", "minimum": 5}), json!([5, 6])),
            (json!({"type": "integer", "minimum": 0.0, "maximum": 1.0}), json!([1, 0])),
            (json!({"type": "string", "enum": ["x", "y"]}), json!(["x", "y"])),
            (json!({"type": "string"}), json!(["mutation-a", "mutation-b"])),
            (json!({"type": "string", "maxLength": 3}), json!(["n-a", "n-b"])),
            (json!({"type": "string", "format": "duration"}), json!(["1h", "2h"])),
            (json!({"x-kubernetes-int-or-string": true}), json!([2, "3"])),
            (json!({"type": "array", "items": {"type": "integer"}}), json!([[2], [2, 3]])),
            (json!({"type": "array", "items": {"type": "object"}}), json!([])),
            (
                json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
                json!([{"mutation": true}, {"mutation": false}]),
            ),
            (required, json!([{"a": "mutation-a"}])),
            (json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}), json!([])),
        ] {
            assert_eq!(json!(valid(&spec(), &schema, &Overrides::default())), expected, "{schema}");
        }
    }

    #[test]
    fn invalid_values_break_what_the_schema_says() {
        for (schema, expected) in [
            (json!({"type": "boolean"}), vec!["seven"]),
            (json!({"type": "integer"}), vec!["seven", "-1"]),
            (json!({"type": "integer", "minimum": 1, "maximum": 10}), vec!["seven", "0", "11"]),
            (json!({"type": "string", "maxLength": 2}), vec!["7", "!not-valid!", "too-long"]),
            (json!({"x-kubernetes-int-or-string": true}), vec!["true", "!not-valid!"]),
            (json!({"type": "array", "items": {}}), vec!["seven"]),
            (
                json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true}),
                vec!["seven", "{\"mutationUnknown\":1}"],
            ),
        ] {
            let names: Vec<String> =
                invalid(&spec(), &schema, &Overrides::default()).into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, expected, "{schema}");
        }
    }

    #[test]
    fn the_file_of_values_is_asked_first() {
        let overrides = Overrides::parse("spec.a = \"x\"\nspec.a ! \"a b\"").unwrap();
        let (path, schema) = (spec().field("a"), json!({"type": "string"}));
        assert_eq!(valid(&path, &schema, &overrides), [json!("x")]);
        assert_eq!(invalid(&path, &schema, &overrides)[0], ("a_b".to_owned(), json!("a b")));
        let object = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}});
        assert_eq!(valid(&spec(), &object, &overrides), [json!({"a": "x"})]);
    }
}
