//! What a watch has been through, counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use super::{FieldSelector, LabelSelector, SyncState};
use crate::intern::Str;
use crate::resource::ResourceType;

/// Counters of one watch. Only ever grow, except for the time of the last event.
#[derive(Debug)]
pub(crate) struct WatchStats {
    since: Instant,
    last_event: AtomicU64,
    events: AtomicU64,
    restarts: AtomicU64,
    lists: AtomicU64,
    undecodable: AtomicU64,
}

impl WatchStats {
    pub(crate) fn new() -> Self {
        Self {
            since: Instant::now(),
            last_event: AtomicU64::new(0),
            events: AtomicU64::new(0),
            restarts: AtomicU64::new(0),
            lists: AtomicU64::new(0),
            undecodable: AtomicU64::new(0),
        }
    }

    /// Something came: an event, a bookmark, a page.
    pub(crate) fn heard(&self) {
        self.events.fetch_add(1, Relaxed);
        let millis = self.since.elapsed().as_millis();
        self.last_event.store(u64::try_from(millis).unwrap_or(u64::MAX), Relaxed);
    }

    pub(crate) fn restarted(&self) {
        self.restarts.fetch_add(1, Relaxed);
    }

    pub(crate) fn listed(&self) {
        self.lists.fetch_add(1, Relaxed);
    }

    /// Counts one more; how many that makes.
    pub(crate) fn undecodable(&self) -> u64 {
        self.undecodable.fetch_add(1, Relaxed) + 1
    }
}

/// One watch as it is now: for metrics and readiness.
#[derive(Debug, Clone)]
pub struct WatchReport {
    /// Which kind.
    pub resource: ResourceType,
    /// In which namespace; `None` means all.
    pub namespace: Option<Str>,
    /// With which labels.
    pub labels: LabelSelector,
    /// With which fields.
    pub fields: FieldSelector,
    /// The worst standing among its shapes.
    pub state: SyncState,
    /// How many shapes it is decoded into.
    pub shapes: usize,
    /// Objects held, over all shapes.
    pub objects: usize,
    /// About how many bytes they take. Strings that objects share are not counted.
    pub bytes: usize,
    /// How long ago anything came: an event, a bookmark, a page of a list. About a minute is normal for a quiet kind.
    pub last_event_age: Duration,
    /// Events, bookmarks and pages so far.
    pub events: u64,
    /// Requests after the first one.
    pub restarts: u64,
    /// Lists that ended; each one after the first is a relist.
    pub lists: u64,
    /// Objects that did not fit a shape. They keep the last form that did.
    pub undecodable: u64,
}

impl WatchReport {
    pub(crate) fn count(&mut self, stats: &WatchStats) {
        let age = stats.since.elapsed().saturating_sub(Duration::from_millis(stats.last_event.load(Relaxed)));
        self.last_event_age = age;
        self.events = stats.events.load(Relaxed);
        self.restarts = stats.restarts.load(Relaxed);
        self.lists = stats.lists.load(Relaxed);
        self.undecodable = stats.undecodable.load(Relaxed);
    }
}
