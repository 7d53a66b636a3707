//! A Foo is created, scaled, renamed and deleted, and its operator is killed, cut off, suspended and replaced
//! at every one of its writes.
//!
//! A run of the tests takes a slice of the points, chosen by the commit. All of them:
//! `WINDLASS_TORTURE=all cargo test -p foo --test acceptance torture -- --nocapture`.

use anyhow::Result;
use example_support::torture::{LEASE, elected, forget_uids, is_served, life};
use foo::api::Foo;
use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_testenv::torture::{Family, Kind, OperatorRun, Scene, StepResult, Torture};
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::spec;

/// The scenario, for an operator with or without leader election.
fn scenario(torture: Torture) -> Torture {
    torture
        .watch(Kind::of::<Foo>().with_status())
        .watch(Kind::of::<Deployment>().stays_available_where(is_served))
        .step(
            "create",
            |scene| async move {
                scene.api().create(&PostParams::default(), &Foo::new("web", spec("first", 1))).await?;
                Ok(())
            },
            |scene| async move { is_available(&scene, "first", 1).await },
        )
        .step(
            "scale",
            |scene| async move { change(&scene, json!({"replicas": 2})).await },
            |scene| async move { is_available(&scene, "first", 2).await },
        )
        .step(
            "rename",
            |scene| async move { change(&scene, json!({"deploymentName": "second"})).await },
            |scene| async move { is_available(&scene, "second", 2).await },
        )
        // The sample controller never deleted the Deployment of a former name; this one deletes it at once.
        .disruptive("rename")
        .step(
            "delete",
            |scene| async move {
                scene.api::<Foo>().delete("web", &DeleteParams::default()).await?;
                Ok(())
            },
            |scene| async move {
                let left = scene.api::<Deployment>().list(&ListParams::default()).await?.items;
                Ok(left.is_empty() && scene.api::<Foo>().get_opt("web").await?.is_none())
            },
        )
        .disruptive("delete")
        .reversal(
            "scale",
            "more replicas and back",
            |scene| async move { change(&scene, json!({"replicas": 5})).await },
            |scene| async move { change(&scene, json!({"replicas": 2})).await },
        )
        .owners("foos")
        .normalise(forget_uids)
}

async fn change(scene: &Scene, spec: Value) -> StepResult {
    let patch = Patch::Merge(json!({"spec": spec}));
    scene.api::<Foo>().patch("web", &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Returns true if the Foo has this Deployment alone, and reports so many available replicas.
async fn is_available(scene: &Scene, deployment: &str, replicas: i32) -> StepResult<bool> {
    let foo: Foo = scene.api().get("web").await?;
    let deployments = scene.api::<Deployment>().list(&ListParams::default()).await?.items;
    let names: Vec<_> = deployments.iter().filter_map(|made| made.metadata.name.as_deref()).collect();
    Ok(names == [deployment] && foo.status.is_some_and(|status| status.available_replicas == replicas))
}

#[tokio::test(flavor = "multi_thread")]
async fn torture_of_a_foo_that_is_created_scaled_renamed_and_deleted() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(foo::operator().definitions()).await?;
    let torture = Torture::new("foo", |run: OperatorRun| life(foo::operator(), run));
    let report = or_not_run!(scenario(torture).slice_by_commit(6).run(&env).await);
    println!("{report}");
    report.assert_passed();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn torture_of_a_foo_whose_leader_is_replaced() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(foo::operator().definitions()).await?;
    let torture = Torture::new("foo-led", |run: OperatorRun| elected(foo::operator(), run)).lease(LEASE);
    let torture = scenario(torture).families([Family::Handover, Family::Frozen]).slice_by_commit(6);
    let report = or_not_run!(torture.run(&env).await);
    println!("{report}");
    report.assert_passed();
    Ok(())
}
