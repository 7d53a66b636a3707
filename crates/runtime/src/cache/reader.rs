//! Readers of a cache, and subscriptions to its changes.

use std::sync::Arc;

use tokio::sync::watch;

use super::index::Extract;
use super::view::{Handler, View};
use super::{Change, Shape, SyncState};
use crate::intern::Str;
use crate::key::ObjectKey;
use crate::meta::Uid;
use crate::resource::ResourceType;

/// Reads the objects of one selection in one shape.
///
/// Clones read the same store. The watch continues as long as there is a reader or a [`Subscription`], and
/// stops with the last one. All reads are local, return `Arc`s instead of copies, and never wait. Before
/// [`synced`](Self::synced), results are incomplete.
pub struct Reader<S> {
    resource: ResourceType,
    views: Arc<[ScopedView<S>]>,
    state: Arc<watch::Sender<SyncState>>,
}

/// The view of one watch: of one namespace, or of all.
pub(crate) struct ScopedView<S> {
    pub(crate) namespace: Option<Str>,
    pub(crate) view: Arc<View<S>>,
}

// A derived impl would require `S: Clone`.
impl<S> Clone for Reader<S> {
    fn clone(&self) -> Self {
        let (views, state) = (Arc::clone(&self.views), Arc::clone(&self.state));
        Self { resource: self.resource.clone(), views, state }
    }
}

impl<S: Shape> Reader<S> {
    pub(crate) fn new(resource: ResourceType, views: Vec<ScopedView<S>>) -> Self {
        let state = Arc::new(watch::Sender::new(SyncState::Starting));
        let states: Arc<[_]> = views.iter().map(|scoped| scoped.view.state()).collect();
        for scoped in &views {
            let (state, states) = (Arc::downgrade(&state), Arc::clone(&states));
            scoped.view.on_state(move || {
                let state = state.upgrade();
                if let Some(state) = &state {
                    combine(state, &states);
                }
                state.is_some()
            });
        }
        combine(&state, &states);
        Self { resource, views: views.into(), state }
    }

    /// The kind that is read.
    pub fn resource(&self) -> &ResourceType {
        &self.resource
    }

    /// Returns the object with this key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<S>> {
        self.views
            .iter()
            .filter(|scoped| scoped.namespace.is_none() || scoped.namespace.as_deref() == key.namespace())
            .find_map(|scoped| scoped.view.read(|store| store.get(key)))
    }

    /// Returns all objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<S>> {
        self.gather(|view, found| view.read(|store| found.extend(store.iter().cloned())))
    }

    /// Returns all objects of one namespace, ordered by name.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<S>> {
        self.gather(|view, found| view.read(|store| found.extend(store.in_namespace(namespace).cloned())))
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.views.iter().map(|scoped| scoped.view.read(super::store::Store::len)).sum()
    }

    /// Returns true if there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the objects that have this uid among their owner references. Indexed.
    pub fn by_owner(&self, owner: &Uid) -> Vec<Arc<S>> {
        self.gather(|view, found| found.extend(view.read(|store| store.by_owner(owner))))
    }

    /// Returns the objects with this label and value. Indexed after [`index_label`](Self::index_label), else
    /// a scan of all objects.
    pub fn by_label(&self, key: &str, value: &str) -> Vec<Arc<S>> {
        self.gather(|view, found| {
            view.read(|store| match store.by_index(&label_index(key), value) {
                Some(indexed) => found.extend(indexed),
                None => found.extend(
                    store
                        .iter()
                        .filter(|object| object.meta().labels.get(key).is_some_and(|label| label == value))
                        .cloned(),
                ),
            });
        })
    }

    /// Returns the objects with `value` in an index declared with [`index`](Self::index); empty if there is
    /// no such index.
    pub fn by_index(&self, name: &str, value: &str) -> Vec<Arc<S>> {
        self.gather(|view, found| {
            found.extend(view.read(|store| store.by_index(&function_index(name), value)).unwrap_or_default());
        })
    }

    /// Adds an index by the values that `extract` passes to its second argument. An index is declared once
    /// per name, at any time, for all readers that share this reader's watch and shape; if the name exists,
    /// its index is kept. `extract` must be a pure function of the object.
    ///
    /// ```no_run
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # use windlass_runtime::cache::{Full, Reader};
    /// # fn example(pods: Reader<Full<Pod>>) {
    /// pods.index("node", |pod, found| {
    ///     if let Some(node) = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
    ///         found(node);
    ///     }
    /// });
    /// let here = pods.by_index("node", "node-1");
    /// # }
    /// ```
    pub fn index(&self, name: &str, extract: impl Fn(&S, &mut dyn FnMut(&str)) + Send + Sync + 'static) {
        let extract: Extract<S> = Arc::new(extract);
        self.declare(&function_index(name), &extract);
    }

    /// Adds an index by the value of a label.
    pub fn index_label(&self, key: &str) {
        let label = key.to_owned();
        let extract: Extract<S> = Arc::new(move |object: &S, found: &mut dyn FnMut(&str)| {
            if let Some(value) = object.meta().labels.get(&label) {
                found(value);
            }
        });
        self.declare(&label_index(key), &extract);
    }

    /// Calls `handler` for each change, from now until the [`Subscription`] is dropped. First it is called
    /// for all cached objects, with origin [`InitialList`](super::Origin::InitialList).
    ///
    /// Handlers run one after the other, in the task that received the change: they must be quick (put a key
    /// into a queue) and may read, but must not subscribe.
    #[must_use = "dropping the subscription ends it"]
    pub fn subscribe(&self, handler: impl Fn(&Change<S>) + Send + Sync + 'static) -> Subscription {
        let handler: Handler<S> = Arc::new(handler);
        let cancel = self.views.iter().map(|scoped| -> Cancel {
            let view = Arc::clone(&scoped.view);
            let id = view.subscribe(Arc::clone(&handler));
            Box::new(move || view.unsubscribe(id))
        });
        Subscription(cancel.collect())
    }

    /// Returns the synchronization state, now and in the future. For several namespaces it is the worst of
    /// theirs.
    pub fn state(&self) -> watch::Receiver<SyncState> {
        self.state.subscribe()
    }

    /// Waits until the cache is complete. Cancel safe. Does not return while the kind is blocked: check
    /// [`state`](Self::state) where that matters.
    pub async fn synced(&self) {
        // Cannot fail: the sender is a field of this reader.
        let _ = self.state.subscribe().wait_for(SyncState::is_synced).await;
    }

    fn declare(&self, name: &str, extract: &Extract<S>) {
        for scoped in self.views.iter() {
            scoped.view.declare_index(name, Arc::clone(extract));
        }
    }

    fn gather(&self, mut gather: impl FnMut(&View<S>, &mut Vec<Arc<S>>)) -> Vec<Arc<S>> {
        let mut found = Vec::new();
        for scoped in self.views.iter() {
            gather(&scoped.view, &mut found);
        }
        found
    }
}

/// Sets the combined state of several watches: the worst of them.
fn combine(state: &watch::Sender<SyncState>, views: &[watch::Receiver<SyncState>]) {
    // Evaluated inside, where the sender is locked: of two watches that change at once, the later call sees
    // both states.
    state.send_if_modified(|present| {
        let now = SyncState::worst(views.iter().map(|scoped| scoped.borrow().clone()));
        let changed = *present != now;
        *present = now;
        changed
    });
}

fn function_index(name: &str) -> String {
    format!("function:{name}")
}

fn label_index(key: &str) -> String {
    format!("label:{key}")
}

type Cancel = Box<dyn FnOnce() + Send + Sync>;

/// Keeps a handler subscribed and its watch running. Dropping it removes the handler, and stops the watch if
/// nothing else uses it.
#[must_use = "dropping the subscription ends it"]
pub struct Subscription(Vec<Cancel>);

impl Drop for Subscription {
    fn drop(&mut self) {
        for cancel in self.0.drain(..) {
            cancel();
        }
    }
}
