//! A namespace with components in it, and the operator under the rights that its manifests grant.

use std::ops::Deref;

use anyhow::Result;
use harbor_operator::settings::HarborSettings;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use windlass_testenv::world::Running;
pub(crate) use windlass_testenv::world::condition;
use windlass_testenv::{TestEnv, eventually};

/// A namespace, and an account that may do exactly what the manifests of an installation there grant.
pub(crate) struct World(windlass_testenv::World);

impl Deref for World {
    type Target = windlass_testenv::World;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        let operator = harbor_operator::operator();
        Ok(Self(example_support::world(&env, hint, "harbor-operator", &operator).await?.0))
    }

    /// Starts the operator, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        self.operator_with(&HarborSettings::default()).await
    }

    pub(crate) async fn operator_with(&self, configured: &HarborSettings) -> Result<Running> {
        let operator = harbor_operator::operator_with(configured);
        let running =
            example_support::start(&operator, self.user.config(), &example_support::settings(self))?;
        for part in ["core", "registry", "registryctl", "trivy", "notarysigner"] {
            running.controller_ready(&format!("{part}.goharbor.io")).await?;
        }
        Ok(running)
    }

    fn api(&self, object: &Value) -> Api<DynamicObject> {
        let word = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (group, version) = match word("apiVersion").split_once('/') {
            Some((group, version)) => (group.to_owned(), version.to_owned()),
            None => (String::new(), word("apiVersion")),
        };
        let mut resource = ApiResource::from_gvk(&GroupVersionKind { group, version, kind: word("kind") });
        if resource.kind == "Trivy" {
            "trivies".clone_into(&mut resource.plural);
        }
        Api::namespaced_with(self.env.client(), self.namespace.name(), &resource)
    }

    /// Applies something as a user does.
    pub(crate) async fn put(&self, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        self.api(object).patch(name, &PatchParams::apply("user").force(), &Patch::Apply(object)).await?;
        Ok(())
    }

    /// Deletes the object from the cluster.
    pub(crate) async fn delete(&self, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let _ = self.api(object).delete(name, &kube::api::DeleteParams::default()).await?;
        Ok(())
    }

    /// Waits until a component has this condition, and returns its message.
    pub(crate) async fn status(
        &self,
        object: &Value,
        what: &str,
        is: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let (api, name) = (self.api(object), object["metadata"]["name"].as_str().unwrap_or_default());
        let found = eventually(format!("{} {name}: {what}", object["kind"]), || async {
            let found = api.get(name).await.map_err(|error| error.to_string())?;
            let status = found.data["status"].clone();
            // What is said must be said of the present spec.
            let present =
                condition(&status, "Ready")["observedGeneration"] == json!(found.metadata.generation);
            if present && is(&status) { Ok(status) } else { Err(status.to_string()) }
        });
        Ok(found.await?)
    }

    pub(crate) async fn ready(&self, object: &Value) -> Result<Value> {
        self.status(object, "ready", |status| condition(status, "Ready")["status"] == "True").await
    }

    /// The end of a test: the operator stops in order, and was never refused anything.
    pub(crate) async fn end(self, running: Running) -> Result<()> {
        Ok(self.0.end(running).await?)
    }
}
