//! HarborClusters as users write them, and what is asked of them.

use std::collections::BTreeMap;

use anyhow::Result;
use harbor_operator::api::HarborCluster;
use serde_json::{Value, json};
use windlass_testenv::Requests;
use windlass_testenv::world::Running;

use crate::world::World;

/// A HarborCluster with these parts.
pub(crate) fn cluster(cache: Value, database: Value, storage: Value) -> Value {
    json!({
        "metadata": {"name": "sample"},
        "spec": {
            "externalURL": "https://harbor.example.com",
            "harborAdminPasswordRef": "admin",
            "version": "2.15.2",
            "internalTLS": {"enabled": true},
            "expose": {"core": {"ingress": {"host": "harbor.example.com"}, "tls": {"certificateRef": "public"}}},
            "core": {}, "jobservice": {}, "registry": {}, "portal": {},
            "cache": cache, "database": database, "storage": storage,
        },
    })
}

/// One whose parts others look after.
pub(crate) fn external() -> Value {
    cluster(
        json!({"kind": "Redis", "spec": {"redis": {"host": "redis"}}}),
        json!({"kind": "PostgreSQL", "spec": {"postgresql": {
            "hosts": [{"host": "db"}], "username": "harbor", "passwordRef": "db", "sslMode": "disable"}}}),
        json!({"kind": "FileSystem", "spec": {"fileSystem": {"registryPersistentVolume": {"claimName": "images"}}}}),
    )
}

/// One whose parts we run.
pub(crate) fn built_in() -> Value {
    let own = || json!({"kind": "BuiltIn", "spec": {"builtIn": {"storage": "1Gi"}}});
    cluster(own(), own(), own())
}

/// One whose parts other operators run.
pub(crate) fn delegated() -> Value {
    let expose = json!({"ingress": {"host": "minio.example.com"}, "tls": {"certificateRef": "public"}});
    cluster(
        json!({"kind": "RedisFailover", "spec": {"redisFailover": {"server": {"replicas": 1}}}}),
        json!({"kind": "Zlando/PostgreSQL", "spec": {"zlandoPostgreSql": {}}}),
        json!({"kind": "MinIO", "spec": {"minIO": {"replicas": 2, "volumesPerServer": 2,
            "redirect": {"enable": true, "expose": expose}}}}),
    )
}

/// Starts the operator, and waits until it works for HarborClusters too.
pub(crate) async fn operator(world: &World) -> Result<Running> {
    let running = world.operator().await?;
    running.controller_ready("harborcluster.goharbor.io").await?;
    Ok(running)
}

/// Waits until the HarborCluster is healthy, with its present spec.
pub(crate) async fn healthy(world: &World) -> Result<HarborCluster> {
    let seen = world.see("sample", "healthy", |cluster: &HarborCluster| {
        let status = json!(cluster.status);
        status["status"] == "healthy" && status["observedGeneration"] == json!(cluster.metadata.generation)
    });
    Ok(seen.await?)
}

/// Returns the status and the message of a condition of the HarborCluster.
pub(crate) fn status_and_message(cluster: &HarborCluster, condition: &str) -> (String, String) {
    let status = cluster.status.clone().unwrap_or_default();
    let found = status.conditions.into_iter().find(|one| one.kind == condition);
    found.map(|one| (one.status, one.message.unwrap_or_default())).unwrap_or_default()
}

/// Returns the state of a HarborCluster in one word.
pub(crate) fn word(cluster: &HarborCluster) -> String {
    cluster.status.clone().unwrap_or_default().status.unwrap_or_default()
}

/// Removes the requests that the first object of an installation causes once for all: keys of digests.
pub(crate) fn for_each(asked: &Requests) -> Requests {
    asked.filter(|request| !request.name.ends_with("-digest-key"))
}

/// Prints what was asked for, and how much of it is status.
#[allow(clippy::print_stdout)] // shows the number of requests
pub(crate) fn print(title: &str, asked: &Requests) {
    let mut counts = BTreeMap::<String, usize>::new();
    for request in asked.iter() {
        let slash = if request.subresource.is_empty() { "" } else { "/" };
        *counts
            .entry(format!("{} {}{slash}{}", request.verb, request.resource, request.subresource))
            .or_default() += 1;
    }
    let status = asked.filter(|request| request.subresource == "status").count();
    println!("{title}: {} requests, {status} of them for status: {counts:#?}", asked.count());
}
