//! Takes over fields that others have written, so that an apply can remove them.
//!
//! A field that an earlier manager owns beside us would stay for ever, even after our plan drops it. So an
//! adoption first transfers the entries of our predecessors in `managedFields` to our manager; the apply that
//! follows then removes the fields that the plan does not declare. Fields of third parties stay theirs.

use serde_json::{Map, Value, json};

use crate::live::ownership::is_key_of;
use crate::names::mark;

/// Managers of the control plane itself: the fields that they write (revisions, bindings) stay theirs.
pub(super) const SYSTEM: [&str; 6] = [
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-apiserver",
    "cloud-controller-manager",
    "kube-proxy",
];

/// The manager to which the server assigns the fields that existed before the first apply.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The fields that an adoption takes over from earlier field managers.
#[derive(Debug, PartialEq)]
pub(crate) struct Takeover {
    /// The `managedFields` in which our manager owns, by apply, the fields of the earlier managers.
    pub(crate) managed: Value,
    /// The names of the earlier managers.
    pub(crate) managers: Vec<String>,
    /// The fields of the earlier managers that neither the plan declares nor anybody else owns: the next
    /// apply drops them.
    pub(crate) dropped: Vec<String>,
}

/// Returns the fields to take over from earlier field managers; `None` if there are none.
///
/// Fields are taken over from the `predecessors`, from managers that wrote before the first apply, and from a
/// manager that holds our own digest, since its fields are a copy of what we wrote (a restored backup). All
/// other managers are third parties and keep their fields: a load balancer's finalizer, an annotation that a
/// person wrote. Subresources (scale, status) stay, and so do entries in another version of the kind, which
/// only the server could translate.
pub(crate) fn takeover(
    present: &Value,
    manager: &str,
    api_version: &str,
    predecessors: &[String],
    desired: &Value,
) -> Option<Takeover> {
    let entries = present.as_array()?;
    let text =
        |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let ours = |entry: &&Value| {
        text(entry, "manager") == manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    };
    let digest = format!("f:{}", mark::DIGEST);
    let taken = |entry: &&Value| {
        let name = text(entry, "manager");
        let is_copy = entry["fieldsV1"]["f:metadata"]["f:annotations"].get(&digest).is_some();
        (name == BEFORE_FIRST_APPLY || predecessors.contains(&name) || is_copy)
            && !SYSTEM.contains(&&*name)
            && text(entry, "subresource").is_empty()
            && text(entry, "apiVersion") == api_version
            && !ours(entry)
    };
    let mut managers: Vec<String> =
        entries.iter().filter(taken).map(|entry| text(entry, "manager")).collect();
    if managers.is_empty() {
        return None;
    }
    managers.dedup();
    let (mut theirs, mut fields) = (Map::new(), Map::new());
    for entry in entries.iter().filter(|entry| taken(entry) || ours(entry)) {
        if let Some(Value::Object(more)) = entry.get("fieldsV1") {
            union(&mut fields, more);
            if taken(&entry) {
                union(&mut theirs, more);
            }
        }
    }
    let others: Vec<&Value> = entries.iter().filter(|entry| !taken(entry) && !ours(entry)).collect();
    let kept: Vec<&Map<String, Value>> =
        others.iter().filter_map(|entry| entry["fieldsV1"].as_object()).collect();
    let mut dropped = Vec::new();
    undeclared(&theirs, Some(desired), &kept, "", &mut dropped);
    let own = json!({"manager": manager, "operation": "Apply", "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": fields});
    Some(Takeover { managed: others.into_iter().cloned().chain([own]).collect(), managers, dropped })
}

/// Collects the paths of `fields` that are neither in `desired` nor owned by others.
fn undeclared(
    fields: &Map<String, Value>,
    desired: Option<&Value>,
    kept: &[&Map<String, Value>],
    path: &str,
    found: &mut Vec<String>,
) {
    for (key, below) in fields {
        let Some((sort, name)) = key.split_once(':') else { continue };
        let declared = desired.and_then(|desired| match sort {
            "f" => desired.get(name),
            _ => desired.as_array()?.iter().find(|item| is_key_of(key, item)),
        });
        let kept: Vec<&Map<String, Value>> =
            kept.iter().filter_map(|kept| kept.get(key)?.as_object()).collect();
        let path = if sort == "f" { format!("{path}.{name}") } else { format!("{path}[{name}]") };
        let below = below.as_object().filter(|below| !below.is_empty());
        match (declared, below) {
            (None, _) if kept.is_empty() => found.push(path),
            (_, Some(below)) => undeclared(below, declared, &kept, &path, found),
            _ => {}
        }
    }
}

/// Returns the `managedFields` in which `manager` also owns the fields that others have put in the place of
/// its own; `None` if there are none.
///
/// If somebody replaces one member of a union by another (a volume's `emptyDir` by a `configMap`), an apply
/// adds ours back beside theirs, and the server refuses the two together. The apply can only remove their
/// member if our manager owns it. Only fields are taken that the plan does not declare and that are beside a
/// field that it lost.
pub(crate) fn make_way(present: &Value, manager: &str, api_version: &str, desired: &Value) -> Option<Value> {
    let mut entries = present.as_array()?.clone();
    let ours = |entry: &Value| {
        entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().unwrap_or_default().is_empty()
    };
    let place = entries.iter().position(|entry| ours(entry) && entry["apiVersion"] == api_version)?;
    let mut own = entries[place]["fieldsV1"].as_object()?.clone();
    let mut taken = false;
    for (index, entry) in entries.iter_mut().enumerate() {
        let update =
            entry["operation"] == "Update" && !SYSTEM.iter().any(|system| entry["manager"] == *system);
        let plain = entry["subresource"].as_str().unwrap_or_default().is_empty()
            && entry["apiVersion"] == api_version;
        if let (true, Some(theirs)) = (index != place && update && plain, entry["fieldsV1"].as_object_mut()) {
            taken |= take_beside(desired, &mut own, theirs);
        }
    }
    entries[place]["fieldsV1"] = own.into();
    taken.then_some(Value::Array(entries))
}

/// Moves undeclared fields from `theirs` to `own`, at every level of `desired` where `own` has lost one.
fn take_beside(desired: &Value, own: &mut Map<String, Value>, theirs: &mut Map<String, Value>) -> bool {
    match desired {
        Value::Object(members) => {
            let lost = members.keys().any(|name| !own.contains_key(&format!("f:{name}")));
            let undeclared =
                |key: &String| key.strip_prefix("f:").is_some_and(|name| !members.contains_key(name));
            let mut taken = false;
            if lost {
                let keys: Vec<String> = theirs.keys().filter(|key| undeclared(key)).cloned().collect();
                for key in keys {
                    if let Some(field) = theirs.remove(&key) {
                        own.entry(key).or_insert(field);
                        taken = true;
                    }
                }
            }
            for (name, value) in members {
                let key = format!("f:{name}");
                taken |= take_below(value, &key, own, theirs);
            }
            taken
        }
        Value::Array(items) => items.iter().fold(false, |taken, item| {
            let key = theirs.keys().find(|key| is_key_of(key, item)).cloned();
            key.is_some_and(|key| take_below(item, &key, own, theirs)) || taken
        }),
        _ => false,
    }
}

fn take_below(
    value: &Value,
    key: &str,
    own: &mut Map<String, Value>,
    theirs: &mut Map<String, Value>,
) -> bool {
    match (
        own.get_mut(key).and_then(Value::as_object_mut),
        theirs.get_mut(key).and_then(Value::as_object_mut),
    ) {
        (Some(own), Some(theirs)) => take_beside(value, own, theirs),
        _ => false,
    }
}

pub(super) fn union(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, value) in more {
        match (fields.get_mut(key).and_then(Value::as_object_mut), value.as_object()) {
            (Some(present), Some(more)) => union(present, more),
            (None, _) => {
                fields.insert(key.clone(), value.clone());
            }
            (Some(_), None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, subresource: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "apiVersion": "v1", "subresource": subresource, "fieldsV1": fields})
    }

    fn take(managed: &Value, predecessors: &[&str], desired: &Value) -> Option<Takeover> {
        let predecessors: Vec<String> = predecessors.iter().map(|&name| name.to_owned()).collect();
        takeover(managed, "us", "v1", &predecessors, desired)
    }

    #[test]
    fn fields_of_predecessors_become_ours_and_all_others_stay() {
        let managed = json!([
            entry("former", "Update", "", json!({"f:data": {"f:a": {}, "f:c": {}, "f:z": {}}})),
            entry(
                "before-first-apply",
                "Update",
                "",
                json!({"f:data": {"f:b": {}}, "f:metadata": {"f:finalizers": {".": {}, "v:\"x/y\"": {}}}})
            ),
            entry("us", "Apply", "", json!({"f:data": {"f:c": {}}})),
            entry("kube-controller-manager", "Update", "", json!({"f:x": {}})),
            entry("former", "Update", "status", json!({"f:y": {}})),
            entry("gitops", "Apply", "", json!({"f:data": {"f:z": {}}})),
            entry("external-dns", "Update", "", json!({"f:metadata": {"f:annotations": {"f:host": {}}}})),
        ]);
        let after = take(&managed, &["former"], &json!({"data": {"c": "1"}})).unwrap();
        let entries = after.managed.as_array().unwrap();
        let managers: Vec<_> = entries.iter().map(|entry| entry["manager"].clone()).collect();
        assert_eq!(managers, ["kube-controller-manager", "former", "gitops", "external-dns", "us"]);
        assert_eq!(
            entries[4]["fieldsV1"],
            json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}, "f:z": {}},
                "f:metadata": {"f:finalizers": {".": {}, "v:\"x/y\"": {}}}})
        );
        assert_eq!(entries[4]["operation"], "Apply");
        assert_eq!(after.managers, ["former", "before-first-apply"]);
        assert_eq!(after.dropped, [".data.a", ".data.b", ".metadata.finalizers"]);
    }

    #[test]
    fn fields_of_a_restored_copy_are_taken_over() {
        let digest = format!("f:{}", mark::DIGEST);
        let managed = json!([
            entry(
                "velero-server",
                "Update",
                "",
                json!({"f:metadata": {"f:annotations": {digest: {}}}, "f:data": {"f:a": {}}})
            ),
            entry("kubectl-annotate", "Update", "", json!({"f:metadata": {"f:annotations": {"f:note": {}}}})),
        ]);
        let after = take(&managed, &[], &json!({"metadata": {"annotations": {mark::DIGEST: "x"}}})).unwrap();
        assert_eq!(after.managers, ["velero-server"]);
        assert_eq!(after.dropped, [".data"]);
    }

    #[test]
    fn the_dropped_fields_are_named_by_their_keys_and_values() {
        let managed = json!([entry(
            "former",
            "Update",
            "",
            json!({
                "f:metadata": {"f:finalizers": {".": {}, "v:\"a/b\"": {}, "v:\"c/d\"": {}}},
                "f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}, "k:{\"port\":81}": {".": {}, "f:port": {}, "f:name": {}}}},
            })
        )]);
        let desired = json!({"metadata": {"finalizers": ["a/b"]}, "spec": {"ports": [{"port": 81}]}});
        let after = take(&managed, &["former"], &desired).unwrap();
        assert_eq!(
            after.dropped,
            [
                ".metadata.finalizers[\"c/d\"]",
                ".spec.ports[{\"port\":80}]",
                ".spec.ports[{\"port\":81}].name"
            ]
        );
    }

    #[test]
    fn only_a_field_that_replaced_one_of_ours_is_taken() {
        let desired = json!({"spec": {"replicas": 1, "volumes": [{"name": "tmp", "emptyDir": {}}]}});
        let managed = json!([
            entry(
                "us",
                "Apply",
                "",
                json!({"f:spec": {"f:replicas": {}, "f:volumes": {"k:{\"name\":\"tmp\"}": {".": {}, "f:name": {}}}}})
            ),
            entry(
                "kubectl",
                "Update",
                "",
                json!({"f:spec": {"f:paused": {}, "f:volumes": {"k:{\"name\":\"tmp\"}": {"f:configMap": {"f:name": {}}}}}})
            ),
        ]);
        let after = make_way(&managed, "us", "v1", &desired).unwrap();
        let volume = json!({".": {}, "f:name": {}, "f:configMap": {"f:name": {}}});
        assert_eq!(after[0]["fieldsV1"]["f:spec"]["f:volumes"]["k:{\"name\":\"tmp\"}"], volume);
        assert_eq!(after[1]["fieldsV1"]["f:spec"]["f:paused"], json!({}), "beside nothing that was lost");
        assert_eq!(make_way(&after, "us", "v1", &json!({"spec": {"replicas": 1}})), None);
    }

    #[test]
    fn fields_of_a_former_operator_are_taken_over_from_apply_and_from_update() {
        for operation in ["Apply", "Update"] {
            let managed = json!([entry("harbor-operator", operation, "", json!({"f:data": {}}))]);
            assert_eq!(take(&managed, &[], &json!({})), None);
            assert!(take(&managed, &["harbor-operator"], &json!({})).is_some());
        }
    }

    #[test]
    fn a_second_takeover_finds_nothing_to_take() {
        let managed = json!([entry("former", "Update", "", json!({"f:data": {"f:a": {}}}))]);
        let after = take(&managed, &["former"], &json!({})).unwrap();
        assert_eq!(take(&after.managed, &["former"], &json!({})), None);
        assert_eq!(take(&Value::Null, &["former"], &json!({})), None);
    }
}
