//! Shows the progress of the sample, object by object, until all are ready.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams, ObjectMeta};
use serde_json::Value;
use windlass::Readiness;
use windlass::live::Live;
use windlass::readiness;
use windlass_testenv::within;

use super::install::documents;
use super::process::Running;
use crate::console::Console;
use crate::failure::Failure;

/// Time limit for a sample to become ready. As no container runs, most of it is work of this machine.
const PATIENCE: Duration = Duration::from_mins(3);

/// A kind whose objects are shown, and the readiness check for it.
pub(super) struct Shown {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    check: fn(&Live) -> Readiness,
}

impl Shown {
    const fn new(
        group: &'static str,
        version: &'static str,
        kind: &'static str,
        check: fn(&Live) -> Readiness,
    ) -> Self {
        Self { group, version, kind, check }
    }

    /// Returns a kind of the operator, which is ready if its `Ready` condition is true.
    const fn own(group: &'static str, version: &'static str, kind: &'static str) -> Self {
        Self::new(group, version, kind, by_ready_condition)
    }

    const fn harbor(kind: &'static str) -> Self {
        Self::own("goharbor.io", "v1beta1", kind)
    }
}

const DEPLOYMENT: Shown = Shown::new("apps", "v1", "Deployment", readiness::deployment);
const STATEFUL_SET: Shown = Shown::new("apps", "v1", "StatefulSet", readiness::stateful_set);
const SERVICE: Shown = Shown::new("", "v1", "Service", readiness::service);
const INGRESS: Shown = Shown::new("networking.k8s.io", "v1", "Ingress", readiness::by_conditions);

/// Kinds of Harbor, from the HarborCluster down to the workloads.
pub(super) const HARBOR: &[Shown] = &[
    Shown::harbor("HarborCluster"),
    STATEFUL_SET,
    Shown::harbor("Harbor"),
    Shown::harbor("Core"),
    Shown::harbor("JobService"),
    Shown::harbor("Portal"),
    Shown::harbor("Registry"),
    Shown::harbor("RegistryController"),
    DEPLOYMENT,
    INGRESS,
];
/// Kinds of a Game.
pub(super) const GAME: &[Shown] =
    &[Shown::own("myapp.qingwave.github.io", "v1", "Game"), DEPLOYMENT, SERVICE, INGRESS];
/// Kinds of a Foo, whose status has no conditions.
pub(super) const FOO: &[Shown] =
    &[Shown::new("samplecontroller.k8s.io", "v1alpha1", "Foo", by_available_replicas), DEPLOYMENT];

/// Checks that as many replicas are available as the spec asks for.
fn by_available_replicas(live: &Live) -> Readiness {
    let (desired, available) = (live.spec.replicas.unwrap_or(1), live.status.available_replicas.unwrap_or(0));
    if available >= desired {
        Readiness::Ready
    } else {
        Readiness::Waiting(format!("{available} of {desired} replicas available"))
    }
}

/// Checks the `Ready` condition. Without one the object is not ready.
fn by_ready_condition(live: &Live) -> Readiness {
    match live.status.condition("Ready") {
        Some(_) => readiness::by_conditions(live),
        None => Readiness::Waiting("not reconciled yet".to_owned()),
    }
}

/// Reason why a sample did not become ready.
pub(super) enum NotReady {
    /// The time limit has passed.
    Late(String),
    /// The operator has ended.
    Ended(Failure),
}

/// Shows the objects of the sample until all of them are ready.
pub(super) async fn until_ready(
    client: &Client,
    running: &mut Running,
    shown: &[Shown],
    sample: &str,
    console: &Console,
) -> Result<(), NotReady> {
    let samples: Vec<(String, String)> = documents(sample).map_err(NotReady::Ended)?.iter().map(id).collect();
    let printed = parking_lot::Mutex::new(BTreeMap::new());
    let ready = within(PATIENCE, "the sample to be ready", || async {
        let nodes = nodes(client, shown, &samples).await.map_err(|error| error.to_string())?;
        let mut printed = printed.lock();
        for (id, state) in &nodes {
            if printed.get(id) != Some(state) {
                console.line(&format!("{id}: {state}"));
                printed.insert(id.clone(), state.clone());
            }
        }
        let waiting: Vec<_> =
            nodes.iter().filter(|(_, state)| *state != "ready").map(|(id, _)| id.clone()).collect();
        match (nodes.is_empty(), waiting.is_empty()) {
            (false, true) => Ok(()),
            _ => Err(format!("not ready: {}", waiting.join(", "))),
        }
    });
    tokio::select! {
        ready = ready => ready.map_err(|error| NotReady::Late(error.to_string())),
        failure = running.ended() => Err(NotReady::Ended(failure)),
    }
}

/// Returns the kind and name of a manifest's object.
fn id(object: &Value) -> (String, String) {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    (text("/kind"), text("/metadata/name"))
}

/// An object in the cluster, with its state.
struct Found {
    id: (String, String),
    metadata: ObjectMeta,
    state: String,
}

/// Returns every object that the samples own, directly or through others, with its state.
async fn nodes(
    client: &Client,
    shown: &[Shown],
    samples: &[(String, String)],
) -> Result<Vec<(String, String)>, kube::Error> {
    let mut found = Vec::new();
    for kind in shown {
        found.extend(objects(client, kind).await?);
    }
    let mut ours: HashSet<String> = HashSet::new();
    let is_ours = |ours: &HashSet<String>, one: &Found| {
        let owners = one.metadata.owner_references.iter().flatten();
        samples.contains(&one.id) || owners.map(|owner| &owner.uid).any(|uid| ours.contains(uid))
    };
    // Each round goes one owner reference further from the samples.
    loop {
        let more: Vec<String> = found
            .iter()
            .filter(|one| is_ours(&ours, one))
            .filter_map(|one| one.metadata.uid.clone())
            .filter(|uid| !ours.contains(uid))
            .collect();
        if more.is_empty() {
            break;
        }
        ours.extend(more);
    }
    let of_ours = found.iter().filter(|one| is_ours(&ours, one));
    Ok(of_ours.map(|one| (format!("{} {}", one.id.0, one.id.1), one.state.clone())).collect())
}

async fn objects(client: &Client, shown: &Shown) -> Result<Vec<Found>, kube::Error> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(shown.group, shown.version, shown.kind));
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), "default", &resource);
    let mut found = Vec::new();
    for object in api.list(&ListParams::default()).await?.items {
        let metadata = object.metadata.clone();
        let live: Live =
            serde_json::from_value(serde_json::to_value(object).map_err(kube::Error::SerdeError)?)
                .map_err(kube::Error::SerdeError)?;
        let state = match (shown.check)(&live) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::Waiting(why) => why,
            Readiness::Failed(why) => format!("failed: {why}"),
        };
        found.push(Found { id: (shown.kind.to_owned(), live.metadata.name().to_owned()), metadata, state });
    }
    Ok(found)
}
