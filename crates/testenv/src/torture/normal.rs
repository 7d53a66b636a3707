//! Objects with everything taken out that differs between two runs of the same scenario.
//!
//! Promise: what an operator decides stays (names, labels, annotations, finalizers, owners, spec, data); what
//! the server and the clock decide goes. Values of Secrets are digests: they can be compared and not be read.

use kube::api::DynamicObject;
use serde_json::{Map, Value, json};

use super::kind::Kind;
use super::point::NAMESPACE;

/// Labels whose values are hashes that the server's controllers make, and put into names.
const HASHES: [&str; 2] = ["pod-template-hash", "controller-revision-hash"];

/// Annotations that count what the server's controllers did.
const COUNTERS: [&str; 1] = ["deployment.kubernetes.io/revision"];

/// Parts of the core kinds that the server fills in, different in each namespace.
const ALLOCATED: [(&str, &str); 5] = [
    ("Service", "/spec/clusterIP"),
    ("Service", "/spec/clusterIPs"),
    ("Service", "/spec/healthCheckNodePort"),
    ("PersistentVolumeClaim", "/spec/volumeName"),
    ("Pod", "/spec/nodeName"),
];

/// The name without what the server made up: `web-*` of an object that asked for a generated name.
pub(super) fn name(object: &DynamicObject, namespace: &str) -> String {
    let name = match &object.metadata.generate_name {
        Some(prefix) => format!("{prefix}*"),
        None => object.metadata.name.clone().unwrap_or_default(),
    };
    let hashes = hashes(object);
    general(&name, namespace, &hashes)
}

/// The object as it is compared with that of another run.
pub(super) fn object(kind: &Kind, object: &DynamicObject, namespace: &str) -> Value {
    let mut value = content(kind, object, namespace);
    if kind.is_once(object) {
        blot(&mut value);
    }
    let mut value = json!({ "content": value, "metadata": metadata(object) });
    let hashes = hashes(object);
    generalise(&mut value, namespace, &hashes);
    value
}

/// The object without its metadata, as it is compared within one run.
pub(super) fn content(kind: &Kind, object: &DynamicObject, namespace: &str) -> Value {
    let mut value = object.data.clone();
    if let Some(fields) = value.as_object_mut() {
        for field in ["apiVersion", "kind"] {
            fields.remove(field);
        }
        if !kind.status {
            fields.remove("status");
        }
        if kind.name() == "Secret" && kind.resource.group.is_empty() {
            fields.values_mut().filter(|value| value.is_object()).for_each(digest);
        }
    }
    let core = |name: &str| kind.name() == name && kind.resource.group.is_empty();
    for (_, pointer) in ALLOCATED.iter().filter(|(name, _)| core(name)) {
        remove(&mut value, pointer);
    }
    if core("Service")
        && let Some(ports) = value.pointer_mut("/spec/ports").and_then(Value::as_array_mut)
    {
        for port in ports.iter_mut().filter_map(Value::as_object_mut) {
            port.remove("nodePort");
        }
    }
    generalise(&mut value, namespace, &hashes(object));
    value
}

fn metadata(object: &DynamicObject) -> Value {
    let metadata = &object.metadata;
    let mut value = Map::new();
    let mut keep = |field: &str, part: Value| {
        // An empty list and none at all mean the same.
        let empty = part.is_null()
            || part.as_array().is_some_and(Vec::is_empty)
            || part.as_object().is_some_and(Map::is_empty);
        if !empty {
            value.insert(field.to_owned(), part);
        }
    };
    let annotations =
        metadata.annotations.iter().flatten().filter(|(name, _)| !COUNTERS.contains(&name.as_str()));
    keep("annotations", annotations.map(|(name, text)| (name.clone(), json!(text))).collect());
    keep("labels", json!(metadata.labels));
    keep("finalizers", json!(metadata.finalizers));
    let owners = metadata.owner_references.iter().flatten().map(|owner| {
        json!({
            "apiVersion": owner.api_version, "kind": owner.kind, "name": owner.name,
            "controller": owner.controller, "blockOwnerDeletion": owner.block_owner_deletion,
        })
    });
    keep("ownerReferences", owners.collect());
    keep("being deleted", json!(metadata.deletion_timestamp.as_ref().map(|_| true)));
    Value::Object(value)
}

fn hashes(object: &DynamicObject) -> Vec<String> {
    let labels = object.metadata.labels.iter().flatten();
    labels.filter(|(name, _)| HASHES.contains(&name.as_str())).map(|(_, hash)| hash.clone()).collect()
}

fn general(text: &str, namespace: &str, hashes: &[String]) -> String {
    let mut text = text.replace(namespace, NAMESPACE);
    for hash in hashes {
        text = text.replace(hash.as_str(), "{hash}");
    }
    if text.starts_with("kube-api-access-") {
        "kube-api-access-*".clone_into(&mut text);
    }
    text
}

/// Takes namespaces, hashes, times and observed generations out of all that is below.
fn generalise(value: &mut Value, namespace: &str, hashes: &[String]) {
    match value {
        Value::String(text) => *text = general(text, namespace, hashes),
        Value::Array(items) => items.iter_mut().for_each(|item| generalise(item, namespace, hashes)),
        Value::Object(fields) => {
            fields.remove("observedGeneration");
            for (field, value) in fields.iter_mut() {
                if is_time(field, value) {
                    *value = json!("(time)");
                } else {
                    generalise(value, namespace, hashes);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn is_time(field: &str, value: &Value) -> bool {
    let named = ["Time", "Timestamp", "At"].iter().any(|end| field.ends_with(end));
    named && value.as_str().is_some_and(|text| text.parse::<jiff::Timestamp>().is_ok())
}

/// Replaces every value by a digest of it.
fn digest(value: &mut Value) {
    if let Some(fields) = value.as_object_mut() {
        for value in fields.values_mut() {
            let text = value.to_string();
            *value = json!(format!("(sha256 {}…)", crate::digest::short([text.as_bytes()], 4)));
        }
    }
}

/// Leaves the structure and blots out every value.
fn blot(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(blot),
        Value::Array(items) => items.iter_mut().for_each(blot),
        leaf => *leaf = json!("(created once)"),
    }
}

fn remove(value: &mut Value, pointer: &str) {
    if let Some((parent, field)) = pointer.rsplit_once('/')
        && let Some(fields) = value.pointer_mut(parent).and_then(Value::as_object_mut)
    {
        fields.remove(field);
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
    use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};

    use super::*;

    fn parse(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    /// The same object twice, as two runs would leave it.
    fn twins(text: &str) -> [DynamicObject; 2] {
        ["1", "2"].map(|run| {
            let text = text.replace("NS", &format!("ns-{run}")).replace("RUN", run);
            parse(serde_json::from_str(&text).unwrap())
        })
    }

    fn same(kind: &Kind, text: &str) {
        let [a, b] = twins(text);
        assert_eq!(name(&a, "ns-1"), name(&b, "ns-2"));
        assert_eq!(object(kind, &a, "ns-1"), object(kind, &b, "ns-2"));
    }

    #[test]
    fn fields_that_the_server_decides_are_removed() {
        same(
            &Kind::of::<Service>(),
            r#"{"metadata": {"name": "a", "namespace": "NS", "uid": "RUN", "resourceVersion": "RUN", "generation": RUN,
                "creationTimestamp": "2026-01-0RUNT00:00:00Z", "managedFields": [{"manager": "RUN"}],
                "ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "RUN"}]},
                "spec": {"clusterIP": "10.0.0.RUN", "clusterIPs": ["10.0.0.RUN"], "ports": [{"port": 80, "nodePort": 3000RUN}],
                "externalName": "a.NS.svc"}}"#,
        );
        same(
            &Kind::of::<ReplicaSet>(),
            r#"{"metadata": {"name": "web-hashRUN", "labels": {"pod-template-hash": "hashRUN"}},
                "spec": {"selector": {"matchLabels": {"pod-template-hash": "hashRUN"}}}}"#,
        );
        same(
            &Kind::of::<Deployment>().with_status(),
            r#"{"metadata": {"name": "a"}, "status": {"observedGeneration": RUN,
                "conditions": [{"type": "Ready", "lastTransitionTime": "2026-01-0RUNT00:00:00Z"}]}}"#,
        );
        same(
            &Kind::of::<Secret>().created_once(),
            r#"{"metadata": {"name": "a"}, "data": {"password": "RUN"}}"#,
        );
        same(
            &Kind::of::<ConfigMap>(),
            r#"{"metadata": {"name": "b-xRUN", "generateName": "b-"}, "data": {"k": "v"}}"#,
        );
    }

    #[test]
    fn fields_that_an_operator_decides_are_kept() {
        let kind = Kind::of::<ConfigMap>();
        let of = |value: Value| object(&kind, &parse(value), "ns");
        let plain = of(json!({"metadata": {"name": "a"}, "data": {"k": "1"}}));
        for other in [
            json!({"metadata": {"name": "a"}, "data": {"k": "2"}}),
            json!({"metadata": {"name": "a"}, "data": {"k": "1", "l": "1"}}),
            json!({"metadata": {"name": "a", "labels": {"l": "v"}}, "data": {"k": "1"}}),
            json!({"metadata": {"name": "a", "annotations": {"l": "v"}}, "data": {"k": "1"}}),
            json!({"metadata": {"name": "a", "finalizers": ["f"]}, "data": {"k": "1"}}),
            json!({"metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z"}, "data": {"k": "1"}}),
            json!({"metadata": {"name": "a", "ownerReferences": [
                {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "u"}]}, "data": {"k": "1"}}),
        ] {
            assert_ne!(of(other.clone()), plain, "{other}");
        }
    }

    #[test]
    fn the_values_of_a_secret_cannot_be_read_and_can_be_compared() {
        let kind = Kind::of::<Secret>();
        let of = |value: &str| {
            content(&kind, &parse(json!({"metadata": {"name": "a"}, "data": {"k": value}})), "ns")
        };
        assert!(!of("aHVudGVyMg==").to_string().contains("aHVudGVyMg"));
        assert_ne!(of("aHVudGVyMg=="), of("aHVudGVyMw=="));
        assert_eq!(of("aHVudGVyMg=="), of("aHVudGVyMg=="));
    }
}
