//! Counters of a watch.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use tokio::time::Instant;

use super::{FieldSelector, LabelSelector, SyncState};
use crate::intern::Str;
use crate::resource::ResourceType;

/// Counters of one watch. They only grow, except for the time of the last event.
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

    /// Records that an event, a bookmark or a page was received.
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

    /// Counts an undecodable object and returns the new count.
    pub(crate) fn undecodable(&self) -> u64 {
        self.undecodable.fetch_add(1, Relaxed) + 1
    }
}

/// The present state of one watch: for metrics and readiness.
#[derive(Debug, Clone)]
pub struct WatchReport {
    /// The kind that is watched.
    pub resource: ResourceType,
    /// The namespace; `None` means all.
    pub namespace: Option<Str>,
    /// The label selector.
    pub labels: LabelSelector,
    /// The field selector.
    pub fields: FieldSelector,
    /// The worst state among its shapes.
    pub state: SyncState,
    /// The number of shapes into which objects are decoded.
    pub shapes: usize,
    /// Cached objects, over all shapes.
    pub objects: usize,
    /// Approximate size of the cached objects in bytes. Strings that objects share are not counted.
    pub bytes: usize,
    /// Time since the last event, bookmark or page of a list. About a minute is normal for a quiet kind.
    pub last_event_age: Duration,
    /// Events, bookmarks and pages so far.
    pub events: u64,
    /// Requests after the first one.
    pub restarts: u64,
    /// Lists that finished; each one after the first is a relist.
    pub lists: u64,
    /// Objects that could not be decoded. The cache keeps their last form that did.
    pub undecodable: u64,
}

impl WatchReport {
    /// The report of no watch: everything is zero.
    pub(crate) fn none(resource: &ResourceType) -> Self {
        Self {
            resource: resource.clone(),
            namespace: None,
            labels: LabelSelector::default(),
            fields: FieldSelector::default(),
            state: SyncState::Synced,
            shapes: 0,
            objects: 0,
            bytes: 0,
            last_event_age: Duration::ZERO,
            events: 0,
            restarts: 0,
            lists: 0,
            undecodable: 0,
        }
    }

    /// Adds the counters of a watch that has ended.
    pub(crate) fn absorb(&mut self, ended: &Self) {
        self.events += ended.events;
        self.restarts += ended.restarts;
        self.lists += ended.lists;
        self.undecodable += ended.undecodable;
    }

    pub(crate) fn count(&mut self, stats: &WatchStats) {
        let age = stats.since.elapsed().saturating_sub(Duration::from_millis(stats.last_event.load(Relaxed)));
        self.last_event_age = age;
        self.events = stats.events.load(Relaxed);
        self.restarts = stats.restarts.load(Relaxed);
        self.lists = stats.lists.load(Relaxed);
        self.undecodable = stats.undecodable.load(Relaxed);
    }
}
