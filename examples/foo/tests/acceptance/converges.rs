//! Whatever happens to it, a Deployment comes back to what its Foo says; and where nothing happens, nothing
//! is written.

use anyhow::Result;
use kube::api::DeleteParams;
use serde_json::json;
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::{World, image, replicas, spec, uid};

/// The original writes the status at every sync, changed or not, and syncs everything every 30 seconds (F3,
/// F16). Here a converged cluster costs no write, also when the operator restarts and reconciles everything
/// again.
#[tokio::test]
async fn f03_f16_where_all_is_well_nothing_is_written_also_after_a_restart() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f03").await?;
    let operator = world.operator().await?;
    for (foo, replicas) in [("a", Some(1)), ("b", Some(2)), ("c", None)] {
        world.create(foo, spec(foo, replicas)).await?;
    }
    for (foo, replicas) in [("a", 1), ("b", 2), ("c", 1)] {
        world.available(foo, replicas).await?;
        world.event(foo, "Synced").await?;
        // The rollout's last word, which changes nothing for us.
        world
            .deployment(foo, "rolled out", |made| {
                made.status.as_ref().unwrap().updated_replicas == Some(replicas)
            })
            .await?;
    }
    operator.stop().await?;

    let mark = world.mark()?;
    let again = world.operator().await?;
    again.idle_after(3).await?;
    let writes = world.requests(mark)?.writes();
    assert!(writes.is_empty(), "{writes}");
    world.end(again).await
}

#[tokio::test]
async fn f04_a_change_of_replicas_is_one_write() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f04").await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 1)).await?;
    world.available("web", 1).await?;

    let mark = world.mark()?;
    world.patch_foo("web", json!({"spec": {"replicas": 3}})).await?;
    world.available("web", 3).await?;
    let writes = world.requests(mark)?.writes();
    assert_eq!(writes.resource("deployments").count(), 1, "{writes}");
    let statuses = writes.filter(|write| write.subresource == "status").count();
    assert!((1..=3).contains(&statuses), "as the replicas come, at most one each: {writes}");
    world.end(operator).await
}

#[tokio::test]
async fn f06_a_deployment_that_somebody_scaled_is_scaled_back() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f06").await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 2)).await?;
    world.available("web", 2).await?;
    world.meddle("d", json!({"spec": {"replicas": 5}})).await?;
    let back = world.deployment("d", "scaled back", |made| replicas(made) == Some(2)).await?;
    assert!(back.metadata.generation > Some(2), "it was scaled, and scaled back");
    world.end(operator).await
}

/// The original compares replicas only, and leaves this as it is.
#[tokio::test]
async fn f07_a_changed_image_is_repaired_and_what_others_added_stays() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f07").await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 1)).await?;
    world.available("web", 1).await?;
    let added = json!({"spec": {"template": {"metadata": {"labels": {"team": "a"}},
        "spec": {"containers": [{"name": "nginx", "image": "nginx:evil"}]}}}});
    world.meddle("d", added).await?;
    let back = world.deployment("d", "repaired", |made| image(made) == Some("nginx:latest")).await?;
    let labels = back.spec.unwrap().template.metadata.unwrap().labels.unwrap();
    assert_eq!(labels.get("team").map(String::as_str), Some("a"), "that is not ours to remove");
    world.end(operator).await
}

#[tokio::test]
async fn f12_a_deleted_deployment_comes_back_also_if_nobody_saw_it_go() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f12").await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 1)).await?;
    let first = world.deployment("d", "there", |_| true).await?;
    world.deployments.delete("d", &DeleteParams::default()).await?;
    let second = world.deployment("d", "another one", |made| uid(made) != uid(&first)).await?;

    operator.stop().await?;
    world.deployments.delete("d", &DeleteParams::default()).await?;
    let again = world.operator().await?;
    world.deployment("d", "a third one", |made| uid(made) != uid(&second)).await?;
    world.end(again).await
}

/// In the original the Deployment of the old name stays for ever.
#[tokio::test]
async fn f14_a_new_name_is_a_new_deployment_and_the_old_one_goes() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f14").await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 1)).await?;
    world.available("web", 1).await?;
    let foreign = world.foreign("bystander", json!([])).await?;
    world.patch_foo("web", json!({"spec": {"deploymentName": "e"}})).await?;
    world.deployment("e", "there", |made| replicas(made) == Some(1)).await?;
    world.no_deployment("d").await?;
    world.available("web", 1).await?;
    assert_eq!(
        uid(&world.deployments.get("bystander").await?),
        uid(&foreign),
        "that one is nobody's business"
    );
    world.end(operator).await
}

#[tokio::test]
async fn f15_the_status_follows_the_deployment() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "f15").await?;
    world.forbid_pods().await?;
    let operator = world.operator().await?;
    world.create("web", spec("d", 2)).await?;
    world.available("web", 0).await?;
    world.allow_pods().await?;
    // A change makes the replica set try again at once.
    world.patch_foo("web", json!({"spec": {"replicas": 3}})).await?;
    world.available("web", 3).await?;
    world.patch_foo("web", json!({"spec": {"replicas": 1}})).await?;
    world.available("web", 1).await?;
    world.end(operator).await
}
