//! Tests of the client on the real control plane.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::live;

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use live::{Live, config_map, quick, until};
use serde_json::{Value, json};
use windlass_runtime::cache::{Cache, Full, MetadataOnly, Selection};
use windlass_runtime::client::{Apply, Client, ClientOptions, Delete, Deletion, Evict, Failure, Patch};
use windlass_runtime::meta::{Keep, Uid};
use windlass_testenv::proxy::{Answer, Fault, Match, RequestVerb};
use windlass_testenv::{Story, TestEnv, eventually, or_not_run};

#[tokio::test]
async fn applies_that_only_create_and_only_update_are_distinguished() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "apply").await?;
    let objects = live.client.objects::<ConfigMap>();
    let apply = Apply::by("test").force();
    let key = live.key("a");
    let with = |field: &str, value: &str| {
        let mut object = config_map("a", "1");
        object["metadata"][field] = json!(value);
        object
    };
    let created = objects.apply(&key, &with("resourceVersion", "1"), &apply).await?;
    let refused = objects.apply(&key, &with("resourceVersion", "1"), &apply).await.unwrap_err();
    assert_eq!(*refused.failure(), Failure::Conflict, "{refused}");

    let uid = created.metadata.uid.unwrap();
    let again = objects.apply(&key, &with("uid", &uid), &apply).await?;
    assert_eq!(again.metadata.resource_version, created.metadata.resource_version, "a no-op changes nothing");
    assert_eq!(objects.delete(&key, &Delete::incarnation(uid.parse()?)).await?, Deletion::Done);
    let refused = objects.apply(&key, &with("uid", &uid), &apply).await.unwrap_err();
    assert_eq!(*refused.failure(), Failure::Conflict, "{refused}");
    Ok(())
}

#[tokio::test]
async fn a_throttled_write_is_retried_after_the_requested_delay_and_executed_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "throttled").await?;
    let throttled = live.proxy.add(
        Fault::on(Match::verb(RequestVerb::Create))
            .times(2)
            .then(Answer::too_many_requests(Duration::from_secs(1))),
    );
    let mark = env.requests()?.mark()?;
    live.client.objects::<ConfigMap>().create(&live.key("a"), &config_map("a", "1")).await?;
    assert_eq!(throttled.hits(), 2);
    let codes: Vec<(u16, u64)> =
        live.client.stats().requests().into_iter().map(|(_, code, count)| (code, count)).collect();
    assert_eq!(codes, [(201, 1), (429, 2)], "what was tried is counted");
    let created = env.requests()?.since(mark)?.resource("configmaps").verb("create");
    let ours = created
        .filter(|request| request.name == "a" && live.key("a").namespace() == Some(&*request.namespace));
    assert_eq!(ours.count(), 1, "{created}");
    Ok(())
}

#[tokio::test]
async fn a_field_that_another_manager_owns_is_named() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "conflict").await?;
    let objects = live.client.objects::<ConfigMap>();
    let key = live.key("a");
    objects.apply(&key, &config_map("a", "theirs"), &Apply::by("theirs")).await?;
    let error = objects.apply(&key, &config_map("a", "ours"), &Apply::by("ours")).await.unwrap_err();
    let Failure::FieldConflict(conflicts) = error.failure() else { panic!("{error}") };
    assert_eq!(conflicts[0].field, ".data.value");
    assert!(conflicts[0].message.contains("theirs"), "{conflicts:?}");
    objects.apply(&key, &config_map("a", "ours"), &Apply::by("ours").force()).await?;
    Ok(())
}

#[tokio::test]
async fn live_errors_have_their_class() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "errors").await?;
    let objects = live.client.objects::<ConfigMap>();
    let key = live.key("a");
    assert!(objects.get(&key).await.unwrap_err().is_not_found());
    assert!(objects.find(&key).await?.is_none());
    objects.create(&key, &config_map("a", "1")).await?;
    assert!(objects.create(&key, &config_map("a", "1")).await.unwrap_err().is_already_exists());
    let other = Delete::incarnation(Uid::from_bytes([7; 16]));
    assert_eq!(*objects.delete(&key, &other).await.unwrap_err().failure(), Failure::Conflict);
    let bad = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"no/slash": "x"}});
    let error = objects.apply(&key, &bad, &Apply::by("t").force()).await.unwrap_err();
    let Failure::Invalid(causes) = error.failure() else { panic!("{error}") };
    assert_eq!(causes[0].field, "data[no/slash]");

    let nobody = live.namespace.client_for("nobody", &windlass_testenv::Rules::default()).await?;
    let nobody = Client::new(nobody.config(), ClientOptions::default())?;
    assert!(nobody.objects::<ConfigMap>().get(&key).await.unwrap_err().is_forbidden());
    Ok(())
}

#[tokio::test]
async fn a_finalizer_delays_a_delete_and_its_removal_removes_the_object_from_the_cache() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "finalizer").await?;
    let cache = Cache::with_timing(&live.client, quick());
    let configs = cache.reader::<MetadataOnly<ConfigMap>>(&live.here());
    cache.start();
    configs.synced().await;
    // From here on only writes can change the cache.
    let _frozen = live.proxy.freeze_watches(&live.watches());
    let objects = live.client.objects::<ConfigMap>();
    let key = live.key("a");
    let mut object = config_map("a", "1");
    object["metadata"]["finalizers"] = json!(["windlass.dev/test"]);
    objects.apply(&key, &object, &Apply::by("test")).await?;
    assert_eq!(objects.delete(&key, &Delete::any()).await?, Deletion::Pending);
    assert!(configs.get(&key).unwrap().deleting);
    let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    objects.patch(&key, &patch, "test").await?;
    assert!(configs.get(&key).is_none(), "its last finalizer is gone, and so is the object");
    assert!(objects.find(&key).await?.is_none());
    Ok(())
}

#[tokio::test]
async fn a_managers_entry_is_kept_as_the_server_wrote_it() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "manager").await?;
    let cache = Cache::with_timing(&live.client, quick());
    let keep = Keep::default().manager("ours");
    let configs = cache.reader::<MetadataOnly<ConfigMap>>(&live.here().keep(keep.clone()));
    let whole = cache.reader::<Full<ConfigMap>>(&live.here().keep(keep));
    cache.start();
    configs.synced().await;
    live.put("a", "theirs").await?;
    let mut ours = config_map("a", "x");
    ours["data"] = json!({"mine": "1"});
    live.client.objects::<ConfigMap>().apply(&live.key("a"), &ours, &Apply::by("ours")).await?;
    let entry = |meta: &windlass_runtime::meta::Meta| {
        assert_eq!(meta.managed.len(), 1);
        serde_json::from_str::<Value>(&meta.managed[0].fields()).unwrap()
    };
    let kept = entry(&configs.get(&live.key("a")).unwrap());
    assert_eq!(kept, json!({"f:data": {"f:mine": {}}}));
    assert_eq!(entry(windlass_runtime::cache::Shape::meta(&*whole.get(&live.key("a")).unwrap())), kept);
    Ok(())
}

fn pod(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": "web"}, "annotations": Story::Ready.annotations()},
        "spec": {"containers": [{"name": "c", "image": "example/image:1"}]}})
}

#[tokio::test]
async fn an_eviction_obeys_disruption_budgets_and_updates_the_cache_at_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "evict").await?;
    let cache = Cache::with_timing(&live.client, quick());
    let pods = cache.reader::<MetadataOnly<Pod>>(&live.here());
    cache.start();
    pods.synced().await;
    let key = live.key("p");
    live.client.objects::<Pod>().apply(&key, &pod("p"), &Apply::by("test")).await?;
    let running = || async {
        let pod = live.client.objects::<Pod>().get(&key).await.map_err(|e| e.to_string())?;
        let phase = pod.status.and_then(|status| status.phase).unwrap_or_default();
        if phase == "Running" { Ok(()) } else { Err(phase) }
    };
    eventually("the pod to run", running).await?;

    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    let budgets = live.client.objects::<PodDisruptionBudget>();
    budgets.apply(&live.key("b"), &budget, &Apply::by("test")).await?;
    let uid = pods.get(&key).unwrap().uid;
    let evict = Evict::incarnation(uid);
    let error = live.client.evict(&key, &evict).await.unwrap_err();
    assert!(matches!(error.failure(), Failure::Throttled { .. }), "{error}");
    budgets.delete(&live.key("b"), &Delete::any()).await?;
    let evicted = || async { live.client.evict(&key, &evict).await.map_err(|e| e.to_string()) };
    eventually("the eviction", evicted).await?;
    assert!(pods.get(&key).is_none_or(|pod| pod.deleting), "in the next line");
    until(&pods, "the pod to go", |reader| reader.get(&key).is_none()).await
}

#[tokio::test]
async fn a_scaled_object_is_in_the_cache_at_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "scale").await?;
    let cache = Cache::with_timing(&live.client, quick());
    let deployments = cache.reader::<Full<Deployment>>(&live.here());
    cache.start();
    deployments.synced().await;
    let key = live.key("d");
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "d"}}, "template": {
            "metadata": {"labels": {"app": "d"}},
            "spec": {"containers": [{"name": "c", "image": "example/image:1"}]}}}});
    let objects = live.client.objects::<Deployment>();
    objects.apply(&key, &deployment, &Apply::by("test")).await?;
    assert_eq!(objects.scale(&key, 2).await?, 2);
    assert_eq!(deployments.get(&key).unwrap().spec.as_ref().unwrap().replicas, Some(2));
    Ok(())
}

#[tokio::test]
async fn a_list_of_many_pages_is_complete() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let live = Live::new(&env, "pages").await?;
    for at in 0..501 {
        let key = live.key(&format!("a{at}"));
        let mut object = config_map(key.name(), "1");
        object["metadata"]["labels"] = json!({"page": "yes"});
        live.client.objects::<ConfigMap>().create(&key, &object).await?;
    }
    let selection = Selection::all().in_namespace(live.namespace.name()).labels("page in (yes)")?;
    assert_eq!(live.client.objects::<ConfigMap>().list(&selection).await?.len(), 501);
    Ok(())
}
