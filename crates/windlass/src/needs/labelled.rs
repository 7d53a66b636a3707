//! All objects of a kind that carry a label, in a shape of the author's choice.
//!
//! Kind and label key are declared. There is one watch per kind and key for all owners, indexed by the
//! label's value: asking for one value opens no watch. A change wakes the owners that asked for the value
//! which the object's label has or had.

use std::any::{Any, TypeId};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;
use windlass_runtime::cache::{
    Cache, InvalidSelector, Origin, Reader, Selection, Shape, Subscription, SyncState,
};
use windlass_runtime::json::typed;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::live::Known;

/// Objects of a list, each in the shape that was asked for.
pub(crate) type AnyObjects = Vec<Arc<dyn Any + Send + Sync>>;

/// Declares a kind with objects that are found by a label.
#[derive(Clone)]
pub(crate) struct LabelledKind {
    resource: ResourceType,
    label: &'static str,
    shape: TypeId,
    open: fn(&Cache, &ResourceType, &'static str, &Selection) -> Arc<dyn Stock>,
}

impl LabelledKind {
    pub(crate) fn new<S: Shape>(resource: ResourceType, label: &'static str) -> Self {
        let open = |cache: &Cache, resource: &ResourceType, label: &'static str, selection: &Selection| {
            let reader = cache.reader_of::<S>(resource, selection);
            reader.index_label(label);
            Arc::new(Indexed { reader, label }) as Arc<dyn Stock>
        };
        Self { resource, label, shape: TypeId::of::<S>(), open }
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (&self.resource, self.label, self.shape) == (&other.resource, other.label, other.shape)
    }

    /// Returns whether this declaration covers a request.
    pub(crate) fn answers(&self, ask: &ListAsk) -> bool {
        (&self.resource, self.label, self.shape) == (&ask.resource, ask.label, ask.shape)
    }

    /// Opens the watch: all objects of the kind in `scope` that carry the label, with any value.
    pub(crate) fn open(&self, cache: &Cache, scope: &Selection) -> Result<Labelled, InvalidSelector> {
        let selection = scope.clone().labels(self.label)?;
        Ok(Labelled {
            resource: self.resource.clone(),
            label: self.label,
            shape: self.shape,
            stock: (self.open)(cache, &self.resource, self.label, &selection),
            interested: Arc::default(),
        })
    }
}

/// A request for all objects of a kind that carry a label with a value.
pub(crate) struct ListAsk {
    pub(crate) resource: ResourceType,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    shape: TypeId,
    decode: fn(&serde_json::Value) -> Option<Arc<dyn Any + Send + Sync>>,
}

impl ListAsk {
    pub(crate) fn new<S: Shape>(resource: ResourceType, label: &'static str, value: String) -> Self {
        let decode = |object: &serde_json::Value| {
            typed::<S>(object).ok().map(|object| Arc::new(object) as Arc<dyn Any + Send + Sync>)
        };
        Self { resource, label, value, shape: TypeId::of::<S>(), decode }
    }

    /// Returns kind, label and value, for messages.
    pub(crate) fn title(&self) -> String {
        format!("{} with label {}={}", self.resource.kind, self.label, self.value)
    }

    /// Returns the objects of this list among some objects in JSON.
    pub(super) fn among(&self, objects: &[serde_json::Value]) -> AnyObjects {
        let pointer = format!("/metadata/labels/{}", self.label.replace('~', "~0").replace('/', "~1"));
        let matches = |object: &&serde_json::Value| {
            object["kind"] == *self.resource.kind
                && object.pointer(&pointer).and_then(serde_json::Value::as_str) == Some(&*self.value)
        };
        objects.iter().filter(matches).filter_map(|object| (self.decode)(object)).collect()
    }
}

/// The objects of a kind that carry a label.
pub(crate) struct Labelled {
    resource: ResourceType,
    label: &'static str,
    shape: TypeId,
    stock: Arc<dyn Stock>,
    interested: Arc<Interested>,
}

/// The owners that asked for a value of the label.
type Interested = Mutex<HashMap<String, BTreeSet<ObjectKey>>>;

impl Labelled {
    /// Returns whether this watch answers a request.
    pub(super) fn answers(&self, ask: &ListAsk) -> bool {
        (&self.resource, self.label, self.shape) == (&ask.resource, ask.label, ask.shape)
    }

    /// Wakes the owners of a value at each change of an object that has it, or had it.
    pub(super) fn subscribe(&self, wake: impl Fn(ObjectKey) + Send + Sync + 'static) -> Subscription {
        let interested = Arc::clone(&self.interested);
        self.stock.subscribe(Box::new(move |value| {
            let owners = interested.lock().get(value).cloned().unwrap_or_default();
            owners.into_iter().for_each(&wake);
        }))
    }

    pub(super) fn state(&self) -> watch::Receiver<SyncState> {
        self.stock.state()
    }

    /// Returns the objects with a value. The list is unknown until it was read, never empty.
    pub(super) fn get(&self, value: &str) -> Known<AnyObjects> {
        match &*self.state().borrow() {
            SyncState::Synced => Known::Known(self.stock.by_value(value)),
            SyncState::Blocked(problem) => Known::Unknown(format!("they cannot be listed: {problem}")),
            SyncState::Starting => Known::Unknown("they have not been listed yet".to_owned()),
        }
    }

    pub(super) fn add(&self, value: &str, owner: &ObjectKey) {
        self.interested.lock().entry(value.to_owned()).or_default().insert(owner.clone());
    }

    /// Returns all owners that asked for a value.
    pub(super) fn owners(&self) -> BTreeSet<ObjectKey> {
        self.interested.lock().values().flatten().cloned().collect()
    }

    pub(super) fn remove(&self, value: &str, owner: &ObjectKey) {
        let mut interested = self.interested.lock();
        if let Some(owners) = interested.get_mut(value) {
            owners.remove(owner);
            if owners.is_empty() {
                interested.remove(value);
            }
        }
    }
}

trait Stock: Send + Sync {
    fn by_value(&self, value: &str) -> AnyObjects;
    fn state(&self) -> watch::Receiver<SyncState>;
    /// Calls `changed` with each label value that an object has or had.
    fn subscribe(&self, changed: Box<dyn Fn(&str) + Send + Sync>) -> Subscription;
}

struct Indexed<S> {
    reader: Reader<S>,
    label: &'static str,
}

impl<S: Shape> Stock for Indexed<S> {
    fn by_value(&self, value: &str) -> AnyObjects {
        let objects = self.reader.by_label(self.label, value);
        objects.into_iter().map(|object| object as Arc<dyn Any + Send + Sync>).collect()
    }

    fn state(&self) -> watch::Receiver<SyncState> {
        self.reader.state()
    }

    fn subscribe(&self, changed: Box<dyn Fn(&str) + Send + Sync>) -> Subscription {
        let label = self.label;
        self.reader.subscribe(move |change| {
            if change.origin == Origin::InitialList {
                return;
            }
            let value = |object: &Arc<S>| object.meta().labels.get(label).map(ToString::to_string);
            let values: BTreeSet<String> = change.old.iter().chain(&change.new).filter_map(value).collect();
            for value in &values {
                changed(value);
            }
        })
    }
}
