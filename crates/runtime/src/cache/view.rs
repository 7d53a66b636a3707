//! One shape of one watch: its store, its subscribers, and the order of their notifications.
//!
//! Promises: a change is in the store before any subscriber is notified, and all subscribers see all changes
//! in the same order, whether a watch or a write caused them. A subscriber that panics is logged and skipped.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};
use tokio::sync::watch;
use tokio::time::Instant;

use super::store::{Store, WentBackwards};
use super::{Change, Origin, Shape, SyncState};
use crate::key::ObjectKey;
use crate::meta::{Keep, Meta, ResourceVersion, Uid};
use crate::resource::ResourceType;
use crate::selection::Verdict;

/// The bytes of an object do not fit the shape.
#[derive(Debug)]
pub(crate) struct Undecodable {
    /// The position in the object's one line of JSON. The decoder's own message is not kept: it may quote the
    /// content.
    pub(crate) column: usize,
}

impl From<serde_json::Error> for Undecodable {
    fn from(error: serde_json::Error) -> Self {
        Self { column: error.column() }
    }
}

/// A view without its shape, as the informer and the client use it.
pub(crate) trait AnyView: Any + Send + Sync {
    fn needs_body(&self) -> bool;
    /// Returns true if a list has finished for this view.
    fn is_listed(&self) -> bool;
    fn begin_list(&self);
    fn listed(&self, object: &[u8]) -> Result<(), Undecodable>;
    fn listed_undecodable(&self, key: &ObjectKey);
    fn end_list(&self, version: &ResourceVersion) -> Result<(), WentBackwards>;
    /// Applies a watch event and returns the object's version.
    fn applied(&self, object: &[u8]) -> Result<ResourceVersion, Undecodable>;
    fn deleted(&self, meta: &Meta);
    fn progressed(&self, version: &ResourceVersion);
    fn expire(&self, now: Instant);
    /// Applies the response to a write.
    fn wrote(&self, meta: &Meta, object: &[u8], verdict: Verdict) -> Result<(), Undecodable>;
    fn wrote_gone(&self, uid: Uid, key: &ObjectKey, now: Instant);
    fn set_state(&self, state: &SyncState);
    fn state_now(&self) -> SyncState;
    fn size(&self) -> (usize, usize);
}

/// Replaced as a whole, so that subscribers are notified without a lock.
type Handlers<S> = Arc<[(u64, Handler<S>)]>;

type Listener = Box<dyn Fn() -> bool + Send + Sync>;

/// The callback of a subscriber.
pub(crate) type Handler<S> = Arc<dyn Fn(&Change<S>) + Send + Sync>;

pub(crate) struct View<S> {
    resource: ResourceType,
    keep: Keep,
    store: RwLock<Store<S>>,
    /// Held from a change until its last handler has run, so that notifications keep the order of changes.
    /// Readers do not take it, so a handler may read.
    order: Mutex<()>,
    handlers: RwLock<Handlers<S>>,
    next_handler: AtomicU64,
    state: watch::Sender<SyncState>,
    /// Called after each change of state; listeners that return false are removed.
    listeners: Mutex<Vec<Listener>>,
    listed: AtomicBool,
    /// Called when the last reader is dropped.
    release: Box<dyn Fn() + Send + Sync>,
}

impl<S> Drop for View<S> {
    fn drop(&mut self) {
        (self.release)();
    }
}

impl<S: Shape> View<S> {
    pub(crate) fn new(
        resource: ResourceType,
        keep: Keep,
        release: impl Fn() + Send + Sync + 'static,
    ) -> Self {
        Self {
            resource,
            keep,
            store: RwLock::default(),
            order: Mutex::default(),
            handlers: RwLock::new(Arc::new([])),
            next_handler: AtomicU64::new(0),
            state: watch::Sender::new(SyncState::Starting),
            listeners: Mutex::default(),
            listed: AtomicBool::new(false),
            release: Box::new(release),
        }
    }

    /// Reads the store.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Store<S>) -> T) -> T {
        read(&self.store.read())
    }

    pub(crate) fn declare_index(&self, name: &str, extract: super::index::Extract<S>) {
        self.store.write().declare_index(name, extract);
    }

    pub(crate) fn state(&self) -> watch::Receiver<SyncState> {
        self.state.subscribe()
    }

    /// Calls `listener` after each change of state, until it returns false.
    pub(crate) fn on_state(&self, listener: impl Fn() -> bool + Send + Sync + 'static) {
        self.listeners.lock().push(Box::new(listener));
    }

    /// Adds a handler, after calling it for every cached object.
    pub(crate) fn subscribe(&self, handler: Handler<S>) -> u64 {
        let id = self.next_handler.fetch_add(1, Ordering::Relaxed);
        let _order = self.order.lock();
        let present: Vec<Arc<S>> = self.store.read().iter().cloned().collect();
        for object in present {
            self.call(&handler, &Change { old: None, new: Some(object), origin: Origin::InitialList });
        }
        let mut handlers = self.handlers.write();
        *handlers = handlers.iter().cloned().chain([(id, handler)]).collect();
        id
    }

    /// Removes a handler. A change that is being delivered may still reach it.
    pub(crate) fn unsubscribe(&self, id: u64) {
        let mut handlers = self.handlers.write();
        *handlers = handlers.iter().filter(|(other, _)| *other != id).cloned().collect();
    }

    fn decode(&self, object: &[u8]) -> Result<S, Undecodable> {
        Ok(self.keep.scope(|| serde_json::from_slice(object))?)
    }

    /// Changes the store, then notifies all subscribers.
    fn change(&self, change: impl FnOnce(&mut Store<S>) -> Vec<Change<S>>) {
        let _order = self.order.lock();
        let changes = change(&mut self.store.write());
        self.notify(&changes);
    }

    fn notify(&self, changes: &[Change<S>]) {
        if changes.is_empty() {
            return;
        }
        let handlers = Arc::clone(&self.handlers.read());
        for change in changes {
            for (_, handler) in handlers.iter() {
                self.call(handler, change);
            }
        }
    }

    fn call(&self, handler: &Handler<S>, change: &Change<S>) {
        if catch_unwind(AssertUnwindSafe(|| handler(change))).is_err() {
            let key = change.object().map(|object| object.meta().key.to_string()).unwrap_or_default();
            tracing::error!(kind = %self.resource, object = key, "subscriber panicked on a change; continuing with the next change");
        }
    }
}

impl<S: Shape> AnyView for View<S> {
    fn needs_body(&self) -> bool {
        S::needs_body()
    }

    fn is_listed(&self) -> bool {
        self.listed.load(Ordering::Acquire)
    }

    fn begin_list(&self) {
        self.store.write().begin_list();
    }

    fn listed(&self, object: &[u8]) -> Result<(), Undecodable> {
        let object = self.decode(object)?;
        self.change(|store| store.listed(object));
        Ok(())
    }

    fn listed_undecodable(&self, key: &ObjectKey) {
        self.store.write().mark_seen(key);
    }

    fn end_list(&self, version: &ResourceVersion) -> Result<(), WentBackwards> {
        let _order = self.order.lock();
        let changes = self.store.write().end_list(version)?;
        self.notify(&changes);
        self.listed.store(true, Ordering::Release);
        Ok(())
    }

    fn applied(&self, object: &[u8]) -> Result<ResourceVersion, Undecodable> {
        let object = self.decode(object)?;
        let version = object.meta().resource_version.clone();
        self.change(|store| store.applied(object));
        Ok(version)
    }

    fn deleted(&self, meta: &Meta) {
        self.change(|store| store.deleted(&meta.uid, &meta.key, &meta.resource_version));
    }

    fn progressed(&self, version: &ResourceVersion) {
        self.store.write().progressed(version);
    }

    fn expire(&self, now: Instant) {
        self.store.write().expire(now);
    }

    fn wrote(&self, meta: &Meta, object: &[u8], verdict: Verdict) -> Result<(), Undecodable> {
        if verdict == Verdict::Outside {
            self.change(|store| store.wrote_outside(meta));
            return Ok(());
        }
        let object = self.decode(object)?;
        self.change(|store| store.wrote(object, verdict == Verdict::Inside));
        Ok(())
    }

    fn wrote_gone(&self, uid: Uid, key: &ObjectKey, now: Instant) {
        self.change(|store| store.wrote_gone(uid, key, now));
    }

    fn set_state(&self, state: &SyncState) {
        let modified = self.state.send_if_modified(|present| {
            let changed = present != state;
            if changed {
                present.clone_from(state);
            }
            changed
        });
        if modified {
            self.listeners.lock().retain(|listener| listener());
        }
    }

    fn state_now(&self) -> SyncState {
        self.state.borrow().clone()
    }

    fn size(&self) -> (usize, usize) {
        self.read(|store| (store.len(), store.bytes()))
    }
}
