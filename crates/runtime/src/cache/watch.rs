//! One watch and its views.

use std::any::{Any, TypeId};
use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::AbortHandle;

use super::stats::{WatchReport, WatchStats};
use super::view::{AnyView, View};
use super::{FieldSelector, LabelSelector, Shape, SyncState};
use crate::intern::Str;
use crate::meta::Keep;
use crate::resource::ResourceType;

/// The identity of a watch: readers with equal keys share it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct WatchKey {
    pub(super) resource: ResourceType,
    pub(super) namespace: Option<Str>,
    pub(super) labels: LabelSelector,
    pub(super) fields: FieldSelector,
}

/// One watch and its views.
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

    /// Returns the view of this shape that keeps these fields, and true if it was created.
    pub(super) fn view<S: Shape>(&self, keep: &Keep, make: impl FnOnce() -> View<S>) -> (Arc<View<S>>, bool) {
        let shape = TypeId::of::<S>();
        let mut slots = self.slots.lock();
        let known = slots
            .iter()
            .filter(|slot| slot.shape == shape && slot.keep == *keep)
            .find_map(|slot| slot.typed.upgrade()?.downcast::<View<S>>().ok());
        if let Some(view) = known {
            return (view, false);
        }
        let view = Arc::new(make());
        let typed: Arc<dyn Any + Send + Sync> = view.clone();
        let erased: Arc<dyn AnyView> = view.clone();
        slots.push(Slot {
            shape,
            keep: keep.clone(),
            view: Arc::downgrade(&erased),
            typed: Arc::downgrade(&typed),
        });
        drop(slots);
        self.added.send_modify(|added| *added += 1);
        (view, true)
    }

    /// Drops views without readers; returns true if none is left.
    pub(super) fn drop_unread(&self) -> bool {
        let mut slots = self.slots.lock();
        slots.retain(|slot| slot.view.strong_count() > 0);
        slots.is_empty()
    }

    /// Starts the task of the watch, unless it runs.
    pub(super) fn start(&self, spawn: impl FnOnce() -> AbortHandle) {
        let mut task = self.task.lock();
        if task.is_none() {
            *task = Some(spawn());
        }
    }

    /// The views of this watch. They are held weakly: reading them must not keep a watch running.
    pub(super) fn views(&self) -> Vec<Weak<dyn AnyView>> {
        self.slots.lock().iter().map(|slot| Weak::clone(&slot.view)).collect()
    }

    /// A channel that changes when a view is added.
    pub(super) fn added(&self) -> watch::Receiver<u64> {
        self.added.subscribe()
    }

    /// Stops the task of the watch.
    pub(super) fn end(&self) {
        if let Some(task) = self.task.lock().take() {
            task.abort();
        }
    }

    /// Reports the present state of the watch.
    pub(super) fn report(&self) -> WatchReport {
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
