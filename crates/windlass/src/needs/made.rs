//! Objects that another controller of the same operator creates.
//!
//! The components of a larger object take most of their inputs from the controller of that object: fifty
//! Harbors have six hundred such Secrets. One watch of everything that carries that controller's label serves
//! all of them, and after a restart it costs one list. An object that is not among them (it was created by
//! hand, or has lost its label) is watched by its name.

use std::sync::Arc;

use tokio::sync::watch;
use windlass_runtime::cache::{Cache, Origin, Reader, Selection, Shape, Subscription, SyncState};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::form::{Form, SourceKey};
use super::source::Source;
use crate::live::Kind;
use crate::live::content::{AsContent, Readable, Whole};

/// Declares a kind with objects that another controller creates and that are read here.
pub(crate) struct MadeKind {
    maker: &'static str,
    resource: ResourceType,
    form: Form,
    open: fn(&Cache, &ResourceType, &Selection) -> Arc<dyn Stock>,
}

impl MadeKind {
    /// Declares that the values of the objects are read.
    pub(crate) fn read<K: Kind>(maker: &'static str) -> Self {
        Self::of::<K, Readable>(maker, Form::Values)
    }

    /// Declares that the objects are read as a whole.
    pub(crate) fn looked_at<K: Kind>(maker: &'static str) -> Self {
        Self::of::<K, Whole>(maker, Form::Whole)
    }

    fn of<K: Kind, S: Shape + AsContent>(maker: &'static str, form: Form) -> Self {
        Self { maker, resource: ResourceType::of::<K>(), form, open: open::<S> }
    }

    /// Returns the name of the controller that creates the objects.
    pub(crate) fn maker(&self) -> &'static str {
        self.maker
    }

    pub(crate) fn is_like(&self, other: &Self) -> bool {
        (self.maker, &self.resource, self.form) == (other.maker, &other.resource, other.form)
    }

    pub(crate) fn open(&self, cache: &Cache, selection: &Selection) -> Made {
        Made {
            resource: self.resource.clone(),
            form: self.form,
            stock: (self.open)(cache, &self.resource, selection),
        }
    }
}

fn open<S: Shape + AsContent>(
    cache: &Cache,
    resource: &ResourceType,
    selection: &Selection,
) -> Arc<dyn Stock> {
    Arc::new(cache.reader_of::<S>(resource, selection))
}

/// All objects of a kind that a controller creates.
pub(crate) struct Made {
    resource: ResourceType,
    form: Form,
    stock: Arc<dyn Stock>,
}

impl Made {
    pub(super) fn resource(&self) -> &ResourceType {
        &self.resource
    }

    /// Calls `changed` with the key of each object that was added, changed or deleted.
    pub(super) fn subscribe(&self, changed: Box<dyn Fn(&ObjectKey) + Send + Sync>) -> Subscription {
        self.stock.subscribe(changed)
    }

    /// Returns the state of the watch. Before its first list has ended, the objects are unknown.
    pub(super) fn state(&self) -> watch::Receiver<SyncState> {
        self.stock.state()
    }

    /// Returns whether an object of this kind, kept in this form, answers a request.
    pub(super) fn fits(&self, wanted: &SourceKey) -> bool {
        self.resource == wanted.resource && self.form.serves(wanted.form)
    }

    /// Returns the object, if it is among these and answers the request.
    pub(super) fn source(&self, wanted: &SourceKey) -> Option<Box<dyn Source>> {
        let there = self.fits(wanted) && self.stock.get(&wanted.key).is_some();
        there.then(|| -> Box<dyn Source> {
            Box::new(Taken { stock: Arc::clone(&self.stock), key: wanted.key.clone() })
        })
    }
}

trait Stock: Send + Sync {
    fn get(&self, key: &ObjectKey) -> Option<Arc<dyn AsContent>>;
    fn state(&self) -> watch::Receiver<SyncState>;
    fn subscribe(&self, changed: Box<dyn Fn(&ObjectKey) + Send + Sync>) -> Subscription;
}

impl<S: Shape + AsContent> Stock for Reader<S> {
    fn get(&self, key: &ObjectKey) -> Option<Arc<dyn AsContent>> {
        Reader::get(self, key).map(|object| object as Arc<dyn AsContent>)
    }

    fn state(&self) -> watch::Receiver<SyncState> {
        Reader::state(self)
    }

    fn subscribe(&self, changed: Box<dyn Fn(&ObjectKey) + Send + Sync>) -> Subscription {
        Reader::subscribe(self, move |change| {
            // The plans that asked wait for the first list anyway.
            if change.origin != Origin::InitialList
                && let Some(object) = change.object()
            {
                changed(&object.meta().key);
            }
        })
    }
}

/// One object that another controller creates.
struct Taken {
    stock: Arc<dyn Stock>,
    key: ObjectKey,
}

impl Source for Taken {
    fn get(&self) -> Option<Arc<dyn AsContent>> {
        self.stock.get(&self.key)
    }

    fn state(&self) -> watch::Receiver<SyncState> {
        self.stock.state()
    }

    fn subscribe(&self, _: Box<dyn Fn() + Send + Sync>) -> Option<Subscription> {
        None
    }
}
