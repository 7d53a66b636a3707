//! The objects of Harbors, HarborClusters and components as a first run sends them, with a fixed digest key
//! and fixed uids: metadata, digests, dependencies, order and pod tokens. Their specs are in other snapshots.
//!
//! A changed digest is a write of that object in every installation, a changed token restarts its pods.
//! Accept a change here only if that is what the release notes say.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod sample;

use std::sync::Arc;

use harbor_operator::api::{
    ChartMuseum, Core, Exporter, JobService, NotaryServer, NotarySigner, Portal, Registry, Trivy,
};
use harbor_operator::catalogue::Release;
use harbor_operator::cluster::HarborClusterBlueprint;
use harbor_operator::harbor::HarborBlueprint;
use harbor_operator::workload::{ComponentBlueprint, Deployed};
use sample::{KINDS, claim, component, stored_secrets};
use serde_json::{Value, json};
use windlass::names::mark;
use windlass::{Applied, AppliedNode, Blueprint, DigestKey, applied};
use windlass_runtime::cache::Digest;

/// A uid that depends on the id only.
fn uid(id: &str) -> String {
    let digest = Digest::of(id).unwrap().to_string();
    format!("00000000-0000-4000-8000-{}", &digest[..12])
}

fn object(kind: &str, name: &str) -> Value {
    json!({"kind": kind, "metadata": {"name": name, "uid": uid(&format!("{kind} {name}"))}})
}

/// The plan of an owner once everything is there: the objects that it generates and renews are made up, one
/// after the other in the order of the plan, so that each is made from those before it.
fn whole<B: Blueprint>(blueprint: &B, owner: &Value, objects: &[Value]) -> Applied {
    let mut owner = owner.clone();
    owner["metadata"]["namespace"] = json!("registry");
    owner["metadata"]["uid"] = json!(uid("owner"));
    owner["metadata"]["generation"] = json!(1);
    let owner: B::Owner = serde_json::from_value(owner).unwrap();
    let mut objects = objects.to_vec();
    loop {
        let record = applied(blueprint, &owner, &objects, &DigestKey::from_bytes(&[7; 32])).unwrap();
        let is_made = |node: &&AppliedNode| {
            let made = node.what.starts_with("generate once") || node.what.starts_with("renew");
            made && record.waiting.iter().any(|(id, _)| *id == node.id)
        };
        let Some(node) = record.nodes.iter().find(is_made) else {
            assert_eq!(record.waiting, [], "something is missing");
            return record;
        };
        let (kind, name) = node.id.split_once(' ').unwrap();
        let mut made = object(kind, name);
        if let Some(from) = &node.made_from {
            made["metadata"]["annotations"] =
                json!({mark::DUE: "2027-01-01T00:00:00Z", mark::MADE_FROM: format!("{from}:tls.crt")});
        }
        objects.push(made);
    }
}

/// Everything that no other snapshot has: the spec of an object is in its digest.
fn shown(record: &Applied) -> String {
    let node = |node: &AppliedNode| {
        let mut text = format!("{}: {}\n", node.id, node.what);
        text.extend(node.after.iter().map(|id| format!("after {id}\n")));
        text.extend(node.made_from.iter().map(|from| format!("made from {from}\n")));
        if let Some(body) = &node.body {
            let mut parts = json!({"metadata": body["metadata"]});
            if let Some(pods) = body.pointer("/spec/template/metadata") {
                parts["pods"] = pods.clone();
            }
            text.push_str(&serde_saphyr::to_string(&parts).unwrap());
        }
        text
    };
    record.nodes.iter().map(node).collect::<Vec<_>>().join("---\n")
}

fn assert_recorded(name: &str, record: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.set_snapshot_path("snapshots/applied");
    settings.bind(|| insta::assert_snapshot!(name, record));
}

/// The object of this kind and name of a manifest.
fn manifest(text: &str, kind: &str, name: &str) -> Value {
    let all: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    all.into_iter().find(|object| object["kind"] == kind && object["metadata"]["name"] == name).unwrap()
}

const MANIFESTS: &str = include_str!("manifests/newer.yaml");

#[test]
fn the_applied_objects_of_a_harbor_never_change() {
    let minimal = manifest(MANIFESTS, "Harbor", "minimal");
    let full = manifest(MANIFESTS, "Harbor", "full");
    let mut proxied = minimal.clone();
    proxied["metadata"]["name"] = json!("proxied");
    proxied["spec"]["version"] = json!("2.15.2");
    proxied["spec"]["internalTLS"] = json!({"enabled": true});
    proxied["spec"]["core"] = json!({});
    proxied["spec"]["expose"] =
        json!({"core": {"tls": {}, "service": {"type": "LoadBalancer", "proxy": {"replicas": 2}}}});
    for harbor in [minimal, full, proxied] {
        let record = whole(&HarborBlueprint::default(), &harbor, &[]);
        assert_recorded(&format!("harbor-{}", harbor["metadata"]["name"].as_str().unwrap()), &shown(&record));
    }
}

#[test]
fn the_applied_objects_of_a_harbor_cluster_never_change() {
    let sample = manifest(include_str!("../samples/harborcluster.yaml"), "HarborCluster", "sample");
    let named = |name| manifest(MANIFESTS, "HarborCluster", name);
    // Made by other operators, and by the user.
    let mut database = object("Secret", "harbor.postgresql-registry-full-stack.credentials");
    database["data"] = json!({"password": "cGFzc3dvcmQ="});
    let mut minio = object("Secret", "minio");
    minio["data"] = json!({"accesskey": "YWNjZXNz", "secretkey": "c2VjcmV0"});
    let objects = [database, minio];
    for cluster in [sample, named("built-in"), named("external"), named("full-stack")] {
        let record = whole(&HarborClusterBlueprint::default(), &cluster, &objects);
        let name = cluster["metadata"]["name"].as_str().unwrap();
        assert_recorded(&format!("harborcluster-{name}"), &shown(&record));
    }
}

fn of_component<C: Deployed>(owner: &Value, objects: &[Value]) -> Applied {
    whole(&ComponentBlueprint::<C>::new(Arc::default()), owner, objects)
}

#[test]
fn the_applied_objects_of_components_never_change() {
    for version in ["2.6.2", "2.15.2"] {
        let release = Release::of(&version.parse().unwrap()).unwrap();
        let mut objects = stored_secrets();
        objects.push(claim("ReadWriteOnce"));
        objects.push(component("RegistryController", version, true));
        for (kind, _) in KINDS.into_iter().filter(|(_, part)| release.image(*part).is_some()) {
            let owner = &component(kind, version, true);
            let record = match kind {
                "Portal" => of_component::<Portal>(owner, &objects),
                "Core" => of_component::<Core>(owner, &objects),
                "Registry" => of_component::<Registry>(owner, &objects),
                "JobService" => of_component::<JobService>(owner, &objects),
                "Trivy" => of_component::<Trivy>(owner, &objects),
                "Exporter" => of_component::<Exporter>(owner, &objects),
                "ChartMuseum" => of_component::<ChartMuseum>(owner, &objects),
                "NotaryServer" => of_component::<NotaryServer>(owner, &objects),
                "NotarySigner" => of_component::<NotarySigner>(owner, &objects),
                other => panic!("{other}"),
            };
            assert_recorded(&format!("{}-{version}", kind.to_lowercase()), &shown(&record));
        }
    }
}
