//! A namespace with components in it, and the operator under the rights that its manifests grant.

use anyhow::{Result, ensure};
use example_support::{Running, rights};
use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
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
    user: TestUser,
    begun: Mark,
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        let operator = harbor_operator::operator();
        env.install_crds(operator.definitions()).await?;
        let namespace = env.namespace(hint).await?;
        let install = Install::of(&operator).namespace(namespace.name()).namespaced();
        let manifests = Manifests::of(&operator, &install)?;
        let user = namespace.client_for("harbor-operator", &rights::granted(&manifests)?).await?;
        let begun = env.requests()?.mark()?;
        Ok(Self { env, namespace, user, begun })
    }

    /// Starts the operator, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        let home = self.namespace.name();
        let settings =
            Settings { own_namespace: Some(home.to_owned()), ..Settings::default().in_namespaces([home]) };
        let running = Running::start(&harbor_operator::operator(), self.user.config(), &settings)?;
        for part in ["core", "registry", "registryctl", "trivy", "notarysigner"] {
            running.ready(&format!("{part}.goharbor.io")).await?;
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

    /// Deletes it.
    pub(crate) async fn delete(&self, object: &Value) -> Result<()> {
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let _ = self.api(object).delete(name, &kube::api::DeleteParams::default()).await?;
        Ok(())
    }

    /// Somebody else changes something.
    pub(crate) async fn meddle<K: Kind>(&self, name: &str, patch: Value) -> Result<K> {
        let api = self.namespace.api::<K>();
        Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
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

    /// Waits until the status of a component says so; gives its message.
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

    /// What the operator has asked for since the mark.
    pub(crate) fn requests(&self, since: Mark) -> Result<Requests> {
        Ok(self.env.requests()?.since(since)?.by_user(self.user.name()))
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

/// A condition of a status.
pub(crate) fn condition<'a>(status: &'a Value, kind: &str) -> &'a Value {
    let all = status["conditions"].as_array().map(Vec::as_slice).unwrap_or_default();
    all.iter().find(|condition| condition["type"] == kind).unwrap_or(&Value::Null)
}
