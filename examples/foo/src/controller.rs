//! What is done about a Foo.
//!
//! A reconcile is given a key and looks at what is true now. Reads are from the cache and cost nothing; a write happens only where
//! something differs, so that a cluster in which all is well is left alone, also after a restart.

use k8s_openapi::api::apps::v1::Deployment;
use kube::Resource as _;
use serde_json::json;
use windlass_operator::{BoxError, Setup};
use windlass_runtime::access::Access;
use windlass_runtime::cache::{Full, Reader, Shape as _};
use windlass_runtime::client::{Apply, Client, Delete};
use windlass_runtime::controller::predicate::changed;
use windlass_runtime::controller::{Controller, Error, Outcome, Reconcile, Watch};
use windlass_runtime::events::{EventType, Recorder, Regarding};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::object::owner::Owner;

use crate::api::{Foo, FooStatus};
use crate::deployment::{LiveDeployment, Spec, manifest};

/// In whose name fields are managed.
pub const MANAGER: &str = "sample-controller";

/// The index of Foos by the Deployment that they want.
const BY_DEPLOYMENT: &str = "deployment";

/// Gives every Foo its Deployment.
#[derive(Clone)]
pub struct FooController {
    client: Client,
    recorder: Recorder,
    foos: Reader<Full<Foo>>,
    deployments: Reader<LiveDeployment>,
}

/// Adds the controller to an operator, and says what it writes.
pub fn set_up(setup: &mut Setup<'_>) -> Result<(), BoxError> {
    let reconciler = FooController::new(setup)?;
    let controller = reconciler.controller(setup.workers())?;
    setup.needs(Access::none().owns::<Foo>().status::<Foo>().applies::<Deployment>().deletes::<Deployment>());
    Ok(setup.controller(controller)?)
}

impl FooController {
    /// A reconciler that reads what this process looks at.
    pub fn new(setup: &mut Setup<'_>) -> Result<Self, BoxError> {
        let scope = setup.scope();
        let foos = setup.cache().reader::<Full<Foo>>(&scope);
        foos.index(BY_DEPLOYMENT, |foo, found| found(&place(foo).to_string()));
        Ok(Self {
            client: setup.client().clone(),
            recorder: setup.recorder()?,
            foos,
            deployments: setup.cache().reader(&scope),
        })
    }

    /// When it runs: a Foo changed; a Deployment that it owns did; or a name that it wants was taken, given up or changed hands.
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

/// Where a Foo's Deployment is.
fn place(foo: &Full<Foo>) -> ObjectKey {
    ObjectKey::namespaced(foo.meta().namespace().unwrap_or_default(), foo.spec.deployment_name.as_str())
}

impl Reconcile for FooController {
    async fn reconcile(&self, key: ObjectKey) -> Result<Outcome, Error> {
        // Gone, or on its way: the garbage collector takes what it owned along.
        let Some(foo) = self.foos.get(&key).filter(|foo| !foo.meta().deleting) else {
            return Ok(Outcome::Done);
        };
        let name = foo.spec.deployment_name.as_str();
        if name.is_empty() {
            tracing::warn!("spec.deploymentName is empty: nothing to do before it has a name");
            return Ok(Outcome::Done);
        }
        let place = place(&foo);
        let live = self.deployments.get(&place);
        if live.as_ref().is_some_and(|live| !live.is_controlled_by(foo.meta().uid)) {
            let note = format!("Resource {name:?} already exists and is not managed by Foo");
            tracing::warn!(note);
            self.tell(&foo, EventType::Warning, "ErrResourceExists", &note);
            // Not to be tried again and again: we are called when the name is free.
            return Ok(Outcome::Done);
        }

        let wanted = Spec::of(&foo);
        if !live.as_ref().is_some_and(|live| live.spec.has(&wanted)) {
            let owner = Owner::of(foo.object())?.controller_reference(key.namespace())?;
            let manifest = manifest(name, &owner, &wanted, live.as_ref().map(|live| live.metadata.uid));
            self.client.objects::<Deployment>().apply(&place, &manifest, &Apply::by(MANAGER).force()).await?;
            tracing::info!(deployment = name, replicas = wanted.replicas, "applied");
            self.tell(&foo, EventType::Normal, "Synced", "Foo synced successfully");
            if live.is_none() {
                // Its coming calls us again, after those who wait; by then its status is worth telling.
                return Ok(Outcome::Done);
            }
        }
        self.prune(&foo, name).await?;
        self.report(&foo, &place).await?;
        Ok(Outcome::Done)
    }
}

impl FooController {
    /// Removes the Deployments that this Foo had under other names.
    async fn prune(&self, foo: &Full<Foo>, wanted: &str) -> Result<(), Error> {
        let uid = foo.meta().uid;
        for left in self.deployments.by_owner(&uid) {
            let meta = &left.metadata;
            if left.is_controlled_by(uid) && meta.name() != wanted && !meta.deleting {
                tracing::info!(deployment = meta.name(), "deleting: the Foo has another now");
                self.client.objects::<Deployment>().delete(&meta.key, &Delete::incarnation(meta.uid)).await?;
            }
        }
        Ok(())
    }

    /// Writes the status, if it says something new. What was just applied is in the cache already.
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

    fn tell(&self, foo: &Full<Foo>, kind: EventType, reason: &str, note: &str) {
        self.recorder.event(&Regarding::of(foo.object()), kind, reason, "Sync", note);
    }
}
