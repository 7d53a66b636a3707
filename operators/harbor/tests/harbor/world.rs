//! A namespace with a Harbor in it, and the operator under the rights that its manifests grant.

use std::fmt::Debug;

use anyhow::{Context as _, Result, ensure};
use example_support::{Running, rights};
use harbor_operator::api::Harbor;
use harbor_operator::settings::HarborSettings;
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use windlass_operator::manifests::{Install, Manifests};
use windlass_operator::{Operator, Settings};
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

/// Kinds of other operators, which are not installed where only Harbors are tested.
pub(crate) const MISSING_KINDS: [&str; 4] = ["certificates", "postgresqls", "redisfailovers", "tenants"];

/// The operator with all controllers.
fn operator(options: &HarborSettings) -> Operator {
    harbor_operator::operator_with(options)
}

/// A namespace, and an account that may do exactly what the manifests of an installation there grant.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) namespace: TestNamespace,
    pub(crate) user: TestUser,
    options: HarborSettings,
    begun: Mark,
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        // A cheap hash: what is tested is not its strength.
        let options = HarborSettings { registry_encryption_cost: 4, ..HarborSettings::default() };
        Self::with(env, hint, options).await
    }

    pub(crate) async fn with(env: TestEnv, hint: &str, options: HarborSettings) -> Result<Self> {
        let operator = operator(&options);
        env.install_crds(operator.definitions()).await?;
        let namespace = env.namespace(hint).await?;
        let install = Install::of(&operator).namespace(namespace.name()).namespaced();
        let manifests = Manifests::of(&operator, &install)?;
        let user = namespace.client_for("harbor-operator", &rights::granted(&manifests)?).await?;
        let begun = env.requests()?.mark()?;
        let world = Self { env, namespace, user, options, begun };
        world.furnish().await?;
        Ok(world)
    }

    /// What a user has before there is a Harbor.
    async fn furnish(&self) -> Result<()> {
        for (name, data) in [
            ("admin", json!({"secret": "Harbor12345"})),
            ("db", json!({"postgres-password": "password"})),
            ("public", json!({"tls.crt": "certificate", "tls.key": "key", "ca.crt": "authority"})),
        ] {
            self.put::<Secret>(json!({"metadata": {"name": name}, "stringData": data})).await?;
        }
        let claim = json!({"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}});
        self.put::<PersistentVolumeClaim>(json!({"metadata": {"name": "images"}, "spec": claim})).await?;
        Ok(())
    }

    /// Starts the operator, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        let home = self.namespace.name();
        let settings =
            Settings { own_namespace: Some(home.to_owned()), ..Settings::default().in_namespaces([home]) };
        let running = Running::start(&operator(&self.options), self.user.config(), &settings)?;
        for part in ["harbor", "core", "registry", "registryctl", "jobservice", "portal", "trivy"] {
            running.ready(&format!("{part}.goharbor.io")).await?;
        }
        Ok(running)
    }

    /// Creates something as a user writes it.
    pub(crate) async fn put<K: Kind>(&self, object: Value) -> Result<K> {
        let object = serde_json::from_value(object)?;
        Ok(self.namespace.api().create(&PostParams::default(), &object).await?)
    }

    /// A user changes something.
    pub(crate) async fn change<K: Kind>(&self, name: &str, patch: Value) -> Result<K> {
        let api = self.namespace.api::<K>();
        Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

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

    /// Waits until the Harbor is ready, with its present spec.
    pub(crate) async fn ready(&self) -> Result<Harbor> {
        self.see("sample", "ready", |harbor: &Harbor| {
            let status = json!(harbor.status);
            status["observedGeneration"] == json!(harbor.metadata.generation)
                && said(harbor, "Ready").0 == "True"
        })
        .await
    }

    /// What the operator has asked for since then, events apart.
    pub(crate) fn requests(&self, since: Mark) -> Result<Requests> {
        let asked = self.env.requests()?.since(since)?.by_user(self.user.name());
        Ok(asked.filter(|request| !matches!(&*request.resource, "events" | "leases")))
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

/// The objects that were written or deleted, as `deployments sample-harbor-core`, each where that happened for the first time.
pub(crate) struct Written(Vec<String>);

impl Written {
    pub(crate) fn of(asked: &Requests) -> Self {
        Self::in_order(&asked.writes().filter(|request| request.verb != "delete"))
    }

    pub(crate) fn deleted(asked: &Requests) -> Self {
        Self::in_order(&asked.verb("delete"))
    }

    fn in_order(requests: &Requests) -> Self {
        let mut objects = Vec::new();
        let done = requests.filter(|request| request.subresource.is_empty() && request.code < 300);
        for request in done.iter() {
            let object = format!("{} {}", request.resource, request.name);
            if !objects.contains(&object) {
                objects.push(object);
            }
        }
        Self(objects)
    }

    /// All of them, in order.
    pub(crate) fn objects(&self) -> &[String] {
        &self.0
    }

    /// Wants one object to come before another.
    pub(crate) fn before(&self, first: &str, then: &str) -> Result<()> {
        let place = |object: &str| {
            let found = self.0.iter().position(|written| written == object);
            found.with_context(|| format!("no {object} in {:#?}", self.0))
        };
        ensure!(place(first)? < place(then)?, "{first} before {then}: {:#?}", self.0);
        Ok(())
    }
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

/// What the status says of a condition: its truth and its message.
pub(crate) fn said(harbor: &Harbor, condition: &str) -> (String, String) {
    let status = harbor.status.clone().unwrap_or_default();
    let found = status.conditions.into_iter().find(|one| one.kind == condition);
    found.map(|one| (one.status, one.message.unwrap_or_default())).unwrap_or_default()
}

/// Waits until nothing is to be done any more: two looks at the counts of reconciles that agree, with nothing queued.
pub(crate) async fn settled(operator: &Running) -> Result<u64> {
    let total = || operator.metric("controller_runtime_reconcile_total");
    loop {
        let before = total();
        operator.idle_after(before).await?;
        tokio::task::yield_now().await;
        if total() == before {
            return Ok(before);
        }
    }
}
