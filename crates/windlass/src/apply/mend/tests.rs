use k8s_openapi::api::apps::v1::Deployment;
use serde_json::{Value, json};
use windlass_runtime::client::FieldCause;
use windlass_runtime::resource::ResourceType;

use super::*;

const MANAGER: &str = "us";

fn desired(group: &'static str, kind: &'static str, spec: Value) -> Desired {
    let resource = ResourceType {
        group: group.into(),
        version: "v1".into(),
        kind: kind.into(),
        ..ResourceType::of::<Deployment>()
    };
    let body = json!({"metadata": {"name": "web", "annotations": {mark::DIGEST: "now"}}, "spec": spec});
    Desired::from_value(resource, body, Some("shop")).unwrap()
}

fn deployment(spec: Value) -> Desired {
    desired("apps", "Deployment", spec)
}

fn entry(manager: &str, operation: &str, api_version: &str, spec: Value) -> Value {
    json!({"manager": manager, "operation": operation, "apiVersion": api_version, "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": spec}})
}

/// The live object, with our own entry first.
fn live(desired: &Desired, digest: &str, spec: Value, own: Value, others: Vec<Value>) -> Value {
    let own = entry(MANAGER, "Apply", &desired.resource.api_version(), own);
    let managed: Vec<Value> = [own].into_iter().chain(others).collect();
    json!({"metadata": {"name": "web", "uid": "u", "resourceVersion": "7", "annotations": {mark::DIGEST: digest},
        "managedFields": managed}, "spec": spec})
}

fn cause(field: &str, reason: &str) -> FieldCause {
    FieldCause { field: field.to_owned(), reason: reason.to_owned() }
}

fn decide(desired: &Desired, live: &Value, causes: &[FieldCause]) -> Option<Mend> {
    mend(&Case { live, desired, manager: MANAGER, conflicts: Conflicts::Take, causes })
}

/// The fields of the spec that our entry has after a mend.
fn own_after(mend: &Mend) -> Value {
    let operations = mend.patch.as_array().unwrap();
    let managed = operations.iter().find(|operation| operation["path"] == "/metadata/managedFields").unwrap();
    let entries = managed["value"].as_array().unwrap();
    let own = entries.iter().find(|entry| entry["manager"] == MANAGER && entry["operation"] == "Apply");
    own.unwrap()["fieldsV1"]["f:spec"].clone()
}

/// Puts a value below a path.
fn below(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |value, name| json!({*name: value}))
}

fn fields_below(path: &[&str], value: Value) -> Value {
    path.iter().rev().fold(value, |value, name| json!({format!("f:{name}"): value}))
}

/// A line of the table of siblings: the kind, the path of both fields, the value in the plan with its fields
/// in our entry, and the field of the live object that has to be removed.
struct Line {
    kind: (&'static str, &'static str),
    parent: &'static [&'static str],
    now: Value,
    own: Value,
    stale: Value,
    taken: Value,
}

fn lines() -> Vec<Line> {
    let rolling = json!({"rollingUpdate": {"maxUnavailable": 1}});
    let taken = json!({"f:rollingUpdate": {"f:maxUnavailable": {}}});
    let strategy = |kind, parent, now: &str| Line {
        kind: ("apps", kind),
        parent,
        now: json!({"type": now}),
        own: json!({"f:type": {}}),
        stale: rolling.clone(),
        taken: taken.clone(),
    };
    let account = |kind, parent| Line {
        kind,
        parent,
        now: json!({}),
        own: json!({"f:serviceAccountName": {}}),
        stale: json!({"serviceAccountName": "x", "serviceAccount": "x"}),
        taken: json!({"f:serviceAccount": {}}),
    };
    let policy = |now, own| Line {
        kind: ("networking.k8s.io", "NetworkPolicy"),
        parent: &[],
        now,
        own,
        stale: json!({"policyTypes": ["Ingress"]}),
        taken: json!({"f:policyTypes": {}}),
    };
    vec![
        strategy("Deployment", &["strategy"], "Recreate"),
        strategy("StatefulSet", &["updateStrategy"], "OnDelete"),
        strategy("DaemonSet", &["updateStrategy"], "OnDelete"),
        account(("apps", "Deployment"), &["template", "spec"]),
        account(("apps", "StatefulSet"), &["template", "spec"]),
        account(("apps", "DaemonSet"), &["template", "spec"]),
        account(("apps", "ReplicaSet"), &["template", "spec"]),
        account(("batch", "CronJob"), &["jobTemplate", "spec", "template", "spec"]),
        policy(json!({"egress": [{}]}), json!({"f:ingress": {}})),
        policy(json!({"ingress": []}), json!({"f:ingress": {}, "f:egress": {}})),
    ]
}

#[test]
fn every_sibling_is_made_ours_so_that_the_apply_drops_it() {
    let mut tested = std::collections::BTreeSet::new();
    for Line { kind: (group, kind), parent, now, own, stale, taken } in lines() {
        let desired = desired(group, kind, below(parent, now));
        let own_fields = fields_below(parent, own);
        let live = live(&desired, "before", below(parent, stale), own_fields.clone(), Vec::new());
        let mend = decide(&desired, &live, &[]).unwrap_or_else(|| panic!("{kind}"));
        let mut expected = own_fields.as_object().unwrap().clone();
        managed_fields::union(&mut expected, fields_below(parent, taken).as_object().unwrap());
        assert_eq!(own_after(&mend), Value::Object(expected), "{kind}");
        assert_eq!(
            mend.patch[0],
            json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"})
        );
        assert_eq!(mend.patch[1], json!({"op": "replace", "path": "/metadata/uid", "value": "u"}));
        assert_eq!(mend.patch.as_array().map(Vec::len), Some(3), "no content is touched: {:#}", mend.patch);
        tested.insert((group, kind));
    }
    let mut listed = siblings::kinds();
    listed.retain(|kind| !tested.contains(kind));
    assert!(listed.is_empty(), "without a test: {listed:?}");
}

#[test]
fn a_sibling_stays_if_another_applies_it_or_the_plan_declares_it() {
    let strategy = |of: Value| json!({"strategy": of});
    let stale = strategy(json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}));
    let own = json!({"f:strategy": {"f:type": {}}});
    let held = |manager: &str, operation: &str| {
        entry(manager, operation, "apps/v1", json!({"f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}}))
    };
    let recreate = || deployment(strategy(json!({"type": "Recreate"})));
    let mends = |desired: &Desired, others: Vec<Value>| {
        let live = live(desired, "before", stale.clone(), own.clone(), others);
        decide(desired, &live, &[]).is_some()
    };
    assert!(mends(&recreate(), Vec::new()), "nobody's");
    assert!(mends(&recreate(), vec![held("kubectl-edit", "Update")]), "a person's");
    assert!(!mends(&recreate(), vec![held("gitops", "Apply")]), "another applies it");
    assert!(!mends(&recreate(), vec![held("kube-controller-manager", "Update")]), "the control plane's");
    assert!(!mends(&deployment(strategy(json!({"type": "RollingUpdate"}))), Vec::new()), "allowed");
    let declared = strategy(json!({"type": "Recreate", "rollingUpdate": {"maxSurge": 1}}));
    assert!(!mends(&deployment(declared), Vec::new()), "the plan wants both");
    let live = live(&recreate(), "before", stale.clone(), own.clone(), vec![held("kubectl-edit", "Update")]);
    let case = Case {
        live: &live,
        desired: &recreate(),
        manager: MANAGER,
        conflicts: Conflicts::Report,
        causes: &[],
    };
    assert_eq!(mend(&case), None, "the plan takes nothing from others");
}

#[test]
fn a_taken_field_is_removed_from_its_former_manager() {
    let desired = deployment(json!({"strategy": {"type": "Recreate"}}));
    let stale = json!({"strategy": {"rollingUpdate": {"maxSurge": 1}}});
    let theirs = json!({"f:paused": {}, "f:strategy": {"f:rollingUpdate": {"f:maxSurge": {}}}});
    let others = vec![entry("kubectl-edit", "Update", "apps/v1", theirs)];
    let live = live(&desired, "before", stale, json!({"f:strategy": {"f:type": {}}}), others);
    let mend = decide(&desired, &live, &[]).unwrap();
    assert_eq!(mend.patch[2]["value"][1]["fieldsV1"], json!({"f:spec": {"f:paused": {}}}));
    assert_eq!(mend.paths, [".spec.strategy.rollingUpdate"]);
}

const HTTPS: &str = "k:{\"port\":8443,\"protocol\":\"TCP\"}";

/// A Service with a port that somebody has changed, and another port that somebody has added.
fn changed_port(digest: &str) -> (Desired, Value) {
    let desired = desired("", "Service", json!({"ports": [{"name": "https", "port": 443}]}));
    let item = json!({".": {}, "f:name": {}, "f:port": {}});
    let theirs = entry(
        "somebody",
        "Update",
        "v1",
        json!({"f:ports": {HTTPS: item, "k:{\"port\":90,\"protocol\":\"TCP\"}": item}}),
    );
    let spec = json!({"ports": [{"name": "https", "port": 8443, "protocol": "TCP", "targetPort": 443},
        {"name": "metrics", "port": 90, "protocol": "TCP"}]});
    let live = live(&desired, digest, spec, json!({"f:type": {}}), vec![theirs]);
    (desired, live)
}

#[test]
fn an_item_that_duplicates_one_of_ours_makes_way_and_its_neighbour_stays() {
    for digest in ["now", "before"] {
        let (desired, live) = changed_port(digest);
        let causes = [cause("spec.ports[2].name", "FieldValueDuplicate")];
        let mend = decide(&desired, &live, &causes).unwrap();
        let own = own_after(&mend);
        assert_eq!(own["f:ports"], json!({HTTPS: {".": {}, "f:name": {}, "f:port": {}}}), "{own:#}");
        assert_eq!(mend.paths, [".spec.ports[{\"port\":8443,\"protocol\":\"TCP\"}]"]);
        assert_eq!(decide(&desired, &live, &[]), None, "nothing was refused");
        assert_eq!(decide(&desired, &live, &[cause("spec.type", "FieldValueInvalid")]), None);
    }
}

/// A Deployment with a container that somebody has renamed.
fn renamed_container(digest: &str, image: &str) -> (Desired, Value) {
    let container = |name: &str, image: &str| json!({"name": name, "image": image, "args": [], "resources": {"limits": {"cpu": "1000m"}}});
    let desired = deployment(json!({"template": {"spec": {"containers": [container("main", "shop:1")]}}}));
    let fields = json!({"f:containers": {"k:{\"name\":\"other\"}": {".": {}, "f:name": {}, "f:image": {}}}});
    let theirs = entry("somebody", "Update", "apps/v1", json!({"f:template": {"f:spec": fields}}));
    let mut other = container("other", image);
    other["resources"] = json!({"limits": {"cpu": "1"}});
    other.as_object_mut().unwrap().remove("args");
    let spec = json!({"template": {"spec": {"containers": [other]}}});
    let live = live(&desired, digest, spec, json!({"f:replicas": {}}), vec![theirs]);
    (desired, live)
}

#[test]
fn a_renamed_container_makes_way_and_another_container_stays() {
    let (desired, live) = renamed_container("now", "shop:1");
    let mend = decide(&desired, &live, &[]).unwrap();
    let containers = &own_after(&mend)["f:template"]["f:spec"]["f:containers"];
    assert_eq!(*containers, json!({"k:{\"name\":\"other\"}": {".": {}, "f:name": {}, "f:image": {}}}));
    let (desired, live) = renamed_container("now", "proxy:1");
    assert_eq!(decide(&desired, &live, &[]), None, "a sidecar");
    let (desired, live) = renamed_container("before", "shop:1");
    assert_eq!(decide(&desired, &live, &[]), None, "the plan has another container now");
}

#[test]
fn a_lost_container_is_seen_in_our_entry() {
    let (desired, _) = renamed_container("now", "shop:1");
    let has_lost = |own: Value| lists::has_lost_a_container(&desired.body, own.as_object().unwrap());
    assert!(has_lost(json!({"f:spec": {"f:replicas": {}}})));
    assert!(has_lost(
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"x\"}": {}}}}}})
    ));
    let whole =
        json!({"f:spec": {"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"main\"}": {".": {}}}}}}});
    assert!(!has_lost(whole));
    assert!(!has_lost(json!({"f:spec": {"f:template": {}}})), "one value");
}

#[test]
fn a_field_that_is_empty_in_the_plan_is_emptied_if_all_of_it_was_ours() {
    let custom = || desired("test.windlass.dev", "Gadget", json!({"size": 1, "part": {}}));
    let own = json!({"f:size": {}, "f:part": {"f:labels": {"f:x": {}}}});
    let api_version = custom().resource.api_version();
    let decide_on = |desired: &Desired, part: Value, others: Vec<Value>, causes: &[FieldCause]| {
        let live = live(desired, "before", json!({"size": 1, "part": part}), own.clone(), others);
        decide(desired, &live, causes)
    };
    let ours = json!({"labels": {"x": "y"}});
    let mend = decide_on(&custom(), ours.clone(), Vec::new(), &[]).unwrap();
    assert_eq!(mend.patch[2], json!({"op": "replace", "path": "/spec/part", "value": {}}));
    assert_eq!(
        (mend.patch.as_array().map(Vec::len), &mend.paths[..]),
        (Some(3), &[".spec.part".to_owned()][..])
    );
    let default = json!({"labels": {"x": "y"}, "size": 3});
    assert_eq!(decide_on(&custom(), default, Vec::new(), &[]), None, "something is left of it");
    let theirs =
        || vec![entry("somebody", "Update", &api_version, json!({"f:part": {"f:labels": {"f:z": {}}}}))];
    assert_eq!(
        decide_on(&custom(), json!({"labels": {"x": "y", "z": "y"}}), theirs(), &[]),
        None,
        "theirs is left"
    );
    assert_eq!(decide_on(&custom(), json!({}), Vec::new(), &[]), None, "it is empty");

    let built_in = || desired("apps", "Deployment", json!({"size": 1, "part": {}}));
    assert_eq!(decide_on(&built_in(), ours.clone(), Vec::new(), &[]), None, "a null is as good there");
    let refused = [cause("spec.part", "FieldValueTypeInvalid")];
    assert!(decide_on(&built_in(), ours, Vec::new(), &refused).is_some());
}

#[test]
fn lists_and_items_of_lists_are_emptied_too() {
    let item = |sub: Value| json!({"ports": [{"port": 1, "sub": sub}]});
    let own = json!({"f:ports": {"k:{\"port\":1}": {".": {}, "f:port": {}, "f:sub": {"f:a/b": {}}}}});
    let inner = desired("test.windlass.dev", "Gadget", item(json!({})));
    let spec = json!({"ports": [{"port": 0}, {"port": 1, "sub": {"a/b": "x"}}]});
    let mend = decide(&inner, &live(&inner, "before", spec, own.clone(), Vec::new()), &[]).unwrap();
    assert_eq!(mend.patch[2], json!({"op": "replace", "path": "/spec/ports/1/sub", "value": {}}));
    let whole = desired("test.windlass.dev", "Gadget", json!({"ports": []}));
    let spec = item(json!({"a/b": "x"}));
    let mend = decide(&whole, &live(&whole, "before", spec, own, Vec::new()), &[]).unwrap();
    assert_eq!(mend.patch[2], json!({"op": "replace", "path": "/spec/ports", "value": []}));
}

#[test]
fn indexes_are_no_part_of_a_refused_field() {
    for (field, plain) in
        [("spec.ports[1].name", "spec.ports.name"), ("spec.a[0].b[key].c", "spec.a.b.c"), ("spec", "spec")]
    {
        assert_eq!(without_indexes(field), plain);
    }
}
