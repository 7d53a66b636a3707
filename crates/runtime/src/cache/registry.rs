//! Which watches there are, and who uses them.
//!
//! The registry knows watches by what makes two readers share one ([`WatchKey`]), and views only weakly: readers own
//! them. A view that loses its last reader reports back; a watch that loses its last view is ended.

use std::any::{Any, TypeId};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::course::WatchTiming;
use super::informer::Informer;
use super::reader::{Part, Reader};
use super::stats::{WatchReport, WatchStats};
use super::view::{AnyView, View};
use super::watches::Watches;
use super::{FieldSelector, LabelSelector, OfKind, Selection, Shape, SyncState};
use crate::client::{Caches, Client};
use crate::intern::Str;
use crate::key::ObjectKey;
use crate::meta::{Keep, Meta, Uid};
use crate::resource::ResourceType;
use crate::selection::Verdict;

/// All watches of a process.
///
/// A cache watches nothing before [`start`](Self::start): readers declared until then share its first lists.
/// Clones are the same cache; when the last clone goes, its watches end.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    timing: WatchTiming,
    runtime: OnceLock<Handle>,
    watches: Mutex<Watches>,
    /// Kinds whose lists this server does not stream.
    paged: Mutex<HashSet<ResourceType>>,
}

/// What makes two readers share a watch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    pub(super) resource: ResourceType,
    pub(super) namespace: Option<Str>,
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
}

/// One watch and the views that it feeds.
pub(super) struct Watch {
    key: WatchKey,
    slots: Mutex<Vec<Slot>>,
    /// Counts the views that were added.
    added: watch::Sender<u64>,
    stats: WatchStats,
    task: Mutex<Option<AbortHandle>>,
}

struct Slot {
    shape: TypeId,
    keep: Keep,
    view: Weak<dyn AnyView>,
    typed: Weak<dyn Any + Send + Sync>,
}

impl Cache {
    /// A cache that reads through `client`, and learns of every write through it or its clones.
    pub fn new(client: &Client) -> Self {
        Self::with_timing(client, WatchTiming::default())
    }

    /// A cache with other than the usual pauses and deadlines.
    pub fn with_timing(client: &Client, timing: WatchTiming) -> Self {
        let inner = Arc::new(Inner {
            client: client.clone(),
            timing,
            runtime: OnceLock::new(),
            watches: Mutex::default(),
            paged: Mutex::default(),
        });
        let caches: Arc<dyn Caches> = inner.clone();
        client.feed(Arc::downgrade(&caches));
        Self { inner }
    }

    /// A reader of the objects in `selection`, in the shape `S`. Shares the watch of every other reader of the same
    /// kind and selection, whatever its shape.
    pub fn reader<S: OfKind>(&self, selection: &Selection) -> Reader<S> {
        self.reader_of(&S::resource(), selection)
    }

    /// A reader of a kind known only at run time, in a shape that fits it.
    pub fn reader_of<S: Shape>(&self, resource: &ResourceType, selection: &Selection) -> Reader<S> {
        let namespaces: Vec<Option<Str>> = match &selection.namespaces {
            Some(namespaces) if resource.namespaced => namespaces.iter().cloned().map(Some).collect(),
            _ => vec![None],
        };
        let part = |namespace: Option<Str>| {
            let key = WatchKey {
                resource: resource.clone(),
                namespace: namespace.clone(),
                labels: selection.labels.clone(),
                fields: selection.fields.clone(),
            };
            Part { namespace, view: self.inner.view(key, &selection.keep) }
        };
        Reader::new(resource.clone(), namespaces.into_iter().map(part).collect())
    }

    /// Starts the watches declared so far; those declared later start at once. Must be called within a Tokio
    /// runtime; a second call does nothing.
    pub fn start(&self) {
        let watches = self.inner.watches.lock();
        if self.inner.runtime.set(Handle::current()).is_ok() {
            for watch in watches.values() {
                self.inner.spawn(watch);
            }
        }
    }

    /// All watches as they are now, for metrics and readiness.
    pub fn watches(&self) -> Vec<WatchReport> {
        let watches: Vec<Arc<Watch>> = self.inner.watches.lock().values().cloned().collect();
        let mut reports: Vec<WatchReport> = watches.iter().map(|watch| watch.report()).collect();
        reports.sort_by(|a, b| (&a.resource, &a.namespace).cmp(&(&b.resource, &b.namespace)));
        reports
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        for watch in self.watches.get_mut().values() {
            watch.end();
        }
    }
}

impl Inner {
    fn view<S: Shape>(self: &Arc<Self>, key: WatchKey, keep: &Keep) -> Arc<View<S>> {
        let mut watches = self.watches.lock();
        let watch = watches.enter(&key);
        let shape = TypeId::of::<S>();
        let mut slots = watch.slots.lock();
        let known = slots
            .iter()
            .filter(|slot| slot.shape == shape && slot.keep == *keep)
            .find_map(|slot| slot.typed.upgrade()?.downcast::<View<S>>().ok());
        if let Some(view) = known {
            return view;
        }
        let inner = Arc::downgrade(self);
        let view = Arc::new(View::<S>::new(key.resource.clone(), keep.clone(), move || {
            if let Some(inner) = inner.upgrade() {
                inner.release(&key);
            }
        }));
        let typed: Arc<dyn Any + Send + Sync> = view.clone();
        let erased: Arc<dyn AnyView> = view.clone();
        slots.push(Slot {
            shape,
            keep: keep.clone(),
            view: Arc::downgrade(&erased),
            typed: Arc::downgrade(&typed),
        });
        drop(slots);
        watch.added.send_modify(|added| *added += 1);
        if self.runtime.get().is_some() {
            self.spawn(&watch);
        }
        view
    }

    /// Starts a watch's task, unless it runs.
    fn spawn(self: &Arc<Self>, watch: &Arc<Watch>) {
        let Some(runtime) = self.runtime.get() else { return };
        let mut task = watch.task.lock();
        if task.is_some() {
            return;
        }
        let inner = Arc::downgrade(self);
        let resource = watch.key.resource.clone();
        let paged = self.paged.lock().contains(&resource);
        let informer = Informer::new(
            self.client.clone(),
            self.timing.clone(),
            Arc::clone(watch),
            Box::new(move || {
                if let Some(inner) = inner.upgrade() {
                    inner.paged.lock().insert(resource.clone());
                }
            }),
        );
        *task = Some(runtime.spawn(informer.run(paged)).abort_handle());
    }

    /// A view has lost its last reader.
    fn release(&self, key: &WatchKey) {
        let mut watches = self.watches.lock();
        let Some(watch) = watches.get(key) else { return };
        let unused = {
            let mut slots = watch.slots.lock();
            slots.retain(|slot| slot.view.strong_count() > 0);
            slots.is_empty()
        };
        if unused {
            watch.end();
            watches.remove(key);
        }
    }

    /// The watches that an object may be in.
    fn concerned(&self, resource: &ResourceType, object: &ObjectKey) -> Vec<Arc<Watch>> {
        self.watches.lock().concerned(resource, object)
    }
}

impl Caches for Inner {
    fn hold(&self, resource: &ResourceType) -> bool {
        self.watches.lock().hold(resource)
    }

    fn wrote(&self, resource: &ResourceType, object: &[u8]) {
        #[derive(Deserialize)]
        struct Object {
            metadata: Meta,
        }

        if !self.hold(resource) {
            return;
        }
        let Ok(Object { metadata }) = serde_json::from_slice(object) else {
            return;
        };
        for watch in self.concerned(resource, &metadata.key) {
            let labels =
                if watch.key.labels.matches(&metadata.labels) { Verdict::Inside } else { Verdict::Outside };
            let verdict = labels.and(watch.key.fields.judge(&metadata, object));
            for view in watch.views().iter().filter_map(Weak::upgrade) {
                // What does not fit a shape will not fit it when the watch brings it either, and is reported then.
                let _ = view.wrote(&metadata, object, verdict);
            }
        }
    }

    fn wrote_gone(&self, resource: &ResourceType, key: &ObjectKey, uid: Uid) {
        let now = Instant::now();
        for watch in self.concerned(resource, key) {
            for view in watch.views().iter().filter_map(Weak::upgrade) {
                view.wrote_gone(uid, key, now);
            }
        }
    }
}

impl Watch {
    pub(super) fn new(key: WatchKey) -> Self {
        Self {
            key,
            slots: Mutex::default(),
            added: watch::Sender::new(0),
            stats: WatchStats::new(),
            task: Mutex::default(),
        }
    }

    pub(super) fn key(&self) -> &WatchKey {
        &self.key
    }

    pub(super) fn stats(&self) -> &WatchStats {
        &self.stats
    }

    /// The views that want this watch's news now. Held weakly: whoever reads must not keep a watch going.
    pub(super) fn views(&self) -> Vec<Weak<dyn AnyView>> {
        self.slots.lock().iter().map(|slot| Weak::clone(&slot.view)).collect()
    }

    /// Changes when a view is added.
    pub(super) fn added(&self) -> watch::Receiver<u64> {
        self.added.subscribe()
    }

    fn end(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }

    fn report(&self) -> WatchReport {
        let views: Vec<Arc<dyn AnyView>> = self.views().iter().filter_map(Weak::upgrade).collect();
        let sizes = views.iter().map(|view| view.size());
        let (objects, bytes) = sizes.fold((0, 0), |sum, size| (sum.0 + size.0, sum.1 + size.1));
        let mut report = WatchReport {
            resource: self.key.resource.clone(),
            namespace: self.key.namespace.clone(),
            labels: self.key.labels.clone(),
            fields: self.key.fields.clone(),
            state: SyncState::worst(views.iter().map(|view| view.state_now())),
            shapes: views.len(),
            objects,
            bytes,
            last_event_age: Duration::ZERO,
            events: 0,
            restarts: 0,
            lists: 0,
            undecodable: 0,
        };
        report.count(&self.stats);
        report
    }
}
