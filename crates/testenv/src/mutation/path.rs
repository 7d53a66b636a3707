//! Paths of properties, and documents read and changed along them.
//!
//! A path is written as `spec.expose.core`, with `[]` for the items of a list and `{}` for the values of a
//! map: `spec.hosts[].port`, `spec.limits{}`. In a document, `[]` is the first item and `{}` the first entry.

use std::fmt;

use serde_json::{Map, Value};

/// The key of a map entry that the harness adds.
pub(super) const KEY: &str = "mutation";

/// One part of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Field(String),
    Item,
    Entry,
}

/// The path of a property below the root of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PropertyPath(Vec<Segment>);

impl PropertyPath {
    /// The path of a field of the root.
    pub(super) fn root(field: &str) -> Self {
        Self(vec![Segment::Field(field.to_owned())])
    }

    /// The path of a field of the object at this path.
    pub(super) fn field(&self, name: &str) -> Self {
        self.with(Segment::Field(name.to_owned()))
    }

    /// The path of the items of the list at this path.
    pub(super) fn item(&self) -> Self {
        self.with(Segment::Item)
    }

    /// The path of the values of the map at this path.
    pub(super) fn entry(&self) -> Self {
        self.with(Segment::Entry)
    }

    fn with(&self, segment: Segment) -> Self {
        Self(self.0.iter().cloned().chain([segment]).collect())
    }

    /// The paths from the root to this one, the shortest first, without this one.
    pub(super) fn ancestors(&self) -> Vec<Self> {
        (1..self.0.len()).map(|length| Self(self.0[..length].to_vec())).collect()
    }

    /// The names of the fields on this path, the last one first.
    pub(super) fn fields(&self) -> impl Iterator<Item = &str> {
        self.0.iter().rev().filter_map(|segment| match segment {
            Segment::Field(name) => Some(name.as_str()),
            Segment::Item | Segment::Entry => None,
        })
    }

    /// Returns true if this is the path of items of a list or of values of a map.
    pub(super) fn is_element(&self) -> bool {
        matches!(self.0.last(), Some(Segment::Item | Segment::Entry))
    }

    /// The value at this path of a document.
    pub(super) fn get<'d>(&self, document: &'d Value) -> Option<&'d Value> {
        self.0.iter().try_fold(document, |value, segment| match segment {
            Segment::Field(name) => value.get(name),
            Segment::Item => value.get(0),
            Segment::Entry => value.as_object()?.values().next(),
        })
    }

    /// Sets the value at this path of a document, and creates what leads there.
    pub(super) fn set(&self, document: &mut Value, value: Value) {
        let mut place = document;
        for segment in &self.0 {
            place = match segment {
                Segment::Field(name) => {
                    let Some(fields) = fields(place) else { return };
                    fields.entry(name.clone()).or_insert(Value::Null)
                }
                Segment::Entry => {
                    let Some(fields) = fields(place) else { return };
                    let key = fields.keys().next().cloned().unwrap_or_else(|| KEY.to_owned());
                    fields.entry(key).or_insert(Value::Null)
                }
                Segment::Item => {
                    if place.as_array().is_none_or(Vec::is_empty) {
                        *place = Value::Array(vec![Value::Null]);
                    }
                    &mut place[0]
                }
            };
        }
        *place = value;
    }

    /// Removes the field at this path from a document.
    pub(super) fn remove(&self, document: &mut Value) {
        let Some((Segment::Field(name), before)) = self.0.split_last() else { return };
        let mut place = document;
        for segment in before {
            let next = match segment {
                Segment::Field(name) => place.get_mut(name),
                Segment::Item => place.get_mut(0),
                Segment::Entry => place.as_object_mut().and_then(|fields| fields.values_mut().next()),
            };
            let Some(next) = next else { return };
            place = next;
        }
        if let Some(fields) = place.as_object_mut() {
            fields.remove(name);
        }
    }
}

/// The fields of a value, which becomes an object if it is none.
fn fields(place: &mut Value) -> Option<&mut Map<String, Value>> {
    if !place.is_object() {
        *place = Value::Object(Map::new());
    }
    place.as_object_mut()
}

impl fmt::Display for PropertyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, segment) in self.0.iter().enumerate() {
            match segment {
                Segment::Field(name) if index == 0 => f.write_str(name)?,
                Segment::Field(name) => write!(f, ".{name}")?,
                Segment::Item => f.write_str("[]")?,
                Segment::Entry => f.write_str("{}")?,
            }
        }
        Ok(())
    }
}

/// Returns true if a text has the form of a pattern, in which `*` stands for any text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == text,
        Some((start, rest)) => text.strip_prefix(start).is_some_and(|text| {
            rest.is_empty()
                || (0..=text.len())
                    .filter(|at| text.is_char_boundary(*at))
                    .any(|at| matches(rest, &text[at..]))
        }),
    }
}

/// Merges a patch into a document as RFC 7396 says: `null` removes a field.
pub(super) fn merge(document: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *document = patch.clone();
        return;
    };
    let Some(fields) = fields(document) else { return };
    for (name, value) in patch {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path() -> PropertyPath {
        PropertyPath::root("spec").field("hosts").item().field("limits").entry()
    }

    #[test]
    fn a_path_is_written_with_the_marks_of_lists_and_maps() {
        assert_eq!(path().to_string(), "spec.hosts[].limits{}");
        let ancestors: Vec<String> = path().ancestors().iter().map(ToString::to_string).collect();
        assert_eq!(ancestors, ["spec", "spec.hosts", "spec.hosts[]", "spec.hosts[].limits"]);
        assert_eq!(path().fields().collect::<Vec<_>>(), ["limits", "hosts", "spec"]);
        assert!(path().is_element() && !PropertyPath::root("spec").is_element());
    }

    #[test]
    fn a_value_is_set_read_and_removed_along_its_path() {
        let mut document = json!({"spec": {"a": 1}});
        path().set(&mut document, json!(7));
        assert_eq!(document, json!({"spec": {"a": 1, "hosts": [{"limits": {"mutation": 7}}]}}));
        assert_eq!(path().get(&document), Some(&json!(7)));
        PropertyPath::root("spec").field("hosts").item().field("limits").remove(&mut document);
        assert_eq!(document, json!({"spec": {"a": 1, "hosts": [{}]}}));
        assert_eq!(path().get(&document), None);
    }

    #[test]
    fn a_star_stands_for_any_text() {
        for (pattern, text, fits) in [
            ("spec.a", "spec.a", true),
            ("spec.a", "spec.ab", false),
            ("spec.a*", "spec.a.b", true),
            ("*.affinity", "spec.core.affinity", true),
            ("*.affinity", "spec.core.affinity.x", false),
            ("*.a.*=removed", "spec.a.b=removed", true),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }

    #[test]
    fn a_merge_removes_what_is_null() {
        let mut document = json!({"a": {"b": 1, "c": 2}});
        merge(&mut document, &json!({"a": {"b": null, "d": {"e": 3}}}));
        assert_eq!(document, json!({"a": {"c": 2, "d": {"e": 3}}}));
    }
}
