//! A namespace with a sample controller in it.

use anyhow::{Result, ensure};
use example_support::{Running, rights};
use foo::api::{Foo, FooSpec};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_operator::Settings;
use windlass_operator::manifests::{Install, Manifests};
use windlass_testenv::{Mark, Requests, Rules, TestEnv, TestNamespace, TestUser, eventually};

/// A namespace, and an account that may do in it exactly what the manifests grant.
pub(crate) struct World {
    pub(crate) env: TestEnv,
    pub(crate) namespace: TestNamespace,
    pub(crate) user: TestUser,
    pub(crate) foos: Api<Foo>,
    pub(crate) deployments: Api<Deployment>,
    begun: Mark,
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        env.install_crds(foo::operator().definitions()).await?;
        let namespace = env.namespace(hint).await?;
        let user = namespace.client_for("sample-controller", &rights(namespace.name())?).await?;
        let begun = env.requests()?.mark()?;
        let (foos, deployments) = (namespace.api(), namespace.api());
        Ok(Self { env, namespace, user, foos, deployments, begun })
    }

    /// Starts the operator, looking at this namespace, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        self.operator_with(self.user.config()).await
    }

    pub(crate) async fn operator_with(&self, config: kube::Config) -> Result<Running> {
        let settings = Settings::default().in_namespaces([self.namespace.name()]);
        let running = Running::start(&foo::operator(), config, &settings)?;
        running.ready("foo").await?;
        Ok(running)
    }

    pub(crate) async fn create(&self, name: &str, spec: FooSpec) -> Result<Foo> {
        Ok(self.foos.create(&PostParams::default(), &Foo::new(name, spec)).await?)
    }

    pub(crate) async fn patch_foo(&self, name: &str, patch: Value) -> Result<Foo> {
        Ok(self.foos.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
    }

    /// Somebody else changes a Deployment.
    pub(crate) async fn meddle(&self, name: &str, patch: Value) -> Result<Deployment> {
        Ok(self.deployments.patch(name, &PatchParams::default(), &Patch::Strategic(patch)).await?)
    }

    /// A Deployment that nobody of ours made.
    pub(crate) async fn foreign(&self, name: &str, owners: Value) -> Result<Deployment> {
        let foreign = serde_json::from_value(json!({
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "other"}}, "template": {
                "metadata": {"labels": {"app": "other"}}, "spec": {"containers": [{"name": "c", "image": "other:1"}]}}},
        }))?;
        Ok(self.deployments.create(&PostParams::default(), &foreign).await?)
    }

    /// Waits until a Deployment is as it should be.
    pub(crate) async fn deployment(
        &self,
        name: &str,
        what: &str,
        is: impl Fn(&Deployment) -> bool,
    ) -> Result<Deployment> {
        let found = eventually(format!("Deployment {name}: {what}"), || async {
            match self.deployments.get_opt(name).await {
                Ok(Some(found)) if is(&found) => Ok(found),
                Ok(found) => Err(format!("{:?}", found.map(|found| found.spec))),
                Err(error) => Err(error.to_string()),
            }
        });
        Ok(found.await?)
    }

    /// Waits until there is no such Deployment.
    pub(crate) async fn no_deployment(&self, name: &str) -> Result<()> {
        let gone = eventually(format!("Deployment {name} to go"), || async {
            match self.deployments.get_opt(name).await {
                Ok(None) => Ok(()),
                Ok(Some(found)) => Err(format!("{:?}", found.metadata)),
                Err(error) => Err(error.to_string()),
            }
        });
        Ok(gone.await?)
    }

    /// Waits until a Foo's status says so.
    pub(crate) async fn available(&self, name: &str, replicas: i32) -> Result<Foo> {
        let found = eventually(format!("Foo {name} with {replicas} available"), || async {
            let foo = self.foos.get(name).await.map_err(|error| error.to_string())?;
            let status = foo.status.as_ref().map(|status| status.available_replicas);
            if status == Some(replicas) { Ok(foo) } else { Err(format!("{status:?}")) }
        });
        Ok(found.await?)
    }

    /// Waits for an event about a Foo.
    pub(crate) async fn event(&self, foo: &str, reason: &str) -> Result<Event> {
        let found = eventually(format!("event {reason} of {foo}"), || async {
            let events = self.events(foo).await.map_err(|error| error.to_string())?;
            let reasons: Vec<_> = events.iter().map(|event| event.reason.clone()).collect();
            let found = events.into_iter().find(|event| event.reason.as_deref() == Some(reason));
            found.ok_or(format!("{reasons:?}"))
        });
        Ok(found.await?)
    }

    /// All events about a Foo.
    pub(crate) async fn events(&self, foo: &str) -> Result<Vec<Event>> {
        let events = self.namespace.api::<Event>().list(&kube::api::ListParams::default()).await?.items;
        let about =
            |event: &Event| event.regarding.as_ref().and_then(|about| about.name.as_deref()) == Some(foo);
        Ok(events.into_iter().filter(about).collect())
    }

    /// Nobody can start Pods here, until the guard is lifted: what is available stays at 0.
    pub(crate) async fn forbid_pods(&self) -> Result<()> {
        let quotas = self.namespace.api::<ResourceQuota>();
        let none =
            serde_json::from_value(json!({"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}}))?;
        quotas.create(&PostParams::default(), &none).await?;
        let seen = eventually("the quota to be in force", || async {
            let quota = quotas.get("none").await.map_err(|error| error.to_string())?;
            let status = quota.status.and_then(|status| status.used);
            status.map(drop).ok_or("it has no status yet".to_owned())
        });
        Ok(seen.await?)
    }

    pub(crate) async fn allow_pods(&self) -> Result<()> {
        self.namespace.api::<ResourceQuota>().delete("none", &DeleteParams::default()).await?;
        Ok(())
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

/// What the manifests of an installation in this namespace grant.
fn rights(namespace: &str) -> Result<Rules> {
    let operator = foo::operator();
    let manifests = Manifests::of(&operator, &Install::of(&operator).namespace(namespace).namespaced())?;
    let cluster_wide = |object: &Value| object["kind"] == "ClusterRole";
    ensure!(
        !rights::file(&manifests, "rbac.yaml")?.iter().any(cluster_wide),
        "nothing that it touches is cluster-wide"
    );
    rights::granted(&manifests)
}

pub(crate) fn spec(deployment: &str, replicas: impl Into<Option<i32>>) -> FooSpec {
    FooSpec { deployment_name: deployment.to_owned(), replicas: replicas.into() }
}

pub(crate) fn replicas(deployment: &Deployment) -> Option<i32> {
    deployment.spec.as_ref()?.replicas
}

pub(crate) fn image(deployment: &Deployment) -> Option<&str> {
    deployment.spec.as_ref()?.template.spec.as_ref()?.containers.first()?.image.as_deref()
}

pub(crate) fn uid(deployment: &Deployment) -> Option<&String> {
    deployment.metadata.uid.as_ref()
}
