//! The registry of watches and their views.
//!
//! The registry finds watches by [`WatchKey`], and holds views weakly: readers own them. A view without
//! readers is reported back; a watch without views is stopped.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::informer::Informer;
use super::reader::{Reader, ScopedView};
use super::stats::WatchReport;
use super::view::View;
use super::watch::{Watch, WatchKey};
use super::watch_state::WatchTiming;
use super::watches::Watches;
use super::{OfKind, Selection, Shape};
use crate::client::{Caches, Client};
use crate::intern::Str;
use crate::key::ObjectKey;
use crate::meta::{Keep, Meta, Uid};
use crate::resource::ResourceType;
use crate::selection::Verdict;

/// All watches of a process.
///
/// A cache watches nothing before [`start`](Self::start): readers declared until then share its first lists.
/// Clones are the same cache; its watches stop with the last clone.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    timing: WatchTiming,
    runtime: OnceLock<Handle>,
    watches: Mutex<Watches>,
    /// The number of watches, for those that are opened again together.
    count: Arc<AtomicUsize>,
    /// Kinds for which the server needs paged lists.
    paged: Mutex<HashSet<ResourceType>>,
    /// The counters of watches that have ended, by kind.
    ended: Mutex<HashMap<ResourceType, WatchReport>>,
}

impl Cache {
    /// Creates a cache that reads through `client`, and that sees every write through it or its clones.
    pub fn new(client: &Client) -> Self {
        Self::with_timing(client, WatchTiming::default())
    }

    /// Creates a cache with custom timeouts and backoff.
    pub fn with_timing(client: &Client, timing: WatchTiming) -> Self {
        let inner = Arc::new(Inner {
            client: client.clone(),
            timing,
            runtime: OnceLock::new(),
            watches: Mutex::default(),
            count: Arc::default(),
            paged: Mutex::default(),
            ended: Mutex::default(),
        });
        let caches: Arc<dyn Caches> = inner.clone();
        client.feed(Arc::downgrade(&caches));
        Self { inner }
    }

    /// Returns a reader of the objects in `selection`, in the shape `S`. It shares the watch of every other
    /// reader of the same kind and selection, whatever their shapes.
    pub fn reader<S: OfKind>(&self, selection: &Selection) -> Reader<S> {
        self.reader_of(&S::resource(), selection)
    }

    /// Returns a reader of a kind that is known only at run time, in a shape that fits it.
    pub fn reader_of<S: Shape>(&self, resource: &ResourceType, selection: &Selection) -> Reader<S> {
        let namespaces: Vec<Option<Str>> = match &selection.namespaces {
            Some(namespaces) if resource.namespaced => namespaces.iter().cloned().map(Some).collect(),
            _ => vec![None],
        };
        let scoped = |namespace: Option<Str>| {
            let key = WatchKey {
                resource: resource.clone(),
                namespace: namespace.clone(),
                labels: selection.labels.clone(),
                fields: selection.fields.clone(),
            };
            ScopedView { namespace, view: self.inner.view(key, &selection.keep) }
        };
        Reader::new(resource.clone(), namespaces.into_iter().map(scoped).collect())
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

    /// Reports the present state of all watches, for metrics and readiness.
    pub fn watches(&self) -> Vec<WatchReport> {
        let watches: Vec<Arc<Watch>> = self.inner.watches.lock().values().cloned().collect();
        let mut reports: Vec<WatchReport> = watches.iter().map(|watch| watch.report()).collect();
        reports.sort_by(|a, b| (&a.resource, &a.namespace).cmp(&(&b.resource, &b.namespace)));
        reports
    }

    /// Reports the present state of all watches, and for each kind the counters of those that have ended, so
    /// that sums over all reports of a kind never decrease.
    pub(crate) fn reports(&self) -> Vec<WatchReport> {
        let mut reports = self.watches();
        reports.extend(self.inner.ended.lock().values().cloned());
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
        self.count.store(watches.len(), Ordering::Relaxed);
        let inner = Arc::downgrade(self);
        let (view, is_new) = watch.view(keep, || {
            View::<S>::new(key.resource.clone(), keep.clone(), move || {
                if let Some(inner) = inner.upgrade() {
                    inner.release(&key);
                }
            })
        });
        if is_new && self.runtime.get().is_some() {
            self.spawn(&watch);
        }
        view
    }

    /// Starts the task of a watch, unless it runs.
    fn spawn(self: &Arc<Self>, watch: &Arc<Watch>) {
        let Some(runtime) = self.runtime.get() else { return };
        watch.start(|| {
            let inner = Arc::downgrade(self);
            let resource = watch.key().resource.clone();
            let paged = self.paged.lock().contains(&resource);
            let informer = Informer::new(
                self.client.clone(),
                self.timing.clone(),
                Arc::clone(watch),
                Arc::clone(&self.count),
                Box::new(move || {
                    if let Some(inner) = inner.upgrade() {
                        inner.paged.lock().insert(resource.clone());
                    }
                }),
            );
            runtime.spawn(informer.run(paged)).abort_handle()
        });
    }

    /// Handles a view that has lost its last reader.
    fn release(&self, key: &WatchKey) {
        let mut watches = self.watches.lock();
        let Some(watch) = watches.get(key) else { return };
        if watch.drop_unread() {
            watch.end();
            let report = watch.report();
            watches.remove(key);
            self.count.store(watches.len(), Ordering::Relaxed);
            let mut ended = self.ended.lock();
            let ended = ended.entry(key.resource.clone()).or_insert_with(|| WatchReport::none(&key.resource));
            ended.absorb(&report);
        }
    }

    /// Returns the watches that may contain an object.
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
                if watch.key().labels.matches(&metadata.labels) { Verdict::Inside } else { Verdict::Outside };
            let verdict = labels.and(watch.key().fields.judge(&metadata, object));
            for view in watch.views().iter().filter_map(Weak::upgrade) {
                // An object that does not fit a shape fails again when the watch delivers it, and is logged
                // then.
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
