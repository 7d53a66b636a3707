//! A toy operator made of behaviours, right ones and wrong ones.
//!
//! An owner is a ConfigMap with a label and a greeting. The annotation `observed` says which greeting is
//! done.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use crate::election::{Term, every};
use anyhow::Result;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_testenv::torture::OperatorRun;

const OWNERS: &str = "toy=owner";
const FINALIZER: &str = "example.com/outside";

/// The things that a toy makes for its owner, in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Behaviour {
    /// A Secret with random content.
    Secret,
    /// The same as [`Behaviour::Secret`], by a toy that remembers the content only in memory.
    ForgottenSecret,
    /// A ConfigMap with the owner's greeting.
    Child,
    /// As [`Behaviour::Child`], by a toy that does not look at whose it is.
    CarelessChild,
    /// A Deployment with the owner's greeting.
    Deployment,
    /// A ConfigMap that garbage collection does not know of.
    Outside,
    /// The same as [`Behaviour::Outside`], removed after the finalizer.
    LeakyOutside,
    /// A ConfigMap with a generated name, which the owner's annotation remembers.
    Generated,
    /// A ConfigMap with the greeting that was last rolled out, restored at a start and written last.
    Journal,
    /// As [`Behaviour::Generated`], by a toy that trusts what its watch told it, and makes up for lost events
    /// by time.
    Cached,
    /// Notes at every round, after a restart, that there was one.
    Unrest,
    /// A ConfigMap as [`Behaviour::Child`], by a toy that makes nothing any more after two restarts.
    GivesUp,
    /// As [`Behaviour::Child`], by a toy that deletes the ConfigMap and makes it again after a restart.
    Recreated,
    /// A ConfigMap for a moment, deleted without another look at the owner.
    Scratch,
    /// Works only while it holds a Lease, asks for its deadline before every write, and ends when it is lost.
    Elected,
    /// As [`Behaviour::Elected`], by a toy that does not notice that it has lost the Lease.
    Unfenced,
}

struct Toy {
    client: Client,
    namespace: String,
    behaviours: &'static [Behaviour],
    life: u32,
    password: Option<String>,
    term: Option<Term>,
    /// True until this life has looked after an owner.
    is_new: bool,
}

/// The operator: it lists the owners, reconciles them, and waits for a change.
pub(crate) async fn toy(run: OperatorRun, behaviours: &'static [Behaviour]) -> Result<()> {
    let (client, namespace) = (run.client()?, run.namespace().to_owned());
    let mut toy =
        Toy { client, namespace, behaviours, life: run.life(), password: None, term: None, is_new: true };
    if toy.has(Behaviour::Elected) || toy.has(Behaviour::Unfenced) {
        let term = Term::begin(toy.client.clone(), &toy.namespace, toy.life).await?;
        toy.term = toy.has(Behaviour::Elected).then(|| term.clone());
        let kept = async {
            let lost = term.keep().await;
            if behaviours.contains(&Behaviour::Elected) { lost } else { std::future::pending().await }
        };
        return tokio::select! {
            lost = kept => lost,
            ended = work(&mut toy) => ended,
        };
    }
    work(&mut toy).await
}

async fn work(toy: &mut Toy) -> Result<()> {
    let mut started = false;
    let mut rounds = every(Duration::from_millis(50));
    loop {
        rounds.tick().await;
        let round =
            if toy.has(Behaviour::Cached) { toy.trust().await } else { toy.follow(&mut started).await };
        if let Err(error) = round {
            tracing::debug!(%error, "another round");
        }
    }
}

impl Toy {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    fn has(&self, behaviour: Behaviour) -> bool {
        self.behaviours.contains(&behaviour)
    }

    /// Looks after all owners whenever something happens to one of them, until the watch ends.
    async fn follow(&mut self, started: &mut bool) -> Result<()> {
        let owners = self.api::<ConfigMap>();
        let version = self.round(started).await?;
        let mut events = owners.watch(&WatchParams::default().labels(OWNERS), &version).await?.boxed();
        while events.try_next().await?.is_some() {
            // One look is enough for all that has happened.
            while let Some(Some(Ok(_))) = events.next().now_or_never() {}
            self.round(started).await?;
        }
        Ok(())
    }

    /// Looks after all owners; gives the version of their list.
    async fn round(&mut self, started: &mut bool) -> Result<String> {
        let owners = self.api::<ConfigMap>();
        let list = owners.list(&ListParams::default().labels(OWNERS)).await?;
        for owner in &list.items {
            if !std::mem::replace(started, true) && self.has(Behaviour::Journal) {
                self.restore(owner).await?;
            }
            self.reconcile(owner).await?;
        }
        Ok(list.metadata.resource_version.unwrap_or_default())
    }

    async fn reconcile(&mut self, owner: &ConfigMap) -> Result<()> {
        if owner.meta().deletion_timestamp.is_some() {
            return self.clean_up(owner).await;
        }
        if (self.has(Behaviour::Outside) || self.has(Behaviour::LeakyOutside))
            && owner.finalizers().is_empty()
        {
            self.edit(json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
        }
        let greeting = greeting(owner);
        for behaviour in self.behaviours {
            match behaviour {
                Behaviour::Secret => self.make_secret(owner).await?,
                Behaviour::ForgottenSecret => self.make_forgotten_secret(owner).await?,
                Behaviour::Child => {
                    let content = json!({"data": {"greeting": greeting}});
                    self.apply::<ConfigMap>("child", Some(owner), content).await?;
                }
                Behaviour::CarelessChild => {
                    let child = self.api::<ConfigMap>().get_opt("child").await?;
                    if child.is_none_or(|child| self::greeting(&child) != greeting) {
                        let content = json!({"data": {"greeting": greeting}});
                        self.force::<ConfigMap>("child", object("child", Some(owner), content)).await?;
                    }
                }
                Behaviour::GivesUp => {
                    if self.life < 3 {
                        self.apply::<ConfigMap>(
                            "child",
                            Some(owner),
                            json!({"data": {"greeting": greeting}}),
                        )
                        .await?;
                    }
                }
                Behaviour::Recreated => {
                    if std::mem::replace(&mut self.is_new, false) && self.life > 1 {
                        self.delete("child").await?;
                    }
                    self.apply::<ConfigMap>("child", Some(owner), json!({"data": {"greeting": greeting}}))
                        .await?;
                }
                Behaviour::Scratch => {
                    if observed(owner) != greeting {
                        let scratch = object("scratch", Some(owner), json!({"data": {}}));
                        self.force::<ConfigMap>("scratch", scratch).await?;
                        self.delete("scratch").await?;
                    }
                }
                Behaviour::Deployment => self.make_deployment(owner).await?,
                Behaviour::Outside | Behaviour::LeakyOutside => {
                    self.apply::<ConfigMap>("outside", None, json!({"data": {"of": "toy"}})).await?;
                }
                Behaviour::Generated => self.make_generated(owner).await?,
                Behaviour::Journal | Behaviour::Cached | Behaviour::Elected | Behaviour::Unfenced => {}
                Behaviour::Unrest => {
                    if self.life > 1 {
                        self.annotate("restarted", &random()).await?;
                    }
                }
            }
        }
        if observed(owner) != greeting {
            self.annotate("observed", &greeting).await?;
        }
        if self.has(Behaviour::Journal) {
            self.apply::<ConfigMap>("journal", Some(owner), json!({"data": {"greeting": greeting}})).await?;
        }
        Ok(())
    }

    async fn clean_up(&self, owner: &ConfigMap) -> Result<()> {
        if self.has(Behaviour::LeakyOutside) {
            self.edit(json!({"metadata": {"finalizers": []}})).await?;
            self.delete("outside").await?;
        } else if !owner.finalizers().is_empty() {
            self.delete("outside").await?;
            self.edit(json!({"metadata": {"finalizers": []}})).await?;
        }
        Ok(())
    }

    async fn make_secret(&self, owner: &ConfigMap) -> Result<()> {
        if self.api::<Secret>().get_opt("token").await?.is_none() {
            let secret = object("token", Some(owner), json!({"stringData": {"password": random()}}));
            self.fence()?;
            self.api::<Secret>().create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
        }
        Ok(())
    }

    async fn make_forgotten_secret(&mut self, owner: &ConfigMap) -> Result<()> {
        if self.password.is_none() {
            let password = random();
            let secret = object("token", Some(owner), json!({"stringData": {"password": password}}));
            self.force::<Secret>("token", secret).await?;
            self.password = Some(password);
        }
        Ok(())
    }

    async fn make_deployment(&self, owner: &ConfigMap) -> Result<()> {
        let labels = json!({"app": "toy"});
        let container = json!({"name": "c", "image": format!("toy:{}", greeting(owner))});
        let template = json!({"metadata": {"labels": labels}, "spec": {"containers": [container]}});
        let spec = json!({"replicas": 0, "selector": {"matchLabels": labels}, "template": template});
        self.apply::<Deployment>("web", Some(owner), json!({"spec": spec})).await
    }

    async fn make_generated(&self, owner: &ConfigMap) -> Result<()> {
        if owner.annotations().contains_key("generated") {
            return Ok(());
        }
        let made = self.generate(owner).await?;
        self.annotate("generated", &made).await
    }

    async fn generate(&self, owner: &ConfigMap) -> Result<String> {
        let mut map = object("", Some(owner), json!({"data": {"k": "v"}}));
        map["metadata"]["generateName"] = json!("made-");
        self.fence()?;
        let maps = self.api::<ConfigMap>();
        Ok(maps.create(&PostParams::default(), &serde_json::from_value(map)?).await?.name_any())
    }

    /// Goes by what the watch said last. When its own change does not come back, it thinks that it was lost.
    async fn trust(&self) -> Result<()> {
        let owners = self.api::<ConfigMap>();
        let list = owners.list(&ListParams::default().labels(OWNERS)).await?;
        let version = list.metadata.resource_version.unwrap_or_default();
        let mut known = list.items.into_iter().next();
        let mut events = owners.watch(&WatchParams::default().labels(OWNERS), &version).await?.boxed();
        loop {
            let undone = known.as_ref().filter(|owner| observed(owner) != greeting(owner));
            let event = if let Some(owner) = undone {
                let made = self.generate(owner).await?;
                let notes = json!({"generated": made, "observed": greeting(owner)});
                self.edit(json!({"metadata": {"annotations": notes}})).await?;
                match tokio::time::timeout(Duration::from_secs(1), events.try_next()).await {
                    Ok(event) => event?,
                    Err(_) => continue,
                }
            } else {
                events.try_next().await?
            };
            match event {
                Some(WatchEvent::Added(owner) | WatchEvent::Modified(owner)) => known = Some(owner),
                Some(_) => known = None,
                None => return Ok(()),
            }
        }
    }

    /// Brings back what was last rolled out, whatever happened since.
    async fn restore(&self, owner: &ConfigMap) -> Result<()> {
        if let Some(journal) = self.api::<ConfigMap>().get_opt("journal").await? {
            self.apply::<ConfigMap>("child", Some(owner), json!({"data": journal.data})).await?;
            // And believes the owner about what is done.
        }
        Ok(())
    }

    /// Applies, unless what is there has it already.
    async fn apply<K>(&self, name: &str, owner: Option<&ConfigMap>, content: Value) -> Result<()>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        if self.has(Behaviour::Journal) && name == "child" {
            // This one judges by what it has noted, not by what is there.
            let noted = owner.is_some_and(|owner| observed(owner) == greeting(owner));
            if noted && content["data"]["greeting"] == json!(owner.map(greeting)) {
                return Ok(());
            }
            return self.force::<K>(name, object(name, owner, content)).await;
        }
        let there = self.api::<K>().get_opt(name).await?;
        let wanted = object(name, owner, content);
        if contains(&serde_json::to_value(there)?, &wanted) {
            return Ok(());
        }
        self.force::<K>(name, wanted).await
    }

    async fn force<K>(&self, name: &str, mut object: Value) -> Result<()>
    where
        K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + Serialize
            + DeserializeOwned,
    {
        object["apiVersion"] = json!(K::api_version(&()));
        object["kind"] = json!(K::kind(&()));
        let params = PatchParams::apply("toy").force();
        self.fence()?;
        self.api::<K>().patch(name, &params, &Patch::Apply(object)).await?;
        Ok(())
    }

    async fn annotate(&self, key: &str, value: &str) -> Result<()> {
        self.edit(json!({"metadata": {"annotations": {key: value}}})).await
    }

    /// Changes the owner.
    async fn edit(&self, change: Value) -> Result<()> {
        self.fence()?;
        self.api::<ConfigMap>().patch("owner", &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    /// Fails if this toy may not write any more.
    fn fence(&self) -> Result<()> {
        self.term.as_ref().map_or(Ok(()), Term::check)
    }

    async fn delete(&self, name: &str) -> Result<()> {
        self.fence()?;
        match self.api::<ConfigMap>().delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            other => Ok(other.map(drop)?),
        }
    }
}

fn greeting(owner: &ConfigMap) -> String {
    owner
        .data
        .iter()
        .flatten()
        .find(|(key, _)| *key == "greeting")
        .map(|(_, v)| v.clone())
        .unwrap_or_default()
}

pub(crate) fn observed(owner: &ConfigMap) -> String {
    owner.annotations().get("observed").cloned().unwrap_or_default()
}

fn random() -> String {
    format!("{:x}", RandomState::new().hash_one(0))
}

/// An object, owned by the owner if there is one.
fn object(name: &str, owner: Option<&ConfigMap>, content: Value) -> Value {
    let mut object = content;
    let owners: Vec<_> = owner.iter().filter_map(|owner| owner.controller_owner_ref(&())).collect();
    object["metadata"] = if owners.is_empty() { json!({}) } else { json!({"ownerReferences": owners}) };
    if !name.is_empty() {
        object["metadata"]["name"] = json!(name);
    }
    object
}

/// True if all that is wanted is there.
fn contains(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(field, wanted)| there.get(field).is_some_and(|there| contains(there, wanted)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len()
                && there.iter().zip(wanted).all(|(there, wanted)| contains(there, wanted))
        }
        (there, wanted) => there == wanted,
    }
}
