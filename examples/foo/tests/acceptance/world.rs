//! A namespace with a sample controller in it.

use std::ops::Deref;

use anyhow::{Result, ensure};
use foo::api::{Foo, FooSpec};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use windlass_operator::Settings;
use windlass_testenv::world::{Running, rights};
use windlass_testenv::{TestEnv, eventually};

/// A namespace, and an account that may do in it exactly what the manifests grant.
pub(crate) struct World {
    base: windlass_testenv::World,
    pub(crate) foos: Api<Foo>,
    pub(crate) deployments: Api<Deployment>,
}

impl Deref for World {
    type Target = windlass_testenv::World;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}

impl World {
    pub(crate) async fn new(env: TestEnv, hint: &str) -> Result<Self> {
        let (base, manifests) =
            example_support::world(&env, hint, "sample-controller", &foo::operator()).await?;
        let cluster_wide = |object: &Value| object["kind"] == "ClusterRole";
        ensure!(
            !rights::file(manifests.files(), "rbac.yaml")?.iter().any(cluster_wide),
            "nothing that it touches is cluster-wide"
        );
        let (foos, deployments) = (base.namespace.api(), base.namespace.api());
        Ok(Self { base, foos, deployments })
    }

    /// Starts the operator, looking at this namespace, and waits until it works.
    pub(crate) async fn operator(&self) -> Result<Running> {
        self.operator_with(self.user.config()).await
    }

    pub(crate) async fn operator_with(&self, config: kube::Config) -> Result<Running> {
        let settings = Settings::default().in_namespaces([self.namespace.name()]);
        let running = example_support::start(&foo::operator(), config, &settings)?;
        running.controller_ready("foo").await?;
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
        Ok(self.base.meddle(name, patch).await?)
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
        Ok(self.see(name, what, is).await?)
    }

    /// Waits until there is no such Deployment.
    pub(crate) async fn no_deployment(&self, name: &str) -> Result<()> {
        Ok(self.gone::<Deployment>(name).await?)
    }

    /// Waits until the status of a Foo has this number of available replicas.
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

    /// The end of a test: the operator stops in order, and was never refused anything.
    pub(crate) async fn end(self, running: Running) -> Result<()> {
        Ok(self.base.end(running).await?)
    }
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
