//! The cases of a kind: pure, from its schema, a base manifest and the file of values.

use std::fmt;

use serde_json::Value;

use super::overrides::Overrides;
use super::path::PropertyPath;
use super::schema::{Form, Property, form, properties};
use super::values::{invalid, text, valid};

/// One case: an owner as it starts, and the manifests that it gets one after the other before it gets the
/// first one back.
#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) path: PropertyPath,
    pub(super) change: Change,
    /// The owner before the change: the base, with as much as the property needs above it.
    pub(super) start: Value,
    pub(super) manifests: Vec<Value>,
    /// The value that a message should name.
    pub(super) value: Option<Value>,
    /// False if the same objects are a right answer: an empty object, a removed default.
    pub(super) needs_effect: bool,
}

/// The way in which a property is mutated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// A change from one valid value to the next.
    Valid,
    /// An object with its required fields only, where there was none.
    Added,
    Invalid(String),
    Removed,
}

impl Case {
    /// The stable name of the case, without spaces.
    pub(super) fn id(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match &self.change {
            Change::Valid => write!(f, "{path}=change"),
            Change::Added => write!(f, "{path}=added"),
            Change::Invalid(value) => write!(f, "{path}=invalid:{value}"),
            Change::Removed => write!(f, "{path}=removed"),
        }
    }
}

/// All cases of a kind, and the mistakes in what was given.
pub(super) struct Cases {
    pub(super) all: Vec<Case>,
    pub(super) paths: Vec<String>,
    pub(super) mistakes: Vec<String>,
}

/// Generates the cases. `schema` is the `openAPIV3Schema` of a CRD's version.
pub(super) fn cases(schema: &Value, base: &Value, overrides: &Overrides) -> Cases {
    let properties = properties(schema);
    let mut cases = Vec::new();
    let with_schemas: Vec<(String, &Value)> =
        properties.iter().map(|one| (one.path.to_string(), &one.schema)).collect();
    let mut mistakes = overrides.unused(&with_schemas);
    if properties.is_empty() {
        mistakes.push("the schema has no properties below spec".to_owned());
    }
    for property in &properties {
        let start = start(property, &properties, base, overrides);
        let values = valid(&property.path, &property.schema, overrides);
        if values.is_empty() && !property.path.is_element() {
            mistakes.push(format!("no valid value of {} is known: add a line `{0} = …`", property.path));
        }
        cases.extend(cases_of(property, &start, values, overrides));
    }
    Cases { all: cases, paths: with_schemas.into_iter().map(|(path, _)| path).collect(), mistakes }
}

/// The base with everything that must be there before the property can be set: objects and lists above it,
/// each with its required fields.
fn start(property: &Property, all: &[Property], base: &Value, overrides: &Overrides) -> Value {
    let mut start = base.clone();
    overrides.apply_context(&property.path, &mut start);
    for ancestor in property.path.ancestors() {
        if ancestor.get(&start).is_some() {
            continue;
        }
        let schema = all.iter().find(|one| one.path == ancestor).map(|one| &one.schema);
        let value = schema.and_then(|schema| valid(&ancestor, schema, overrides).into_iter().next());
        ancestor.set(&mut start, value.unwrap_or_else(|| Value::Object(serde_json::Map::new())));
    }
    start
}

fn cases_of(property: &Property, start: &Value, values: Vec<Value>, overrides: &Overrides) -> Vec<Case> {
    let Property { path, schema } = property;
    let present = path.get(start);
    let case = |change, manifests, value, needs_effect| Case {
        path: path.clone(),
        change,
        start: start.clone(),
        manifests,
        value,
        needs_effect,
    };
    let with = |value: &Value| {
        let mut manifest = start.clone();
        path.set(&mut manifest, value.clone());
        manifest
    };
    let mut cases = Vec::new();
    let others: Vec<Value> = values.into_iter().filter(|value| Some(value) != present).collect();
    match form(schema) {
        // The list, the map or the object has this case.
        _ if path.is_element() || others.is_empty() => {}
        Form::Object if present.is_some() => {}
        Form::Object => cases.push(case(Change::Added, others.iter().map(with).collect(), None, false)),
        _ => {
            let value = others.first().cloned();
            cases.push(case(Change::Valid, others.iter().map(with).collect(), value, true));
        }
    }
    for (name, value) in invalid(path, schema, overrides) {
        cases.push(case(Change::Invalid(name), vec![with(&value)], Some(value), true));
    }
    if let Some(present) = present
        && !path.is_element()
    {
        let mut without = start.clone();
        path.remove(&mut without);
        let needs_effect = Some(present) != schema.get("default") && !is_empty(present);
        cases.push(case(Change::Removed, vec![without], None, needs_effect));
    }
    cases
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

impl Change {
    /// The value of an invalid case, as it is written in the id.
    pub(super) fn is_invalid(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }
}

/// The text of a value as a message would have it.
pub(super) fn value_text(value: &Value) -> String {
    value.as_str().map_or_else(|| text(value), str::to_owned)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"properties": {"spec": {"type": "object", "properties": {
            "replicas": {"type": "integer", "minimum": 1, "maximum": 10, "default": 2},
            "host": {"type": "string"},
            "cache": {"type": "object", "required": ["kind"], "properties": {
                "kind": {"type": "string", "enum": ["A", "B"]},
                "size": {"type": "integer"},
            }},
            "tags": {"type": "array", "items": {"type": "string"}},
        }}}})
    }

    fn generated(overrides: &str) -> Cases {
        let base = json!({"spec": {"replicas": 2, "host": "a"}});
        cases(&schema(), &base, &Overrides::parse(overrides).unwrap())
    }

    #[test]
    fn every_property_has_its_cases() {
        let found = generated("spec.host = \"a\"\nspec.host = \"b\"");
        let ids: Vec<String> = found.all.iter().map(Case::id).collect();
        assert_eq!(
            ids,
            [
                "spec.cache=added",
                "spec.cache=invalid:seven",
                "spec.cache.kind=change",
                "spec.cache.kind=invalid:7",
                "spec.cache.kind=invalid:!not-valid!",
                "spec.cache.kind=removed",
                "spec.cache.size=change",
                "spec.cache.size=invalid:seven",
                "spec.cache.size=invalid:-1",
                "spec.host=change",
                "spec.host=invalid:7",
                "spec.host=invalid:!not-valid!",
                "spec.host=removed",
                "spec.replicas=change",
                "spec.replicas=invalid:seven",
                "spec.replicas=invalid:0",
                "spec.replicas=invalid:11",
                "spec.replicas=removed",
                "spec.tags=change",
                "spec.tags=invalid:seven",
                "spec.tags[]=invalid:7",
                "spec.tags[]=invalid:!not-valid!",
            ]
        );
        assert_eq!(found.mistakes, [""; 0]);
    }

    #[test]
    fn a_case_starts_from_the_base_and_what_the_property_needs() {
        let found = generated("spec.cache with {\"spec\": {\"host\": \"cached\"}}");
        let case = |id: &str| found.all.iter().find(|case| case.id() == id).unwrap().clone();
        let size = case("spec.cache.size=change");
        assert_eq!(size.start, json!({"spec": {"replicas": 2, "host": "cached", "cache": {"kind": "A"}}}));
        assert_eq!(size.manifests[1]["spec"]["cache"], json!({"kind": "A", "size": 3}));
        let kind = case("spec.cache.kind=change");
        assert_eq!(kind.manifests.len(), 1, "the value that it has is no change");
        assert_eq!(kind.manifests[0]["spec"]["cache"]["kind"], "B");
        assert_eq!(case("spec.tags[]=invalid:7").manifests[0]["spec"]["tags"], json!([7]));
        assert_eq!(case("spec.host=removed").manifests[0], json!({"spec": {"replicas": 2}}));
    }

    #[test]
    fn a_removed_default_and_an_empty_object_need_no_effect() {
        let found = generated("");
        let needs = |id: &str| found.all.iter().find(|case| case.id() == id).unwrap().needs_effect;
        assert!(!needs("spec.replicas=removed") && !needs("spec.cache=added"));
        assert!(needs("spec.host=removed") && needs("spec.replicas=change"));
    }

    #[test]
    fn generation_is_deterministic() {
        let ids = || generated("").all.iter().map(Case::id).collect::<Vec<_>>();
        assert_eq!(ids(), ids());
    }

    #[test]
    fn a_property_without_a_known_value_is_a_mistake() {
        let open = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        let schema = json!({"properties": {"spec": {"type": "object", "properties": {"affinity": open}}}});
        let mistakes =
            |text: &str| cases(&schema, &json!({"spec": {}}), &Overrides::parse(text).unwrap()).mistakes;
        assert_eq!(
            mistakes(""),
            ["no valid value of spec.affinity is known: add a line `spec.affinity = …`"]
        );
        assert_eq!(mistakes("*.affinity = {}"), [""; 0]);
        let none = cases(&json!({}), &json!({}), &Overrides::default());
        assert_eq!(none.mistakes, ["the schema has no properties below spec"]);
    }
}
