//! From a change in a cache to keys in a queue.

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

/// A kind that a controller follows, and how.
///
/// A plain [`Reader`] is one: it follows every change, and the controller waits for it.
#[must_use = "give it to a controller"]
pub struct Watch<S> {
    reader: Reader<S>,
    predicate: Option<Predicate<S>>,
    optional: bool,
    keeps_backoff: bool,
}

impl<S: Shape> Watch<S> {
    /// Follows what a reader reads.
    pub fn of(reader: &Reader<S>) -> Self {
        Self { reader: reader.clone(), predicate: None, optional: false, keeps_backoff: false }
    }

    /// Only changes that pass. Said twice, both must.
    pub fn when(self, predicate: Predicate<S>) -> Self {
        let predicate = match self.predicate {
            Some(other) => other & predicate,
            None => predicate,
        };
        Self { predicate: Some(predicate), ..self }
    }

    /// The controller works without this kind: its CRD may be missing or come later. When it comes, it is followed.
    pub fn optional(self) -> Self {
        Self { optional: true, ..self }
    }

    /// Keeps the backoff of a failing key when its spec changes.
    ///
    /// Otherwise, for the kind that a controller is [for](super::Controller::for_), a new spec (or a new object of an
    /// old name) makes past failures void: it is reconciled at once either way, and should that fail, retried soon.
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

/// Names the keys that a form of an object concerns.
pub(super) type Mapping<S> = Arc<dyn Fn(&S, &mut dyn FnMut(ObjectKey)) + Send + Sync>;

/// The object itself.
pub(super) fn itself<S: Shape>() -> Mapping<S> {
    Arc::new(|object: &S, found: &mut dyn FnMut(ObjectKey)| found(object.meta().key.clone()))
}

/// The owner of that kind, in any version: the one controller, or with `every` each of them.
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
    /// Sends keys to the queue until the answer is dropped. What is there already has been sent on return.
    fn subscribe(&self, queue: Queue<ObjectKey>, metrics: ControllerMetrics) -> Subscription;
}

pub(super) struct Wired<S> {
    pub(super) watch: Watch<S>,
    pub(super) mapping: Mapping<S>,
    /// Whether a change of the spec makes past failures void.
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
            // What the user wrote may panic; the cache and its other subscribers must not notice.
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

/// Both forms are mapped: who was concerned before must learn that it no longer is.
fn send<S: Shape>(change: &Change<S>, mapping: &Mapping<S>, forgiving: bool, queue: &Queue<ObjectKey>) {
    let add = Add { priority: priority(change), fresh: forgiving && spec_changed(change), ..Add::now() };
    let mut sent: Option<ObjectKey> = None;
    for form in [change.new.as_deref(), change.old.as_deref()].into_iter().flatten() {
        mapping(form, &mut |key| {
            // Nearly always both forms name the same one key: spare the queue the second.
            if sent.as_ref() != Some(&key) {
                queue.add(key.clone(), add);
                sent = Some(key);
            }
        });
    }
}

/// Nobody waits for what was there before we came, nor for what did not change.
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
        // A new object of an old name has failed at nothing yet.
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
    async fn both_the_old_and_the_new_owner_learn_of_a_change() {
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
    fn the_initial_list_and_what_did_not_change_can_wait() {
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
