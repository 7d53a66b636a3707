//! A namespace with Games in it.

use std::ops::Deref;

use anyhow::Result;
use game::api::{Game, GameSpec, Phase};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_operator::Settings;
use windlass_operator::manifests::Manifests;
use windlass_testenv::TestEnv;
use windlass_testenv::world::Running;

/// A namespace, and an account that may do exactly what the manifests of an installation there grant.
pub(crate) struct World {
    base: windlass_testenv::World,
    pub(crate) games: Api<Game>,
    pub(crate) manifests: Manifests,
}

impl Deref for World {
    type Target = windlass_testenv::World;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        let (base, manifests) = example_support::world(&env, hint, "mygame", &game::operator()).await?;
        let games = base.namespace.api();
        Ok(Self { base, games, manifests })
    }

    /// Returns the settings of an operator in this namespace, without webhooks.
    pub(crate) fn settings(&self) -> Settings {
        example_support::settings(self)
    }

    /// Starts the operator, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        self.operator_with(self.user.config()).await
    }

    pub(crate) async fn operator_with(&self, config: kube::Config) -> Result<Running> {
        let running = example_support::start(&game::operator(), config, &self.settings())?;
        running.controller_ready("mygame").await?;
        Ok(running)
    }

    pub(crate) async fn create(&self, name: &str, spec: GameSpec) -> Result<Game> {
        Ok(self.games.create(&PostParams::default(), &Game::new(name, spec)).await?)
    }

    pub(crate) async fn patch_game(&self, name: &str, patch: Value) -> Result<Game> {
        Ok(self.games.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Waits until the status of a Game has this phase for the present spec.
    pub(crate) async fn phase(&self, name: &str, wanted: Phase) -> Result<Game> {
        let what = format!("{wanted:?}");
        let seen = self.see(name, &what, |game: &Game| {
            let present = ready(game).and_then(|ready| ready.observed_generation) == game.metadata.generation;
            present && phase(game) == Some(wanted)
        });
        Ok(seen.await?)
    }

    /// The end of a test: the operator stops in order, and was never refused anything.
    pub(crate) async fn end(self, running: Running) -> Result<()> {
        Ok(self.base.end(running).await?)
    }
}

/// A Game of so many replicas.
pub(crate) fn spec(replicas: i32) -> GameSpec {
    GameSpec { replicas, image: "2048:1".into(), host: "2048.example.com".into() }
}

pub(crate) fn phase(game: &Game) -> Option<Phase> {
    game.status.as_ref()?.phase
}

/// The condition that says it all.
pub(crate) fn ready(game: &Game) -> Option<&Condition> {
    condition(game, "Ready")
}

pub(crate) fn condition<'g>(game: &'g Game, kind: &str) -> Option<&'g Condition> {
    game.status.as_ref()?.standard.conditions.iter().find(|condition| condition.type_ == kind)
}

/// Replicas as the status has them: wanted and ready.
pub(crate) fn counts(game: &Game) -> Option<(i32, i32)> {
    game.status.as_ref().map(|status| (status.replicas, status.ready_replicas))
}

pub(crate) fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

pub(crate) fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.as_deref()
}

/// A Deployment that nobody of ours made.
pub(crate) fn foreign_deployment(name: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "other"}}, "template": {
            "metadata": {"labels": {"app": "other"}}, "spec": {"containers": [{"name": "c", "image": "other:1"}]}}},
    })
}

pub(crate) fn foreign_service(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"selector": {"app": "other"}, "ports": [{"port": 8080}]}})
}

pub(crate) fn foreign_ingress(name: &str) -> Value {
    json!({"metadata": {"name": name}, "spec": {"rules": [{"host": "other.example.com"}]}})
}
