//! A plan with twelve nodes of all kinds: created in order, ready in order, delayed only by its dependencies.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::kit;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::PostParams;
use windlass::PlanController;
use windlass_testenv::{Story, TestEnv, or_not_run};

use kit::Corner;
use kit::shop::{Shop, Shops, password, shop};

#[tokio::test(flavor = "multi_thread")]
async fn the_nodes_of_a_plan_are_created_in_order() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "order").await?;
    let mark = corner.mark()?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("one")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;

    let writes = corner.writes_since(mark)?;
    let place = |write: &str| {
        writes
            .iter()
            .position(|other| other.starts_with(write))
            .unwrap_or_else(|| panic!("no {write} in {writes:#?}"))
    };
    assert_eq!(place("patch shops one"), 0, "the finalizer comes first: {writes:#?}");
    for before in ["serviceaccounts one-runner", "secrets one-key", "persistentvolumeclaims one-data"] {
        assert!(
            place(&format!("patch {before}")) < place("patch statefulsets one-db"),
            "{before}: {writes:#?}"
        );
    }
    assert!(place("patch statefulsets one-db") < place("patch jobs one-migrate-"), "{writes:#?}");
    assert!(place("patch jobs one-migrate-") < place("patch deployments one-web"), "{writes:#?}");
    assert!(place("patch services one-web") < place("patch ingresses one-web"), "{writes:#?}");
    // Each object is written once, beside the finalizer and the status.
    let objects: Vec<_> = writes.iter().filter(|write| !write.contains("shops")).collect();
    assert_eq!(objects.len(), 10, "{writes:#?}");
    println!("writes of the first shop: {writes:#?}");
    operator.stop().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_workload_with_failing_pods_delays_only_its_dependents_and_the_status_says_why() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "held-back").await?;
    let operator = corner.operate(PlanController::of(Shops::default())).await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("one")).await?;
    let mut stuck = shop("one", "shop:1");
    stuck.spec.story = Story::ImagePullError.annotations();
    corner.namespace.api::<Shop>().create(&PostParams::default(), &stuck).await?;

    // Earlier, the pods may be known to fail while the Deployment does not count them yet.
    let words = "0 of 2 replicas ready (ImagePullBackOff";
    let (reason, message) = corner.until_message::<Shop>("one", "Ready", "False", words).await?;
    assert_eq!(reason, "Waiting");
    assert!(
        message.starts_with("waiting for Deployment one-web: 0 of 2 replicas ready (ImagePullBackOff"),
        "{message}"
    );
    let mark = corner.mark()?;
    let released = Story::Ready.assign_to(&corner.namespace.api::<Pod>(), "app=one-web").await?;
    assert_eq!(released, 2, "both pods are released");
    corner.until::<Shop>("one", "Ready", "True").await?;
    // Watches reported the released pods: no request was sent.
    let asked = corner.requests_since(mark)?;
    assert_eq!(asked.filter(|request| !request.is_write()).count(), 0, "{asked}");
    operator.stop().await
}
