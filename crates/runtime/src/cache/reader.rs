//! Reading a cache, and hearing of changes in it.

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
/// Clones read the same store. As long as a reader or a [`Subscription`] is there, the watch goes on; the last one
/// to go ends it. All reads are local and hand out `Arc`s, never copies; none of them waits. Before
/// [`synced`](Self::synced), what they give is incomplete.
pub struct Reader<S> {
    resource: ResourceType,
    parts: Arc<[Part<S>]>,
    state: Arc<watch::Sender<SyncState>>,
}

/// One watch's share: one namespace, or everything.
pub(crate) struct Part<S> {
    pub(crate) namespace: Option<Str>,
    pub(crate) view: Arc<View<S>>,
}

// Derived, it would ask for `S: Clone`.
impl<S> Clone for Reader<S> {
    fn clone(&self) -> Self {
        let (parts, state) = (Arc::clone(&self.parts), Arc::clone(&self.state));
        Self { resource: self.resource.clone(), parts, state }
    }
}

impl<S: Shape> Reader<S> {
    pub(crate) fn new(resource: ResourceType, parts: Vec<Part<S>>) -> Self {
        let state = Arc::new(watch::Sender::new(SyncState::Starting));
        let states: Arc<[_]> = parts.iter().map(|part| part.view.state()).collect();
        for part in &parts {
            let (state, states) = (Arc::downgrade(&state), Arc::clone(&states));
            part.view.on_state(move || {
                let state = state.upgrade();
                if let Some(state) = &state {
                    combine(state, &states);
                }
                state.is_some()
            });
        }
        combine(&state, &states);
        Self { resource, parts: parts.into(), state }
    }

    /// The kind that is read.
    pub fn resource(&self) -> &ResourceType {
        &self.resource
    }

    /// The object of that key.
    pub fn get(&self, key: &ObjectKey) -> Option<Arc<S>> {
        self.parts
            .iter()
            .filter(|part| part.namespace.is_none() || part.namespace.as_deref() == key.namespace())
            .find_map(|part| part.view.read(|store| store.get(key)))
    }

    /// All objects, ordered by namespace and name.
    pub fn list(&self) -> Vec<Arc<S>> {
        self.gather(|view, found| view.read(|store| found.extend(store.iter().cloned())))
    }

    /// All objects of one namespace, ordered by name.
    pub fn list_in(&self, namespace: &str) -> Vec<Arc<S>> {
        self.gather(|view, found| view.read(|store| found.extend(store.in_namespace(namespace).cloned())))
    }

    /// How many objects there are.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.view.read(super::store::Store::len)).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The objects that name this uid among their owners. Indexed.
    pub fn by_owner(&self, owner: &Uid) -> Vec<Arc<S>> {
        self.gather(|view, found| found.extend(view.read(|store| store.by_owner(owner))))
    }

    /// The objects with this label and value. Indexed after [`index_label`](Self::index_label), else by looking at
    /// every object.
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

    /// The objects found under `value` in an index declared with [`index`](Self::index). None if it was not.
    pub fn by_index(&self, name: &str, value: &str) -> Vec<Arc<S>> {
        self.gather(|view, found| {
            found.extend(view.read(|store| store.by_index(&function_index(name), value)).unwrap_or_default());
        })
    }

    /// Indexes the objects by what `extract` says of each: it calls its second argument once for each value.
    /// Declared once per name, at any time, for all readers that share this one's watch and shape; a name already
    /// taken keeps its index. `extract` must depend on nothing but the object.
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

    /// Indexes the objects by the value of a label.
    pub fn index_label(&self, key: &str) {
        let label = key.to_owned();
        let extract: Extract<S> = Arc::new(move |object: &S, found: &mut dyn FnMut(&str)| {
            if let Some(value) = object.meta().labels.get(&label) {
                found(value);
            }
        });
        self.declare(&label_index(key), &extract);
    }

    /// Calls `handler` for each change, from now until the [`Subscription`] is dropped. First it hears of everything
    /// that is already there, as [`InitialList`](super::Origin::InitialList).
    ///
    /// Handlers run one after the other, in the task that brought the change: they must be quick (put a key into a
    /// queue) and may read, but must not subscribe.
    #[must_use = "dropping the subscription ends it"]
    pub fn subscribe(&self, handler: impl Fn(&Change<S>) + Send + Sync + 'static) -> Subscription {
        let handler: Handler<S> = Arc::new(handler);
        let cancel = self.parts.iter().map(|part| -> Cancel {
            let view = Arc::clone(&part.view);
            let id = view.subscribe(Arc::clone(&handler));
            Box::new(move || view.unsubscribe(id))
        });
        Subscription(cancel.collect())
    }

    /// Where the readers of this selection stand, now and from now on. For several namespaces: the worst of them.
    pub fn state(&self) -> watch::Receiver<SyncState> {
        self.state.subscribe()
    }

    /// Waits until everything has been seen. Cancel safe. Never returns while the kind is blocked: look at
    /// [`state`](Self::state) where that matters.
    pub async fn synced(&self) {
        // Cannot fail: we hold the sender.
        let _ = self.state.subscribe().wait_for(SyncState::is_synced).await;
    }

    fn declare(&self, name: &str, extract: &Extract<S>) {
        for part in self.parts.iter() {
            part.view.declare_index(name, Arc::clone(extract));
        }
    }

    fn gather(&self, mut gather: impl FnMut(&View<S>, &mut Vec<Arc<S>>)) -> Vec<Arc<S>> {
        let mut found = Vec::new();
        for part in self.parts.iter() {
            gather(&part.view, &mut found);
        }
        found
    }
}

/// Several watches stand where the worst of them stands.
fn combine(state: &watch::Sender<SyncState>, parts: &[watch::Receiver<SyncState>]) {
    // Looked up inside, where the sender is locked: of two watches that change at once, the later call sees both.
    state.send_if_modified(|present| {
        let now = SyncState::worst(parts.iter().map(|part| part.borrow().clone()));
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

/// Keeps a handler subscribed, and its watch going. Dropping it ends the first, and perhaps the second.
#[must_use = "dropping the subscription ends it"]
pub struct Subscription(Vec<Cancel>);

impl Drop for Subscription {
    fn drop(&mut self) {
        for cancel in self.0.drain(..) {
            cancel();
        }
    }
}
