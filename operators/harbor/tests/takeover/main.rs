//! Takeover in place: the first operator of these kinds is stopped, ours is started, and nothing is lost.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a test fails by panicking

mod certificates;
mod cluster;
mod install;
mod optional;
#[path = "../cluster/others.rs"]
#[allow(dead_code)] // other tests use the rest
mod others;
#[path = "../cluster/sample.rs"]
#[allow(dead_code)] // other tests use the rest
mod sample;
mod upstream;
#[path = "../harbor/world.rs"]
#[allow(dead_code)] // other tests use the rest
mod world;

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use harbor_operator::api::{
    ChartMuseum, Core, Exporter, Harbor, JobService, NotaryServer, NotarySigner, Portal, Registry,
    RegistryController, Trivy,
};
use harbor_operator::harbor::certmanager::{Certificate, Issuer};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Secret, Service};
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::api::networking::v1::{Ingress, NetworkPolicy};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ListParams;
use kube::{CustomResourceExt as _, ResourceExt as _};
use serde_json::{Value, json};
use upstream::N;
use windlass_testenv::world::Namespaced;
use windlass_testenv::{Options, Requests, TestEnv, or_not_run};
use world::{World, status_and_message};

/// Deployments, by the words for their controllers.
const WORKLOADS: [&str; 9] = [
    "core",
    "jobservice",
    "portal",
    "registry",
    "trivy",
    "chartmuseum",
    "exporter",
    "notaryserver",
    "notarysigner",
];

/// A kind of cert-manager's, as its own operator has it: open, and with a status.
fn open(definition: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut definition = json!(world::open(definition));
    definition["spec"]["versions"][0]["subresources"] = json!({"status": {}});
    serde_json::from_value(definition).unwrap()
}

/// Everything of a namespace, by kind and name.
pub(crate) type Snapshot = BTreeMap<String, Value>;

pub(crate) async fn add<K: Namespaced>(world: &World, snapshot: &mut Snapshot) -> Result<()> {
    for object in world.namespace.api::<K>().list(&ListParams::default()).await?.items {
        let place = format!("{} {}", K::kind(&()), object.name_any());
        snapshot.insert(place, serde_json::to_value(object)?);
    }
    Ok(())
}

async fn snapshot(world: &World) -> Result<Snapshot> {
    let mut all = Snapshot::new();
    add::<Harbor>(world, &mut all).await?;
    add::<Core>(world, &mut all).await?;
    add::<JobService>(world, &mut all).await?;
    add::<Portal>(world, &mut all).await?;
    add::<Registry>(world, &mut all).await?;
    add::<RegistryController>(world, &mut all).await?;
    add::<Trivy>(world, &mut all).await?;
    add::<ChartMuseum>(world, &mut all).await?;
    add::<Exporter>(world, &mut all).await?;
    add::<NotaryServer>(world, &mut all).await?;
    add::<NotarySigner>(world, &mut all).await?;
    add::<Secret>(world, &mut all).await?;
    add::<ConfigMap>(world, &mut all).await?;
    add::<Service>(world, &mut all).await?;
    add::<Deployment>(world, &mut all).await?;
    add::<ReplicaSet>(world, &mut all).await?;
    add::<PersistentVolumeClaim>(world, &mut all).await?;
    add::<Ingress>(world, &mut all).await?;
    add::<NetworkPolicy>(world, &mut all).await?;
    add::<Certificate>(world, &mut all).await?;
    add::<Issuer>(world, &mut all).await?;
    Ok(all)
}

/// Objects that made cert-manager write Secrets: the only objects that are deleted.
fn writers() -> BTreeSet<String> {
    let internal = ["authority"].into_iter().chain(upstream::INTERNAL);
    let certificates = internal.map(|part| format!("Certificate {N}-internal-{part}"));
    let of_notary = ["notarysigner-authority", "notarysigner-authentication", "notaryserver-authentication"];
    let of_notary = of_notary.map(|name| format!("Certificate {N}-{name}"));
    let issuers = ["internal-authority", "internal", "notarysigner-authority", "notarysigner-authentication"];
    let issuers = issuers.map(|issuer| format!("Issuer {N}-{issuer}"));
    certificates.chain(of_notary).chain(issuers).collect()
}

async fn running(world: &World) -> Result<()> {
    for of in WORKLOADS {
        let is = |found: &Deployment| {
            let status = found.status.clone().unwrap_or_default();
            status.available_replicas == Some(1) && status.observed_generation == found.metadata.generation
        };
        world.see::<Deployment>(&format!("{N}-{of}"), "running", is).await?;
    }
    Ok(())
}

/// A file that was bytes is text, under its name, and without the password that was in it.
fn is_text(place: &str, old: &Value, new: &Value) {
    assert_eq!(new["binaryData"], Value::Null, "{place}");
    assert!(!new["data"].to_string().contains("pass%2Fword"), "a password in {place}");
    for (key, _) in old["binaryData"].as_object().into_iter().flatten() {
        assert!(new["data"][key].is_string(), "{key} of {place} is lost");
    }
}

/// Policies that chose no pods, and let nobody in, are those of their components.
fn are_mended(before: &Snapshot, after: &Snapshot, namespace: &str) {
    let pods = |place: &str, of: &str| {
        let labels = &after[place]["spec"]["podSelector"]["matchLabels"];
        assert_eq!(*labels, upstream::selector(of, namespace), "{place}");
    };
    let mut wrong = 0;
    let open = WORKLOADS.into_iter().filter(|of| *of != "exporter").chain(["registryctl"]);
    for of in open {
        let place = format!("NetworkPolicy {N}-{of}-ingress");
        wrong += usize::from(before[&place].to_string().contains("nobody"));
        pods(&place, of);
        let rules = after[&place]["spec"]["ingress"].as_array();
        assert!(rules.is_some_and(|rules| !rules.is_empty()), "{place} lets nobody in");
    }
    assert_eq!(wrong, 4, "so many were wrong");
    pods(&format!("NetworkPolicy {N}-portal-egress"), "portal");
}

/// Checks that no request was refused, except for missing objects (404) and conflicts (409).
fn are_granted(asked: &Requests) {
    let refused = asked.filter(|request| request.code >= 400 && !matches!(request.code, 404 | 409));
    assert!(refused.is_empty(), "{refused}");
}

/// Users were not warned of anything. To be asked when the operator has stopped: it says what it has to say
/// until then.
pub(crate) async fn nobody_was_warned(world: &World) -> Result<()> {
    let events = world.namespace.api::<Event>().list(&ListParams::default()).await?.items;
    let is_ours = |event: &Event| {
        let about = event.regarding.as_ref().and_then(|about| about.api_version.as_deref());
        about.is_some_and(|about| about.starts_with("goharbor.io/"))
    };
    let warnings = events.iter().filter(|event| is_ours(event) && event.type_.as_deref() == Some("Warning"));
    let noted: Vec<_> = warnings.map(|event| (&event.regarding, &event.reason, &event.note)).collect();
    assert!(noted.is_empty(), "{noted:?}");
    Ok(())
}

#[tokio::test]
async fn a_harbor_of_the_upstream_operator_is_taken_over_in_place() -> Result<()> {
    // Kinds are the whole control plane's: one of its own, for those of cert-manager.
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    env.install_crds(&[open(&Certificate::crd()), open(&Issuer::crd())]).await?;
    let world = World::new(TestEnv::clone(&env), "takeover").await?;
    Box::pin(upstream::build(&world)).await?;
    running(&world).await?;
    let before = snapshot(&world).await?;

    let begun = world.mark()?;
    let operator = world.operator().await?;
    let ready = world.ready().await?;
    assert_eq!(status_and_message(&ready, "Failed").0, "False");
    operator.settled().await?;
    running(&world).await?;
    let after = snapshot(&world).await?;

    for (place, old) in &before {
        let Some(new) = after.get(place) else {
            assert!(writers().contains(place), "{place} is gone");
            continue;
        };
        assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"], "{place} is another");
        if place.starts_with("Secret ") {
            for part in ["data", "type", "immutable"] {
                assert_eq!(new[part], old[part], "{part} of {place}");
            }
        }
        if place.starts_with("Deployment ") {
            assert_eq!(new["spec"]["selector"], old["spec"]["selector"], "{place}");
            let generation = |of: &Value| of["metadata"]["generation"].as_i64().unwrap();
            assert!(generation(new) <= generation(old) + 1, "{place} was rolled more than once");
        }
        if place.starts_with("Service ") {
            for part in ["clusterIP", "selector", "ports"] {
                assert_eq!(new["spec"][part], old["spec"][part], "{part} of {place}");
            }
        }
        if place.starts_with("ConfigMap sample") {
            is_text(place, old, new);
        }
        let text = new.to_string();
        // Generated Secrets get our marks, and nothing of them is touched. Of the key of tokens, cert-manager
        // goes on writing the Secret.
        let generated = new["type"].as_str().is_some_and(|type_| type_.starts_with("goharbor.io/"));
        let kept =
            generated || place.starts_with("ReplicaSet ") || place == "Secret sample-harbor-core-tokencert";
        for stale in [
            "checksum.goharbor.io",
            "STALE",
            "\"/stale\"",
            "\"stale\"",
            "v1.4.0-rc1",
            "cert-manager.io/certificate-name",
        ] {
            assert!(kept || !text.contains(stale), "{stale} is left in {place}: {text}");
        }
    }
    are_mended(&before, &after, world.namespace.name());
    for gone in writers() {
        assert!(before.contains_key(&gone) && !after.contains_key(&gone), "{gone}");
    }
    let sets =
        |of: &str| after.keys().filter(|place| place.starts_with(&format!("ReplicaSet {N}-{of}-"))).count();
    for of in WORKLOADS {
        let count = if of == "registry" { sets("registry") } else { sets(of) };
        assert!(count <= 2, "{of} has had {count} kinds of pods");
    }
    let new: Vec<&String> = after.keys().filter(|place| !before.contains_key(*place)).collect();
    println!("new: {new:?}");

    let core: Deployment = world.get(&format!("{N}-core")).await?;
    let env = json!(core.spec)["template"]["spec"]["containers"][0]["env"].clone();
    let password =
        env.as_array().unwrap().iter().find(|one| one["name"] == "REGISTRY_CREDENTIAL_PASSWORD").unwrap();
    assert_eq!(password.get("value"), None);
    assert_eq!(password["valueFrom"]["secretKeyRef"]["name"], format!("{N}-registry-basicauth"));

    let asked = world.requests(begun)?;
    println!("{} requests for a takeover, {} of them writes", asked.count(), asked.writes().count());
    are_granted(&asked);
    let deleted: BTreeSet<String> = asked
        .filter(|request| request.verb == "delete")
        .iter()
        .map(|request| format!("{} {}", request.resource, request.name))
        .collect();
    let allowed: BTreeSet<String> = writers()
        .iter()
        .map(|place| place.replace("Certificate ", "certificates ").replace("Issuer ", "issuers "))
        .collect();
    assert_eq!(deleted, allowed);

    // Once more: nothing is left to be done.
    operator.stop().await?;
    nobody_was_warned(&world).await?;
    let restart = world.mark()?;
    let operator = world.operator().await?;
    operator.idle_after(11).await?; // the Harbor and its ten components
    operator.settled().await?;
    let writes = world.requests(restart)?.writes();
    assert!(writes.is_empty(), "after a restart: {writes}");
    assert_eq!(snapshot(&world).await?, after);
    world.end(operator).await
}
