//! Finalizers: who must finish before an object goes.
//!
//! Three ways to use them: on a list that is written back as a whole ([`add`], [`remove`]), or as a JSON patch of exactly that
//! change ([`addition`], [`removal`]), which fails instead of undoing what somebody else did meanwhile.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

/// Whether a finalizer is in a list.
pub fn contains(finalizers: &[String], name: &str) -> bool {
    finalizers.iter().any(|finalizer| finalizer == name)
}

/// Adds a finalizer to an object's metadata, and returns whether that changed it.
///
/// # Errors
/// An object that is being deleted takes no new finalizer: the API refuses it, and whoever asks has come too late.
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

/// Removes a finalizer from an object's metadata, however often it is there, and returns whether that changed it.
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

/// The JSON patch that adds a finalizer to the object as it was read; `None` where it has it.
///
/// The patch tests uid and resourceVersion: it is refused if the object has changed since.
///
/// # Errors
/// As [`add`].
pub fn addition(meta: &ObjectMeta, name: &str) -> Result<Option<Value>, BeingDeleted> {
    let mut changed = meta.clone();
    if !add(&mut changed, name)? {
        return Ok(None);
    }
    let mut patch = identity(meta);
    if let Some(version) = &meta.resource_version {
        patch.push(json!({"op": "test", "path": "/metadata/resourceVersion", "value": version}));
    }
    patch.push(match &meta.finalizers {
        Some(_) => json!({"op": "add", "path": "/metadata/finalizers/-", "value": name}),
        None => json!({"op": "add", "path": "/metadata/finalizers", "value": [name]}),
    });
    Ok(Some(Value::Array(patch)))
}

/// The JSON patch that removes a finalizer from the object as it was read; `None` where it has none of that name.
///
/// The patch tests that each place that it removes still holds the name, so it never removes that of another; changes
/// elsewhere in the object do not matter to it.
pub fn removal(meta: &ObjectMeta, name: &str) -> Option<Value> {
    let list = meta.finalizers.as_deref().unwrap_or_default();
    if !contains(list, name) {
        return None;
    }
    let mut patch = identity(meta);
    // From the back: removing a place moves those behind it.
    for (index, _) in list.iter().enumerate().rev().filter(|(_, finalizer)| *finalizer == name) {
        let place = format!("/metadata/finalizers/{index}");
        patch.push(json!({"op": "test", "path": place, "value": name}));
        patch.push(json!({"op": "remove", "path": place}));
    }
    Some(Value::Array(patch))
}

fn identity(meta: &ObjectMeta) -> Vec<Value> {
    meta.uid.iter().map(|uid| json!({"op": "test", "path": "/metadata/uid", "value": uid})).collect()
}

/// The object is being deleted: it takes no new finalizer.
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
    fn adding_twice_changes_once() {
        let mut object = meta(&[]);
        assert_eq!((add(&mut object, "a"), add(&mut object, "a")), (Ok(true), Ok(false)));
        assert_eq!(object.finalizers, Some(vec!["a".to_owned()]));
    }

    #[test]
    fn an_object_that_is_going_takes_no_new_finalizer_but_may_have_had_it() {
        assert!(add(&mut deleting(&["other"]), "a").is_err());
        assert!(addition(&deleting(&["other"]), "a").is_err());
        assert_eq!(add(&mut deleting(&["a"]), "a"), Ok(false));
    }

    #[test]
    fn removing_takes_every_duplicate_and_leaves_no_empty_list() {
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
    fn the_removal_removes_from_the_back_and_tests_each_place() {
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
