//! Inputs that another blueprint of the same operator makes.
//!
//! The parts of a whole take most of what they need from the blueprint of the whole: fifty Harbors have six hundred Secrets of this kind. One
//! watch of everything that carries that blueprint's label does for all of them, and after a restart it is one list. Whatever is not among them (it
//! was made by hand, or has lost its label) is followed by its name.

use std::sync::Arc;

use futures::future::BoxFuture;
use tokio::sync::watch;
use windlass_runtime::cache::{Cache, Origin, Reader, Selection, Shape, Subscription, SyncState};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use super::source::Source;
use super::{Form, SourceKey};
use crate::content::{AsContent, Readable, Whole};
use crate::desired::Kind;

/// A kind of which a blueprint makes inputs for another one, declared.
pub(crate) struct MadeKind {
    maker: &'static str,
    resource: ResourceType,
    form: Form,
    open: fn(&Cache, &ResourceType, &Selection) -> Arc<dyn Stock>,
}

impl MadeKind {
    /// Their values are read.
    pub(crate) fn read<K: Kind>(maker: &'static str) -> Self {
        Self::of::<K, Readable>(maker, Form::Values)
    }

    /// They are looked at as a whole.
    pub(crate) fn looked_at<K: Kind>(maker: &'static str) -> Self {
        Self::of::<K, Whole>(maker, Form::Whole)
    }

    fn of<K: Kind, S: Shape + AsContent>(maker: &'static str, form: Form) -> Self {
        Self { maker, resource: ResourceType::of::<K>(), form, open: open::<S> }
    }

    /// The name of the blueprint that makes them.
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

/// All objects of a kind that a blueprint makes.
pub(crate) struct Made {
    resource: ResourceType,
    form: Form,
    stock: Arc<dyn Stock>,
}

impl Made {
    pub(super) fn resource(&self) -> &ResourceType {
        &self.resource
    }

    /// Tells which object has changed, come or gone.
    pub(super) fn subscribe(&self, changed: Box<dyn Fn(&ObjectKey) + Send + Sync>) -> Subscription {
        self.stock.subscribe(changed)
    }

    /// Ends when it is known what there is, or that this cannot be known now.
    pub(super) async fn looked_through(&self) {
        let mut state = self.stock.state();
        // Fails only when nobody watches any more.
        let _ = state.wait_for(|state| !matches!(state, SyncState::Starting)).await;
    }

    /// The object, if it is among these, and as much is kept of it as is wanted.
    pub(super) fn source(&self, wanted: &SourceKey) -> Option<Box<dyn Source>> {
        let fits = self.resource == wanted.resource && self.form.does_for(wanted.form);
        let there = fits && self.stock.get(&wanted.key).is_some();
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
            // Who reads it waits for the first list anyway.
            if change.origin != Origin::InitialList
                && let Some(object) = change.object()
            {
                changed(&object.meta().key);
            }
        })
    }
}

/// One of those made.
struct Taken {
    stock: Arc<dyn Stock>,
    key: ObjectKey,
}

impl Source for Taken {
    fn get(&self) -> Option<Arc<dyn AsContent>> {
        self.stock.get(&self.key)
    }

    fn state(&self) -> SyncState {
        self.stock.state().borrow().clone()
    }

    fn synced(&self) -> BoxFuture<'_, ()> {
        // It was there when it was taken.
        Box::pin(std::future::ready(()))
    }

    fn subscribe(&self, _: Box<dyn Fn() + Send + Sync>) -> Option<Subscription> {
        None
    }
}
