//! A HarborCluster with external cache, database and storage.

use anyhow::Result;
use harbor_operator::api::{Harbor, HarborCluster};
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::ResourceExt as _;
use serde_json::json;
use windlass_testenv::{Story, TestEnv, or_not_run};

use crate::sample::{external, for_each, healthy, operator, print, status_and_message, word};
use crate::world::World;

#[tokio::test]
async fn a_cluster_becomes_healthy_and_then_costs_nothing_also_after_a_restart() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "external").await?;
    let running = operator(&world).await?;
    running.settled().await?;
    let begun = world.mark()?;
    world.put::<HarborCluster>(external()).await?;
    let cluster = healthy(&world).await?;
    for condition in ["CacheReady", "DatabaseReady", "StorageReady", "ServiceReady", "Ready"] {
        assert_eq!(status_and_message(&cluster, condition).0, "True", "{condition}");
    }
    for condition in ["InProgress", "Failed"] {
        assert_eq!(status_and_message(&cluster, condition).0, "False", "{condition}");
    }
    let status = json!(cluster.status);
    assert_eq!(
        (&status["version"], &status["operator"]["controllerName"]),
        (&json!("2.15.2"), &json!("harborcluster"))
    );
    let harbor: Harbor = world.get("sample-harbor").await?;
    assert_eq!(harbor.labels()["goharbor.io/harbor-cluster"], "sample");
    assert_eq!(harbor.owner_references()[0].kind, "HarborCluster");
    assert_eq!(harbor.spec.redis.unwrap().host, "redis");
    world.get::<Pod>(&pod_of(&world, "core").await?).await?;
    running.settled().await?;
    print("external", &for_each(&world.requests(begun)?));

    let quiet = world.mark()?;
    let reconciles = running.settled().await?;
    world.change::<HarborCluster>("sample", json!({"metadata": {"annotations": {"look": "again"}}})).await?;
    running.idle_after(reconciles + 1).await?;
    let writes = world.requests(quiet)?.writes();
    assert!(writes.is_empty(), "converged, and yet: {writes}");

    running.stop().await?;
    let restart = world.mark()?;
    let running = operator(&world).await?;
    running.idle_after(7).await?; // the cluster, its Harbor and five components
    running.settled().await?;
    let asked = for_each(&world.requests(restart)?);
    let others = asked.filter(|request| !matches!(&*request.verb, "list" | "watch"));
    assert!(others.is_empty(), "after a restart: {others}");
    world.end(running).await
}

#[tokio::test]
async fn a_missing_secret_of_a_component_is_named_in_the_status_of_the_cluster() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "deep").await?;
    world.delete::<Secret>("db").await?;
    let running = operator(&world).await?;
    world.put::<HarborCluster>(external()).await?;
    let waiting = world
        .see("sample", "waiting for the password", |cluster: &HarborCluster| {
            status_and_message(cluster, "Ready").1.contains("Secret db")
        })
        .await?;
    assert_eq!(word(&waiting), "provisioning");
    assert_eq!(status_and_message(&waiting, "ServiceReady").0, "Unknown");
    assert!(
        status_and_message(&waiting, "ServiceReady").1.contains("Secret db"),
        "{:?}",
        status_and_message(&waiting, "ServiceReady")
    );
    assert_eq!(status_and_message(&waiting, "DatabaseReady").0, "True", "others look after it");
    let password = json!({"metadata": {"name": "db"}, "stringData": {"postgres-password": "password"}});
    world.put::<Secret>(password).await?;
    healthy(&world).await?;

    // It breaks: unhealthy; it is changed: provisioning.
    let pods = world.namespace.api::<Pod>();
    Story::NeverReady.assign_to(&pods, "core.goharbor.io/name=sample-harbor-harbor-core").await?;
    world.see("sample", "unhealthy", |cluster: &HarborCluster| word(cluster) == "unhealthy").await?;
    Story::Ready.assign_to(&pods, "core.goharbor.io/name=sample-harbor-harbor-core").await?;
    healthy(&world).await?;
    world.end(running).await
}

async fn pod_of(world: &World, component: &str) -> Result<String> {
    let selector = format!("{component}.goharbor.io/name=sample-harbor-harbor-{component}");
    let pods = world.namespace.api::<Pod>().list(&kube::api::ListParams::default().labels(&selector)).await?;
    Ok(pods.items[0].name_any())
}
