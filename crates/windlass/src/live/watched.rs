//! The caches of planned kinds: one watch each, selected by the controller's label.

use std::sync::Arc;

use futures::future::{BoxFuture, FutureExt as _};
use windlass_runtime::cache::{Cache, Cause, InvalidSelector, Reader, Selection, Shape, SyncState};
use windlass_runtime::controller::{Builder, Owning, Watch};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Keep, Meta, Uid};
use windlass_runtime::resource::ResourceType;

use super::kind::is_ready_by_existing;
use super::object::{AsLive, Bare, LiveRef, Watched};
use crate::names::{label, mark};

/// Declares a planned kind, in the smallest shape that its readiness needs.
pub(crate) fn declare(resource: ResourceType, optional: bool) -> Box<dyn OwnedKind> {
    if is_ready_by_existing(&resource) {
        Box::new(Declared::<Bare>::new(resource, optional))
    } else {
        Box::new(Declared::<Watched>::new(resource, optional))
    }
}

/// A kind that is planned.
pub(crate) trait OwnedKind: Send + Sync {
    fn resource(&self) -> ResourceType;
    fn open(&self, cache: &Cache, selection: &Selection) -> Arc<dyn OpenKind>;
}

/// A kind that is planned, with its cache.
pub(crate) trait OpenKind: Send + Sync {
    fn resource(&self) -> &ResourceType;
    /// Returns the reason why objects of this kind cannot exist now, if that is expected.
    fn missing(&self) -> Option<String>;
    /// Returns a message if the existing objects of the kind may be unknown.
    fn unlisted(&self) -> Option<String>;
    /// Returns when the first list of the kind has ended, or the kind is known to be blocked. The controller
    /// waits for the kinds that must be installed before it starts; for other kinds the existing objects are
    /// unknown until then.
    fn listed(&self) -> BoxFuture<'_, ()>;
    fn get(&self, key: &ObjectKey) -> Option<LiveRef>;
    /// Returns everything that belongs to the owner, by label or by reference; each object once.
    fn belonging_to(&self, owner: &Uid) -> Vec<LiveRef>;
    /// Lets a controller follow the kind. `by_label` returns the owners of objects without a reference.
    fn wire(&self, builder: Builder<Owning>, by_label: ByLabel) -> Builder<Owning>;
}

pub(crate) type ByLabel = Arc<dyn Fn(&Meta) -> Vec<ObjectKey> + Send + Sync>;

struct Declared<S> {
    resource: ResourceType,
    optional: bool,
    shape: std::marker::PhantomData<fn() -> S>,
}

impl<S> Declared<S> {
    fn new(resource: ResourceType, optional: bool) -> Self {
        Self { resource, optional, shape: std::marker::PhantomData }
    }
}

impl<S: Shape + AsLive> OwnedKind for Declared<S> {
    fn resource(&self) -> ResourceType {
        self.resource.clone()
    }

    fn open(&self, cache: &Cache, selection: &Selection) -> Arc<dyn OpenKind> {
        let reader: Reader<S> = cache.reader_of(&self.resource, selection);
        reader.index_label(label::OWNER);
        Arc::new(Opened { resource: self.resource.clone(), optional: self.optional, reader })
    }
}

struct Opened<S> {
    resource: ResourceType,
    optional: bool,
    reader: Reader<S>,
}

impl<S: Shape + AsLive> OpenKind for Opened<S> {
    fn resource(&self) -> &ResourceType {
        &self.resource
    }

    fn missing(&self) -> Option<String> {
        match &*self.reader.state().borrow() {
            SyncState::Blocked(problem) if self.optional => Some(problem.to_string()),
            // An object must not be created while it is unknown whether it exists.
            SyncState::Starting if self.optional => Some(unlisted(&self.resource)),
            _ => None,
        }
    }

    fn unlisted(&self) -> Option<String> {
        match &*self.reader.state().borrow() {
            SyncState::Starting => Some(unlisted(&self.resource)),
            // A kind that is not served has no objects. Kinds that must be installed were listed before the
            // controller started.
            SyncState::Blocked(problem) if self.optional && problem.cause != Cause::Missing => {
                Some(problem.to_string())
            }
            _ => None,
        }
    }

    fn listed(&self) -> BoxFuture<'_, ()> {
        let mut state = self.reader.state();
        if !self.optional || !matches!(*state.borrow(), SyncState::Starting) {
            return std::future::ready(()).boxed();
        }
        async move {
            // Fails only after the watch has ended.
            let _ = state.wait_for(|state| !matches!(state, SyncState::Starting)).await;
        }
        .boxed()
    }

    fn get(&self, key: &ObjectKey) -> Option<LiveRef> {
        self.reader.get(key).map(|object| object as LiveRef)
    }

    fn belonging_to(&self, owner: &Uid) -> Vec<LiveRef> {
        let controlled =
            |object: &Arc<S>| object.meta().controller().is_some_and(|controller| controller.uid == *owner);
        let labelled = self.reader.by_label(label::OWNER, &owner.to_string());
        // Somebody may have removed the label: the reference is sufficient.
        let unlabelled = |object: &Arc<S>| labelled.iter().all(|other| other.meta().key != object.meta().key);
        let referring =
            self.reader.by_owner(owner).into_iter().filter(controlled).filter(unlabelled).collect::<Vec<_>>();
        labelled.iter().cloned().chain(referring).map(|object| object as LiveRef).collect()
    }

    fn wire(&self, builder: Builder<Owning>, by_label: ByLabel) -> Builder<Owning> {
        let watch = || {
            let watch = Watch::of(&self.reader);
            if self.optional { watch.optional() } else { watch }
        };
        builder.owns(watch()).watches(watch(), move |object: &S| by_label(object.meta()))
    }
}

fn unlisted(resource: &ResourceType) -> String {
    format!("objects of the kind {} have not been listed yet", resource.kind)
}

/// Returns the selection of planned objects that a controller watches, with the metadata that it keeps.
pub(crate) fn selection(name: &str, namespaces: Option<&[String]>) -> Result<Selection, InvalidSelector> {
    let keep = [
        mark::DIGEST,
        mark::DEPENDENCIES,
        mark::ORDER,
        mark::RETAIN,
        mark::PRUNE,
        mark::DUE,
        mark::MADE_FROM,
        mark::MADE_AT,
        mark::DATA_VERSION,
    ]
    .into_iter()
    .fold(Keep::default().manager(name), Keep::annotation);
    Ok(made_by(name, namespaces)?.keep(keep))
}

/// Returns the selection of everything that the controller of a blueprint creates.
pub(crate) fn made_by(name: &str, namespaces: Option<&[String]>) -> Result<Selection, InvalidSelector> {
    everything(namespaces).labels(&format!("{}={name}", label::CONTROLLER))
}

/// Returns the selection of everything in these namespaces, or in all.
pub(crate) fn everything(namespaces: Option<&[String]>) -> Selection {
    match namespaces {
        Some(namespaces) => Selection::all().in_namespaces(namespaces.iter().map(String::as_str)),
        None => Selection::all(),
    }
}
