//! A Game is created, scaled, changed and deleted, and its operator is killed, cut off, suspended and
//! replaced at every one of its writes.
//!
//! A run of the tests takes a slice of the points, chosen by the commit. All of them:
//! `WINDLASS_TORTURE=all cargo test -p game --test acceptance torture -- --nocapture`.

use anyhow::Result;
use example_support::torture::{LEASE, elected, forget_uids, is_served, life};
use game::api::{Game, Phase};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_testenv::torture::{Family, Kind, OperatorRun, Scene, StepResult, Torture};
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::{phase, ready, spec};

/// The scenario, for an operator with or without leader election.
fn scenario(torture: Torture) -> Torture {
    torture
        .watch(Kind::of::<Game>().with_status())
        .watch(Kind::of::<Deployment>().stays_available_where(is_served))
        .watch(Kind::of::<Service>())
        .watch(Kind::of::<Ingress>())
        .step(
            "create",
            |scene| async move {
                scene.api().create(&PostParams::default(), &Game::new("web", spec(1))).await?;
                Ok(())
            },
            |scene| async move { is_running(&scene).await },
        )
        .step(
            "scale",
            |scene| async move { change(&scene, json!({"replicas": 2})).await },
            |scene| async move { is_running(&scene).await },
        )
        .step(
            "change",
            |scene| async move { change(&scene, json!({"image": "2048:2", "host": "b.example.com"})).await },
            |scene| async move { is_running(&scene).await },
        )
        .step(
            "delete",
            |scene| async move {
                scene.api::<Game>().delete("web", &DeleteParams::default()).await?;
                Ok(())
            },
            |scene| async move { is_gone(&scene).await },
        )
        .disruptive("delete")
        .reversal(
            "scale",
            "more replicas and back",
            |scene| async move { change(&scene, json!({"replicas": 5})).await },
            |scene| async move { change(&scene, json!({"replicas": 2})).await },
        )
        .owners("games")
        .normalise(forget_uids)
}

async fn change(scene: &Scene, spec: Value) -> StepResult {
    let patch = Patch::Merge(json!({"spec": spec}));
    scene.api::<Game>().patch("web", &PatchParams::default(), &patch).await?;
    Ok(())
}

async fn is_running(scene: &Scene) -> StepResult<bool> {
    let game: Game = scene.api().get("web").await?;
    let observed = ready(&game).and_then(|ready| ready.observed_generation);
    Ok(observed == game.metadata.generation && phase(&game) == Some(Phase::Running))
}

/// Returns true if the Game is gone, with everything that it had.
async fn is_gone(scene: &Scene) -> StepResult<bool> {
    let all = ListParams::default();
    Ok(scene.api::<Game>().get_opt("web").await?.is_none()
        && scene.api::<Deployment>().list(&all).await?.items.is_empty()
        && scene.api::<Service>().list(&all).await?.items.is_empty()
        && scene.api::<Ingress>().list(&all).await?.items.is_empty())
}

#[tokio::test(flavor = "multi_thread")]
async fn torture_of_a_game_that_is_created_scaled_changed_and_deleted() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(game::operator().definitions()).await?;
    let torture = Torture::new("game", |run: OperatorRun| life(game::operator(), run));
    let report = or_not_run!(scenario(torture).slice_by_commit(12).run(&env).await);
    println!("{report}");
    report.assert_passed();
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn torture_of_a_game_whose_leader_is_replaced() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    env.install_crds(game::operator().definitions()).await?;
    let torture = Torture::new("game-led", |run: OperatorRun| elected(game::operator(), run)).lease(LEASE);
    let torture = scenario(torture).families([Family::Handover, Family::Frozen]).slice_by_commit(12);
    let report = or_not_run!(torture.run(&env).await);
    println!("{report}");
    report.assert_passed();
    Ok(())
}
