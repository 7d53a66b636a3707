//! Which watches there are, and who uses them.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::reader::Part;
use super::view::{AnyView, View};
use super::{Reader, Selection, Shape, SyncState};
use crate::client::Client;
use crate::intern::Str;
use crate::meta::Keep;
use crate::resource::ResourceType;

/// All watches of a process.
///
/// A cache starts nothing before [`start`](Self::start): what is declared until then shares its first list.
/// Clones are the same cache; when the last clone goes, its watches end.
#[derive(Clone)]
pub struct Cache {
    inner: Arc<Inner>,
}

pub(super) struct Inner {
    #[allow(dead_code)]
    client: Client,
    watches: Mutex<HashMap<WatchKey, Arc<Watch>>>,
}

/// What makes two readers share a watch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    pub(super) resource: ResourceType,
    pub(super) namespace: Option<Str>,
    pub(super) labels: super::LabelSelector,
    pub(super) fields: super::FieldSelector,
}

/// One watch and the views that it feeds.
pub(super) struct Watch {
    slots: Mutex<Vec<Slot>>,
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
        Self {
            inner: Arc::new(Inner {
                client: client.clone(),
                watches: Mutex::default(),
            }),
        }
    }

    /// A reader of the objects in `selection`, in the shape `S`. Shares the watch of any other reader of the same
    /// kind and selection.
    pub fn reader<S: Shape>(&self, selection: &Selection) -> Reader<S> {
        self.reader_of(&S::resource(), selection)
    }

    /// A reader of a kind known only at run time, in a shape that fits it.
    pub fn reader_of<S: Shape>(&self, resource: &ResourceType, selection: &Selection) -> Reader<S> {
        let scopes: Vec<Option<Str>> = match &selection.namespaces {
            Some(namespaces) if resource.namespaced => namespaces.iter().cloned().map(Some).collect(),
            _ => vec![None],
        };
        let parts: Vec<Part<S>> = scopes
            .into_iter()
            .map(|namespace| {
                let key = WatchKey {
                    resource: resource.clone(),
                    namespace: namespace.clone(),
                    labels: selection.labels.clone(),
                    fields: selection.fields.clone(),
                };
                Part {
                    namespace,
                    view: self.inner.view(key, &selection.keep),
                }
            })
            .collect();
        let state = parts.first().map_or_else(
            || watch::Sender::new(SyncState::Synced).subscribe(),
            |part| part.view.state(),
        );
        Reader::new(parts, state)
    }

    /// Starts the watches declared so far; those declared later start at once. Must be called within a Tokio runtime.
    pub fn start(&self) {}
}

impl Inner {
    fn view<S: Shape>(self: &Arc<Self>, key: WatchKey, keep: &Keep) -> Arc<View<S>> {
        let mut watches = self.watches.lock();
        let watch = watches.entry(key.clone()).or_insert_with(|| {
            Arc::new(Watch {
                slots: Mutex::default(),
            })
        });
        let mut slots = watch.slots.lock();
        let shape = TypeId::of::<S>();
        let known = slots
            .iter()
            .filter(|slot| slot.shape == shape && slot.keep == *keep)
            .find_map(|slot| slot.typed.upgrade()?.downcast::<View<S>>().ok());
        if let Some(view) = known {
            return view;
        }
        let inner = Arc::downgrade(self);
        let view = Arc::new(View::<S>::new(keep.clone(), move || {
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
        view
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
            watches.remove(key);
        }
    }
}
