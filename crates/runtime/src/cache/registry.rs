//! Which watches there are, and who uses them.
//!
//! The registry knows watches by what makes two readers share one ([`WatchKey`]), and views only weakly: readers own
//! them. A view that loses its last reader reports back; a watch that loses its last view is ended.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock, Weak};

use parking_lot::Mutex;
use serde::Deserialize;
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::course::WatchTiming;
use super::informer::Informer;
use super::reader::{Part, Reader};
use super::stats::WatchReport;
use super::view::View;
use super::watch::{Watch, WatchKey};
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

    /// Starts a watch's task, unless it runs.
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
                Box::new(move || {
                    if let Some(inner) = inner.upgrade() {
                        inner.paged.lock().insert(resource.clone());
                    }
                }),
            );
            runtime.spawn(informer.run(paged)).abort_handle()
        });
    }

    /// A view has lost its last reader.
    fn release(&self, key: &WatchKey) {
        let mut watches = self.watches.lock();
        let Some(watch) = watches.get(key) else { return };
        if watch.drop_unread() {
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
                if watch.key().labels.matches(&metadata.labels) { Verdict::Inside } else { Verdict::Outside };
            let verdict = labels.and(watch.key().fields.judge(&metadata, object));
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
