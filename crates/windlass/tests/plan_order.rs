//! A plan with twelve nodes of all verbs: created in order, ready in order, held back only where it must be.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

mod kit;

use anyhow::Result;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Patch, PatchParams, PostParams};
use serde_json::json;
use windlass::Unified;
use windlass_testenv::{Story, TestEnv, or_not_run};

use kit::Corner;
use kit::shop::{Shop, Shops, password, shop};

#[tokio::test(flavor = "multi_thread")]
async fn all_nodes_come_up_in_order() -> Result<()> {
    let corner = Corner::new(or_not_run!(TestEnv::shared().await), "order").await?;
    let mark = corner.mark()?;
    let operator = corner.operate(Unified::of(Shops::default())).await?;
    corner.namespace.api::<Secret>().create(&PostParams::default(), &password("one")).await?;
    corner.namespace.api::<Shop>().create(&PostParams::default(), &shop("one", "shop:1")).await?;
    corner.until::<Shop>("one", "Ready", "True").await?;

    let writes = corner.writes_since(mark)?;
    let place = |write: &str| {
        writes.iter().position(|other| other.starts_with(write)).unwrap_or_else(|| panic!("no {write} in {writes:#?}"))
    };
    assert_eq!(place("patch shops one"), 0, "the finalizer comes first: {writes:#?}");
    for before in ["serviceaccounts one-runner", "secrets one-key", "persistentvolumeclaims one-data"] {
        assert!(place(&format!("patch {before}")) < place("patch statefulsets one-db"), "{before}: {writes:#?}");
    }
    assert!(place("patch statefulsets one-db") < place("patch jobs one-migrate-"), "{writes:#?}");
    assert!(place("patch jobs one-migrate-") < place("patch deployments one-web"), "{writes:#?}");
    assert!(place("patch services one-web") < place("patch ingresses one-web"), "{writes:#?}");
    // Each object once; the finalizer and the status beside them.
    let objects: Vec<_> = writes.iter().filter(|write| !write.contains("shops")).collect();
    assert_eq!(objects.len(), 10, "{writes:#?}");
    println!("writes of the first shop: {writes:#?}");
    operator.stop().await
}
