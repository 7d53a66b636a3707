//! Finalizers of an object.
//!
//! They can be changed in a list that is written back as a whole ([`add`], [`remove`]), or by a JSON patch of
//! exactly that change ([`addition`], [`removal`]), which fails instead of undoing a concurrent change.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Returns true if a finalizer is in a list.
pub fn contains(finalizers: &[String], name: &str) -> bool {
    finalizers.iter().any(|finalizer| finalizer == name)
}

/// Adds a finalizer to an object's metadata, and returns true if that changed it.
///
/// # Errors
/// Fails for an object that is being deleted: the API rejects new finalizers then.
pub fn add(meta: &mut ObjectMeta, name: &str) -> Result<bool, BeingDeleted> {
    let list = meta.finalizers.as_deref().unwrap_or_default();
    if contains(list, name) {
        return Ok(false);
    }
    if meta.deletion_timestamp.is_some() {
        return Err(BeingDeleted { name: name.to_owned() });
    }
    meta.finalizers.get_or_insert_default().push(name.to_owned());
    Ok(true)
}

/// Removes a finalizer from an object's metadata, with all duplicates, and returns true if that changed it.
pub fn remove(meta: &mut ObjectMeta, name: &str) -> bool {
    let Some(list) = &mut meta.finalizers else {
        return false;
    };
    let length = list.len();
    list.retain(|finalizer| finalizer != name);
    let changed = list.len() != length;
    if list.is_empty() {
        meta.finalizers = None;
    }
    changed
}

/// Returns the JSON patch that adds a finalizer to the object as it was read; `None` if it is present.
///
/// The patch tests uid and resourceVersion: it is rejected if the object has changed since.
///
/// # Errors
/// Fails like [`add`].
pub fn addition(meta: &ObjectMeta, name: &str) -> Result<Option<Value>, BeingDeleted> {
    additions(meta, &[name])
}

/// The same for several finalizers: one patch that adds those that are missing.
///
/// # Errors
/// As [`add`].
pub fn additions(meta: &ObjectMeta, names: &[&str]) -> Result<Option<Value>, BeingDeleted> {
    let mut changed = meta.clone();
    let mut missing = Vec::new();
    for name in names {
        if add(&mut changed, name)? {
            missing.push(*name);
        }
    }
    if missing.is_empty() {
        return Ok(None);
    }
    let mut patch = identity(meta);
    if let Some(version) = &meta.resource_version {
        patch.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
    }
    match &meta.finalizers {
        Some(_) => patch.extend(
            missing.iter().map(|name| json!({"op": "add", "path": "/metadata/finalizers/-", "value": name})),
        ),
        None => patch.push(json!({"op": "add", "path": "/metadata/finalizers", "value": missing})),
    }
    Ok(Some(Value::Array(patch)))
}

/// Returns the JSON patch that removes a finalizer from the object as it was read; `None` if it is absent.
///
/// The patch tests that each index still holds the name, so it never removes another finalizer; changes
/// elsewhere in the object do not matter.
pub fn removal(meta: &ObjectMeta, name: &str) -> Option<Value> {
    removals(meta, &[name])
}

/// The same for several finalizers: one patch that removes those of them that are there.
pub fn removals(meta: &ObjectMeta, names: &[&str]) -> Option<Value> {
    let list = meta.finalizers.as_deref().unwrap_or_default();
    let is_removed = |finalizer: &String| names.iter().any(|name| finalizer == name);
    if !list.iter().any(is_removed) {
        return None;
    }
    let mut patch = identity(meta);
    // From the end: removing an index shifts those behind it.
    for (index, name) in list.iter().enumerate().rev().filter(|(_, finalizer)| is_removed(finalizer)) {
        let place = format!("/metadata/finalizers/{index}");
        patch.push(json!({"op": "test", "path": place, "value": name}));
        patch.push(json!({"op": "remove", "path": place}));
    }
    Some(Value::Array(patch))
}

fn identity(meta: &ObjectMeta) -> Vec<Value> {
    meta.uid.iter().map(|uid| json!({"op": "test", "path": "/metadata/uid", "value": uid})).collect()
}

/// The object is being deleted: it accepts no new finalizer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("finalizer {name} cannot be added: the object is being deleted")]
pub struct BeingDeleted {
    name: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn several_finalizers_are_added_and_removed_by_one_patch() {
        let operations = |patch: Option<Value>| -> Vec<(String, Value)> {
            let patch = patch.unwrap();
            let edits = patch.as_array().unwrap().iter().filter(|operation| operation["op"] != "test");
            edits.map(|edit| (edit["path"].as_str().unwrap().to_owned(), edit["value"].clone())).collect()
        };
        let added = operations(additions(&meta(&[]), &["a", "b"]).unwrap());
        assert_eq!(added, [("/metadata/finalizers".to_owned(), json!(["a", "b"]))]);
        let added = operations(additions(&meta(&["a"]), &["a", "b"]).unwrap());
        assert_eq!(added, [("/metadata/finalizers/-".to_owned(), json!("b"))]);
        assert_eq!(additions(&meta(&["a", "b"]), &["a", "b"]).unwrap(), None);
        let removed = operations(removals(&meta(&["a", "x", "b"]), &["a", "b"]));
        let paths: Vec<_> = removed.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["/metadata/finalizers/2", "/metadata/finalizers/0"]);
        assert_eq!(removals(&meta(&["x"]), &["a", "b"]), None);
    }

    fn meta(finalizers: &[&str]) -> ObjectMeta {
        ObjectMeta {
            uid: Some("u".into()),
            resource_version: Some("7".into()),
            finalizers: (!finalizers.is_empty())
                .then(|| finalizers.iter().map(ToString::to_string).collect()),
            ..ObjectMeta::default()
        }
    }

    fn deleting(finalizers: &[&str]) -> ObjectMeta {
        ObjectMeta { deletion_timestamp: Some(Time(Timestamp::UNIX_EPOCH)), ..meta(finalizers) }
    }

    #[test]
    fn adding_a_finalizer_twice_changes_the_object_once() {
        let mut object = meta(&[]);
        assert_eq!((add(&mut object, "a"), add(&mut object, "a")), (Ok(true), Ok(false)));
        assert_eq!(object.finalizers, Some(vec!["a".to_owned()]));
    }

    #[test]
    fn an_object_being_deleted_accepts_no_new_finalizer_but_keeps_a_present_one() {
        assert!(add(&mut deleting(&["other"]), "a").is_err());
        assert!(addition(&deleting(&["other"]), "a").is_err());
        assert_eq!(add(&mut deleting(&["a"]), "a"), Ok(false));
    }

    #[test]
    fn removing_a_finalizer_removes_duplicates_and_leaves_no_empty_list() {
        let mut object = deleting(&["a", "b", "a"]);
        assert!(remove(&mut object, "a"));
        assert_eq!(object.finalizers, Some(vec!["b".to_owned()]));
        assert!(remove(&mut object, "b") && object.finalizers.is_none());
        assert!(!remove(&mut object, "b"));
    }

    #[test]
    fn the_addition_is_refused_if_the_object_changed() {
        let patch = addition(&meta(&[]), "a").unwrap().unwrap();
        assert_eq!(
            patch,
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/metadata/resourceVersion", "value": "7"},
                {"op": "add", "path": "/metadata/finalizers", "value": ["a"]},
            ])
        );
        let patch = addition(&meta(&["b"]), "a").unwrap().unwrap();
        assert_eq!(patch[2], json!({"op": "add", "path": "/metadata/finalizers/-", "value": "a"}));
        assert_eq!(addition(&meta(&["a"]), "a"), Ok(None));
    }

    #[test]
    fn the_removal_patch_starts_at_the_end_and_tests_each_index() {
        let patch = removal(&deleting(&["a", "b", "a"]), "a").unwrap();
        assert_eq!(
            patch,
            json!([
                {"op": "test", "path": "/metadata/uid", "value": "u"},
                {"op": "test", "path": "/metadata/finalizers/2", "value": "a"},
                {"op": "remove", "path": "/metadata/finalizers/2"},
                {"op": "test", "path": "/metadata/finalizers/0", "value": "a"},
                {"op": "remove", "path": "/metadata/finalizers/0"},
            ])
        );
        assert_eq!(removal(&deleting(&["b"]), "a"), None);
    }
}
