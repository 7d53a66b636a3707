//! A HarborCluster with a cache, a database and a storage that other operators run, as the first operator of
//! these kinds left it.
//!
//! The objects have the owners that the first operator gave them: the keys of MinIO have none; the registry's
//! copy of the keys, the Ingress and the claims belong to the Tenant; and the first operator owns two Secrets
//! of Zalando's operator.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use harbor_operator::api::{Harbor, HarborCluster};
use harbor_operator::cluster::delegated::{Postgresql, RedisFailover, Tenant};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use kube::api::PostParams;
use serde_json::{Value, json};
use windlass_testenv::{Options, TestEnv, or_not_run};

use crate::others::{definitions, play_minio, play_postgres, play_redis};
use crate::sample::{delegated, healthy, operator, status_and_message};
use crate::upstream::Writer;
use crate::world::World;
use crate::{Snapshot, add, nobody_was_warned};

const VERSION: &str = "2.6.2";
/// Image of Redis that upstream ran for that version.
const REDIS: &str = "redis:5.0-alpine";
const SPILO: &str = "registry.opensource.zalan.do/acid/spilo-13:2.1-p1";
const MINIO: &str = "minio/minio:RELEASE.2022-08-26T19-53-15Z";
const MINIO_CLIENT: &str = "minio/mc:RELEASE.2022-08-23T05-45-20Z";
/// The volume of a server of MinIO, and that of a server of Redis.
const CLAIMS: [&str; 2] = ["0-minio-sample-zone-harbor-0", "sample-rfr-sample-redis-0"];

/// Places, by kind and path, at which a spec of another operator may change. Their values have no meaning to
/// that operator.
const ALLOWED: [(&str, &str); 8] = [
    // Go writes out structures that have nothing in them; without them, all is as it was.
    ("RedisFailover", "/redis/exporter"),
    ("RedisFailover", "/sentinel/exporter"),
    ("RedisFailover", "/redis/storage/persistentVolumeClaim/status"),
    ("Tenant", "/imagePullSecret"),
    ("Tenant", "/pools/0/resources"),
    ("Tenant", "/pools/0/volumeClaimTemplate/metadata"),
    ("Tenant", "/pools/0/volumeClaimTemplate/status"),
    // A class without a name is the class that the cluster has by default, and so is none.
    ("postgresql", "/volume/storageClass"),
];

/// Adds the places where two values differ.
fn differ(at: &str, old: &Value, new: &Value, places: &mut BTreeSet<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let none = Value::Null;
            for name in old.keys().chain(new.keys()) {
                let (old, new) = (old.get(name).unwrap_or(&none), new.get(name).unwrap_or(&none));
                differ(&format!("{at}/{name}"), old, new, places);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                differ(&format!("{at}/{index}"), old, new, places);
            }
        }
        (old, new) if old != new => {
            places.insert(at.to_owned());
        }
        _ => {}
    }
}

/// Asserts that the specs of other operators have not changed: a change would restart their pods.
fn is_as_it_was(place: &str, old: &Value, new: &Value) {
    let kind = place.split(' ').next().unwrap();
    if !matches!(kind, "RedisFailover" | "postgresql" | "Tenant") {
        return;
    }
    let mut places = BTreeSet::new();
    differ("", &old["spec"], &new["spec"], &mut places);
    places.retain(|at| !ALLOWED.contains(&(kind, at.as_str())));
    assert!(places.is_empty(), "{places:?} of {place}: {} became {}", old["spec"], new["spec"]);
}

/// Names of the objects that hold data, and of the keys to it.
fn kept(namespace: &str) -> Vec<String> {
    let postgres = format!("postgresql-{namespace}-sample");
    let credentials = ["harbor", "postgres", "standby"];
    let credentials = credentials.map(|user| format!("Secret {user}.{postgres}.credentials"));
    let others =
        ["Secret minio-sample", "Secret minio-sample-creds", "Secret sample-redis", "Tenant minio-sample"];
    let others = others.map(str::to_owned).into_iter().chain([format!("postgresql {postgres}")]);
    credentials.into_iter().chain(others).collect()
}

async fn snapshot(world: &World) -> Result<Snapshot> {
    let mut all = BTreeMap::new();
    add::<HarborCluster>(world, &mut all).await?;
    add::<Harbor>(world, &mut all).await?;
    add::<RedisFailover>(world, &mut all).await?;
    add::<Postgresql>(world, &mut all).await?;
    add::<Tenant>(world, &mut all).await?;
    add::<Secret>(world, &mut all).await?;
    add::<PersistentVolumeClaim>(world, &mut all).await?;
    add::<Ingress>(world, &mut all).await?;
    add::<Job>(world, &mut all).await?;
    Ok(all)
}

/// The RedisFailover: a server and three Sentinels, as the HarborCluster says or does not say.
fn failover(namespace: &str) -> Value {
    let labels = json!({"app.kubernetes.io/name": "cache", "app.kubernetes.io/instance": namespace, "goharbor.io/harbor-cluster": "sample"});
    let claim = json!({"metadata": {"name": "sample", "labels": labels}, "status": {},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    let pod = |replicas: i32| json!({"replicas": replicas, "image": REDIS, "imagePullPolicy": "IfNotPresent", "resources": {}, "exporter": {}});
    let mut redis = pod(1);
    redis["storage"] = json!({"keepAfterDeletion": true, "persistentVolumeClaim": claim});
    json!({"auth": {"secretPath": "sample-redis"}, "redis": redis, "sentinel": pod(3)})
}

/// The spec of the PostgreSQL cluster that the archived operator wrote.
fn postgres(namespace: &str) -> Value {
    let logins = json!(["hostssl all all 0.0.0.0/0 md5", "host    all all 0.0.0.0/0 md5"]);
    let initdb = json!({"encoding": "UTF8", "locale": "en_US.UTF-8", "data-checksums": "true"});
    let unsaid = json!({"cpu": "0", "memory": "0"});
    json!({
        "teamId": format!("postgresql-{namespace}"), "numberOfInstances": 3, "dockerImage": SPILO,
        "volume": {"size": "1Gi", "storageClass": ""}, "users": {"harbor": ["superuser", "createdb"]},
        "databases": {"core": "harbor"}, "patroni": {"initdb": initdb, "pg_hba": logins},
        "postgresql": {"version": "12", "parameters": {"max_connections": "1024"}},
        "resources": {"requests": unsaid, "limits": unsaid},
    })
}

/// The spec of the MinIO Tenant that the archived operator wrote.
fn tenant() -> Value {
    let claim = json!({"metadata": {}, "status": {}, "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "default",
        "resources": {"requests": {"storage": "10Gi"}}}});
    let pool = json!({"name": "zone-harbor", "servers": 2, "volumesPerServer": 2, "volumeClaimTemplate": claim, "resources": {},
        "securityContext": {"runAsUser": 10000, "runAsGroup": 10000, "fsGroup": 10000}});
    json!({"image": MINIO, "imagePullPolicy": "IfNotPresent", "imagePullSecret": {}, "pools": [pool], "mountPath": "/export",
        "credsSecret": {"name": "minio-sample-creds"}, "podManagementPolicy": "Parallel", "requestAutoCert": false,
        "env": [{"name": "MINIO_BROWSER", "value": "on"}]})
}

/// The volume of a server, which its own operator asked for.
async fn claim(world: &World, name: &str, owners: Value) -> Result<()> {
    let spec = json!({"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"metadata": {"name": name, "ownerReferences": owners}, "spec": spec});
    Ok(world.put::<PersistentVolumeClaim>(claim).await.map(drop)?)
}

/// The Tenant, and what it was given.
async fn storage(world: &World, writer: &Writer<'_>) -> Result<()> {
    let keys = json!({"accesskey": "aaaaaaaa", "secretkey": "bbbbbbbb"});
    world
        .put::<Secret>(
            json!({"metadata": {"name": "minio-sample-creds"}, "type": "Opaque", "stringData": keys}),
        )
        .await?;
    let tenant = writer.put::<Tenant>("minio-sample", json!({"spec": tenant()})).await?;
    let of_tenant = Writer::of(world, "harborcluster", &tenant);
    of_tenant
        .put::<Secret>("minio-sample", json!({"type": "Opaque", "stringData": {"secret": "bbbbbbbb"}}))
        .await?;
    let backend = json!({"service": {"name": "minio", "port": {"number": 80}}});
    let rule = json!({"host": "minio.example.com", "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}});
    of_tenant.put::<Ingress>("minio-sample", json!({"spec": {"rules": [rule]}})).await?;
    claim(world, CLAIMS[0], json!([of_tenant.owner()])).await?;
    let pod = json!({"restartPolicy": "Never", "containers": [{"name": "mc", "image": MINIO_CLIENT}]});
    let job =
        json!({"metadata": {"labels": {"job-type": "minio-init"}}, "spec": {"template": {"spec": pod}}});
    writer.put::<Job>("minio-sample", job).await.map(drop)
}

/// Everything that belongs to the HarborCluster itself; of its Harbor only the object, whose parts are
/// another test's.
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
    writer.put::<RedisFailover>("sample-redis", json!({"spec": failover(namespace)})).await?;
    claim(world, CLAIMS[1], json!([])).await?;

    let postgres = format!("postgresql-{namespace}-sample");
    writer.put::<Postgresql>(&postgres, json!({"spec": self::postgres(namespace)})).await?;
    let copy = json!({"metadata": {"name": "sample-database-password"}, "type": "Opaque", "stringData": {"postgres-password": "first"}});
    world.put::<Secret>(copy).await?;
    for user in ["postgres", "standby"] {
        let labels = json!({"application": "spilo", "cluster-name": postgres, "team": format!("postgresql-{namespace}")});
        let metadata = json!({"name": format!("{user}.{postgres}.credentials"), "labels": labels, "ownerReferences": [writer.owner()]});
        let login = json!({"username": user, "password": format!("of {user}")});
        world.put::<Secret>(json!({"metadata": metadata, "type": "Opaque", "stringData": login})).await?;
    }
    Box::pin(storage(world, &writer)).await?;

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

    play_redis(world, "sample").await?;
    play_postgres(world, "sample").await?;
    play_minio(world, "sample").await
}

#[tokio::test]
async fn a_cluster_is_taken_over_with_the_settings_of_its_dependencies() -> Result<()> {
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
        assert_eq!(status_and_message(&cluster, condition).0, "True", "{condition}");
    }
    running.settled().await?;
    let after = snapshot(&world).await?;
    for (place, old) in &before {
        let new = after.get(place).unwrap_or_else(|| panic!("{place} is gone"));
        assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"], "{place} is another");
        is_as_it_was(place, old, new);
        if place.starts_with("Secret ") {
            for part in ["data", "type"] {
                assert_eq!(new[part], old[part], "{part} of {place}");
            }
        }
    }
    // What holds data, and the keys to it, go with nobody.
    let kept = kept(world.namespace.name());
    for place in &kept {
        let references = &after[place]["metadata"]["ownerReferences"];
        assert!(references.as_array().is_none_or(Vec::is_empty), "{place}: {references}");
    }
    // And Zalando's operator finds what is its own as it knows it.
    for (place, old) in before.iter().filter(|(place, _)| place.ends_with(".credentials")) {
        for (label, value) in old["metadata"]["labels"].as_object().into_iter().flatten() {
            assert_eq!(after[place]["metadata"]["labels"][label], *value, "{label} of {place}");
        }
    }
    let deleted = world.requests(begun)?.filter(|request| request.verb == "delete");
    assert!(deleted.is_empty(), "{deleted}");

    // Once more: nothing is left to be done.
    running.stop().await?;
    nobody_was_warned(&world).await?;
    let restart = world.mark()?;
    let running = operator(&world).await?;
    running.idle_after(6).await?; // the cluster, its Harbor and four components
    running.settled().await?;
    let writes = world.requests(restart)?.writes();
    assert!(writes.is_empty(), "after a restart: {writes}");
    let ours = |all: &Snapshot| -> BTreeMap<String, Value> {
        all.iter()
            .filter(|(place, _)| !place.starts_with("Job "))
            .map(|(place, one)| (place.clone(), one.clone()))
            .collect()
    };
    assert_eq!(ours(&snapshot(&world).await?), ours(&after));

    // The end of the HarborCluster is not that of the data. What goes with it says when the garbage collector
    // has been there.
    world.delete::<HarborCluster>("sample").await?;
    world.gone::<Harbor>("sample-harbor").await?;
    world.gone::<RedisFailover>("sample-redis").await?;
    world.gone::<Secret>("sample-database-password").await?;
    let left = snapshot(&world).await?;
    let claims = CLAIMS.map(|claim| format!("PersistentVolumeClaim {claim}"));
    for place in kept.iter().chain(&claims) {
        let found = left.get(place).unwrap_or_else(|| panic!("{place} went with the HarborCluster"));
        let metadata = &found["metadata"];
        assert_eq!(metadata["uid"], before[place]["metadata"]["uid"], "{place} is another");
        assert_eq!(metadata["deletionTimestamp"], Value::Null, "{place} is on its way");
        let mut owners = metadata["ownerReferences"].as_array().into_iter().flatten();
        assert!(owners.all(|owner| owner["uid"] != json!(cluster.uid())), "{place}: {metadata}");
    }
    world.end(running).await
}
