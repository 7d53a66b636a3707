//! Decides by `managedFields` whether every field of the plan is still owned by our field manager.
//!
//! It promises: [`lost`] finds a field exactly if somebody else has changed or removed it since we applied,
//! whatever its present value is; fields that others add are ignored. Values are never compared: defaults,
//! normalised quantities, dropped zero values and images that admission rewrote are no drift.
//!
//! It does not detect that others reorder a list of items with keys, or fill a list that is empty in the
//! plan: the server does not record that.
//!
//! `fieldsV1` is a tree with keys of these forms: `f:name` a field, `k:{…}` an item of a list by its keys,
//! `v:…` an item of a set by its value, `.` the value itself. An empty node is a leaf: the whole value, of
//! any size, is one field.

use std::fmt::Write as _;

use serde_json::{Map, Value};
use windlass_runtime::meta::Meta;

/// Returns the first path of `desired` that is not in `fields` (a `fieldsV1`), if there is one.
///
/// ```
/// use serde_json::json;
/// use windlass::ownership::lost;
///
/// let desired = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"k": "v", "l": ""}});
/// assert_eq!(lost(&desired, r#"{"f:data":{"f:k":{},"f:l":{}}}"#), None);
/// assert_eq!(lost(&desired, r#"{"f:data":{"f:k":{}}}"#).as_deref(), Some(".data.l"));
/// ```
pub fn lost(desired: &Value, fields: &str) -> Option<String> {
    let Ok(fields) = serde_json::from_str::<Map<String, Value>>(fields) else {
        return Some(".".to_owned());
    };
    let mut path = String::new();
    let members = desired.as_object()?;
    for (name, value) in members {
        match &**name {
            // They identify the object, and have no owner.
            "apiVersion" | "kind" => {}
            "metadata" => {
                let Some(own) = value.as_object() else { continue };
                let none = Map::new();
                let fields = fields.get("f:metadata").and_then(Value::as_object).unwrap_or(&none);
                for (name, value) in own {
                    if !IDENTITY.contains(&&**name) && !member(name, value, fields, &mut path) {
                        return Some(format!(".metadata{path}"));
                    }
                }
            }
            name => {
                if !member(name, value, &fields, &mut path) {
                    return Some(path);
                }
            }
        }
    }
    None
}

/// A value of a live object, and its owner.
///
/// The intent of a [director](crate::Director) begins as what is live *and ours*. A value that somebody else
/// has changed is not ours any more: an actor that decides nothing must not apply it as if it were, or the
/// other one's edit would become the operator's will. Leave a drifted value out of the apply until its actor
/// says what it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owned<T> {
    /// Our last apply set the value, and nobody has changed it since.
    Ours(T),
    /// Somebody else has changed the value, or we have never applied it.
    Drifted(T),
}

impl<T> Owned<T> {
    /// Returns the value, whoever owns it.
    pub fn live(&self) -> &T {
        match self {
            Self::Ours(value) | Self::Drifted(value) => value,
        }
    }

    /// Returns the value if it is ours.
    pub fn ours(self) -> Option<T> {
        match self {
            Self::Ours(value) => Some(value),
            Self::Drifted(_) => None,
        }
    }
}

/// Returns a live value with its owner, by the path of its field.
///
/// The metadata must keep the entries of our field manager, as the objects of
/// [`Needs::labelled`](crate::Needs::labelled) do.
///
/// ```
/// use windlass::ownership::{Owned, owned};
/// use windlass_runtime::meta::{Keep, Meta};
///
/// let metadata = r#"{"name": "db", "managedFields": [{"manager": "db.example.com", "operation": "Apply",
///     "apiVersion": "apps/v1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]}"#;
/// let meta: Meta = Keep::default().manager("db.example.com").scope(|| serde_json::from_str(metadata))?;
/// assert_eq!(owned(&meta, &["spec", "replicas"], 3), Owned::Ours(3));
/// assert_eq!(owned(&meta, &["spec", "serviceName"], "db"), Owned::Drifted("db"));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub fn owned<T>(meta: &Meta, path: &[&str], value: T) -> Owned<T> {
    let is_ours = meta.managed.iter().any(|entry| {
        let fields = serde_json::from_str::<Value>(&entry.fields()).unwrap_or_default();
        let at = path.iter().try_fold(&fields, |fields, name| fields.get(format!("f:{name}")));
        at.is_some()
    });
    if is_ours { Owned::Ours(value) } else { Owned::Drifted(value) }
}

/// Metadata that identifies the object, or is a precondition of the write.
const IDENTITY: [&str; 4] = ["name", "namespace", "uid", "resourceVersion"];

/// Returns whether a member of an object, and everything below it, is in `fields`. If not, `path` is the
/// first missing path.
fn member(name: &str, value: &Value, fields: &Map<String, Value>, path: &mut String) -> bool {
    let length = path.len();
    path.push('.');
    path.push_str(name);
    let covered = match fields.get(&format!("f:{name}")).and_then(Value::as_object) {
        Some(node) => covers(value, node, path),
        // An empty list of items with keys has no item to own, and then nobody owns the list.
        None => value.as_array().is_some_and(Vec::is_empty),
    };
    if covered {
        path.truncate(length);
    }
    covered
}

fn covers(value: &Value, node: &Map<String, Value>, path: &mut String) -> bool {
    if node.is_empty() {
        return true;
    }
    match value {
        Value::Object(members) => members
            .iter()
            .filter(|(_, value)| !value.is_null())
            .all(|(name, value)| member(name, value, node, path)),
        Value::Array(items) => items.iter().enumerate().all(|(index, item)| {
            let length = path.len();
            // Writing to a string cannot fail.
            let _ = write!(path, "[{index}]");
            let covered = entry(item, node).is_some_and(|entry| covers(item, entry, path));
            if covered {
                path.truncate(length);
            }
            covered
        }),
        _ => true,
    }
}

/// Returns the node of an item of a list in `node`.
fn entry<'a>(item: &Value, node: &'a Map<String, Value>) -> Option<&'a Map<String, Value>> {
    node.iter().find(|(key, _)| is_key_of(key, item)).and_then(|(_, entry)| entry.as_object())
}

/// Returns whether a key of `fieldsV1` is that of an item of a list.
pub(crate) fn is_key_of(key: &str, item: &Value) -> bool {
    match (key.get(..2), item) {
        (Some("k:"), Value::Object(item)) => {
            // Parts of the key that the item leaves out have their defaults.
            serde_json::from_str::<Map<String, Value>>(&key[2..]).is_ok_and(|key| {
                key.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value))
            })
        }
        (Some("v:"), item) => serde_json::from_str::<Value>(&key[2..]).is_ok_and(|value| value == *item),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn deployment() -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "web", "namespace": "shop", "uid": "u", "labels": {"app": "web"}, "finalizers": ["a/b"]},
            "spec": {
                "replicas": 0,
                "template": {"spec": {
                    "containers": [{"name": "main", "image": "i", "args": ["x"],
                        "ports": [{"containerPort": 80}], "env": [{"name": "A", "value": ""}]}],
                    "volumes": [{"name": "tmp", "emptyDir": {}}],
                }},
            },
        })
    }

    const FIELDS: &str = r#"{"f:metadata":{"f:labels":{"f:app":{}},"f:finalizers":{".":{},"v:\"a/b\"":{}}},
        "f:spec":{"f:replicas":{},"f:template":{"f:spec":{
          "f:containers":{"k:{\"name\":\"main\"}":{".":{},"f:name":{},"f:image":{},"f:args":{},
             "f:ports":{"k:{\"containerPort\":80,\"protocol\":\"TCP\"}":{".":{},"f:containerPort":{}}},
             "f:env":{"k:{\"name\":\"A\"}":{".":{},"f:name":{},"f:value":{}}}}},
          "f:volumes":{"k:{\"name\":\"tmp\"}":{".":{},"f:name":{},"f:emptyDir":{}}}}}}}"#;

    #[test]
    fn no_field_is_lost_directly_after_an_apply() {
        assert_eq!(lost(&deployment(), FIELDS), None);
    }

    #[test]
    fn a_field_that_leaves_the_entry_is_reported_with_its_path() {
        for (gone, path) in [
            (r#""f:app":{}"#, ".metadata.labels.app"),
            (r#","v:\"a/b\"":{}"#, ".metadata.finalizers[0]"),
            (r#""f:replicas":{},"#, ".spec.replicas"),
            (r#""f:image":{},"#, ".spec.template.spec.containers[0].image"),
            (r#""f:args":{},"#, ".spec.template.spec.containers[0].args"),
            (r#","f:value":{}"#, ".spec.template.spec.containers[0].env[0].value"),
            (r#","f:emptyDir":{}"#, ".spec.template.spec.volumes[0].emptyDir"),
            (r#","f:containerPort":{}"#, ".spec.template.spec.containers[0].ports[0].containerPort"),
        ] {
            assert!(FIELDS.contains(gone), "{gone}");
            let less = match gone {
                // A map that loses its last member is removed too.
                r#""f:app":{}"# => FIELDS.replace(r#""f:labels":{"f:app":{}},"#, ""),
                gone => FIELDS.replace(gone, ""),
            };
            let found = lost(&deployment(), &less);
            let prefix = path.strip_suffix(".app").unwrap_or(path);
            assert!(found.as_deref().is_some_and(|found| found.starts_with(prefix)), "{gone}: {found:?}");
        }
    }

    #[test]
    fn fields_of_others_are_ignored() {
        let more = FIELDS.replace(r#""f:replicas":{},"#, r#""f:replicas":{},"f:paused":{},"#);
        assert_eq!(lost(&deployment(), &more), None);
    }

    #[test]
    fn an_item_with_another_key_is_not_ours() {
        let other = FIELDS.replace(r#"k:{\"name\":\"A\"}"#, r#"k:{\"name\":\"B\"}"#);
        assert_eq!(lost(&deployment(), &other).as_deref(), Some(".spec.template.spec.containers[0].env[0]"));
    }

    #[test]
    fn an_empty_list_has_no_owner_and_an_empty_map_is_ours() {
        let desired = json!({"metadata": {"finalizers": []}, "spec": {"args": [], "nodeSelector": {}}});
        assert_eq!(lost(&desired, r#"{"f:spec":{"f:args":{},"f:nodeSelector":{}}}"#), None);
        assert_eq!(lost(&desired, r#"{"f:spec":{"f:args":{}}}"#).as_deref(), Some(".spec.nodeSelector"));
    }

    #[test]
    fn an_entry_that_is_missing_or_broken_covers_nothing() {
        assert!(lost(&deployment(), "").is_some());
        assert!(lost(&deployment(), "{}").is_some());
    }
}
