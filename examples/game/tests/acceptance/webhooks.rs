//! The webhooks, called by the API server itself.
//!
//! No Service leads out of the test's control plane: the configurations are those of the manifests with
//! another address.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use game::api::{Game, GameSpec, Phase};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::networking::v1::Ingress;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, PostParams};
use serde_json::{Value, json};
use windlass_operator::Settings;
use windlass_testenv::world::{Running, rights};
use windlass_testenv::{TestEnv, eventually, or_not_run};

use crate::world::{World, spec};

/// An operator with webhooks, which the API server asks about the Games of the namespace.
async fn operator(world: &World) -> Result<Running> {
    let settings = Settings {
        webhooks: Some(([127, 0, 0, 1], 0).into()),
        webhook_names: ["127.0.0.1".to_owned()].into(),
        ..world.settings()
    };
    let (running, webhooks) =
        example_support::start_with_webhooks(&game::operator(), world.user.config(), &settings)?;
    let address = webhooks.context("no webhooks")?;
    let client = world.env.client();
    for mut object in rights::file(world.manifests.files(), "webhooks.yaml")? {
        for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
            let path = hook["clientConfig"]["service"]["path"].as_str().context("no path")?;
            hook["clientConfig"] = json!({"url": format!("https://{address}{path}")});
        }
        match object["kind"].as_str() {
            Some("MutatingWebhookConfiguration") => {
                let mutating: Api<MutatingWebhookConfiguration> = Api::all(client.clone());
                mutating.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            }
            Some("ValidatingWebhookConfiguration") => {
                let validating: Api<ValidatingWebhookConfiguration> = Api::all(client.clone());
                validating.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            }
            _ => {}
        }
    }
    running.controller_ready("mygame").await?;
    // The API server learns of a configuration, and of the authority that the operator puts into it, by a
    // watch of its own.
    eventually("the API server to ask both webhooks", || async {
        let filled = dry(world, json!({"generateName": "try-"}), json!({}))
            .await
            .map_err(|error| error.to_string())?;
        let refused = dry(world, json!({"generateName": "try-"}), json!({"host": "*"})).await;
        match (filled.spec.image.is_empty(), refused) {
            (false, Err(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(running)
}

/// Returns a Game as the API server would store it; nothing is stored.
async fn dry(world: &World, metadata: Value, spec: Value) -> kube::Result<Game> {
    let game = serde_json::from_value(json!({"metadata": metadata, "spec": spec})).expect("a Game");
    world.games.create(&PostParams { dry_run: true, ..PostParams::default() }, &game).await
}

async fn end(world: World, operator: Running) -> Result<()> {
    unregister(&world).await?;
    world.end(operator).await
}

async fn unregister(world: &World) -> Result<()> {
    let (client, name) = (world.env.client(), format!("mygame.{}", world.namespace.name()));
    let params = DeleteParams::default();
    Api::<MutatingWebhookConfiguration>::all(client.clone()).delete(&name, &params).await?;
    Api::<ValidatingWebhookConfiguration>::all(client).delete(&name, &params).await?;
    Ok(())
}

/// The generated name of the original's H3 leads to the host `.<namespace>.mygame.io`, which no Ingress can
/// have. Here the host is derived when the name is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h1_h2_h3_h4_what_is_left_out_is_filled_in_as_soon_as_it_is_known() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "h1").await?;
    let operator = operator(&world).await?;
    let namespace = world.namespace.name().to_owned();

    // H1, H2
    let bare = dry(&world, json!({"name": "bare"}), json!({})).await?;
    let filled = |host: String| GameSpec { replicas: 1, image: "alexwhen/docker-2048".into(), host };
    assert_eq!(bare.spec, filled(format!("bare.{namespace}.mygame.io")));
    // H4
    let complete = json!({"replicas": 2, "image": "2048:1", "host": "2048.example.com"});
    let asked = dry(&world, json!({"name": "complete", "labels": {"a": "b"}}), complete).await?;
    assert_eq!(
        (asked.spec, asked.metadata.labels),
        (spec(2), Some(BTreeMap::from([("a".into(), "b".into())])))
    );

    // H1, H2: at an update too.
    world.create("web", spec(1)).await?;
    let emptied = world.patch_game("web", json!({"spec": {"image": null, "host": ""}})).await?;
    assert_eq!(emptied.spec, filled(format!("web.{namespace}.mygame.io")));

    // H3
    let game: Game = world.put(json!({"metadata": {"generateName": "made-"}, "spec": {}})).await?;
    let name = game.name_any();
    assert!(name.starts_with("made-") && name != "made-", "{name}");
    assert_eq!(game.spec.host, "", "a name that is not known yet is in no host");
    world.phase(&name, Phase::Running).await?;
    let ingress: Ingress = world.get(&name).await?;
    let host = format!("{name}.{namespace}.mygame.io");
    assert_eq!(json!(ingress.spec)["rules"][0]["host"], json!(host));
    // From now on it is known: the next update writes it down, and nothing else changes.
    let next = world.patch_game(&name, json!({"spec": {"replicas": 2}})).await?;
    assert_eq!(next.spec.host, host);
    end(world, operator).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h5_a_host_for_everybody_is_refused() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "h5").await?;
    let operator = operator(&world).await?;
    let refused = dry(&world, json!({"name": "star"}), json!({"host": "*.example.com"})).await;
    let Err(kube::Error::Api(status)) = refused else { panic!("{refused:?}") };
    assert_eq!(status.code, 403, "{status:?}");
    assert!(status.message.contains("vgame.kb.io"), "{status:?}");
    assert!(status.message.ends_with("host should not contain *"), "{status:?}");

    world.create("web", spec(1)).await?;
    let Err(error) = world.patch_game("web", json!({"spec": {"host": "*"}})).await else {
        panic!("it was taken")
    };
    let Some(kube::Error::Api(status)) = error.downcast_ref() else { panic!("{error}") };
    assert_eq!(status.code, 403, "{status:?}");
    end(world, operator).await
}

#[test]
fn h7_the_webhooks_have_their_old_names_paths_and_policies() -> Result<()> {
    let operator = game::operator();
    let manifests = windlass_operator::manifests::Manifests::of(
        &operator,
        &windlass_operator::manifests::Install::of(&operator),
    )?;
    let objects = rights::file(manifests.files(), "webhooks.yaml")?;
    for (kind, name, verb) in [
        ("MutatingWebhookConfiguration", "mgame.kb.io", "mutate"),
        ("ValidatingWebhookConfiguration", "vgame.kb.io", "validate"),
    ] {
        let object = objects.iter().find(|object| object["kind"] == kind).context(kind)?;
        let [hook] = object["webhooks"].as_array().context("no webhooks")?.as_slice() else {
            panic!("{object}")
        };
        assert_eq!(hook["name"], name);
        assert_eq!(
            hook["clientConfig"]["service"]["path"],
            format!("/{verb}-myapp-qingwave-github-io-v1-game")
        );
        assert_eq!((&hook["failurePolicy"], &hook["sideEffects"]), (&json!("Fail"), &json!("None")));
        assert_eq!(hook["admissionReviewVersions"], json!(["v1", "v1beta1"]));
        // H6: deletions are nobody's question.
        assert_eq!(hook["rules"][0]["operations"], json!(["CREATE", "UPDATE"]));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn h6_h8_without_the_operator_a_game_can_be_deleted_and_nothing_else() -> Result<()> {
    let env = or_not_run!(TestEnv::shared().await);
    let world = World::new(env, "h8").await?;
    let operator = operator(&world).await?;
    world.create("web", spec(1)).await?;
    world.phase("web", Phase::Running).await?;
    operator.stop().await?;

    let Err(error) = world.create("next", spec(1)).await else { panic!("it was taken") };
    let Some(kube::Error::Api(status)) = error.downcast_ref() else { panic!("{error}") };
    assert_eq!(status.code, 500, "{status:?}");
    assert!(status.message.contains("failed calling webhook \"mgame.kb.io\""), "{status:?}");
    world.patch_game("web", json!({"spec": {"replicas": 2}})).await.expect_err("a change was taken");
    world.games.delete("web", &DeleteParams::default()).await?;
    world.gone::<Game>("web").await?;
    unregister(&world).await
}
