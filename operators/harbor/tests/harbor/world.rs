//! A namespace with a Harbor in it, and the operator under the rights that its manifests grant.

use std::ops::Deref;

use anyhow::Result;
use harbor_operator::api::Harbor;
use harbor_operator::settings::HarborSettings;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use windlass_testenv::world::Running;
use windlass_testenv::{Mark, Requests, TestEnv};

/// Kinds of other operators, which are not installed where only Harbors are tested.
pub(crate) const MISSING_KINDS: [&str; 4] = ["certificates", "postgresqls", "redisfailovers", "tenants"];

/// A namespace, and an account that may do exactly what the manifests of an installation there grant.
pub(crate) struct World {
    world: windlass_testenv::World,
    options: HarborSettings,
}

impl Deref for World {
    type Target = windlass_testenv::World;

    fn deref(&self) -> &Self::Target {
        &self.world
    }
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        // A cheap hash: what is tested is not its strength.
        let options = HarborSettings { registry_encryption_cost: 4, ..HarborSettings::default() };
        Self::with(env, hint, options).await
    }

    pub(crate) async fn with(env: TestEnv, hint: &str, options: HarborSettings) -> Result<Self> {
        let operator = harbor_operator::operator_with(&options);
        let (world, _) = example_support::world(&env, hint, "harbor-operator", &operator).await?;
        furnish(&env.client(), world.namespace.name()).await?;
        Ok(Self { world, options })
    }

    /// Starts the operator with all controllers, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        let operator = harbor_operator::operator_with(&self.options);
        let running =
            example_support::start(&operator, self.user.config(), &example_support::settings(self))?;
        for part in ["harbor", "core", "registry", "registryctl", "jobservice", "portal", "trivy"] {
            running.controller_ready(&format!("{part}.goharbor.io")).await?;
        }
        Ok(running)
    }

    /// Waits until the Harbor is ready, with its present spec.
    pub(crate) async fn ready(&self) -> Result<Harbor> {
        Ok(self.see("sample", "ready", is_ready).await?)
    }

    /// Returns the requests of the operator since the mark, without events.
    pub(crate) fn requests(&self, since: Mark) -> Result<Requests> {
        let asked = self.world.requests(since)?;
        Ok(asked.filter(|request| !matches!(&*request.resource, "events" | "leases")))
    }

    /// The end of a test: the operator stops in order, and was never refused anything.
    pub(crate) async fn end(self, running: Running) -> Result<()> {
        Ok(self.world.end(running).await?)
    }
}

/// Creates in a namespace what a user has before there is a Harbor.
pub(crate) async fn furnish(client: &kube::Client, namespace: &str) -> Result<()> {
    for (name, data) in [
        ("admin", json!({"secret": "Harbor12345"})),
        ("db", json!({"postgres-password": "password"})),
        ("public", json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"})),
    ] {
        let secret = json!({"metadata": {"name": name}, "stringData": data});
        let secrets = Api::<Secret>::namespaced(client.clone(), namespace);
        secrets.create(&PostParams::default(), &serde_json::from_value(secret)?).await?;
    }
    let claim = json!({"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}});
    let claim = json!({"metadata": {"name": "images"}, "spec": claim});
    let claims = Api::<PersistentVolumeClaim>::namespaced(client.clone(), namespace);
    claims.create(&PostParams::default(), &serde_json::from_value(claim)?).await?;
    Ok(())
}

/// Returns whether a Harbor is ready with its present spec.
pub(crate) fn is_ready(harbor: &Harbor) -> bool {
    let status: Value = json!(harbor.status);
    status["observedGeneration"] == json!(harbor.metadata.generation)
        && status_and_message(harbor, "Ready").0 == "True"
}

/// A kind of another operator as that has it: open.
pub(crate) fn open(definition: &CustomResourceDefinition) -> CustomResourceDefinition {
    let mut definition = json!(definition);
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = any;
    serde_json::from_value(definition).unwrap()
}

/// A Harbor with an external database and Redis, images in a volume, and TLS between the components.
pub(crate) fn harbor() -> Value {
    json!({
        "metadata": {"name": "sample"},
        "spec": {
            "externalURL": "https://harbor.example.com",
            "harborAdminPasswordRef": "admin",
            "version": "2.15.2",
            "internalTLS": {"enabled": true},
            "expose": {"core": {"ingress": {"host": "harbor.example.com"}, "tls": {"certificateRef": "public"}}},
            "core": {}, "jobservice": {}, "registry": {}, "portal": {},
            "database": {"hosts": [{"host": "db"}], "username": "harbor", "passwordRef": "db", "sslMode": "disable"},
            "redis": {"host": "redis"},
            "imageChartStorage": {"filesystem": {"registryPersistentVolume": {"claimName": "images"}}},
        },
    })
}

/// Returns the status and the message of a condition of the Harbor.
pub(crate) fn status_and_message(harbor: &Harbor, condition: &str) -> (String, String) {
    let status = harbor.status.clone().unwrap_or_default();
    let found = status.conditions.into_iter().find(|one| one.kind == condition);
    found.map(|one| (one.status, one.message.unwrap_or_default())).unwrap_or_default()
}
