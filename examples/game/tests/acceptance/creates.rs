//! Creation of the objects of a Game.

use anyhow::Result;
use game::api::{Game, Phase};
use game::blueprint::LABEL;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use windlass_testenv::world::Namespaced;
use windlass_testenv::{TestEnv, or_not_run};

use crate::world::{World, counts, phase, ready, replicas, spec};

/// Everything that a Game makes has its label, and is its own.
fn belongs<K: Namespaced>(object: &K, game: &Game) {
    assert_eq!(object.labels().get(LABEL), game.metadata.name.as_ref());
    let [owner] = object.owner_references() else { panic!("{:?}", object.meta()) };
    assert_eq!((&owner.kind[..], Some(&owner.uid)), ("Game", game.metadata.uid.as_ref()));
    assert_eq!((owner.controller, owner.block_owner_deletion), (Some(true), Some(true)));
}

/// Returns the part of `found` that `wanted` names.
fn has(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(key, wanted)| found.get(key).is_some_and(|found| has(found, wanted)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(found, wanted)| has(found, wanted))
        }
        _ => found == wanted,
    }
}

#[tokio::test]
async fn g01_a_game_gets_its_deployment() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g01").await?;
    let operator = world.operator().await?;
    let game = world.create("web", spec(3)).await?;

    let made: Deployment = world.see("web", "there", |_| true).await?;
    belongs(&made, &game);
    let wanted = json!({"replicas": 3, "selector": {"matchLabels": {LABEL: "web"}}, "template": {
        "metadata": {"labels": {LABEL: "web"}}, "spec": {"containers": [{"name": "main", "image": "2048:1"}]}}});
    assert!(has(&json!(made.spec), &wanted), "{:?}", made.spec);
    world.end(operator).await
}

#[tokio::test]
async fn g02_g03_a_game_gets_its_service_and_its_ingress() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g02").await?;
    let operator = world.operator().await?;
    let game = world.create("web", spec(1)).await?;

    let service: Service = world.see("web", "there", |_| true).await?;
    belongs(&service, &game);
    let wanted = json!({"type": "ClusterIP", "selector": {LABEL: "web"},
        "ports": [{"protocol": "TCP", "port": 80, "targetPort": 80}]});
    assert!(has(&json!(service.spec), &wanted), "{:?}", service.spec);

    let ingress: Ingress = world.see("web", "there", |_| true).await?;
    belongs(&ingress, &game);
    let backend = json!({"service": {"name": "web", "port": {"number": 80}}});
    let wanted = json!({"rules": [{"host": "2048.example.com",
        "http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}]});
    assert_eq!(json!(ingress.spec), wanted, "no class, no TLS");
    world.end(operator).await
}

#[tokio::test]
async fn g04_all_objects_are_written_before_the_status() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g04").await?;
    world.forbid_pods().await?;
    let operator = world.operator().await?;
    world.create("web", spec(2)).await?;
    let game = world.phase("web", Phase::NotReady).await?;
    assert_eq!(counts(&game), Some((2, 0)));

    let writes = world.requests(world.begun())?.writes();
    let order: Vec<&str> = writes.iter().map(|write| &*write.resource).collect();
    let [objects @ .., "games"] = &order[..] else { panic!("{writes}") };
    // The Deployment and the Service do not wait for one another; the Ingress comes after the Service.
    let mut objects = objects.to_vec();
    assert_eq!(
        objects.iter().filter(|resource| **resource != "deployments").collect::<Vec<_>>(),
        [&"services", &"ingresses"]
    );
    objects.sort_unstable();
    assert_eq!(objects, ["deployments", "ingresses", "services"]);
    world.end(operator).await
}

/// In the original a Deployment that cannot be made keeps everything else from being made, no status says
/// why, and it is tried again and again. Here the rest is made, the status names the field, and the server is
/// not asked again until something changes.
#[tokio::test]
async fn g18_without_an_image_the_rest_is_made_and_the_status_names_the_field() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g18").await?;
    let operator = world.operator().await?;
    world.put::<Game>(json!({"metadata": {"name": "web"}, "spec": {"host": "h.example.com"}})).await?;
    let game = world.phase("web", Phase::Failed).await?;
    let condition = ready(&game).unwrap();
    assert_eq!(condition.reason, "Invalid");
    assert!(condition.message.contains("spec.template.spec.containers[0].image"), "{}", condition.message);
    world.see::<Service>("web", "there", |_| true).await?;
    world.see::<Ingress>("web", "there", |_| true).await?;

    // A change that is none to the Deployment: looked at, and not sent again.
    let host = world.patch_game("web", json!({"spec": {"host": "other.example.com"}})).await?;
    world
        .see::<Ingress>("web", "with the other host", |ingress| {
            json!(ingress.spec).pointer("/rules/0/host") == Some(&json!(host.spec.host))
        })
        .await?;
    world.phase("web", Phase::Failed).await?;
    let asked = world.requests(world.begun())?.resource("deployments").writes();
    assert_eq!(asked.count(), 1, "no storm: {asked}");
    assert_eq!(operator.metric("controller_runtime_reconcile_errors_total"), 0);

    world.patch_game("web", json!({"spec": {"image": "2048:1"}})).await?;
    world.phase("web", Phase::Running).await?;
    world.end(operator).await
}

#[tokio::test]
async fn g19_no_replicas_are_refused_by_the_schema() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g19").await?;
    let Err(error) = world.create("web", spec(0)).await else { panic!("it was taken") };
    let Some(kube::Error::Api(status)) = error.downcast_ref() else { panic!("{error}") };
    assert_eq!((status.code, status.message.contains("spec.replicas")), (422, true), "{status:?}");
    Ok(())
}

#[tokio::test]
async fn g19_a_game_is_scaled_by_its_scale() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g19-scale").await?;
    let operator = world.operator().await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;
    let scale = |replicas: i32| {
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let games = world.games.clone();
        async move { games.patch_scale("web", &PatchParams::default(), &patch).await }
    };
    scale(3).await?;
    world.see::<Deployment>("web", "three replicas", |made| replicas(made) == Some(3)).await?;
    let game = world.phase("web", Phase::Running).await?;
    assert_eq!(counts(&game), Some((3, 3)));
    let Err(kube::Error::Api(refused)) = scale(0).await else { panic!("scaled to none") };
    assert_eq!(refused.code, 422, "{refused:?}");
    world.end(operator).await
}

/// In the original there is no default without its webhook where the spec is left out altogether. Here the
/// schema has it.
#[tokio::test]
async fn g20_what_is_left_out_is_filled_in_by_the_schema() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g20").await?;
    // As a user writes it, without a type in between that would fill in something itself.
    for (name, spec) in [("bare", json!(null)), ("empty", json!({})), ("host", json!({"host": "h"}))] {
        let mut manifest =
            json!({"apiVersion": "myapp.qingwave.github.io/v1", "kind": "Game", "metadata": {"name": name}});
        if !spec.is_null() {
            manifest["spec"] = spec;
        }
        let game = world.games.patch(name, &PatchParams::apply("user"), &Patch::Apply(manifest)).await?;
        assert_eq!(game.spec.replicas, 1, "{name}");
    }
    let operator = world.operator().await?;
    for name in ["bare", "empty", "host"] {
        let game = world.phase(name, Phase::Failed).await?;
        assert!(ready(&game).unwrap().message.contains("image"), "{game:?}");
    }
    let ingress: Ingress = world.get("bare").await?;
    let host = format!("bare.{}.mygame.io", world.namespace.name());
    assert_eq!(json!(ingress.spec)["rules"][0]["host"], json!(host));
    world.end(operator).await
}

/// The original never sets the selector, so that autoscalers cannot find the Pods.
#[tokio::test]
async fn g22_the_scale_says_which_pods_they_are() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "g22").await?;
    let operator = world.operator().await?;
    world.create("web", spec(2)).await?;
    world.phase("web", Phase::Running).await?;
    let scale = world.games.get_scale("web").await?.status.unwrap();
    assert_eq!((scale.replicas, scale.selector.as_deref()), (2, Some("qingwave.github.io/game=web")));
    let pods = world.namespace.api::<k8s_openapi::api::core::v1::Pod>();
    let selected = kube::api::ListParams::default().labels(&scale.selector.unwrap());
    assert_eq!(pods.list(&selected).await?.items.len(), 2);

    // Somebody's other value goes at the next status.
    let wrong = json!({"status": {"labelSelector": "a=b", "replicas": 2, "readyReplicas": 2}});
    world.games.patch_status("web", &PatchParams::default(), &Patch::Merge(wrong)).await?;
    world.patch_game("web", json!({"spec": {"replicas": 1}})).await?;
    let game = world
        .see("web", "scaled down", |game: &Game| {
            counts(game) == Some((1, 1)) && phase(game) == Some(Phase::Running)
        })
        .await?;
    assert_eq!(game.status.unwrap().label_selector.as_deref(), Some("qingwave.github.io/game=web"));
    world.end(operator).await
}
