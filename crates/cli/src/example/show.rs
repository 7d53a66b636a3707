//! How the sample comes up, node by node, as the cluster shows it.

use std::collections::BTreeMap;
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{Api, ListParams, ObjectMeta};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass::Readiness;
use windlass::live::Live;
use windlass::readiness;
use windlass_testenv::within;

use super::install::documents;
use super::process::Running;
use crate::console::Console;
use crate::failure::Failure;

/// Shows what the operator makes, until all of it is ready.
pub(super) async fn until_ready(
    client: &Client,
    _: &Running,
    sample: &str,
    console: &Console,
) -> Result<(), Failure> {
    let names: Vec<String> = documents(sample)?
        .iter()
        .filter_map(|object| object.pointer("/metadata/name").and_then(Value::as_str).map(str::to_owned))
        .collect();
    let told = parking_lot::Mutex::new(BTreeMap::new());
    within(Duration::from_mins(1), "the sample to be ready", || async {
        let nodes = nodes(client, &names).await.map_err(|error| error.to_string())?;
        let mut told = told.lock();
        for (id, state) in &nodes {
            if told.get(id) != Some(state) {
                console.line(&format!("{id}: {state}"));
                told.insert(id.clone(), state.clone());
            }
        }
        let waiting: Vec<_> =
            nodes.iter().filter(|(_, state)| *state != "ready").map(|(id, _)| id.clone()).collect();
        match (nodes.is_empty(), waiting.is_empty()) {
            (false, true) => Ok(()),
            _ => Err(format!("waiting for {waiting:?}")),
        }
    })
    .await?;
    Ok(())
}

/// Everything that belongs to the samples, and how it does.
async fn nodes(client: &Client, owners: &[String]) -> Result<Vec<(String, String)>, kube::Error> {
    let mut nodes = Vec::new();
    nodes.extend(kind::<Deployment>(client, owners, readiness::deployment).await?);
    nodes.extend(kind::<Service>(client, owners, readiness::service).await?);
    nodes.extend(kind::<Ingress>(client, owners, readiness::by_conditions).await?);
    Ok(nodes)
}

async fn kind<K>(
    client: &Client,
    owners: &[String],
    check: fn(&Live) -> Readiness,
) -> Result<Vec<(String, String)>, kube::Error>
where
    K: Resource<DynamicType = (), Scope = kube::core::NamespaceResourceScope>,
    K: Clone + std::fmt::Debug + DeserializeOwned + Serialize,
{
    let api: Api<K> = Api::namespaced(client.clone(), "default");
    let owned =
        |meta: &ObjectMeta| meta.owner_references.iter().flatten().any(|owner| owners.contains(&owner.name));
    let mut found = Vec::new();
    for object in api.list(&ListParams::default()).await?.items.iter().filter(|object| owned(object.meta())) {
        let live: Live =
            serde_json::from_value(serde_json::to_value(object).map_err(kube::Error::SerdeError)?)
                .map_err(kube::Error::SerdeError)?;
        let state = match check(&live) {
            Readiness::Ready => "ready".to_owned(),
            Readiness::Waiting(why) => why,
            Readiness::Failed(why) => format!("failed: {why}"),
        };
        found.push((format!("{} {}", K::kind(&()), live.metadata.name()), state));
    }
    Ok(found)
}
