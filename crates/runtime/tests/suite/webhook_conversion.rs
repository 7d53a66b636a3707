//! Tests of conversion by a real API server. Definitions are cluster-wide, so the test has a private one.
#![allow(clippy::unwrap_used, clippy::panic)] // a test fails by panicking

use crate::webhook_kit;

use anyhow::Result;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use webhook_kit::*;
use windlass_runtime::webhook::{CONVERT, ConversionError, Converter, Target, Webhooks};
use windlass_testenv::{Options, TestEnv, eventually, or_not_run};

const GROUP_NAME: &str = "games.conversion.windlass.dev";

#[derive(CustomResource, Clone, Debug, JsonSchema, Serialize, Deserialize)]
#[kube(group = "conversion.windlass.dev", version = "v1", kind = "Game", namespaced)]
struct GameSpec {
    replicas: i32,
}

mod old {
    use super::*;

    #[derive(CustomResource, Clone, Debug, JsonSchema, Serialize, Deserialize)]
    #[kube(group = "conversion.windlass.dev", version = "v1beta1", kind = "Game", namespaced)]
    pub(super) struct GameSpec {
        pub(super) size: i32,
    }
}

fn games() -> Webhooks {
    let games = Converter::hub()
        .spoke(
            |old: old::Game| {
                assert_ne!(old.spec.size, 13, "what a bug does");
                Ok(Game { metadata: old.metadata, spec: GameSpec { replicas: old.spec.size } })
            },
            |hub: Game| {
                if hub.spec.replicas > 1000 {
                    return Err(ConversionError::new("spec.replicas is above 1000; read it as v1"));
                }
                Ok(old::Game { metadata: hub.metadata, spec: old::GameSpec { size: hub.spec.replicas } })
            },
        )
        .unwrap();
    Webhooks::new().converter(games).unwrap()
}

fn definition(url: &str) -> CustomResourceDefinition {
    let schema = |field: &str| {
        json!({"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": {field: {"type": "integer"}}}}}})
    };
    let version = |name: &str, storage: bool, field: &str| json!({"name": name, "served": true, "storage": storage, "schema": schema(field)});
    serde_json::from_value(json!({
        "metadata": {"name": GROUP_NAME},
        "spec": {
            "group": "conversion.windlass.dev", "scope": "Namespaced",
            "names": {"kind": "Game", "plural": "games", "singular": "game"},
            "versions": [version("v1", true, "replicas"), version("v1beta1", false, "size")],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": {"url": url}}},
        },
    }))
    .unwrap()
}

#[tokio::test]
async fn the_api_server_converts_by_webhook() -> Result<()> {
    let env = or_not_run!(TestEnv::private(Options::private()).await);
    let namespace = env.namespace("conversion").await?;
    let leads = Some(vec![Target::definition(GROUP_NAME)]);
    let replica = Replica::start(&namespace, games(), Plan { leads, ..Plan::default() });
    replica.ready().await?;
    env.install_crds(&[definition(&replica.url(CONVERT))]).await?;
    let (new, old): (Api<Game>, Api<old::Game>) = (namespace.api(), namespace.api());
    let game = |name: &str, size| old::Game::new(name, old::GameSpec { size });
    eventually("the API server to trust the webhook", || async {
        old.create(&PostParams::default(), &game("a", 3)).await.map_err(|error| error.to_string())
    })
    .await?;
    assert_eq!(new.get("a").await?.spec.replicas, 3, "stored as v1");
    assert_eq!(old.get("a").await?.spec.size, 3);
    new.create(&PostParams::default(), &Game::new("b", GameSpec { replicas: 5 })).await?;
    let sizes: Vec<_> =
        old.list(&ListParams::default()).await?.items.into_iter().map(|game| game.spec.size).collect();
    assert_eq!(sizes, [3, 5], "one review for the whole list");

    // A conversion that fails fails the whole list, and names the object and a remedy.
    new.create(&PostParams::default(), &Game::new("c", GameSpec { replicas: 2000 })).await?;
    for result in [old.get("c").await.map(drop), old.list(&ListParams::default()).await.map(drop)] {
        let (_, message) = status(result);
        assert!(message.contains("Game \"c\" cannot be converted"), "{message}");
        assert!(message.contains("spec.replicas is above 1000; read it as v1"), "{message}");
    }
    new.delete("c", &DeleteParams::default()).await?;

    // A panic fails only that request.
    let (_, message) = status(old.create(&PostParams::default(), &game("d", 13)).await);
    assert!(message.contains("internal error occurred during conversion"), "{message}");
    assert!(replica.metrics.encode().contains("controller_runtime_conversion_webhook_panics_total 1\n"));
    old.create(&PostParams::default(), &game("d", 14)).await?;
    replica.stop().await
}
