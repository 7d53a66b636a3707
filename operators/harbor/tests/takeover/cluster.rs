//! A HarborCluster with a cache, a database and a storage that other operators run, as the first operator of these kinds left it.
//!
//! What that gave to others is found in their hands: the keys of MinIO are nobody's, the registry's copy of them and the Ingress are the
//! Tenant's.

use std::collections::BTreeMap;

use anyhow::Result;
use harbor_operator::api::{Harbor, HarborCluster};
use harbor_operator::cluster::delegated::{Postgresql, RedisFailover, Tenant};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass_testenv::{Options, TestEnv, or_not_run};

use crate::others::{definitions, play_minio, play_postgres, play_redis};
use crate::sample::{delegated, healthy, operator, said};
use crate::upstream::Writer;
use crate::world::{World, settled};
use crate::{Snapshot, add};

const VERSION: &str = "2.6.2";

async fn snapshot(world: &World) -> Result<Snapshot> {
    let mut all = BTreeMap::new();
    add::<HarborCluster>(world, &mut all).await?;
    add::<Harbor>(world, &mut all).await?;
    add::<RedisFailover>(world, &mut all).await?;
    add::<Postgresql>(world, &mut all).await?;
    add::<Tenant>(world, &mut all).await?;
    add::<Secret>(world, &mut all).await?;
    add::<Ingress>(world, &mut all).await?;
    add::<Job>(world, &mut all).await?;
    Ok(all)
}

/// Everything that belongs to the HarborCluster itself; of its Harbor only the object, whose parts are another test's.
async fn build(world: &World) -> Result<()> {
    let by = PostParams { field_manager: Some("kubectl-create".into()), ..PostParams::default() };
    let mut cluster = delegated();
    cluster["spec"]["version"] = json!(VERSION);
    let cluster: HarborCluster = serde_json::from_value(cluster)?;
    let cluster = world.namespace.api::<HarborCluster>().create(&by, &cluster).await?;
    let writer = Writer::of(world, "harborcluster", &cluster);
    let namespace = world.namespace.name();

    let password = json!({"redis-password": "abcdefgh", "password": "abcdefgh"});
    writer.put::<Secret>("sample-redis", json!({"type": "Opaque", "stringData": password})).await?;
    let pod = json!({"replicas": 3, "image": "goharbor/redis:6", "imagePullPolicy": "IfNotPresent"});
    let failover = json!({"auth": {"secretPath": "sample-redis"}, "redis": pod, "sentinel": pod});
    writer.put::<RedisFailover>("sample-redis", json!({"spec": failover})).await?;

    let postgres = format!("postgresql-{namespace}-sample");
    let spec = json!({"teamId": format!("postgresql-{namespace}"), "numberOfInstances": 3, "volume": {"size": "1Gi"},
        "users": {"harbor": ["superuser", "createdb"]}, "databases": {"core": "harbor"}, "postgresql": {"version": "12"}});
    writer.put::<Postgresql>(&postgres, json!({"spec": spec})).await?;
    let copy = json!({"metadata": {"name": "sample-database-password"}, "type": "Opaque", "stringData": {"postgres-password": "first"}});
    world.put::<Secret>(copy).await?;

    let keys = json!({"accesskey": "aaaaaaaa", "secretkey": "bbbbbbbb"});
    world
        .put::<Secret>(
            json!({"metadata": {"name": "minio-sample-creds"}, "type": "Opaque", "stringData": keys}),
        )
        .await?;
    let claim = json!({"spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "default", "resources": {"requests": {"storage": "10Gi"}}}});
    let pool =
        json!({"name": "zone-harbor", "servers": 2, "volumesPerServer": 2, "volumeClaimTemplate": claim});
    let spec = json!({"image": "goharbor/minio", "pools": [pool], "mountPath": "/export", "credsSecret": {"name": "minio-sample-creds"}});
    let tenant = writer.put::<Tenant>("minio-sample", json!({"spec": spec})).await?;
    let of_tenant = Writer::of(world, "harborcluster", &tenant);
    of_tenant
        .put::<Secret>("minio-sample", json!({"type": "Opaque", "stringData": {"secret": "bbbbbbbb"}}))
        .await?;
    let backend = json!({"service": {"name": "minio", "port": {"number": 80}}});
    let rule = json!({"host": "minio.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}});
    of_tenant.put::<Ingress>("minio-sample", json!({"spec": {"rules": [rule]}})).await?;
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "mc", "image": "goharbor/mc"}]});
    let job =
        json!({"metadata": {"labels": {"job-type": "minio-init"}}, "spec": {"template": {"spec": pod}}});
    writer.put::<Job>("minio-sample", job).await?;

    let mut spec = delegated()["spec"].clone();
    for own in ["cache", "database", "storage"] {
        spec.as_object_mut().unwrap().remove(own);
    }
    spec["version"] = json!(VERSION);
    spec["database"] = json!({"hosts": [{"host": format!("{postgres}.{namespace}.svc"), "port": 5432}], "username": "harbor",
        "passwordRef": "sample-database-password", "sslMode": "disable"});
    spec["redis"] = json!({"host": "rfs-sample-redis", "port": 26379, "sentinelMasterSet": "mymaster", "passwordRef": "sample-redis"});
    spec["imageChartStorage"] = json!({"s3": {"accesskey": "aaaaaaaa", "secretkeyRef": "minio-sample", "region": "us-east-1",
        "regionendpoint": "https://minio.example.com", "bucket": "harbor"}});
    let labels = json!({"goharbor.io/harbor-cluster": "sample"});
    let harbor = json!({"metadata": {"labels": labels}, "spec": spec});
    Box::pin(writer.put::<Harbor>("sample-harbor", harbor)).await?;

    play_redis(world).await?;
    play_postgres(world).await?;
    play_minio(world).await
}

#[tokio::test]
async fn a_cluster_is_taken_over_with_what_its_parts_were_given() -> Result<()> {
    // Kinds are the whole control plane's: one of its own, for those of the other operators.
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    env.install_crds(&definitions()).await?;
    let world = World::new(TestEnv::clone(&env), "cluster").await?;
    env.install_crds(harbor_operator::operator().definitions()).await?;
    Box::pin(build(&world)).await?;
    let before = snapshot(&world).await?;

    let begun = world.mark()?;
    let running = operator(&world).await?;
    let cluster = healthy(&world).await?;
    for condition in ["CacheReady", "DatabaseReady", "StorageReady", "ServiceReady"] {
        assert_eq!(said(&cluster, condition).0, "True", "{condition}");
    }
    settled(&running).await?;
    let after = snapshot(&world).await?;
    for (place, old) in &before {
        let new = after.get(place).unwrap_or_else(|| panic!("{place} is gone"));
        assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"], "{place} is another");
        if place.starts_with("Secret ") {
            for part in ["data", "type"] {
                assert_eq!(new[part], old[part], "{part} of {place}");
            }
        }
    }
    // What holds data, and the keys to it, go with nobody.
    let postgres = format!("postgresql postgresql-{}-sample", world.namespace.name());
    for place in [
        "Secret minio-sample",
        "Secret minio-sample-creds",
        "Secret sample-redis",
        "Tenant minio-sample",
        &postgres,
    ] {
        let references = &after[place]["metadata"]["ownerReferences"];
        assert!(references.as_array().is_none_or(Vec::is_empty), "{place}: {references}");
    }
    let tenant = &after["Tenant minio-sample"]["spec"];
    assert_eq!(tenant["credsSecret"]["name"], "minio-sample-creds");
    let class = &tenant["pools"][0]["volumeClaimTemplate"]["spec"]["storageClassName"];
    assert_eq!(class, "default", "a class of volumes that are there");
    let deleted = world.requests(begun)?.filter(|request| request.verb == "delete");
    assert!(deleted.is_empty(), "{deleted}");

    // Once more: nothing is left to be done.
    running.stop().await?;
    let restart = world.mark()?;
    let running = operator(&world).await?;
    running.idle_after(6).await?; // the cluster, its Harbor and four components
    settled(&running).await?;
    let writes = world.requests(restart)?.writes();
    assert!(writes.is_empty(), "after a restart: {writes}");
    let ours = |all: &Snapshot| -> BTreeMap<String, Value> {
        all.iter()
            .filter(|(place, _)| !place.starts_with("Job "))
            .map(|(place, one)| (place.clone(), one.clone()))
            .collect()
    };
    assert_eq!(ours(&snapshot(&world).await?), ours(&after));
    world.end(running).await
}
