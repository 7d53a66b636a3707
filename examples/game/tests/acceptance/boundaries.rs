//! Objects of others, and errors.

use anyhow::Result;
use game::api::{Game, Phase};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;
use windlass_testenv::proxy::{Answer, Fault, Match, RequestVerb};
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::{
    World, condition, counts, foreign_deployment, foreign_ingress, foreign_service, image, phase, ready,
    replicas, spec,
};

/// The original takes what has the name: it overwrites a foreign Deployment, and is not even its owner
/// afterwards.
#[tokio::test]
async fn g15_foreign_objects_are_left_alone_and_the_status_says_what_to_do() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g15").await?;
    let deployment: Deployment = world.put(foreign_deployment("web")).await?;
    let service: Service = world.put(foreign_service("web")).await?;
    let ingress: Ingress = world.put(foreign_ingress("web")).await?;
    let operator = world.operator().await?;
    world.create("web", spec(3)).await?;

    let game = world.phase("web", Phase::Failed).await?;
    let condition = ready(&game).unwrap();
    assert_eq!(condition.reason, "Collision");
    for part in ["Deployment web", "not ours", "Delete or rename it", "windlass.dev/adopt=Game/web"] {
        assert!(condition.message.contains(part), "{part} in {}", condition.message);
    }
    operator.idle_after(1).await?;
    let found: Deployment = world.get("web").await?;
    assert_eq!(
        (image(&found), replicas(&found), found.owner_references().len()),
        (Some("other:1"), Some(1), 0)
    );
    assert_eq!(world.get::<Service>("web").await?.spec, service.spec);
    assert_eq!(operator.metric("controller_runtime_reconcile_errors_total"), 0, "no storm");
    let events = world.events("web").await?;
    assert!(events.iter().any(|event| event.reason.as_deref() == Some("Collision")), "{events:?}");

    // One is deleted, one renamed away, and one given to the Game: each is seen at once.
    world.delete::<Service>("web").await?;
    world.see::<Service>("web", "ours", |found| found.uid() != service.uid()).await?;
    world.delete::<Ingress>("web").await?;
    world.see::<Ingress>("web", "ours", |found| found.uid() != ingress.uid()).await?;
    world.delete::<Deployment>("web").await?;
    world.see::<Deployment>("web", "ours", |found| found.uid() != deployment.uid()).await?;
    world.phase("web", Phase::Running).await?;
    world.end(operator).await
}

#[tokio::test]
async fn g15_an_object_that_its_owner_gives_to_a_game_is_taken_over() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g15-adopt").await?;
    let service: Service = world.put(foreign_service("web")).await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Failed).await?;
    let consent = json!({"metadata": {"annotations": {"windlass.dev/adopt": "Game/web"}}});
    world.meddle::<Service>("web", consent).await?;
    world.phase("web", Phase::Running).await?;
    let taken: Service = world.get("web").await?;
    assert_eq!(taken.uid(), service.uid(), "the same one");
    assert_eq!(taken.owner_references()[0].kind, "Game");
    assert_eq!(json!(taken.spec)["ports"].as_array().unwrap().len(), 1, "and only what a Game wants is left");
    world.end(operator).await
}

#[tokio::test]
async fn g16_a_deleted_game_takes_everything_along_without_our_help() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g16").await?;
    // Pods would take their time to go.
    world.forbid_pods().await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::NotReady).await?;
    // The last that there is to say of it: nothing is on its way into the status any more.
    let game = world
        .see("web", "waiting for pods", |game: &Game| {
            ready(game).is_some_and(|ready| ready.message.contains("0 of 1 replicas updated"))
        })
        .await?;
    assert_eq!(game.metadata.finalizers, None);
    operator.idle_after(1).await?;
    let mark = world.mark()?;
    world.games.delete("web", &DeleteParams::foreground()).await?;
    world.gone::<Deployment>("web").await?;
    world.gone::<Service>("web").await?;
    world.gone::<Ingress>("web").await?;
    world.gone::<Game>("web").await?;
    operator.idle_after(1).await?;
    let writes = world.requests(mark)?.writes();
    assert!(writes.is_empty(), "{writes}");
    world.end(operator).await
}

#[tokio::test]
async fn g17_a_game_that_is_gone_is_no_error() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g17").await?;
    world.forbid_pods().await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::NotReady).await?;
    operator.idle_after(1).await?;
    // What belongs to it stays: no event but its own end tells of it.
    world.games.delete("web", &DeleteParams::orphan()).await?;
    world.gone::<Game>("web").await?;
    operator.idle_after(2).await?;
    assert_eq!(operator.metric("controller_runtime_reconcile_errors_total"), 0);
    world.end(operator).await
}

#[tokio::test]
async fn g21_a_conflict_of_the_status_is_tried_again() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g21").await?;
    let proxy = world.env.fault_proxy().await?;
    let busy =
        Fault::on(Match::verb(RequestVerb::Apply).resource("games/status")).times(2).then(Answer::conflict());
    let busy = proxy.add(busy);
    let operator = world.operator_with(world.user.config_through(&proxy.url())?).await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;
    assert_eq!(busy.hits(), 2);
    world.end(operator).await
}

/// The original follows a pointer to nothing here, and its process ends.
#[tokio::test]
async fn g23_a_foreign_deployment_and_no_spec_harm_nobody() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g23").await?;
    world.put::<Deployment>(foreign_deployment("bare")).await?;
    let operator = world.operator().await?;
    let bare =
        json!({"apiVersion": "myapp.qingwave.github.io/v1", "kind": "Game", "metadata": {"name": "bare"}});
    world.games.patch("bare", &PatchParams::apply("user"), &Patch::Apply(bare)).await?;
    let game = world.phase("bare", Phase::Failed).await?;
    assert_eq!(ready(&game).unwrap().reason, "Collision");
    // Others are served as ever.
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;
    assert_eq!(operator.metric("controller_runtime_reconcile_panics_total"), 0);
    world.end(operator).await
}

/// This case is not in the list: the original cannot be paused.
#[tokio::test]
async fn a_paused_game_is_left_as_it_is_and_its_status_stays_whole() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "paused").await?;
    let operator = world.operator().await?;
    world.create("web", spec(2)).await?;
    world.phase("web", Phase::Running).await?;
    world.patch_game("web", json!({"metadata": {"annotations": {"windlass.dev/paused": "true"}}})).await?;
    let paused = world.see("web", "paused", |game: &Game| condition(game, "Paused").is_some()).await?;
    assert_eq!(ready(&paused).unwrap().status, "True", "a pause is no failure");
    assert_eq!(counts(&paused), Some((2, 2)), "what its schema requires is there");
    world.delete::<Ingress>("web").await?;
    world.patch_game("web", json!({"spec": {"image": "2048:2"}})).await?;
    // The status goes on to speak of the spec before: the new one is not applied.
    let observed = world.see("web", "observed without its Ingress", |game: &Game| {
        phase(game) == Some(Phase::NotReady) && ready(game).is_some_and(|ready| ready.reason == "Paused")
    });
    let observed = observed.await?;
    assert_eq!(observed.status.as_ref().and_then(|status| status.standard.observed_generation), Some(1));
    operator.idle_after(1).await?;
    assert_eq!(image(&world.get("web").await?), Some("2048:1"));

    world.patch_game("web", json!({"metadata": {"annotations": {"windlass.dev/paused": null}}})).await?;
    world.phase("web", Phase::Running).await?;
    assert_eq!(image(&world.get("web").await?), Some("2048:2"));
    world.see::<Ingress>("web", "there again", |_| true).await?;
    world.end(operator).await
}
