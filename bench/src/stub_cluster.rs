//! The stub of the cluster around a fan-out operator. It watches the Widgets become ready, and stands in for
//! the deployment controller and, for Deployments that are deleted in the foreground, the garbage collector.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use k8s_openapi::api::apps::v1::Deployment;
use serde::Deserialize;
use serde_json::json;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use windlass_runtime::cache::{Cache, OfKind, Reader, Selection, Shape, Subscription};
use windlass_runtime::client::{Client, ClientOptions};
use windlass_runtime::controller::{Controller, Error, Requeue};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::manager::Manager;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use crate::admin::Admin;
use crate::plane::Plane;

/// The number of Deployments handled at the same time.
const STUB_WORKERS: usize = 8;

/// The readiness of a Widget.
#[derive(Debug, Deserialize)]
struct WidgetState {
    metadata: Meta,
    #[serde(default)]
    status: WidgetStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct WidgetStatus {
    ready: bool,
    observed_generation: i64,
}

impl Shape for WidgetState {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for WidgetState {
    fn resource() -> ResourceType {
        ResourceType {
            group: "bench.windlass.dev".into(),
            version: "v1".into(),
            kind: "Widget".into(),
            plural: "widgets".into(),
            namespaced: true,
        }
    }
}

/// The fields of a Deployment that its controller would read.
#[derive(Debug, Deserialize)]
struct DeploymentState {
    metadata: Meta,
    #[serde(default)]
    spec: DeploymentSpec,
    #[serde(default)]
    status: DeploymentStatus,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeploymentSpec {
    replicas: i32,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct DeploymentStatus {
    observed_generation: i64,
    available_replicas: i32,
}

impl Shape for DeploymentState {
    fn meta(&self) -> &Meta {
        &self.metadata
    }
}

impl OfKind for DeploymentState {
    fn resource() -> ResourceType {
        ResourceType::of::<Deployment>()
    }
}

/// The times at which each generation of a Widget was ready, and the Widgets that exist.
#[derive(Debug, Default)]
pub(crate) struct WidgetReadiness {
    ready: HashMap<ObjectKey, (i64, Instant)>,
    there: usize,
}

/// A stub cluster that runs beside a fan-out operator until it is dropped.
pub(crate) struct StubCluster {
    readiness: watch::Sender<WidgetReadiness>,
    widgets: Reader<WidgetState>,
    _subscription: Subscription,
    task: AbortHandle,
}

impl StubCluster {
    /// Begins to watch, and to mark Deployments available.
    pub(crate) async fn begin(plane: &Plane) -> Result<Self> {
        let client = Client::new(plane.env.config().clone(), ClientOptions::default())?;
        let cache = Cache::new(&client);
        let widgets = cache.reader::<WidgetState>(&Selection::all());
        let deployments = cache.reader::<DeploymentState>(&Selection::all());
        let (admin, live) = (plane.admin.clone(), deployments.clone());
        let controller = Controller::for_(&deployments).name("stub").workers(STUB_WORKERS).build(
            move |key: ObjectKey| {
                let (admin, live) = (admin.clone(), live.get(&key));
                async move {
                    match live {
                        Some(live) => attend(&admin, &live).await,
                        None => Ok(Requeue::OnChange),
                    }
                }
            },
        )?;
        let readiness = watch::Sender::new(WidgetReadiness::default());
        let noted = readiness.clone();
        let subscription = widgets.subscribe(move |change| {
            let at = Instant::now();
            noted.send_modify(|readiness| {
                match (&change.old, &change.new) {
                    (None, Some(_)) => readiness.there += 1,
                    (Some(_), None) => readiness.there = readiness.there.saturating_sub(1),
                    _ => {}
                }
                let Some(new) = &change.new else { return };
                let generation = new.metadata.generation;
                if new.status.ready && new.status.observed_generation == generation {
                    let entry = readiness.ready.entry(new.metadata.key.clone()).or_insert((generation, at));
                    if entry.0 < generation {
                        *entry = (generation, at);
                    }
                }
            });
        });
        let mut manager = Manager::new();
        manager.cache(&cache)?;
        manager.controller(controller)?;
        let (stopper, stop) = windlass_runtime::manager::Stop::pair();
        let task = tokio::spawn(async move {
            // Kept, since a stopper that is gone is a request to stop.
            let _stopper = stopper;
            let _ = manager.run_until(stop).await;
        });
        widgets.synced().await;
        deployments.synced().await;
        Ok(Self { readiness, widgets, _subscription: subscription, task: task.abort_handle() })
    }

    /// Waits until `count` Widgets are ready at this generation, and returns the time of each.
    pub(crate) async fn ready(
        &self,
        count: usize,
        generation: i64,
        patience: Duration,
    ) -> Result<HashMap<ObjectKey, Instant>> {
        let mut readiness = self.readiness.subscribe();
        let at_generation = |readiness: &WidgetReadiness| {
            readiness.ready.values().filter(|(of, _)| *of >= generation).count()
        };
        let waited =
            tokio::time::timeout(patience, readiness.wait_for(|readiness| at_generation(readiness) >= count))
                .await;
        match waited {
            Ok(readiness) => {
                let readiness = readiness.context("the watch")?;
                Ok(readiness.ready.iter().map(|(key, (_, at))| (key.clone(), *at)).collect())
            }
            Err(_) => anyhow::bail!(
                "only {} of {count} Widgets were ready after {} s",
                at_generation(&self.readiness.borrow()),
                patience.as_secs()
            ),
        }
    }

    /// Waits until no Widget is left.
    pub(crate) async fn gone(&self, patience: Duration) -> Result<()> {
        let mut readiness = self.readiness.subscribe();
        let waited =
            tokio::time::timeout(patience, readiness.wait_for(|readiness| readiness.there == 0)).await;
        let left = self.widgets.len();
        waited.with_context(|| format!("{left} Widgets were left after {} s", patience.as_secs()))??;
        Ok(())
    }
}

impl Drop for StubCluster {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The status that the deployment controller would write when all pods are there, written at once.
async fn attend(admin: &Admin, live: &Arc<DeploymentState>) -> Result<Requeue, Error> {
    let (meta, replicas) = (&live.metadata, live.spec.replicas);
    if meta.deleting {
        return let_go(admin, meta).await;
    }
    if live.status.observed_generation >= meta.generation && live.status.available_replicas == replicas {
        return Ok(Requeue::OnChange);
    }
    let (namespace, name) = (meta.namespace().unwrap_or_default(), meta.name());
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}/status");
    let status = json!({"status": {
        "observedGeneration": meta.generation, "replicas": replicas, "updatedReplicas": replicas,
        "readyReplicas": replicas, "availableReplicas": replicas,
    }});
    sent(admin.merge(&path, &status).await)
}

/// The garbage collector's part for a Deployment that is deleted in the foreground and has no dependents:
/// removes the finalizer.
async fn let_go(admin: &Admin, meta: &Meta) -> Result<Requeue, Error> {
    if meta.finalizers.is_empty() {
        return Ok(Requeue::OnChange);
    }
    let (namespace, name) = (meta.namespace().unwrap_or_default(), meta.name());
    let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments/{name}");
    sent(admin.merge(&path, &json!({"metadata": {"finalizers": null}})).await)
}

fn sent(result: Result<()>) -> Result<Requeue, Error> {
    match result {
        Ok(()) => Ok(Requeue::OnChange),
        Err(error) => Err(Error::transient(error.to_string())),
    }
}
