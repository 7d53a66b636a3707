//! A toy operator with a kind of its own: sound, or with four flaws.
//!
//! An owner has a ConfigMap with its values, one more for each field that is switched on, and a status.

use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, WatchParams};
use kube::core::GroupVersionKind;
use kube::{Client, Resource as _, ResourceExt as _};
use serde_json::{Value, json};
use windlass_testenv::torture::OperatorRun;

/// Fields that are each shown in a ConfigMap of their own. A flawed toy mistreats every one of them.
const SWITCHES: [&str; 4] = ["ignored", "restless", "slow", "sticky"];

/// The definition of the toy's kind.
pub(crate) fn definition() -> CustomResourceDefinition {
    let switch = json!({"type": "boolean"});
    let spec = json!({"type": "object", "properties": {
        "greeting": {"type": "string"},
        "size": {"type": "integer", "minimum": 1, "maximum": 10},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "ignored": switch, "restless": switch, "slow": switch, "sticky": switch,
    }});
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {"spec": spec, "status": status}});
    serde_json::from_value(json!({
        "metadata": {"name": "mutants.toy.windlass.dev"},
        "spec": {
            "group": "toy.windlass.dev", "scope": "Namespaced",
            "names": {"kind": "Mutant", "plural": "mutants", "singular": "mutant"},
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema},
            }],
        },
    }))
    .unwrap()
}

struct Toy {
    owners: Api<DynamicObject>,
    maps: Api<ConfigMap>,
    flawed: bool,
}

/// The operator: it lists the owners, reconciles them, and waits for a change.
pub(crate) async fn toy(run: OperatorRun, flawed: bool) -> Result<()> {
    let client: Client = run.client()?;
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("toy.windlass.dev", "v1", "Mutant"));
    let owners = Api::namespaced_with(client.clone(), run.namespace(), &resource);
    let toy = Toy { owners, maps: Api::namespaced(client, run.namespace()), flawed };
    let mut failures = tokio::time::interval(Duration::from_millis(50));
    loop {
        if let Err(error) = toy.round().await {
            tracing::debug!(%error, "another round");
            failures.tick().await;
        }
    }
}

impl Toy {
    /// Looks after all owners, and returns at the next event about one of them.
    async fn round(&self) -> Result<()> {
        let owners = self.owners.list(&ListParams::default()).await?;
        let version = owners.metadata.resource_version.clone().unwrap_or_default();
        for owner in &owners {
            self.reconcile(owner).await?;
            if self.flawed && owner.data["spec"]["restless"] == true {
                return Ok(());
            }
        }
        let mut events = self.owners.watch(&WatchParams::default(), &version).await?.boxed();
        events.try_next().await?;
        Ok(())
    }

    async fn reconcile(&self, owner: &DynamicObject) -> Result<()> {
        let spec = &owner.data["spec"];
        let is_on = |switch: &str| spec[switch] == true;
        if self.flawed && is_on("slow") {
            return Ok(());
        }
        if let Some(greeting) = spec["greeting"].as_str().filter(|greeting| greeting.contains('!')) {
            let message = format!("spec.greeting: {greeting:?} must not contain an exclamation mark");
            return self.report(owner, false, &message).await;
        }
        let size = spec["size"].as_i64().map(|size| size.to_string()).unwrap_or_default();
        let data = json!({"greeting": spec["greeting"], "size": size, "labels": spec["labels"].to_string()});
        self.apply(owner, "values", data).await?;
        for switch in SWITCHES {
            let name = format!("switch-{switch}");
            match is_on(switch) {
                true if self.flawed && switch == "ignored" => {}
                true if self.flawed && switch == "restless" => {
                    let noise = format!("{:x}", RandomState::new().hash_one(0));
                    self.apply(owner, &name, json!({"noise": noise})).await?;
                }
                true => self.apply(owner, &name, json!({"on": "true"})).await?,
                false if self.flawed && switch == "sticky" => {}
                false => self.remove(&name).await?,
            }
        }
        self.report(owner, true, "").await
    }

    /// Applies a ConfigMap, unless it has these data already.
    async fn apply(&self, owner: &DynamicObject, name: &str, data: Value) -> Result<()> {
        let there = self.maps.get_opt(name).await?;
        let mut wanted = data;
        wanted.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        if there.is_some_and(|there| json!(there.data) == wanted) {
            return Ok(());
        }
        let reference = json!({
            "apiVersion": "toy.windlass.dev/v1", "kind": "Mutant", "name": owner.name_any(), "uid": owner.uid(),
        });
        let map = json!({
            "apiVersion": ConfigMap::api_version(&()), "kind": ConfigMap::kind(&()),
            "metadata": {"name": name, "ownerReferences": [reference]}, "data": wanted,
        });
        self.maps.patch(name, &PatchParams::apply("toy").force(), &Patch::Apply(map)).await?;
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<()> {
        if self.maps.get_opt(name).await?.is_some() {
            self.maps.delete(name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    /// Writes the status, unless it says that already.
    async fn report(&self, owner: &DynamicObject, ready: bool, message: &str) -> Result<()> {
        let text = |truth: bool| if truth { "True" } else { "False" };
        let generation = owner.metadata.generation;
        let condition = |kind: &str, truth: bool| json!({"type": kind, "status": text(truth), "observedGeneration": generation, "message": message});
        let status = json!({"conditions": [condition("Ready", ready), condition("Failed", !ready)]});
        if owner.data["status"] == status {
            return Ok(());
        }
        let patch = Patch::Merge(json!({ "status": status }));
        self.owners.patch_status(&owner.name_any(), &PatchParams::default(), &patch).await?;
        Ok(())
    }
}
