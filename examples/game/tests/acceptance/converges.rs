//! Whatever happens to it, a Game comes back to what its user says; and where nothing happens, nothing is
//! written.

use anyhow::Result;
use game::api::{Game, Phase};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use serde_json::json;
use windlass_testenv::{Story, TestEnv, or_not_run};

use crate::world::{World, counts, image, phase, ready, replicas, spec};

#[tokio::test]
async fn g05_a_game_runs_when_all_replicas_are_ready() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g05").await?;
    world.forbid_pods().await?;
    let operator = world.operator().await?;
    world.create("web", spec(2)).await?;
    world.phase("web", Phase::NotReady).await?;
    world.allow_pods().await?;
    // A change makes the replica set try again at once.
    world.patch_game("web", json!({"spec": {"replicas": 3}})).await?;
    let game = world.phase("web", Phase::Running).await?;
    assert_eq!(counts(&game), Some((3, 3)));
    let status = game.status.unwrap().standard;
    assert_eq!(status.observed_generation, game.metadata.generation);
    operator.metric_becomes("mygame_games{phase=\"Running\"}", 1).await?;
    world.end(operator).await
}

#[tokio::test]
async fn g06_a_game_is_not_ready_while_replicas_are_missing() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g06").await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;

    world.forbid_pods().await?;
    world.patch_game("web", json!({"spec": {"replicas": 2}})).await?;
    let game = world.phase("web", Phase::NotReady).await?;
    assert_eq!(
        counts(&game),
        Some((2, 1)),
        "the desired count is reported at once, the ready count as pods become ready"
    );
    world.see::<Deployment>("web", "two replicas", |made| replicas(made) == Some(2)).await?;
    world.patch_game("web", json!({"spec": {"replicas": 1}})).await?;
    world.phase("web", Phase::Running).await?;

    // One that was ready is not any more, and then is again.
    let pods = world.namespace.api::<Pod>();
    Story::NeverReady.assign_to(&pods, "").await?;
    let game = world.phase("web", Phase::NotReady).await?;
    assert_eq!(counts(&game), Some((1, 0)));
    Story::Ready.assign_to(&pods, "").await?;
    world.phase("web", Phase::Running).await?;
    world.end(operator).await
}

/// In the original a Game whose new image does not come up is Running, as long as the Pods of the old one
/// are. Here replicas count when they are of the present template.
#[tokio::test]
async fn g07_a_game_whose_new_image_is_not_there_yet_is_not_running() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g07").await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;

    world.forbid_pods().await?;
    world.patch_game("web", json!({"spec": {"image": "2048:2"}})).await?;
    let game = world.phase("web", Phase::NotReady).await?;
    assert_eq!(counts(&game), Some((1, 1)), "the old one still serves");
    let waiting = world
        .see("web", "what is missing", |game: &Game| {
            ready(game).is_some_and(|ready| ready.message.contains("0 of 1 replicas updated"))
        })
        .await?;
    assert!(ready(&waiting).unwrap().message.starts_with("waiting for Deployment web"));

    world.allow_pods().await?;
    world.patch_game("web", json!({"spec": {"image": "2048:3"}})).await?;
    world.phase("web", Phase::Running).await?;
    assert_eq!(image(&world.get("web").await?), Some("2048:3"));
    world.end(operator).await
}

/// The original replaces the whole spec, and looks at replicas, selector, and the first container's name and
/// image only.
#[tokio::test]
async fn g08_g09_what_is_ours_is_repaired_and_what_others_add_stays() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g08").await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;

    let sidecar = json!({"name": "sidecar", "image": "proxy:1"});
    let theirs = json!({"name": "main", "image": "evil:1", "env": [{"name": "A", "value": "b"}]});
    let added = json!({"metadata": {"annotations": {"theirs": "yes"}}, "spec": {"replicas": 4, "minReadySeconds": 1,
        "template": {"metadata": {"labels": {"team": "a"}}, "spec": {"containers": [theirs, sidecar]}}}});
    world.meddle::<Deployment>("web", added).await?;
    let back = world
        .see::<Deployment>("web", "repaired", |made| {
            let main = json!(made.spec)["template"]["spec"]["containers"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one["name"] == "main" && one["image"] == "2048:1"));
            main && replicas(made) == Some(1)
        })
        .await?;
    let spec = json!(back.spec);
    let containers = spec["template"]["spec"]["containers"].as_array().unwrap();
    assert!(containers.iter().any(|one| one["name"] == "sidecar"), "{containers:?}");
    assert!(containers.iter().any(|one| one["env"][0]["value"] == "b"), "{containers:?}");
    assert_eq!(
        (&spec["template"]["metadata"]["labels"]["team"], &spec["minReadySeconds"]),
        (&json!("a"), &json!(1))
    );
    assert_eq!(back.annotations().get("theirs").map(String::as_str), Some("yes"));

    // And it stays through a change of our own: the original would wipe it out here.
    world.patch_game("web", json!({"spec": {"image": "2048:2"}})).await?;
    let ours = |made: &Deployment| json!(made.spec).to_string().contains("2048:2");
    let next = world.see::<Deployment>("web", "the new image", ours).await?;
    assert!(json!(next.spec).to_string().contains("proxy:1"), "{:?}", next.spec);
    world.end(operator).await
}

/// The original compares before it writes, too; here a restart costs nothing either.
#[tokio::test]
async fn g10_where_nothing_changed_nothing_is_written_also_after_a_restart() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g10").await?;
    let operator = world.operator().await?;
    for (name, replicas) in [("a", 1), ("b", 2)] {
        world.create(name, spec(replicas)).await?;
    }
    for name in ["a", "b"] {
        world.phase(name, Phase::Running).await?;
    }
    operator.idle_after(2).await?;
    operator.events_written().await?;
    let mark = world.mark()?;
    let reconciles = operator.metric("controller_runtime_reconcile_total");
    // Worth a look, and nothing to do about.
    world.patch_game("a", json!({"metadata": {"labels": {"seen": "yes"}}})).await?;
    operator.idle_after(reconciles + 1).await?;
    operator.stop().await?;

    let again = world.operator().await?;
    again.idle_after(2).await?;
    again.events_written().await?;
    let writes = world.requests(mark)?.writes();
    assert!(writes.is_empty(), "{writes}");
    world.end(again).await
}

/// In the original only the Deployment is watched: a Service or an Ingress comes back at the next event of
/// something else, or after ten hours (G12).
#[tokio::test]
async fn g11_g12_whatever_is_deleted_comes_back_at_once() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g11").await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;

    let service: Service = world.get("web").await?;
    world.delete::<Service>("web").await?;
    world.see::<Service>("web", "another one", |next| next.uid() != service.uid()).await?;
    let ingress: Ingress = world.get("web").await?;
    world.delete::<Ingress>("web").await?;
    world.see::<Ingress>("web", "another one", |next| next.uid() != ingress.uid()).await?;
    let deployment: Deployment = world.get("web").await?;
    world.delete::<Deployment>("web").await?;
    world.see::<Deployment>("web", "another one", |next| next.uid() != deployment.uid()).await?;
    world.phase("web", Phase::Running).await?;
    world.end(operator).await
}

/// In the original an Ingress is made and never changed.
#[tokio::test]
async fn g13_another_host_is_another_rule_of_the_same_ingress() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g13").await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;
    let first: Ingress = world.get("web").await?;
    let mark = world.mark()?;
    world.patch_game("web", json!({"spec": {"host": "other.example.com"}})).await?;
    let hosts = |ingress: &Ingress| {
        let rules = ingress.spec.as_ref().and_then(|spec| spec.rules.clone()).unwrap_or_default();
        rules.into_iter().filter_map(|rule| rule.host).collect::<Vec<_>>()
    };
    let changed = world
        .see::<Ingress>("web", "with the other host", |found| hosts(found) == ["other.example.com"])
        .await?;
    assert_eq!(changed.uid(), first.uid());
    world.phase("web", Phase::Running).await?;
    let writes = world.requests(mark)?.writes();
    assert_eq!(writes.resource("ingresses").count(), 1, "{writes}");
    assert!(writes.resource("deployments").is_empty() && writes.resource("services").is_empty(), "{writes}");
    world.end(operator).await
}

/// The original does not look at a Service again.
#[tokio::test]
async fn g14_an_edited_service_is_repaired() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g14").await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;
    let edit = json!({"metadata": {"labels": {"team": "a"}}, "spec": {"selector": {"qingwave.github.io/game": "other"},
        "ports": [{"port": 80, "targetPort": 8080}]}});
    world.meddle::<Service>("web", edit).await?;
    let back = world
        .see::<Service>("web", "repaired", |service| {
            let spec = json!(service.spec);
            spec["selector"]["qingwave.github.io/game"] == "web" && spec["ports"][0]["targetPort"] == 80
        })
        .await?;
    assert_eq!(back.labels().get("team").map(String::as_str), Some("a"), "that is not ours to remove");
    assert_eq!(phase(&world.get::<Game>("web").await?), Some(Phase::Running));
    world.end(operator).await
}
