//! A control plane of one's own: its components can be stopped.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use anyhow::{Context as _, Result};
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use kube::api::{Api, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use windlass_testenv::{Component, Options, Story, TestEnv, eventually, or_not_run};

fn config_map(name: &str) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name}})).unwrap()
}

#[tokio::test]
async fn an_api_server_restart_breaks_a_watch_and_forgets_old_versions() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let namespace = env.namespace("restart").await?;
    let maps: Api<ConfigMap> = namespace.api();
    let old = maps.create(&PostParams::default(), &config_map("a")).await?;
    let old = old.metadata.resource_version.context("a resourceVersion")?;
    // Some more changes, so that the restarted server's watch cache begins after `old`.
    for index in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("b{index}"))).await?;
    }
    let mut watch = maps.watch(&WatchParams::default(), &old).await?.boxed();
    let event = watch.try_next().await?.context("an event")?;
    assert!(matches!(event, WatchEvent::Added(_)), "{event:?}");

    env.restart_api_server().await?;
    // What was in flight may still arrive; then the stream ends or fails.
    while let Some(Ok(_)) = watch.next().await {}
    assert_eq!(maps.get("a").await?.metadata.resource_version.as_deref(), Some(&*old), "nothing was lost");

    let mut watch = match maps.watch(&WatchParams::default(), &old).await {
        Ok(watch) => watch.boxed(),
        Err(kube::Error::Api(status)) => {
            assert_eq!(status.code, 410, "{}", status.message);
            return Ok(());
        }
        Err(error) => return Err(error.into()),
    };
    match watch.try_next().await?.context("an answer")? {
        WatchEvent::Error(status) => assert_eq!(status.code, 410, "{}", status.message),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[tokio::test]
async fn a_stopped_component_stays_away_until_it_is_started() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let namespace = env.namespace("stop").await?;
    let pods: Api<Pod> = namespace.api();
    let pod = |name: &str| {
        serde_json::from_value::<Pod>(json!({
            "metadata": {"name": name, "annotations": Story::Ready.annotations()},
            "spec": {"containers": [{"name": "c", "image": "example/image:1"}]},
        }))
    };
    let scheduled = async |name: &str| {
        eventually(format!("pod {name} to be scheduled"), || async {
            let pod = pods.get(name).await.map_err(|e| e.to_string())?;
            pod.spec.and_then(|spec| spec.node_name).ok_or_else(|| "no node".to_owned())
        })
        .await
    };
    env.stop(Component::Scheduler).await?;
    pods.create(&PostParams::default(), &pod("waits")?).await?;
    // A pod that names its node passes the scheduler by: when KWOK has seen to it,
    // the other one has had every chance.
    let mut bound = pod("bound")?;
    bound.spec.as_mut().unwrap().node_name = Some("node-0".to_owned());
    pods.create(&PostParams::default(), &bound).await?;
    eventually("the bound pod to run", || async {
        let status = pods.get("bound").await.map_err(|e| e.to_string())?.status.unwrap_or_default();
        if status.phase.as_deref() == Some("Running") { Ok(()) } else { Err(format!("{:?}", status.phase)) }
    })
    .await?;
    assert_eq!(pods.get("waits").await?.spec.and_then(|spec| spec.node_name), None);

    env.start(Component::Scheduler).await?;
    scheduled("waits").await?;

    env.pause(Component::ApiServer).await?;
    let answer = tokio::time::timeout(std::time::Duration::from_millis(300), pods.get("waits")).await;
    assert!(answer.is_err(), "a frozen server answered: {answer:?}");
    env.resume(Component::ApiServer).await?;
    pods.get("waits").await?;
    Ok(())
}
