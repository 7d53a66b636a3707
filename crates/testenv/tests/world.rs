//! The shared test world on a real control plane.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::sync::Arc;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::sync::Notify;
use windlass_testenv::world::{Running, World, Written, condition};
use windlass_testenv::{Error, Rules, TestEnv, or_not_run, rule};

fn reader() -> Rules {
    Rules::default().in_namespace(rule("", &["configmaps"], &["get", "create", "patch", "delete"]))
}

async fn world(env: &TestEnv, hint: &str, rules: &Rules) -> windlass_testenv::Result<World> {
    World::in_namespace(env.namespace(hint).await?, "operator", rules).await
}

/// The smallest operator: it only waits for its end.
fn idle() -> Running {
    let asked = Arc::new(Notify::new());
    let stop = Arc::clone(&asked);
    let work = async move {
        asked.notified().await;
        Ok::<(), Error>(())
    };
    Running::new(|| (true, String::new()), String::new, move || stop.notify_one(), work)
}

fn deployment() -> Value {
    let containers = json!([{"name": "one", "image": "one:1"}, {"name": "two", "image": "two:1"}]);
    json!({"metadata": {"name": "web"}, "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}}})
}

#[tokio::test]
async fn objects_are_put_changed_seen_and_gone() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = world(&env, "objects", &reader()).await?;
    world.put::<ConfigMap>(json!({"metadata": {"name": "a"}, "data": {"x": "1", "y": "1"}})).await?;
    world.change::<ConfigMap>("a", json!({"data": {"x": "2", "y": null}})).await?;
    let seen = world.see("a", "x is 2", |map: &ConfigMap| map.data.as_ref().unwrap()["x"] == "2").await?;
    assert_eq!(seen.data.unwrap().len(), 1);
    assert_eq!(world.get::<ConfigMap>("a").await?.metadata.uid, seen.metadata.uid);
    world.delete::<ConfigMap>("a").await?;
    world.gone::<ConfigMap>("a").await?;
    assert!(world.get::<ConfigMap>("a").await.is_err());
    Ok(())
}

#[tokio::test]
async fn meddling_with_one_container_keeps_the_other() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = world(&env, "meddle", &reader()).await?;
    world.put::<Deployment>(deployment()).await?;
    let change = json!({"spec": {"template": {"spec": {"containers": [{"name": "two", "image": "two:2"}]}}}});
    let changed = world.meddle::<Deployment>("web", change).await?;
    let containers = changed.spec.unwrap().template.spec.unwrap().containers;
    let mut images: Vec<_> = containers.into_iter().filter_map(|container| container.image).collect();
    images.sort();
    assert_eq!(images, ["one:1", "two:2"]);
    Ok(())
}

#[tokio::test]
async fn no_pod_starts_while_pods_are_forbidden() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = world(&env, "quota", &reader()).await?;
    world.forbid_pods().await?;
    world.put::<Deployment>(deployment()).await?;
    world
        .see("web", "pods are refused", |found: &Deployment| {
            condition(&json!(found.status), "ReplicaFailure")["status"] == "True"
        })
        .await?;
    assert!(world.namespace.api::<Pod>().list(&ListParams::default()).await?.items.is_empty());
    world.allow_pods().await?;
    world
        .see("web", "a pod is available", |found: &Deployment| {
            found.status.as_ref().and_then(|status| status.available_replicas) == Some(1)
        })
        .await?;
    let events = world.events("web").await?;
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("ScalingReplicaSet")), "{events:?}");
    Ok(())
}

#[tokio::test]
async fn writes_of_the_operator_are_told_in_order_and_those_of_others_are_not() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = world(&env, "writes", &reader()).await?;
    let maps: Api<ConfigMap> = Api::namespaced(world.user.client()?, world.namespace.name());
    let mark = world.mark()?;
    world.put::<ConfigMap>(json!({"metadata": {"name": "of-a-user"}})).await?;
    for name in ["b", "a", "b"] {
        let map =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": name}});
        maps.patch(name, &PatchParams::apply("operator"), &Patch::Apply(map)).await?;
    }
    maps.delete("a", &kube::api::DeleteParams::default()).await?;
    let writes = world.writes(mark)?;
    assert_eq!(
        writes,
        ["patch configmaps b", "patch configmaps a", "patch configmaps b", "delete configmaps a"]
    );
    let requests = world.requests(mark)?;
    assert_eq!(Written::of(&requests).objects(), ["configmaps b", "configmaps a"]);
    Written::of(&requests).before("configmaps b", "configmaps a")?;
    assert_eq!(Written::deleted(&requests).objects(), ["configmaps a"]);
    Ok(world.end(idle()).await?)
}

#[tokio::test]
async fn the_end_of_a_test_names_a_right_that_was_missing() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = world(&env, "refused", &reader()).await?;
    let pods: Api<Pod> = Api::namespaced(world.user.client()?, world.namespace.name());
    assert!(pods.list(&ListParams::default()).await.is_err());
    let error = world.end(idle()).await.unwrap_err();
    assert!(matches!(&error, Error::MissingRight(words) if words.contains("pods")), "{error}");
    Ok(())
}
