//! The expected cluster after the fan-out has converged, object by object. Pure.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::admin::text;
use crate::widgets;

/// The kinds of children: path and plural.
pub(crate) const CHILDREN: [(&str, &str); 5] = [
    ("/api/v1", "serviceaccounts"),
    ("/api/v1", "configmaps"),
    ("/api/v1", "secrets"),
    ("/api/v1", "services"),
    ("/apis/apps/v1", "deployments"),
];

/// All objects of a kind, by `namespace/name`.
pub(crate) type ByName = BTreeMap<String, Value>;

/// Objects by their `namespace/name`, those in the benchmark's namespaces only.
pub(crate) fn by_name(objects: Vec<Value>) -> ByName {
    let ours: Vec<String> = widgets::namespaces().collect();
    objects
        .into_iter()
        .filter(|object| ours.contains(&text(&object["metadata"]["namespace"])))
        .map(|object| {
            let metadata = &object["metadata"];
            (format!("{}/{}", text(&metadata["namespace"]), text(&metadata["name"])), object)
        })
        .collect()
}

/// The differences from `count` Widgets with these colors, in words; empty if there are none.
pub(crate) fn differences(
    count: usize,
    color: impl Fn(usize) -> &'static str,
    owners: &ByName,
    children: &BTreeMap<&str, ByName>,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut expect = |holds: bool, words: String| {
        if !holds {
            wrong.push(words);
        }
    };
    expect(owners.len() == count, format!("{} Widgets instead of {count}", owners.len()));
    for (plural, of_kind) in children {
        expect(of_kind.len() == count, format!("{} {plural} instead of {count}", of_kind.len()));
    }
    for index in 0..count {
        let widget = widgets::key(index);
        let key = format!("{}/{}", widget.namespace, widget.name);
        let Some(owner) = owners.get(&key) else {
            expect(false, format!("no Widget {key}"));
            continue;
        };
        let spec = widgets::spec(index, color(index));
        expect(owner["spec"] == spec, format!("Widget {key} has another spec"));
        expect(is_ready(owner), format!("Widget {key} is not ready: {}", owner["status"]));
        for (plural, of_kind) in children {
            let Some(child) = of_kind.get(&key) else {
                expect(false, format!("no {plural} {key}"));
                continue;
            };
            expect(is_owned(child, owner), format!("{plural} {key} is not owned by its Widget"));
            if let Some(why) = content(plural, child, &spec, &widget.name) {
                expect(false, format!("{plural} {key}: {why}"));
            }
        }
    }
    wrong
}

/// Returns true if the Widget's status is ready for its present generation.
pub(crate) fn is_ready(owner: &Value) -> bool {
    let generation = &owner["metadata"]["generation"];
    let condition = owner["status"]["conditions"].as_array().is_some_and(|conditions| {
        conditions.iter().any(|condition| {
            condition["type"] == "Ready"
                && condition["status"] == "True"
                && condition["observedGeneration"] == *generation
        })
    });
    owner["status"]["ready"] == true && owner["status"]["observedGeneration"] == *generation && condition
}

fn is_owned(child: &Value, owner: &Value) -> bool {
    child["metadata"]["ownerReferences"].as_array().is_some_and(|references| {
        references.len() == 1
            && references[0]["uid"] == owner["metadata"]["uid"]
            && references[0]["kind"] == "Widget"
            && references[0]["controller"] == true
            && references[0]["blockOwnerDeletion"] == true
    })
}

/// The difference between a child's content and the expected one, if any.
fn content(plural: &str, child: &Value, spec: &Value, name: &str) -> Option<&'static str> {
    let app = serde_json::json!({"app": name});
    match plural {
        "configmaps" => {
            let mut data = serde_json::Map::new();
            data.insert("color".into(), spec["color"].clone());
            data.insert("size".into(), spec["size"].to_string().into());
            for (key, value) in spec["config"].as_object().into_iter().flatten() {
                data.insert(format!("config.{key}"), value.clone());
            }
            (child["data"] != Value::Object(data)).then_some("another content")
        }
        "secrets" => {
            let digest = Sha256::digest(text(&spec["notes"]).as_bytes());
            let encoded = serde_json::to_value(k8s_openapi::ByteString(hex(&digest[..16]).into_bytes())).ok();
            (Some(&child["data"]["token"]) != encoded.as_ref()).then_some("another token")
        }
        "services" => {
            let port = &child["spec"]["ports"][0];
            let right = port["port"] == 80 && port["targetPort"] == 8080 && child["spec"]["selector"] == app;
            (!right).then_some("another port or selector")
        }
        "deployments" => {
            let (wanted, template) = (&child["spec"], &child["spec"]["template"]);
            let container = &template["spec"]["containers"][0];
            let annotated =
                template["metadata"]["annotations"].as_object().is_some_and(|all| !all.is_empty());
            let right = wanted["replicas"] == spec["replicas"]
                && wanted["selector"]["matchLabels"] == app
                && template["metadata"]["labels"]["app"] == *name
                && container["image"] == spec["image"]
                && container["args"] == spec["args"]
                && container["env"] == spec["env"]
                && template["spec"]["volumes"][0]["configMap"]["name"] == *name;
            match (right, annotated) {
                (true, true) => None,
                (true, false) => Some("its pods do not carry a digest of their configuration"),
                (false, _) => Some("another template, scale or selector"),
            }
        }
        _ => None,
    }
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn cluster() -> (ByName, BTreeMap<&'static str, ByName>) {
        let mut widget = widgets::widget(0, "red");
        widget["metadata"]["uid"] = json!("u");
        widget["metadata"]["generation"] = json!(2);
        widget["status"] = json!({"ready": true, "observedGeneration": 2,
            "conditions": [{"type": "Ready", "status": "True", "observedGeneration": 2}]});
        let spec = widget["spec"].clone();
        let name = "widget-000000";
        let metadata = json!({"namespace": "bench-0", "name": name, "ownerReferences": [
            {"uid": "u", "kind": "Widget", "controller": true, "blockOwnerDeletion": true}]});
        let mut data = json!({"color": "red", "size": "0"});
        for (key, value) in spec["config"].as_object().unwrap() {
            data[format!("config.{key}")] = value.clone();
        }
        let digest = Sha256::digest(text(&spec["notes"]).as_bytes());
        let token = serde_json::to_value(k8s_openapi::ByteString(hex(&digest[..16]).into_bytes())).unwrap();
        let children = [
            ("serviceaccounts", json!({"metadata": metadata})),
            ("configmaps", json!({"metadata": metadata, "data": data})),
            ("secrets", json!({"metadata": metadata, "data": {"token": token}})),
            (
                "services",
                json!({"metadata": metadata, "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}}),
            ),
            (
                "deployments",
                json!({"metadata": metadata, "spec": {
                "replicas": 1, "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}, "annotations": {"digest": "x"}}, "spec": {
                    "containers": [{"image": spec["image"], "args": spec["args"], "env": spec["env"]}],
                    "volumes": [{"name": "config", "configMap": {"name": name}}]}}}}),
            ),
        ];
        let children = children.into_iter().map(|(plural, object)| (plural, by_name(vec![object]))).collect();
        (by_name(vec![widget]), children)
    }

    #[test]
    fn a_cluster_that_is_as_it_should_be_has_no_differences() {
        let (owners, children) = cluster();
        assert_eq!(differences(1, |_| "red", &owners, &children), Vec::<String>::new());
    }

    #[test]
    fn every_difference_is_found() {
        let breaks: [(&str, &str, Value); 9] = [
            ("configmaps", "/data/color", json!("blue")),
            ("configmaps", "/metadata/ownerReferences/0/uid", json!("other")),
            ("secrets", "/data/token", json!("")),
            ("services", "/spec/ports/0/port", json!(81)),
            ("deployments", "/spec/replicas", json!(7)),
            ("deployments", "/spec/template/metadata/annotations", json!({})),
            ("deployments", "/spec/template/spec/containers/0/env", json!([])),
            ("widgets", "/status/ready", json!(false)),
            ("widgets", "/status/conditions/0/observedGeneration", json!(1)),
        ];
        for (plural, pointer, value) in breaks {
            let (mut owners, mut children) = cluster();
            let of_kind = children.get_mut(plural).unwrap_or(&mut owners);
            for object in of_kind.values_mut() {
                *object.pointer_mut(pointer).unwrap() = value.clone();
            }
            let found = differences(1, |_| "red", &owners, &children);
            assert_eq!(found.len(), 1, "{plural} {pointer}: {found:?}");
        }
    }

    #[test]
    fn missing_and_superfluous_objects_are_found() {
        let (owners, mut children) = cluster();
        children.insert("secrets", ByName::new());
        assert_eq!(differences(1, |_| "red", &owners, &children).len(), 2);
        let (owners, children) = cluster();
        assert!(!differences(0, |_| "red", &owners, &children).is_empty());
    }
}
