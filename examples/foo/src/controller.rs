//! The controller of Foo, with a reconcile function written by hand.
//!
//! A reconcile receives a key and compares the present state with the desired one. It reads from the cache,
//! which costs no request, and writes only if something differs: a converged cluster causes no write, also
//! after a restart.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Resource as _;
use serde_json::json;
use windlass_operator::{BoxError, Setup};
use windlass_runtime::access::Access;
use windlass_runtime::cache::{Full, Reader, Shape as _};
use windlass_runtime::client::{Apply, Client, Delete};
use windlass_runtime::controller::predicate::changed;
use windlass_runtime::controller::{Controller, Error, Reconcile, Requeue, Watch};
use windlass_runtime::events::{EventType, Recorder, Regarding};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::object::owner::Owner;

use crate::api::{Foo, FooStatus};
use crate::deployment::{LiveDeployment, Spec, manifest};

/// Field manager of every server-side apply.
pub const MANAGER: &str = "sample-controller";

/// The index of Foos by the Deployment that they want.
const BY_DEPLOYMENT: &str = "deployment";

/// Creates and updates the Deployment of every Foo.
#[derive(Clone)]
pub struct FooController {
    client: Client,
    recorder: Recorder,
    foos: Reader<Full<Foo>>,
    deployments: Reader<LiveDeployment>,
}

/// Adds the controller to an operator, and declares the permissions for its writes.
pub fn set_up(setup: &mut Setup<'_>) -> Result<(), BoxError> {
    let reconciler = FooController::new(setup)?;
    let controller = reconciler.controller(setup.workers())?;
    setup.needs(Access::none().owns::<Foo>().status::<Foo>().applies::<Deployment>().deletes::<Deployment>());
    Ok(setup.controller(controller)?)
}

impl FooController {
    /// Returns a reconciler that reads the namespaces of this process.
    pub fn new(setup: &mut Setup<'_>) -> Result<Self, BoxError> {
        let scope = setup.scope();
        let foos = setup.cache().reader::<Full<Foo>>(&scope);
        foos.index(BY_DEPLOYMENT, |foo, found| found(&place(foo).to_string()));
        Ok(Self {
            client: setup.leader_client().clone(),
            recorder: setup.recorder()?,
            foos,
            deployments: setup.cache().reader(&scope),
        })
    }

    /// Returns the controller. A Foo is reconciled when it changes, when a Deployment that it owns changes,
    /// and when a Deployment of the name that it asks for is created, deleted or gets another owner.
    fn controller(self, workers: usize) -> Result<Controller, BoxError> {
        let hands = Watch::of(&self.deployments).when(changed(LiveDeployment::changed_hands));
        let foos = self.foos.clone();
        let wanting = move |deployment: &LiveDeployment| {
            let wanting = foos.by_index(BY_DEPLOYMENT, &deployment.metadata.key.to_string());
            wanting.into_iter().map(|foo| foo.meta().key.clone())
        };
        let builder = Controller::for_(&self.foos).owns(&self.deployments).watches(hands, wanting);
        Ok(builder.workers(workers).build(self)?)
    }
}

/// Returns the key of a Foo's Deployment.
fn place(foo: &Full<Foo>) -> ObjectKey {
    ObjectKey::namespaced(foo.meta().namespace().unwrap_or_default(), foo.spec.deployment_name.as_str())
}

impl Reconcile for FooController {
    async fn reconcile(&self, key: ObjectKey) -> Result<Requeue, Error> {
        // Deleted, or being deleted: the garbage collector deletes the Deployment too.
        let Some(foo) = self.foos.get(&key).filter(|foo| !foo.meta().deleting) else {
            return Ok(Requeue::OnChange);
        };
        let name = foo.spec.deployment_name.as_str();
        if name.is_empty() {
            tracing::warn!("spec.deploymentName is empty: no Deployment is created until it is set");
            return Ok(Requeue::OnChange);
        }
        let place = place(&foo);
        let live = self.deployments.get(&place);
        if live.as_ref().is_some_and(|live| !live.is_controlled_by(foo.meta().uid)) {
            let note = format!("Resource {name:?} already exists and is not managed by Foo");
            tracing::warn!(note);
            self.record(&foo, EventType::Warning, "ErrResourceExists", &note);
            // No retry: the watch of Deployments calls again when the name is free.
            return Ok(Requeue::OnChange);
        }

        // A Deployment that was there and is not any more may have gone with its Foo, of whose end the other
        // watch has not told yet.
        if live.is_none() && foo.status.is_some() && !self.is_present(&foo).await? {
            return Ok(Requeue::OnChange);
        }
        let wanted = Spec::of(&foo);
        if !live.as_ref().is_some_and(|live| live.spec.has(&wanted)) {
            let owner = Owner::of(foo.object())?.controller_reference(key.namespace())?;
            let manifest = manifest(name, &owner, &wanted, live.as_ref().map(|live| live.metadata.uid));
            self.client.objects::<Deployment>().apply(&place, &manifest, &Apply::by(MANAGER).force()).await?;
            tracing::info!(deployment = name, replicas = wanted.replicas, "applied the Deployment");
            self.record(&foo, EventType::Normal, "Synced", "Foo synced successfully");
            if live.is_none() {
                // The watch event of the new Deployment calls again, and by then there is a status to report.
                return Ok(Requeue::OnChange);
            }
        }
        self.prune(&foo, name).await?;
        self.report(&foo, &place).await?;
        Ok(Requeue::OnChange)
    }
}

impl FooController {
    /// Asks the server whether this Foo is still there, with the same spec, and not being deleted.
    async fn is_present(&self, foo: &Full<Foo>) -> Result<bool, Error> {
        let present = self.client.objects::<Foo>().find(&foo.meta().key).await?;
        Ok(present.is_some_and(|present| {
            present.metadata.uid.as_deref() == Some(&*foo.meta().uid.to_string())
                && present.metadata.deletion_timestamp.is_none()
                && present.spec == foo.spec
        }))
    }

    /// Deletes the Deployments that this Foo owns under other names.
    ///
    /// The Foo in the cache may be older than a Deployment that the leader before us has just created for it.
    /// So the server is asked before anything is deleted; a Foo that has changed meanwhile is reconciled
    /// again.
    async fn prune(&self, foo: &Full<Foo>, wanted: &str) -> Result<(), Error> {
        let uid = foo.meta().uid;
        let mut left = self.deployments.by_owner(&uid);
        left.retain(|left| {
            let meta = &left.metadata;
            left.is_controlled_by(uid) && meta.name() != wanted && !meta.deleting
        });
        if left.is_empty() {
            return Ok(());
        }
        if self.is_present(foo).await? {
            for left in left {
                let meta = &left.metadata;
                tracing::info!(
                    deployment = meta.name(),
                    "deleting a Deployment whose name is no longer in the Foo's spec"
                );
                self.client.objects::<Deployment>().delete(&meta.key, &Delete::incarnation(meta.uid)).await?;
            }
        }
        Ok(())
    }

    /// Writes the status if it has changed. The cache already contains this process's own writes.
    async fn report(&self, foo: &Full<Foo>, place: &ObjectKey) -> Result<(), Error> {
        let Some(live) = self.deployments.get(place) else { return Ok(()) };
        let status = FooStatus { available_replicas: live.status.available_replicas };
        if foo.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let manifest = json!({
            "apiVersion": Foo::api_version(&()), "kind": Foo::kind(&()),
            "metadata": {"name": foo.meta().name(), "uid": foo.meta().uid},
            "status": status,
        });
        let key = &foo.meta().key;
        self.client.objects::<Foo>().apply_status(key, &manifest, &Apply::by(MANAGER).force()).await?;
        Ok(())
    }

    fn record(&self, foo: &Full<Foo>, kind: EventType, reason: &str, note: &str) {
        self.recorder.event(&Regarding::of(foo.object()), kind, reason, "Sync", note);
    }
}
