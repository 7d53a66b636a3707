//! Pods tell the stories that tests ask for.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use std::time::Duration;

use anyhow::Result;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, PodStatus};
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams, PostParams};
use serde_json::json;
use windlass_testenv::{Story, TestEnv, TestNamespace, eventually, or_not_run};

async fn start(namespace: &TestNamespace, name: &str, story: &Story) -> Result<Api<Pod>> {
    let pods = namespace.api::<Pod>();
    let pod = serde_json::from_value(json!({
        "metadata": {"name": name, "annotations": story.annotations()},
        "spec": {"containers": [{"name": "c", "image": "example/image:1"}]},
    }))?;
    pods.create(&PostParams::default(), &pod).await?;
    Ok(pods)
}

fn condition(status: &PodStatus, kind: &str) -> Option<String> {
    let conditions = status.conditions.iter().flatten();
    conditions.clone().find(|condition| condition.type_ == kind).map(|condition| condition.status.clone())
}

async fn until(
    pods: &Api<Pod>,
    name: &str,
    what: &str,
    is: impl Fn(&PodStatus) -> bool,
) -> Result<PodStatus> {
    let status = eventually(format!("pod {name} {what}"), || async {
        let status = pods.get(name).await.map_err(|e| e.to_string())?.status.unwrap_or_default();
        if is(&status) { Ok(status) } else { Err(format!("{status:?}")) }
    })
    .await?;
    Ok(status)
}

fn is_ready(status: &PodStatus) -> bool {
    condition(status, "Ready").as_deref() == Some("True")
}

fn waiting(status: &PodStatus) -> Option<(String, String)> {
    let state = status.container_statuses.iter().flatten().next()?.state.as_ref()?;
    let waiting = state.waiting.as_ref()?;
    Some((waiting.reason.clone()?, waiting.message.clone().unwrap_or_default()))
}

#[tokio::test]
async fn a_pod_is_ready_at_once_unless_told_otherwise() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("ready").await?;
    let pods = start(&namespace, "p", &Story::Ready).await?;
    let status = until(&pods, "p", "to be ready", is_ready).await?;
    assert_eq!(status.phase.as_deref(), Some("Running"));
    assert!(status.pod_ip.is_some());
    Ok(())
}

#[tokio::test]
async fn a_pod_held_not_ready_is_released() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("held").await?;
    let deployments = namespace.api::<Deployment>();
    let deployment = serde_json::from_value(json!({
        "metadata": {"name": "d"},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": {"app": "d"}},
            "template": {
                "metadata": {"labels": {"app": "d"}, "annotations": Story::NeverReady.annotations()},
                "spec": {"containers": [{"name": "c", "image": "example/image:1"}]},
            },
        },
    }))?;
    deployments.create(&PostParams::default(), &deployment).await?;
    let pods = namespace.api::<Pod>();
    let name = eventually("its pod", || async {
        let pods = pods.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
        pods.items.first().map(kube::ResourceExt::name_any).ok_or_else(|| "no pod".to_owned())
    })
    .await?;
    until(&pods, &name, "to run unready", |status| {
        status.phase.as_deref() == Some("Running") && condition(status, "Ready").as_deref() == Some("False")
    })
    .await?;
    assert_eq!(deployments.get("d").await?.status.unwrap_or_default().available_replicas.unwrap_or(0), 0);

    assert_eq!(Story::Ready.assign_to(&pods, "app=d").await?, 1);
    until(&pods, &name, "to be ready", is_ready).await?;
    eventually("the deployment to be available", || async {
        let status = deployments.get("d").await.map_err(|e| e.to_string())?.status.unwrap_or_default();
        if status.available_replicas == Some(1) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await?;
    Ok(())
}

#[tokio::test]
async fn a_pod_becomes_ready_after_its_delay() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("delay").await?;
    let pods = start(&namespace, "late", &Story::ReadyAfter(Duration::from_secs(2))).await?;
    start(&namespace, "early", &Story::Ready).await?;
    until(&pods, "early", "to be ready", is_ready).await?;
    let late = pods.get("late").await?.status.unwrap_or_default();
    assert!(!is_ready(&late), "{late:?}");
    until(&pods, "late", "to be ready", is_ready).await?;
    Ok(())
}

#[tokio::test]
async fn a_crash_loop_has_last_words() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("crash").await?;
    let pods = start(&namespace, "p", &Story::CrashLoop("no route to \"db\"".to_owned())).await?;
    let status = until(&pods, "p", "to crash", |status| waiting(status).is_some()).await?;
    assert_eq!(waiting(&status).unwrap().0, "CrashLoopBackOff");
    let container = &status.container_statuses.as_ref().unwrap()[0];
    assert!(container.restart_count > 0);
    let last = container.last_state.as_ref().unwrap().terminated.as_ref().unwrap();
    assert_eq!(last.message.as_deref(), Some("no route to \"db\""));

    Story::Ready.assign_to(&pods, "").await?;
    until(&pods, "p", "to recover", is_ready).await?;
    Ok(())
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_is_named() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("pull").await?;
    let pods = start(&namespace, "p", &Story::ImagePullError).await?;
    let status = until(&pods, "p", "to fail", |status| waiting(status).is_some()).await?;
    let (reason, message) = waiting(&status).unwrap();
    assert_eq!(reason, "ImagePullBackOff");
    assert!(message.contains("example/image:1"), "{message}");
    Ok(())
}

#[tokio::test]
async fn a_pod_on_a_lost_node_does_not_finish_its_deletion() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let namespace = env.namespace("lost").await?;
    let pods = start(&namespace, "lost", &Story::NodeLost).await?;
    start(&namespace, "fine", &Story::Ready).await?;
    until(&pods, "lost", "to be lost", |status| status.reason.as_deref() == Some("NodeLost")).await?;
    until(&pods, "fine", "to be ready", is_ready).await?;
    for name in ["lost", "fine"] {
        pods.delete(name, &DeleteParams::default()).await?;
    }
    eventually("the other pod to be gone", || async {
        match pods.get_opt("fine").await.map_err(|e| e.to_string())? {
            None => Ok(()),
            Some(pod) => Err(format!("{:?}", pod.metadata.deletion_timestamp)),
        }
    })
    .await?;
    assert!(pods.get("lost").await?.metadata.deletion_timestamp.is_some());
    Story::Ready.assign_to(&pods, "").await?;
    eventually("the lost pod to be gone", || async {
        match pods.get_opt("lost").await.map_err(|e| e.to_string())? {
            None => Ok(()),
            Some(pod) => Err(format!("{:?}", pod.annotations())),
        }
    })
    .await?;
    Ok(())
}

async fn run_job(hint: &str, story: Story) -> Result<Option<Job>> {
    let env = match TestEnv::shared().await {
        Err(error) if error.is_not_run() => {
            windlass_testenv::report_not_run(&error);
            return Ok(None);
        }
        other => other?,
    };
    let namespace = env.namespace(hint).await?;
    let jobs = namespace.api::<Job>();
    let job = serde_json::from_value(json!({
        "metadata": {"name": "j"},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"annotations": story.annotations()},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example/image:1"}]},
        }},
    }))?;
    jobs.create(&PostParams::default(), &job).await?;
    let job = eventually("the job to end", || async {
        let job = jobs.get("j").await.map_err(|e| e.to_string())?;
        let status = job.status.clone().unwrap_or_default();
        let ended = status.conditions.iter().flatten().any(|c| matches!(&*c.type_, "Complete" | "Failed"));
        if ended { Ok(job) } else { Err(format!("{status:?}")) }
    })
    .await?;
    if story != Story::Ready {
        let pods = namespace.api::<Pod>().list(&ListParams::default()).await?;
        let words = pods.items[0].status.as_ref().unwrap().container_statuses.as_ref().unwrap()[0].clone();
        assert_eq!(words.state.unwrap().terminated.unwrap().message.as_deref(), Some("migration 7 failed"));
    }
    Ok(Some(job))
}

#[tokio::test]
async fn a_job_succeeds() -> Result<()> {
    if let Some(job) = run_job("job-succeeds", Story::Ready).await? {
        assert_eq!(job.status.unwrap_or_default().succeeded, Some(1));
    }
    Ok(())
}

#[tokio::test]
async fn a_job_fails_on_demand() -> Result<()> {
    if let Some(job) = run_job("job-fails", Story::Fail("migration 7 failed".to_owned())).await? {
        assert_eq!(job.status.unwrap_or_default().failed, Some(1));
    }
    Ok(())
}
