//! A HarborCluster with built-in cache, database and storage.

use anyhow::Result;
use harbor_operator::api::{Core, Harbor, HarborCluster};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Secret, Service};
use kube::ResourceExt as _;
use serde_json::json;
use windlass_testenv::world::Written;
use windlass_testenv::{Requests, Story, TestEnv, or_not_run};

use crate::sample::{built_in, for_each, healthy, operator, print, status_and_message, word};
use crate::world::World;

const CLAIMS: [&str; 3] = ["sample-database", "sample-redis", "sample-registry"];
const PASSWORDS: [&str; 2] = ["sample-database-password", "sample-redis"];

/// Checks that the objects of a HarborCluster were created in order: passwords and volumes, the servers that
/// use them, the Harbor that refers to the servers, its Core.
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
async fn seam_h2_deletion_needs_no_finalizer_and_retains_volumes_and_passwords_for_the_next_cluster_of_that_name()
-> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "built-in").await?;
    let running = operator(&world).await?;
    running.settled().await?;
    let begun = world.mark()?;
    world.put::<HarborCluster>(built_in()).await?;
    let cluster = healthy(&world).await?;
    assert_eq!(cluster.finalizers(), [""; 0]);
    for condition in ["CacheReady", "DatabaseReady", "StorageReady", "ServiceReady"] {
        assert_eq!(status_and_message(&cluster, condition).0, "True", "{condition}");
    }
    running.settled().await?;
    let asked = for_each(&world.requests(begun)?);
    print("built in", &asked);
    came_in_order(&asked)?;

    // The Harbor refers to the servers by names.
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
    // The garbage collector does that: a HarborCluster can be deleted without the operator.
    let deleted = world.requests(ended)?.verb("delete");
    assert!(deleted.is_empty(), "{deleted}");

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

    // With this policy everything is deleted with it: its objects are marked before the deletion.
    world.change::<HarborCluster>("sample", json!({"spec": {"deletionPolicy": "Delete"}})).await?;
    for name in CLAIMS {
        let owned = |claim: &PersistentVolumeClaim| !claim.owner_references().is_empty();
        world.see(name, "owned by the HarborCluster", owned).await?;
    }
    for name in PASSWORDS {
        world
            .see(name, "owned by the HarborCluster", |secret: &Secret| !secret.owner_references().is_empty())
            .await?;
    }
    world.delete::<HarborCluster>("sample").await?;
    for name in CLAIMS {
        world.gone::<PersistentVolumeClaim>(name).await?;
    }
    for name in PASSWORDS {
        world.gone::<Secret>(name).await?;
    }
    world.end(running).await
}

/// A retained claim of another class blocked the next cluster of that name, with the advice to delete it.
#[tokio::test]
async fn users_n6_a_cluster_beside_retained_claims_of_another_class_becomes_ready_and_keeps_them()
-> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "classes").await?;
    let running = operator(&world).await?;
    let of_class = |class: &str| {
        let mut cluster = built_in();
        for part in ["cache", "database", "storage"] {
            cluster["spec"][part]["spec"]["builtIn"]["storageClassName"] = json!(class);
        }
        cluster
    };
    world.put::<HarborCluster>(of_class("standard")).await?;
    healthy(&world).await?;
    let mut kept = Vec::new();
    for name in CLAIMS {
        kept.push((name, world.get::<PersistentVolumeClaim>(name).await?.uid()));
    }
    world.delete::<HarborCluster>("sample").await?;
    world.gone::<HarborCluster>("sample").await?;

    world.put::<HarborCluster>(of_class("fast")).await?;
    let cluster = healthy(&world).await?;
    let (status, message) = status_and_message(&cluster, "Advice");
    assert_eq!(status, "True");
    for part in ["cache", "database", "storage"] {
        let field = format!("spec.{part}.spec.builtIn.storageClassName: \"fast\" has no effect");
        assert!(message.contains(&field) && message.contains("keeps \"standard\""), "{field} in {message}");
    }
    assert!(!message.contains("delete"), "{message}");
    for (name, uid) in kept {
        let claim: PersistentVolumeClaim = world.get(name).await?;
        assert_eq!(claim.uid(), uid, "{name}");
        assert_eq!(claim.spec.unwrap().storage_class_name.as_deref(), Some("standard"), "{name}");
    }
    // With the class that the claims have, there is nothing to advise.
    world.change::<HarborCluster>("sample", json!({"spec": of_class("standard")["spec"]})).await?;
    let silent = |cluster: &HarborCluster| status_and_message(cluster, "Advice").0.is_empty();
    world.see("sample", "without advice", silent).await?;
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
    Story::NeverReady.assign_to(&pods, "database.goharbor.io/name=sample-database").await?;
    let broken = world
        .see("sample", "unhealthy", |cluster: &HarborCluster| {
            status_and_message(cluster, "DatabaseReady").0 == "False"
        })
        .await?;
    assert_eq!(word(&broken), "unhealthy");
    let (_, message) = status_and_message(&broken, "DatabaseReady");
    assert!(message.contains("StatefulSet sample-database"), "{message}");
    assert_eq!(status_and_message(&broken, "CacheReady").0, "True");
    Story::Ready.assign_to(&pods, "database.goharbor.io/name=sample-database").await?;
    healthy(&world).await?;
    world.end(running).await
}

/// The version that is recorded on an object.
fn recorded<K: kube::ResourceExt>(object: &K) -> Option<String> {
    object.annotations().get("windlass.dev/data-version").cloned()
}

#[tokio::test]
async fn seam_m8_a_cluster_that_is_created_anew_is_judged_by_the_version_of_its_retained_data() -> Result<()>
{
    const KEY: &str = "sample-harbor-harbor-core-encryptionkey";
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "data-version").await?;
    let running = operator(&world).await?;
    world.put::<HarborCluster>(built_in()).await?;
    healthy(&world).await?;
    let now = |version: Option<String>| version.as_deref() == Some("2.15.2");
    world.see("sample-database", "recorded", |claim: &PersistentVolumeClaim| now(recorded(claim))).await?;
    let key: Secret = world.see(KEY, "recorded", |key: &Secret| now(recorded(key))).await?;
    let ends = || async {
        world.delete::<HarborCluster>("sample").await?;
        world.gone::<Harbor>("sample-harbor").await?;
        world.gone::<Core>("sample-harbor-harbor").await?;
        anyhow::Ok(world.gone::<StatefulSet>("sample-database").await?)
    };
    ends().await?;

    // An older version cannot read the data; neither its database nor its Harbor is started.
    let mut older = built_in();
    older["spec"]["version"] = json!("2.14.4");
    world.put::<HarborCluster>(older).await?;
    let reports =
        |text: &'static str| move |cluster: &HarborCluster| json!(cluster.status).to_string().contains(text);
    let refusal = "this Harbor is at 2.15.2, and its database cannot be downgraded";
    world.see("sample", "refused", reports(refusal)).await?;
    let database = world.namespace.api::<StatefulSet>().get_opt("sample-database").await?;
    assert!(database.is_none(), "{database:?}");
    world.change::<HarborCluster>("sample", json!({"spec": {"version": "2.15.2"}})).await?;
    healthy(&world).await?;
    ends().await?;

    // Without its key, the data is not given a new one.
    world.delete::<Secret>(KEY).await?;
    world.put::<HarborCluster>(built_in()).await?;
    let missing =
        "Secret sample-harbor-harbor-core-encryptionkey is missing, and claim sample-database holds data";
    world
        .see("sample-harbor", "refused", |harbor: &Harbor| json!(harbor.status).to_string().contains(missing))
        .await?;
    assert!(world.namespace.api::<Secret>().get_opt(KEY).await?.is_none());
    let mut restored = json!(key);
    restored["metadata"] = json!({"name": KEY, "labels": restored["metadata"]["labels"],
        "annotations": restored["metadata"]["annotations"]});
    world.put::<Secret>(restored).await?;
    healthy(&world).await?;
    world.end(running).await
}
