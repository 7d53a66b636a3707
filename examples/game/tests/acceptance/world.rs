//! A namespace with Games in it.

use std::fmt::Debug;

use anyhow::{Result, ensure};
use example_support::{Running, rights};
use game::api::{Game, GameSpec, Phase};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_operator::Settings;
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::{Mark, Requests, TestEnv, TestNamespace, TestUser, eventually};

/// A kind that lives in namespaces.
pub(crate) trait Kind:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + DeserializeOwned + Serialize + Debug
{
}

impl<K> Kind for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + DeserializeOwned
        + Serialize
        + Debug
{
}

/// A namespace, and an account that may do exactly what the manifests of an installation there grant.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) namespace: TestNamespace,
    pub(crate) user: TestUser,
    pub(crate) games: Api<Game>,
    pub(crate) manifests: Manifests,
    begun: Mark,
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        env.install_crds(game::operator().definitions()).await?;
        let namespace = env.namespace(hint).await?;
        let operator = game::operator();
        let install = Install::of(&operator).namespace(namespace.name()).namespaced();
        let manifests = Manifests::of(&operator, &install)?;
        let user = namespace.client_for("mygame", &rights::granted(&manifests)?).await?;
        let begun = env.requests()?.mark()?;
        let games = namespace.api();
        Ok(Self { env, namespace, user, games, manifests, begun })
    }

    /// How an operator of this namespace runs; without webhooks.
    pub(crate) fn settings(&self) -> Settings {
        let home = self.namespace.name();
        Settings { own_namespace: Some(home.to_owned()), ..Settings::default().in_namespaces([home]) }
    }

    /// Starts the operator, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        self.operator_with(self.user.config()).await
    }

    pub(crate) async fn operator_with(&self, config: kube::Config) -> Result<Running> {
        let running = Running::start(&game::operator(), config, &self.settings())?;
        running.ready("mygame").await?;
        Ok(running)
    }

    pub(crate) async fn create(&self, name: &str, spec: GameSpec) -> Result<Game> {
        Ok(self.games.create(&PostParams::default(), &Game::new(name, spec)).await?)
    }

    /// Creates something as a user writes it.
    pub(crate) async fn put<K: Kind>(&self, object: Value) -> Result<K> {
        let object = serde_json::from_value(object)?;
        Ok(self.namespace.api().create(&PostParams::default(), &object).await?)
    }

    pub(crate) async fn patch_game(&self, name: &str, patch: Value) -> Result<Game> {
        Ok(self.games.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Somebody else changes something.
    pub(crate) async fn meddle<K: Kind>(&self, name: &str, patch: Value) -> Result<K> {
        let api = self.namespace.api::<K>();
        Ok(api.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await?)
    }

    /// Somebody else deletes something.
    pub(crate) async fn delete<K: Kind>(&self, name: &str) -> Result<()> {
        self.namespace.api::<K>().delete(name, &DeleteParams::default()).await?;
        Ok(())
    }

    pub(crate) async fn get<K: Kind>(&self, name: &str) -> Result<K> {
        Ok(self.namespace.api::<K>().get(name).await?)
    }

    /// Waits until something is as it should be.
    pub(crate) async fn see<K: Kind>(&self, name: &str, what: &str, is: impl Fn(&K) -> bool) -> Result<K> {
        let api = self.namespace.api::<K>();
        let found = eventually(format!("{} {name}: {what}", K::kind(&())), || async {
            match api.get_opt(name).await {
                Ok(Some(found)) if is(&found) => Ok(found),
                Ok(found) => Err(json!(found).to_string()),
                Err(error) => Err(error.to_string()),
            }
        });
        Ok(found.await?)
    }

    /// Waits until something is gone.
    pub(crate) async fn gone<K: Kind>(&self, name: &str) -> Result<()> {
        let api = self.namespace.api::<K>();
        let gone = eventually(format!("{} {name} to go", K::kind(&())), || async {
            match api.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(json!(found.meta()).to_string()),
                Err(error) => Err(error.to_string()),
            }
        });
        Ok(gone.await?)
    }

    /// Waits until a Game's status says so, of the present spec.
    pub(crate) async fn phase(&self, name: &str, wanted: Phase) -> Result<Game> {
        let what = format!("{wanted:?}");
        self.see(name, &what, |game: &Game| {
            let present = ready(game).and_then(|ready| ready.observed_generation) == game.metadata.generation;
            present && phase(game) == Some(wanted)
        })
        .await
    }

    /// All events about a Game.
    pub(crate) async fn events(&self, game: &str) -> Result<Vec<Event>> {
        let events = self.namespace.api::<Event>().list(&ListParams::default()).await?.items;
        let about =
            |event: &Event| event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(game);
        Ok(events.into_iter().filter(about).collect())
    }

    /// No new Pods can start here until they may again; those that run go on.
    pub(crate) async fn forbid_pods(&self) -> Result<()> {
        self.put::<ResourceQuota>(json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}))
            .await?;
        self.see("none", "in force", |quota: &ResourceQuota| {
            quota.status.as_ref().is_some_and(|status| status.used.is_some())
        })
        .await?;
        Ok(())
    }

    pub(crate) async fn allow_pods(&self) -> Result<()> {
        self.delete::<ResourceQuota>("none").await
    }

    /// What the operator has asked for since the mark.
    pub(crate) fn requests(&self, since: Mark) -> Result<Requests> {
        Ok(self.env.requests()?.since(since)?.by_user(self.user.name()))
    }

    /// Before the operator did anything.
    pub(crate) fn begun(&self) -> Mark {
        self.begun
    }

    pub(crate) fn mark(&self) -> Result<Mark> {
        Ok(self.env.requests()?.mark()?)
    }

    /// The end of a test: the operator stops in order, and was never refused anything.
    pub(crate) async fn end(self, running: Running) -> Result<()> {
        running.stop().await?;
        let refused = rights::missing(&self.requests(self.begun)?);
        ensure!(refused.is_empty(), "the operator lacks a right: {refused}");
        Ok(())
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
    game.status.as_ref()?.standard.conditions.iter().find(|condition| condition.type_ == "Ready")
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
