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
