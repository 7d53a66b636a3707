//! Fields of an object that another API version lacks, stored so that conversion is lossless.
//!
//! A residue is the difference between an object after a round trip and the original. Each change in it is
//! applied only if the object still has the value from which the difference was computed: edits that a user
//! makes in the other version take precedence.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

/// One difference between two objects.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
struct Change {
    path: Vec<String>,
    /// Value that the round trip produces; none if the field is missing.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some")]
    was: Option<Value>,
    /// Original value; none if the field is to be removed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "some")]
    is: Option<Value>,
}

/// Keeps an explicit null apart from a missing field.
fn some<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

/// All differences between two objects.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(transparent)]
pub(super) struct Residue(Vec<Change>);

impl Residue {
    /// Computes the changes that turn `from` into `to`.
    pub(super) fn between(from: &Value, to: &Value) -> Self {
        let mut changes = Vec::new();
        compare(&mut Vec::new(), Some(from), Some(to), &mut changes);
        Self(changes)
    }

    /// Parses a residue. Invalid text is an empty residue, because what a user writes there must not prevent
    /// reading.
    pub(super) fn read(text: &str) -> Self {
        serde_json::from_str(text).unwrap_or_default()
    }

    /// Serializes the residue for an annotation; `None` if it is empty.
    pub(super) fn write(&self) -> Option<String> {
        if self.0.is_empty() { None } else { serde_json::to_string(self).ok() }
    }

    /// Applies the changes that still match.
    pub(super) fn apply(&self, value: &mut Value) {
        for Change { path, was, is } in &self.0 {
            let Some((field, parents)) = path.split_last() else {
                if was.as_ref() == Some(&*value)
                    && let Some(is) = is
                {
                    value.clone_from(is);
                }
                continue;
            };
            let parent = parents.iter().try_fold(&mut *value, |value, field| value.get_mut(field));
            if let Some(Value::Object(fields)) = parent
                && fields.get(field) == was.as_ref()
            {
                match is {
                    Some(is) => drop(fields.insert(field.clone(), is.clone())),
                    None => drop(fields.remove(field)),
                }
            }
        }
    }
}

fn compare(path: &mut Vec<String>, from: Option<&Value>, to: Option<&Value>, changes: &mut Vec<Change>) {
    match (from, to) {
        (Some(Value::Object(from)), Some(Value::Object(to))) => {
            for field in names(from, to) {
                path.push(field.clone());
                compare(path, from.get(field), to.get(field), changes);
                path.pop();
            }
        }
        (was, is) if was != is => {
            changes.push(Change { path: path.clone(), was: was.cloned(), is: is.cloned() });
        }
        _ => {}
    }
}

fn names<'a>(one: &'a Map<String, Value>, other: &'a Map<String, Value>) -> impl Iterator<Item = &'a String> {
    one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn back(from: &Value, to: &Value) -> Value {
        let written = Residue::between(from, to).write();
        let mut value = from.clone();
        Residue::read(&written.unwrap_or_default()).apply(&mut value);
        value
    }

    #[test]
    fn a_residue_applied_to_its_origin_restores_it() {
        let cases = [
            (json!({}), json!({"a": {"b": null}})),
            (json!({"a": 1, "b": {"c": [1]}}), json!({"b": {"c": [2], "d/e": {}}})),
            (json!({"a": null}), json!({})),
            (json!({"a": {}}), json!({"a": null})),
            (json!([1]), json!({"a": 1})),
            (json!(null), json!(false)),
        ];
        for (from, to) in cases {
            assert_eq!(back(&from, &to), to);
            assert_eq!(back(&to, &from), from);
        }
    }

    #[test]
    fn a_later_edit_takes_precedence_over_the_residue() {
        let residue = Residue::between(
            &json!({"kept": {"x": 1}, "edited": 1, "gone": {}}),
            &json!({"kept": {"x": 1, "y": 2}, "edited": 2, "gone": {"z": 3}}),
        );
        let mut value = json!({"kept": {"x": 5}, "edited": 7});
        residue.apply(&mut value);
        assert_eq!(value, json!({"kept": {"x": 5, "y": 2}, "edited": 7}));
    }

    #[test]
    fn an_invalid_residue_changes_nothing() {
        for text in ["", "null", "{}", "[{}]", r#"[{"path": 5}]"#, r#"[{"path": []}]"#] {
            let mut value = json!({"a": 1});
            Residue::read(text).apply(&mut value);
            assert_eq!(value, json!({"a": 1}), "{text}");
        }
    }
}
