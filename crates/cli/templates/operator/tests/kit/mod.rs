//! Test support: the operator in a namespace on a real control plane. Written by `windlass new`.
//!
//! The operator runs as its manifests say: with exactly the permissions that they grant, and with its
//! webhooks registered. A test ends with [`World::end`], which also checks that no permission was missing.

#![allow(dead_code)] // not every test needs everything

mod manifests;

use std::fmt::Debug;
use std::net::SocketAddr;

use anyhow::{Context as _, Result, ensure};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::core::{ApiResource, GroupVersionKind};
use kube::{Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use windlass_operator::Settings;
use windlass_operator::manifests::{Install, Manifests};
use windlass_runtime::manager::{ManagerError, Stop, Stopper};
use windlass_testenv::{Error, Mark, Rules, TestEnv, TestNamespace, TestUser, eventually};

/// A namespace with the running operator.
pub struct World {
    /// The control plane.
    pub env: TestEnv,
    /// The namespace, the only one that the operator watches.
    pub namespace: TestNamespace,
    /// The user that the operator runs as.
    pub user: TestUser,
    /// Position in the audit log before the operator started.
    pub begun: Mark,
    hooks: Vec<Value>,
    stopper: Stopper,
    task: JoinHandle<Result<(), ManagerError>>,
}

impl World {
    /// Starts the operator in a new namespace, and waits until it is ready.
    pub async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        let operator = {{crate}}::operator();
        env.install_crds(operator.definitions()).await.map_err(explain)?;
        let namespace = env.namespace(hint).await?;
        let name = namespace.name();
        let manifests = Manifests::of(&operator, &Install::of(&operator).namespace(name).namespaced())?;
        let user = namespace.client_for(operator.name(), &rights(&manifests)?).await?;
        let begun = env.requests()?.mark()?;
        let settings = Settings {
            own_namespace: Some(name.to_owned()),
            webhooks: Some(([127, 0, 0, 1], 0).into()),
            webhook_names: ["127.0.0.1".to_owned()].into(),
            ..Settings::default().in_namespaces([name])
        };
        let process = operator.assemble(user.config(), &settings)?;
        let (readiness, webhooks) = (process.readiness().clone(), process.webhooks());
        let (stopper, stop) = Stop::pair();
        let task = tokio::spawn(process.run_until(stop));
        let hooks = objects(&manifests, "webhooks.yaml")?;
        let hooks = hooks.into_iter().filter(|object| object["webhooks"].is_array()).collect();
        let world = Self { env, namespace, user, begun, hooks, stopper, task };
        eventually("the operator to be ready", || async {
            let report = readiness.report();
            if report.is_ready() { Ok(()) } else { Err(report.to_string()) }
        })
        .await?;
        if let Some(address) = webhooks {
            world.register(address).await?;
        }
        Ok(world)
    }

    /// Applies an object as a user does. An unknown field is an error.
    pub async fn apply<K>(&self, object: &K) -> Result<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Serialize,
    {
        let api: Api<K> = Api::namespaced(self.env.client(), self.namespace.name());
        let (name, patch) = (object.name_any(), Patch::Apply(object));
        let applied = eventually(format!("{name} to be applied"), || async {
            match api.patch(&name, &strict(), &patch).await {
                // The API server knows the webhooks, but not their certificate authority yet.
                Err(kube::Error::Api(status)) if status.code == 500 => Err(status.message),
                other => Ok(other),
            }
        });
        Ok(applied.await??)
    }

    /// Registers the webhooks as in the manifests, but by address: no Service leads out of this control
    /// plane.
    async fn register(&self, address: SocketAddr) -> Result<()> {
        for object in &self.hooks {
            let mut object = object.clone();
            for hook in object["webhooks"].as_array_mut().into_iter().flatten() {
                let path = hook["clientConfig"]["service"]["path"].as_str().unwrap_or_default().to_owned();
                hook["clientConfig"] = json!({"url": format!("https://{address}{path}")});
            }
            let (api, name) = self.hook(&object)?;
            api.patch(&name, &strict(), &Patch::Apply(&object)).await?;
            eventually(format!("the operator to set the certificate authority in {name}"), || async {
                let found = api.get(&name).await.map_err(|error| error.to_string())?;
                let hooks = found.data["webhooks"].as_array().cloned().unwrap_or_default();
                let trusted = hooks.iter().all(|hook| hook["clientConfig"]["caBundle"].is_string());
                if trusted { Ok(()) } else { Err(format!("{hooks:?}")) }
            })
            .await?;
        }
        Ok(())
    }

    fn hook(&self, object: &Value) -> Result<(Api<DynamicObject>, String)> {
        let kind = object["kind"].as_str().context("no kind")?;
        let name = object["metadata"]["name"].as_str().context("no name")?;
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind));
        Ok((Api::all_with(self.env.client(), &resource), name.to_owned()))
    }

    /// Stops the operator, and fails if it was ever denied a request.
    pub async fn end(self) -> Result<()> {
        for object in &self.hooks {
            let (api, name) = self.hook(object)?;
            api.delete(&name, &DeleteParams::default()).await?;
        }
        self.stopper.request();
        self.task.await??;
        let denied = self.env.requests()?.since(self.begun)?.by_user(self.user.name()).code(403);
        ensure!(denied.is_empty(), "the operator lacks a permission: {denied}");
        Ok(())
    }
}

fn strict() -> PatchParams {
    PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("user").force() }
}

fn explain(error: Error) -> anyhow::Error {
    match error {
        Error::CrdDiffers { .. } => anyhow::Error::new(error)
            .context("the CRD has changed since the last run, whose control plane stops a minute after its last test"),
        error => error.into(),
    }
}

/// Returns the objects in one of the manifests; none if there is no such file.
fn objects(manifests: &Manifests, file: &str) -> Result<Vec<Value>> {
    let found = manifests.files().find(|(name, _)| *name == file);
    found.map_or(Ok(Vec::new()), |(_, text)| Ok(serde_saphyr::from_multiple(text)?))
}

/// Returns the permissions that the manifests grant.
fn rights(manifests: &Manifests) -> Result<Rules> {
    let mut granted = Rules::default();
    for object in objects(manifests, "rbac.yaml")?.into_iter().filter(|object| object["rules"].is_array()) {
        let rules: Vec<PolicyRule> = serde_json::from_value(object["rules"].clone())?;
        let everywhere = object["kind"] == "ClusterRole";
        granted = rules.into_iter().fold(granted, |granted, rule| {
            if everywhere { granted.cluster_wide(rule) } else { granted.in_namespace(rule) }
        });
    }
    Ok(granted)
}
