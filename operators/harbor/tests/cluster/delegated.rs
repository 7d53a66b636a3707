//! A HarborCluster whose cache, database and storage are run by other operators; the test stands in for them.
use anyhow::Result;
use harbor_operator::api::{Harbor, HarborCluster};
use harbor_operator::cluster::delegated::{Postgresql, RedisFailover, Tenant};
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use kube::api::ListParams;
use serde_json::json;
use windlass_testenv::{Options, TestEnv, or_not_run};

use crate::others::{definitions, play_minio, play_postgres, play_redis, say};
use crate::sample::{delegated, for_each, healthy, operator, print, status_and_message, word};
use crate::world::World;

/// The most requests that a HarborCluster with all there is may cost until it is healthy, events apart.
const BUDGET: usize = 150;
/// The part of it that is for objects and for following what they need. How often a status is written depends
/// on how long things take.
const WITHOUT_STATUS: usize = 118;
/// The number of heartbeats of a node, about ten seconds each, during which no request may be made.
const HEARTBEATS: usize = 6;

#[tokio::test]
async fn a_cluster_waits_for_a_missing_kind_and_continues_when_it_is_installed() -> Result<()> {
    // Nobody else may have installed these kinds.
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let world = World::new(env.clone(), "delegated").await?;
    let running = operator(&world).await?;
    world.put::<HarborCluster>(delegated()).await?;
    let waiting = world
        .see("sample", "waiting for the kinds", |cluster: &HarborCluster| {
            ["CacheReady", "DatabaseReady", "StorageReady"]
                .iter()
                .all(|part| status_and_message(cluster, part).0 == "Unknown")
        })
        .await?;
    assert_eq!(word(&waiting), "provisioning");
    assert_eq!(status_and_message(&waiting, "Failed").0, "False", "to wait is not to fail");
    for (part, kind) in
        [("CacheReady", "RedisFailover"), ("DatabaseReady", "postgresql"), ("StorageReady", "Tenant")]
    {
        let (_, message) = status_and_message(&waiting, part);
        assert!(message.contains(kind), "{part}: {message}");
    }
    assert!(world.namespace.api::<Harbor>().get_opt("sample-harbor").await?.is_none());

    world.env.install_crds(&definitions()).await?;
    play_redis(&world, "sample").await?;
    play_postgres(&world, "sample").await?;
    play_minio(&world, "sample").await?;
    healthy(&world).await?;
    world.end(running).await
}

#[tokio::test]
async fn a_full_stack_is_healthy_on_real_health_within_its_budget_and_then_costs_nothing() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(&definitions()).await?;
    let world = World::new(env, "full").await?;
    let running = operator(&world).await?;
    running.settled().await?;
    let begun = world.mark()?;
    let mut full = delegated();
    for part in ["exporter", "chartmuseum", "notary"] {
        full["spec"][part] = json!({});
    }
    full["spec"]["version"] = json!("2.6.2");
    full["spec"]["trivy"] = json!({"storage": {}});
    full["spec"]["expose"]["notary"] =
        json!({"ingress": {"host": "notary.example.com"}, "tls": {"certificateRef": "public"}});
    world.put::<HarborCluster>(full).await?;

    play_redis(&world, "sample").await?;
    let postgres = play_postgres(&world, "sample").await?;
    play_minio(&world, "sample").await?;
    let cluster = healthy(&world).await?;
    for condition in ["CacheReady", "DatabaseReady", "StorageReady", "ServiceReady"] {
        assert_eq!(status_and_message(&cluster, condition).0, "True", "{condition}");
    }
    running.settled().await?;
    let asked = for_each(&world.requests(begun)?);
    print("the full stack", &asked);
    let others = asked.filter(|request| request.subresource != "status").count();
    let room = BUDGET - WITHOUT_STATUS;
    assert!(others <= WITHOUT_STATUS, "{others} requests, and room for {room} of status");

    // The Harbor refers to the servers of the other operators.
    let harbor: Harbor = world.get("sample-harbor").await?;
    let redis = harbor.spec.redis.unwrap();
    assert_eq!(
        (redis.host.as_str(), redis.sentinel_master_set.as_deref()),
        ("rfs-sample-redis", Some("mymaster"))
    );
    let database = harbor.spec.database.unwrap();
    assert_eq!(database.hosts[0].host, format!("{postgres}.{}.svc", world.namespace.name()));
    let s3 = harbor.spec.image_chart_storage.unwrap().s3.unwrap();
    assert_eq!((s3.bucket.as_str(), s3.secret_key_ref.as_deref()), ("harbor", Some("minio-sample")));
    assert_eq!(s3.region_endpoint.as_deref(), Some("https://minio.example.com"));
    let keys: Secret = world.get("minio-sample-creds").await?;
    assert_eq!(s3.access_key.unwrap().into_bytes(), keys.data.unwrap()["accesskey"].0);
    world.get::<Ingress>("minio-sample").await?;
    let jobs =
        world.namespace.api::<Job>().list(&ListParams::default().labels("job-type=minio-init")).await?;
    assert_eq!(jobs.items.len(), 1);

    let quiet = world.mark()?;
    let reconciles = running.settled().await?;
    world.namespace.env().heartbeats(HEARTBEATS).await?;
    let asked = world.requests(quiet)?.filter(|request| request.verb != "watch");
    assert!(asked.is_empty(), "in {HEARTBEATS} heartbeats of rest: {asked}");
    world.change::<HarborCluster>("sample", json!({"metadata": {"annotations": {"look": "again"}}})).await?;
    running.idle_after(reconciles + 1).await?;
    let writes = world.requests(quiet)?.writes();
    assert!(writes.is_empty(), "converged, and yet: {writes}");

    running.stop().await?;
    let restart = world.mark()?;
    let running = operator(&world).await?;
    running.idle_after(12).await?; // the cluster, its Harbor and ten components
    running.settled().await?;
    let asked = for_each(&world.requests(restart)?);
    let others = asked.filter(|request| !matches!(&*request.verb, "list" | "watch"));
    assert!(others.is_empty(), "after a restart: {others}");

    // A password that Zalando's operator rotates is followed.
    let rotated = json!({"stringData": {"password": "second"}});
    world.change::<Secret>(&format!("harbor.{postgres}.credentials"), rotated).await?;
    world
        .see("sample-database-password", "rotated", |secret: &Secret| {
            secret.data.as_ref().is_some_and(|data| data["postgres-password"].0 == b"second")
        })
        .await?;
    healthy(&world).await?;

    // What breaks is said, and by whom.
    say::<Postgresql>(&world, &postgres, json!({"PostgresClusterStatus": "UpdateFailed"})).await?;
    let broken =
        world.see("sample", "unhealthy", |cluster: &HarborCluster| word(cluster) == "unhealthy").await?;
    assert_eq!(status_and_message(&broken, "DatabaseReady").0, "False");
    assert!(status_and_message(&broken, "DatabaseReady").1.contains("UpdateFailed"));
    say::<Postgresql>(&world, &postgres, json!({"PostgresClusterStatus": "Running"})).await?;
    healthy(&world).await?;

    // The database and the tenant, with whom their data would go, stay.
    world.delete::<HarborCluster>("sample").await?;
    world.gone::<Harbor>("sample-harbor").await?;
    world.gone::<RedisFailover>("sample-redis").await?;
    assert!(world.get::<Postgresql>(&postgres).await?.owner_references().is_empty());
    assert!(world.get::<Tenant>("minio-sample").await?.owner_references().is_empty());
    world.end(running).await
}
