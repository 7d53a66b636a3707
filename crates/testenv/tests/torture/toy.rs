//! A toy operator made of parts, right ones and wrong ones.
//!
//! An owner is a ConfigMap with a label and a greeting. The annotation `observed` says which greeting is done.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

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

/// What a toy makes for its owner, in this order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part {
    /// A Secret with random content.
    Secret,
    /// As [`Part::Secret`], by a toy that remembers the content only in memory.
    ForgottenSecret,
    /// A ConfigMap with the owner's greeting.
    Child,
    /// As [`Part::Child`], by a toy that does not look at whose it is.
    CarelessChild,
    /// A Deployment with the owner's greeting.
    Deployment,
    /// A ConfigMap that garbage collection does not know of.
    Outside,
    /// As [`Part::Outside`], removed after the finalizer.
    LeakyOutside,
    /// A ConfigMap with a generated name, which the owner's annotation remembers.
    Generated,
    /// What was last rolled out; restored at a start. Written after everything else.
    Journal,
    /// As [`Part::Generated`], by a toy that trusts what its watch told it, and makes up for lost events by time.
    Cached,
    /// Notes at every round, after a restart, that there was one.
    Unrest,
}

struct Toy {
    client: Client,
    namespace: String,
    parts: &'static [Part],
    life: u32,
    password: Option<String>,
}

/// The operator: it lists the owners, looks after them, and waits for a change.
pub(crate) async fn toy(run: OperatorRun, parts: &'static [Part]) -> Result<()> {
    let (client, namespace) = (run.client()?, run.namespace().to_owned());
    let mut toy = Toy { client, namespace, parts, life: run.life(), password: None };
    let mut started = false;
    loop {
        let round = if toy.has(Part::Cached) { toy.trust().await } else { toy.follow(&mut started).await };
        if let Err(error) = round {
            tracing::debug!(%error, "another round");
            tokio::time::sleep(Duration::from_millis(50)).await;
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

    fn has(&self, part: Part) -> bool {
        self.parts.contains(&part)
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
            if !std::mem::replace(started, true) && self.has(Part::Journal) {
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
        if (self.has(Part::Outside) || self.has(Part::LeakyOutside)) && owner.finalizers().is_empty() {
            self.edit(json!({"metadata": {"finalizers": [FINALIZER]}})).await?;
        }
        let greeting = greeting(owner);
        for part in self.parts {
            match part {
                Part::Secret => self.make_secret(owner).await?,
                Part::ForgottenSecret => self.make_forgotten_secret(owner).await?,
                Part::Child => {
                    let content = json!({"data": {"greeting": greeting}});
                    self.apply::<ConfigMap>("child", Some(owner), content).await?;
                }
                Part::CarelessChild => {
                    let child = self.api::<ConfigMap>().get_opt("child").await?;
                    if child.is_none_or(|child| self::greeting(&child) != greeting) {
                        let content = json!({"data": {"greeting": greeting}});
                        self.force::<ConfigMap>("child", object("child", Some(owner), content)).await?;
                    }
                }
                Part::Deployment => self.make_deployment(owner).await?,
                Part::Outside | Part::LeakyOutside => {
                    self.apply::<ConfigMap>("outside", None, json!({"data": {"of": "toy"}})).await?;
                }
                Part::Generated => self.make_generated(owner).await?,
                Part::Journal | Part::Cached => {}
                Part::Unrest => {
                    if self.life > 1 {
                        self.annotate("restarted", &random()).await?;
                    }
                }
            }
        }
        if observed(owner) != greeting {
            self.annotate("observed", &greeting).await?;
        }
        if self.has(Part::Journal) {
            self.apply::<ConfigMap>("journal", Some(owner), json!({"data": {"greeting": greeting}})).await?;
        }
        Ok(())
    }

    async fn clean_up(&self, owner: &ConfigMap) -> Result<()> {
        if self.has(Part::LeakyOutside) {
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
        if self.has(Part::Journal) && name == "child" {
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
        self.api::<K>().patch(name, &params, &Patch::Apply(object)).await?;
        Ok(())
    }

    async fn annotate(&self, key: &str, value: &str) -> Result<()> {
        self.edit(json!({"metadata": {"annotations": {key: value}}})).await
    }

    /// Changes the owner.
    async fn edit(&self, change: Value) -> Result<()> {
        self.api::<ConfigMap>().patch("owner", &PatchParams::default(), &Patch::Merge(change)).await?;
        Ok(())
    }

    async fn delete(&self, name: &str) -> Result<()> {
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

/// Whether all that is wanted is there.
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
