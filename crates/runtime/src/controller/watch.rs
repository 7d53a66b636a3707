//! Watches of a controller: they turn a change in a cache into keys in a queue.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::watch;

use super::predicate::Predicate;
use crate::cache::{Change, Origin, Reader, Shape, Subscription, SyncState};
use crate::intern::Str;
use crate::key::ObjectKey;
use crate::meta::OwnerRef;
use crate::metrics::ControllerMetrics;
use crate::object::owner::group;
use crate::panics::panic_message;
use crate::queue::{Add, Priority, Queue};
use crate::resource::ResourceType;

/// A kind that a controller watches, with options.
///
/// A plain [`Reader`] converts to one: every change counts, and the controller waits until it has synced.
#[must_use = "pass it to a controller"]
pub struct Watch<S> {
    reader: Reader<S>,
    predicate: Option<Predicate<S>>,
    optional: bool,
    keeps_backoff: bool,
}

impl<S: Shape> Watch<S> {
    /// Watches the objects of a reader.
    pub fn of(reader: &Reader<S>) -> Self {
        Self { reader: reader.clone(), predicate: None, optional: false, keeps_backoff: false }
    }

    /// Passes only changes that satisfy the predicate. If called twice, both must be satisfied.
    pub fn when(self, predicate: Predicate<S>) -> Self {
        let predicate = match self.predicate {
            Some(other) => other & predicate,
            None => predicate,
        };
        Self { predicate: Some(predicate), ..self }
    }

    /// Makes the kind optional: its CRD may be missing or be installed later. When it appears, it is watched.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Keeps the backoff of a failing key when its spec changes.
    ///
    /// A new spec (or a recreated object) resets the backoff by default, for the kind that a controller is
    /// [for](super::Controller::for_): the key is reconciled at once either way, and if that fails, retried
    /// soon.
    pub fn keep_backoff(self) -> Self {
        Self { keeps_backoff: true, ..self }
    }

    pub(super) fn resource(&self) -> &ResourceType {
        self.reader.resource()
    }

    pub(super) fn forgives(&self) -> bool {
        !self.keeps_backoff
    }
}

impl<S: Shape> From<Reader<S>> for Watch<S> {
    fn from(reader: Reader<S>) -> Self {
        Self::of(&reader)
    }
}

impl<S: Shape> From<&Reader<S>> for Watch<S> {
    fn from(reader: &Reader<S>) -> Self {
        Self::of(reader)
    }
}

/// Maps a form of an object to the keys to reconcile.
pub(super) type Mapping<S> = Arc<dyn Fn(&S, &mut dyn FnMut(ObjectKey)) + Send + Sync>;

/// Maps an object to its own key.
pub(super) fn itself<S: Shape>() -> Mapping<S> {
    Arc::new(|object: &S, found: &mut dyn FnMut(ObjectKey)| found(object.meta().key.clone()))
}

/// Maps an object to its owners of that kind, in any version: the controlling one, or with `every` all of
/// them.
pub(super) fn owners<S: Shape>(owner: ResourceType, every: bool) -> Mapping<S> {
    Arc::new(move |object: &S, found: &mut dyn FnMut(ObjectKey)| {
        let meta = object.meta();
        let is_owner = |reference: &&OwnerRef| {
            (every || reference.controller)
                && *reference.kind == *owner.kind
                && group(&reference.api_version) == owner.group
        };
        for reference in meta.owners.iter().filter(is_owner) {
            let namespace = meta.namespace().filter(|_| owner.namespaced).map(Str::from);
            found(ObjectKey::new(namespace, &*reference.name));
        }
    })
}

/// A watch with its mapping, whatever its shape.
pub(super) trait Source: Send + Sync {
    fn resource(&self) -> ResourceType;
    fn is_optional(&self) -> bool;
    fn state(&self) -> watch::Receiver<SyncState>;
    /// Sends keys to the queue until the subscription is dropped. The keys of all cached objects have been
    /// sent on return.
    fn subscribe(&self, queue: Queue<ObjectKey>, metrics: ControllerMetrics) -> Subscription;
}

pub(super) struct Wired<S> {
    pub(super) watch: Watch<S>,
    pub(super) mapping: Mapping<S>,
    /// True if a change of the spec resets the backoff.
    pub(super) forgiving: bool,
}

impl<S: Shape> Source for Wired<S> {
    fn resource(&self) -> ResourceType {
        self.watch.resource().clone()
    }

    fn is_optional(&self) -> bool {
        self.watch.optional
    }

    fn state(&self) -> watch::Receiver<SyncState> {
        self.watch.reader.state()
    }

    fn subscribe(&self, queue: Queue<ObjectKey>, metrics: ControllerMetrics) -> Subscription {
        let (predicate, mapping) = (self.watch.predicate.clone(), Arc::clone(&self.mapping));
        let (forgiving, resource) = (self.forgiving, self.resource());
        self.watch.reader.subscribe(move |change| {
            // User code may panic; that must not affect the cache and its other subscribers.
            let sent = catch_unwind(AssertUnwindSafe(|| {
                if predicate.as_ref().is_none_or(|predicate| predicate.admits(change)) {
                    send(change, &mapping, forgiving, &queue);
                }
            }));
            if let Err(panic) = sent {
                metrics.panicked();
                let object = change.object().map(|object| object.meta().key.to_string());
                tracing::error!(kind = %resource, object, panic = panic_message(&*panic), "a mapping or predicate panicked");
            }
        })
    }
}

/// Both forms are mapped: the former owner must be reconciled too.
fn send<S: Shape>(change: &Change<S>, mapping: &Mapping<S>, forgiving: bool, queue: &Queue<ObjectKey>) {
    let add = Add { priority: priority(change), fresh: forgiving && spec_changed(change), ..Add::now() };
    let mut sent: Option<ObjectKey> = None;
    for form in [change.new.as_deref(), change.old.as_deref()].into_iter().flatten() {
        mapping(form, &mut |key| {
            // Nearly always both forms map to the same key, which is queued only once.
            if sent.as_ref() != Some(&key) {
                queue.add(key.clone(), add);
                sent = Some(key);
            }
        });
    }
}

/// Objects of the initial list, and objects that did not change, have low priority.
fn priority<S: Shape>(change: &Change<S>) -> Priority {
    match (&change.old, &change.new, change.origin) {
        (_, _, Origin::InitialList) => Priority::LOW,
        (Some(old), Some(new), _) if old.meta().resource_version == new.meta().resource_version => {
            Priority::LOW
        }
        _ => Priority::NORMAL,
    }
}

fn spec_changed<S: Shape>(change: &Change<S>) -> bool {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.meta().generation != new.meta().generation,
        // A recreated object has not failed yet.
        _ => change.origin != Origin::InitialList,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::MetadataOnly;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{ConfigMap, Node};
    use serde_json::json;

    type Object = MetadataOnly<ConfigMap>;

    fn owned(owners: &serde_json::Value) -> Arc<Object> {
        let object = json!({"metadata": {"name": "child", "namespace": "shop", "ownerReferences": owners,
            "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d", "resourceVersion": "1"}});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn owner(api_version: &str, kind: &str, name: &str, controller: bool) -> serde_json::Value {
        json!({"apiVersion": api_version, "kind": kind, "name": name, "controller": controller,
            "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9e"})
    }

    fn keys(mapping: &Mapping<Object>, object: &Object) -> Vec<String> {
        let mut found = Vec::new();
        mapping(object, &mut |key| found.push(key.to_string()));
        found
    }

    #[test]
    fn the_owner_is_the_controller_of_the_group_and_kind_in_any_version() {
        let deployments = owners::<Object>(ResourceType::of::<Deployment>(), false);
        let object = owned(&json!([
            owner("apps/v1", "Deployment", "plain", false),
            owner("apps/v1beta9", "Deployment", "web", true),
            owner("other/v1", "Deployment", "elsewhere", true),
            owner("apps/v1", "StatefulSet", "set", true),
        ]));
        assert_eq!(keys(&deployments, &object), ["shop/web"]);
        let every = owners::<Object>(ResourceType::of::<Deployment>(), true);
        assert_eq!(keys(&every, &object), ["shop/plain", "shop/web"]);
    }

    #[test]
    fn a_cluster_scoped_owner_has_no_namespace() {
        let nodes = owners::<Object>(ResourceType::of::<Node>(), false);
        assert_eq!(keys(&nodes, &owned(&json!([owner("v1", "Node", "n-1", true)]))), ["n-1"]);
    }

    #[tokio::test]
    async fn both_the_old_and_the_new_owner_are_queued() {
        let queue = Queue::new(crate::queue::Backoff::default());
        let change = Change {
            old: Some(owned(&json!([owner("apps/v1", "Deployment", "before", true)]))),
            new: Some(owned(&json!([owner("apps/v1", "Deployment", "after", true)]))),
            origin: Origin::Watch,
        };
        send(&change, &owners(ResourceType::of::<Deployment>(), false), false, &queue);
        let (one, two) = (queue.get().await.unwrap(), queue.get().await.unwrap());
        assert_eq!(
            (one.key().to_string(), two.key().to_string()),
            ("shop/after".into(), "shop/before".into())
        );
    }

    #[test]
    fn the_initial_list_and_unchanged_objects_have_low_priority() {
        let object = owned(&json!([]));
        let change = |old: Option<&Arc<Object>>, origin| Change {
            old: old.cloned(),
            new: Some(object.clone()),
            origin,
        };
        assert_eq!(priority(&change(None, Origin::InitialList)), Priority::LOW);
        assert_eq!(priority(&change(None, Origin::Watch)), Priority::NORMAL);
        assert_eq!(priority(&change(None, Origin::Relist)), Priority::NORMAL);
        assert_eq!(priority(&change(Some(&object), Origin::Relist)), Priority::LOW);
        assert_eq!(
            priority(&Change { old: Some(object.clone()), new: None, origin: Origin::Relist }),
            Priority::NORMAL
        );
    }
}
