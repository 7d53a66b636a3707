//! With a cache, a database and a storage that we run.

use anyhow::Result;
use harbor_operator::api::{Core, Harbor, HarborCluster};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use kube::ResourceExt as _;
use serde_json::json;
use windlass_testenv::world::Written;
use windlass_testenv::{Requests, Story, TestEnv, or_not_run};

use crate::sample::{built_in, for_each, healthy, operator, print, said, word};
use crate::world::World;

const CLAIMS: [&str; 3] = ["sample-database", "sample-redis", "sample-registry"];
const PASSWORDS: [&str; 2] = ["sample-database-password", "sample-redis"];

/// Wants a HarborCluster to have come in order: passwords and volumes, the servers on them, the Harbor that is told of them, its Core.
fn came_in_order(asked: &Requests) -> Result<()> {
    let written = Written::of(asked);
    let harbor = "harbors sample-harbor";
    for (password, server) in PASSWORDS.into_iter().zip(["sample-database", "sample-redis"]) {
        let set = format!("statefulsets {server}");
        written.before(&format!("secrets {password}"), &set)?;
        written.before(&format!("persistentvolumeclaims {server}"), &set)?;
        written.before(&set, harbor)?;
        written.before(&format!("services {server}"), harbor)?;
    }
    written.before("persistentvolumeclaims sample-registry", harbor)?;
    Ok(written.before(harbor, "cores sample-harbor-harbor")?)
}

#[tokio::test]
async fn deletion_keeps_volumes_and_passwords_and_the_next_of_that_name_finds_them() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "built-in").await?;
    let running = operator(&world).await?;
    running.settled().await?;
    let begun = world.mark()?;
    world.put::<HarborCluster>(built_in()).await?;
    let cluster = healthy(&world).await?;
    for condition in ["CacheReady", "DatabaseReady", "StorageReady", "ServiceReady"] {
        assert_eq!(said(&cluster, condition).0, "True", "{condition}");
    }
    running.settled().await?;
    let asked = for_each(&world.requests(begun)?);
    print("built in", &asked);
    came_in_order(&asked)?;

    // What the Harbor is told are names.
    let harbor: Harbor = world.get("sample-harbor").await?;
    let (redis, database) = (harbor.spec.redis.unwrap(), harbor.spec.database.unwrap());
    let host = |service: &str| format!("{service}.{}.svc", world.namespace.name());
    assert_eq!((redis.host, redis.password_ref.as_deref()), (host("sample-redis"), Some("sample-redis")));
    assert_eq!(
        (&database.hosts[0].host, database.password_ref.as_deref()),
        (&host("sample-database"), Some("sample-database-password"))
    );
    for service in ["sample-redis", "sample-redis-headless", "sample-database", "sample-database-headless"] {
        world.get::<Service>(service).await?;
    }

    // Converged: nothing is written.
    let quiet = world.mark()?;
    let reconciles = running.settled().await?;
    world.change::<HarborCluster>("sample", json!({"metadata": {"annotations": {"look": "again"}}})).await?;
    running.idle_after(reconciles + 1).await?;
    let writes = world.requests(quiet)?.writes();
    assert!(writes.is_empty(), "converged, and yet: {writes}");

    // A volume grows where it is.
    let larger = json!({"spec": {"storage": {"spec": {"builtIn": {"storage": "2Gi"}}}}});
    world.change::<HarborCluster>("sample", larger).await?;
    world
        .see("sample-registry", "larger", |claim: &PersistentVolumeClaim| {
            json!(claim)["spec"]["resources"]["requests"]["storage"] == "2Gi"
        })
        .await?;
    healthy(&world).await?;

    let mut kept = Vec::new();
    for name in CLAIMS {
        let claim: PersistentVolumeClaim = world.get(name).await?;
        assert!(claim.owner_references().is_empty(), "the garbage collector has no say in {name}");
        kept.push((name, claim.uid()));
    }
    let mut passwords = Vec::new();
    for name in PASSWORDS {
        let secret: Secret = world.get(name).await?;
        assert!(secret.owner_references().is_empty(), "the garbage collector has no say in {name}");
        passwords.push((name, secret.data));
    }
    let ended = world.mark()?;
    world.delete::<HarborCluster>("sample").await?;
    for gone in ["sample-database", "sample-redis"] {
        world.gone::<StatefulSet>(gone).await?;
    }
    world.gone::<Harbor>("sample-harbor").await?;
    world.gone::<Core>("sample-harbor-harbor").await?;
    world.gone::<HarborCluster>("sample").await?;
    // In reverse: the way in, Core, the Harbor, and only then what it keeps its data in.
    let (deleted, harbor) = (Written::deleted(&world.requests(ended)?), "harbors sample-harbor");
    deleted.before(harbor, "ingresses sample-harbor-harbor")?;
    deleted.before("ingresses sample-harbor-harbor", "cores sample-harbor-harbor")?;
    for server in ["sample-database", "sample-redis"] {
        deleted.before("cores sample-harbor-harbor", &format!("statefulsets {server}"))?;
    }
    for kept in CLAIMS.map(|claim| format!("persistentvolumeclaims {claim}")) {
        assert!(!deleted.objects().contains(&kept), "{kept}");
    }

    world
        .put::<HarborCluster>({
            let mut again = built_in();
            again["spec"]["storage"]["spec"]["builtIn"]["storage"] = json!("2Gi");
            again
        })
        .await?;
    healthy(&world).await?;
    for (name, uid) in kept {
        assert_eq!(world.get::<PersistentVolumeClaim>(name).await?.uid(), uid, "{name}");
    }
    for (name, data) in passwords {
        assert_eq!(world.get::<Secret>(name).await?.data, data, "{name}");
    }

    // Asked to, it takes all of it along.
    world.change::<HarborCluster>("sample", json!({"spec": {"deletionPolicy": "Delete"}})).await?;
    world.delete::<HarborCluster>("sample").await?;
    for name in CLAIMS {
        world.gone::<PersistentVolumeClaim>(name).await?;
    }
    for name in PASSWORDS {
        world.gone::<Secret>(name).await?;
    }
    world.end(running).await
}

#[tokio::test]
async fn a_database_that_breaks_is_named_and_heals() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "breaks").await?;
    let running = operator(&world).await?;
    world.put::<HarborCluster>(built_in()).await?;
    world.see("sample-database-0", "there", |_: &Pod| true).await?;
    let pods = world.namespace.api::<Pod>();
    healthy(&world).await?;
    Story::NeverReady.tell(&pods, "database.goharbor.io/name=sample-database").await?;
    let broken = world
        .see("sample", "unhealthy", |cluster: &HarborCluster| said(cluster, "DatabaseReady").0 == "False")
        .await?;
    assert_eq!(word(&broken), "unhealthy");
    let (_, message) = said(&broken, "DatabaseReady");
    assert!(message.contains("StatefulSet sample-database"), "{message}");
    assert_eq!(said(&broken, "CacheReady").0, "True");
    Story::Ready.tell(&pods, "database.goharbor.io/name=sample-database").await?;
    healthy(&world).await?;
    world.end(running).await
}
