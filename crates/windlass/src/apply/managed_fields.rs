//! Taking over what others have written, so that it can be taken away again.
//!
//! A field that an earlier manager owns beside us stays for ever, though our plan no longer has it. So an adoption first makes
//! the earlier managers' entries in `managedFields` ours; the apply that follows then drops what the plan does not declare.

use serde_json::{Map, Value, json};

/// Managers of the control plane itself: what they write (revisions, bindings) is theirs, whoever owns the object.
const SYSTEM: [&str; 6] = [
    "kube-controller-manager",
    "kube-scheduler",
    "kubelet",
    "kube-apiserver",
    "cloud-controller-manager",
    "kube-proxy",
];

/// The `managedFields` in which `manager` owns, by apply, what the managers before it owned; `None` if there are none.
///
/// Taken over are all who wrote by update (also `before-first-apply`, the server's name for what was there before the first
/// apply), and of those who applied only the `predecessors`. Subresources (scale, status) and the control plane keep theirs, and
/// so do entries in another version of the kind, which only the server could translate.
pub(crate) fn takeover(
    present: &Value,
    manager: &str,
    api_version: &str,
    predecessors: &[String],
) -> Option<Value> {
    let entries = present.as_array()?;
    let text =
        |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let taken = |entry: &&Value| {
        let name = text(entry, "manager");
        let before_us = match &*text(entry, "operation") {
            "Update" => !SYSTEM.contains(&&*name),
            _ => predecessors.contains(&name),
        };
        before_us && text(entry, "subresource").is_empty() && text(entry, "apiVersion") == api_version
    };
    let ours = |entry: &&Value| {
        text(entry, "manager") == manager
            && text(entry, "operation") == "Apply"
            && text(entry, "subresource").is_empty()
    };
    if !entries.iter().any(|entry| taken(&entry)) {
        return None;
    }
    let mut fields = Map::new();
    for entry in entries.iter().filter(|entry| taken(entry) || ours(entry)) {
        if let Some(Value::Object(more)) = entry.get("fieldsV1") {
            union(&mut fields, more);
        }
    }
    let others = entries.iter().filter(|entry| !taken(entry) && !ours(entry)).cloned();
    let own = json!({"manager": manager, "operation": "Apply", "apiVersion": api_version, "fieldsType": "FieldsV1", "fieldsV1": fields});
    Some(others.chain([own]).collect())
}

/// The `managedFields` in which `manager` also owns what others have put in the place of its own fields; `None` if nobody has.
///
/// Where somebody swaps one member of a union for another (a volume's `emptyDir` for a `configMap`), an apply adds ours back beside
/// theirs, and the server refuses to have both. Ours alone it cannot have before theirs is ours to drop. Taken are the fields that
/// the plan does not declare, beside one that it lost, and no others.
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
            let key = theirs.keys().find(|key| crate::live::ownership::is_key_of(key, item)).cloned();
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

fn union(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
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

    #[test]
    fn what_others_updated_becomes_ours_and_the_rest_stays() {
        let managed = json!([
            entry("kubectl", "Update", "", json!({"f:data": {"f:a": {}}})),
            entry("before-first-apply", "Update", "", json!({"f:data": {"f:b": {}}, "f:metadata": {}})),
            entry("us", "Apply", "", json!({"f:data": {"f:c": {}}})),
            entry("kube-controller-manager", "Update", "", json!({"f:x": {}})),
            entry("hpa", "Update", "scale", json!({"f:y": {}})),
            entry("gitops", "Apply", "", json!({"f:z": {}})),
        ]);
        let after = takeover(&managed, "us", "v1", &[]).unwrap();
        let managers: Vec<_> =
            after.as_array().unwrap().iter().map(|entry| entry["manager"].clone()).collect();
        assert_eq!(managers, ["kube-controller-manager", "hpa", "gitops", "us"]);
        assert_eq!(
            after[3]["fieldsV1"],
            json!({"f:data": {"f:a": {}, "f:b": {}, "f:c": {}}, "f:metadata": {}})
        );
        assert_eq!(after[3]["operation"], "Apply");
    }

    #[test]
    fn what_was_put_in_the_place_of_ours_is_taken_and_nothing_else() {
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
    fn an_operator_that_we_succeed_is_taken_over_though_it_applied() {
        let managed = json!([entry("harbor-operator", "Apply", "", json!({"f:data": {}}))]);
        assert_eq!(takeover(&managed, "us", "v1", &[]), None);
        assert!(takeover(&managed, "us", "v1", &["harbor-operator".into()]).is_some());
    }

    #[test]
    fn taken_over_once_there_is_nothing_left_to_take() {
        let managed = json!([entry("kubectl", "Update", "", json!({"f:data": {"f:a": {}}}))]);
        let after = takeover(&managed, "us", "v1", &[]).unwrap();
        assert_eq!(takeover(&after, "us", "v1", &[]), None);
        assert_eq!(takeover(&Value::Null, "us", "v1", &[]), None);
    }
}
