//! Objects and lists that are empty in the plan, and that had only fields of ours.
//!
//! The server removes the fields and leaves a `null`: the schema of a custom kind refuses it if it requires
//! an object, and keeps it if the field is nullable; in built-in kinds of Kubernetes a null is the same as an
//! absent field. So in custom kinds the fields are emptied before the apply, which then has nothing to
//! remove. In built-in kinds they are emptied only if the server refuses the apply, since each write of a
//! template rolls its pods.

use serde_json::{Map, Value, json};
use windlass_runtime::client::FieldCause;
use windlass_runtime::resource::ResourceType;

use super::managers::Managers;
use super::{content, without_indexes};
use crate::live::ownership::is_key_of;
use crate::plan::desired::Desired;

/// Returns whether the plan of a custom kind has an empty field of which our entry has members.
pub(super) fn is_due(desired: &Desired, own: &Map<String, Value>) -> bool {
    is_custom(&desired.resource) && content(&desired.body).any(|(name, value)| is_emptied(name, value, own))
}

fn is_emptied(name: &str, value: &Value, own: &Map<String, Value>) -> bool {
    let Some(own) = own.get(&format!("f:{name}")).and_then(Value::as_object) else { return false };
    let has_fields = own.keys().any(|key| key != ".");
    match value {
        Value::Object(members) if members.is_empty() => has_fields,
        Value::Object(members) => members.iter().any(|(name, value)| is_emptied(name, value, own)),
        Value::Array(items) if items.is_empty() => has_fields,
        Value::Array(items) => items.iter().any(|item| {
            let key = own.iter().find(|(key, _)| is_key_of(key, item));
            let fields = key.and_then(|(_, fields)| fields.as_object());
            let mut members = item.as_object().into_iter().flatten();
            fields.is_some_and(|fields| members.any(|(name, value)| is_emptied(name, value, fields)))
        }),
        _ => false,
    }
}

/// Returns whether a kind is not built into Kubernetes.
fn is_custom(resource: &ResourceType) -> bool {
    resource.group.contains('.') && !resource.group.ends_with(".k8s.io")
}

/// Finds the fields to empty: for each its path, its JSON pointer in the live object, and the empty value.
pub(super) fn find(
    desired: &Desired,
    live: &Value,
    managers: &Managers,
    causes: &[FieldCause],
) -> Vec<(String, String, Value)> {
    let refused = causes.iter().map(|cause| without_indexes(&cause.field)).collect();
    let mut search = Search { managers, refused, custom: is_custom(&desired.resource), found: Vec::new() };
    for (name, value) in content(&desired.body) {
        search.look(value, &live[name], &[format!("f:{name}")], name, &format!("/{}", escaped(name)));
    }
    search.found
}

struct Search<'a> {
    managers: &'a Managers,
    /// The fields that the refusal names, without indexes.
    refused: Vec<String>,
    custom: bool,
    found: Vec<(String, String, Value)>,
}

impl Search<'_> {
    fn look(&mut self, desired: &Value, live: &Value, path: &[String], plain: &str, pointer: &str) {
        match (desired, live) {
            (Value::Object(members), Value::Object(present)) if members.is_empty() => {
                let names = present.keys().map(|name| format!("f:{name}"));
                self.empty(names.collect(), path, plain, pointer, json!({}));
            }
            (Value::Object(members), Value::Object(_)) => {
                for (name, value) in members {
                    let below = [path, &[format!("f:{name}")]].concat();
                    let (plain, pointer) =
                        (format!("{plain}.{name}"), format!("{pointer}/{}", escaped(name)));
                    self.look(value, &live[name], &below, &plain, &pointer);
                }
            }
            (Value::Array(items), Value::Array(present)) if items.is_empty() => {
                let own = self.managers.own(path);
                let key = |item: &Value| own?.keys().find(|key| is_key_of(key, item)).cloned();
                let keys: Option<Vec<String>> = present.iter().map(key).collect();
                if let Some(keys) = keys {
                    self.empty(keys, path, plain, pointer, json!([]));
                }
            }
            (Value::Array(items), Value::Array(present)) => {
                for item in items {
                    let own = self.managers.own(path).into_iter().flatten();
                    let Some((key, _)) = own.into_iter().find(|(key, _)| is_key_of(key, item)) else {
                        continue;
                    };
                    let Some(index) = present.iter().position(|live| is_key_of(key, live)) else { continue };
                    let below = [path, std::slice::from_ref(key)].concat();
                    self.look(item, &present[index], &below, plain, &format!("{pointer}/{index}"));
                }
            }
            _ => {}
        }
    }

    /// Records a field to be emptied, if all of its members are ours and nobody else's.
    fn empty(&mut self, members: Vec<String>, path: &[String], plain: &str, pointer: &str, empty: Value) {
        let Some(own) = self.managers.own(path) else { return };
        let ours = !members.is_empty() && members.iter().all(|member| own.contains_key(member));
        let theirs = self.managers.others(path).any(|fields| fields.keys().any(|key| key != "."));
        let wanted = self.custom || self.refused.iter().any(|field| field == plain);
        if ours && !theirs && wanted {
            self.found.push((format!(".{plain}"), pointer.to_owned(), empty));
        }
    }
}

/// Escapes a name for a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}
