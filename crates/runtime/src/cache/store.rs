//! The objects of one watch in one shape: what is known, and which news may change it.
//!
//! Promises, whatever order lists, events and write answers come in:
//! - an object never goes back to an older version, nor comes back after it was deleted;
//! - every change is reported once, with the object that was really there before;
//! - what a write answered stays until something newer replaces it, and its echo in the watch changes nothing;
//! - what a list does not show is deleted, unless it is newer than the list.
//!
//! No I/O and no clock here: the caller says what came and when. All of this rests on resource versions of one kind
//! being comparable, and on every list being a consistent read (never `resourceVersion=0`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::index::{Extract, Indexes};
use super::shelf::{Keyed, Shelf};
use super::{Change, Origin, Shape};
use crate::key::ObjectKey;
use crate::meta::{Meta, ResourceVersion, Uid};

/// How long a deletion is remembered when no event ever confirms it (the object was outside the selection).
const TOMBSTONE_LIFE: Duration = Duration::from_mins(15);

/// The server's history has become shorter: it was restored from a backup. The list must be done again;
/// versions from before mean nothing any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WentBackwards;

pub(crate) struct Store<S> {
    objects: Shelf<Entry<S>>,
    /// Objects that must not come back, by incarnation.
    tombstones: HashMap<Uid, Tombstone>,
    /// Names that our writes have emptied, with the version they emptied them at: until the watch has passed it, what it
    /// brings under that name is older, be it an incarnation that we never knew.
    emptied: HashMap<ObjectKey, ResourceVersion>,
    indexes: Indexes<S>,
    /// Everything up to this version has been seen, by list or watch.
    watched: ResourceVersion,
    /// Counts lists; the number of the present or last one.
    lists: u32,
    listing: bool,
    synced_once: bool,
    /// Versions known from before the present list are not to be compared with: the server went backwards.
    distrust: bool,
    bytes: usize,
}

struct Entry<S> {
    object: Arc<S>,
    /// The list that last showed it.
    seen: u32,
    /// The number of the list during or after which this version was stored.
    stored: u32,
}

impl<S: Shape> Keyed for Entry<S> {
    fn key(&self) -> &ObjectKey {
        &self.object.meta().key
    }
}

/// Deleted: no event of this incarnation matters any more.
struct Tombstone {
    /// Lists when it was made: a later list is proof enough.
    lists: u32,
    at: Instant,
}

impl<S> Default for Store<S> {
    fn default() -> Self {
        Self {
            objects: Shelf::default(),
            tombstones: HashMap::new(),
            emptied: HashMap::new(),
            indexes: Indexes::default(),
            watched: ResourceVersion::default(),
            lists: 0,
            listing: false,
            synced_once: false,
            distrust: false,
            bytes: 0,
        }
    }
}

// What is known.
impl<S: Shape> Store<S> {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<S>> {
        self.objects.get(key).map(|entry| Arc::clone(&entry.object))
    }

    /// All objects, by namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<S>> {
        self.objects.sorted().into_iter().map(|entry| &entry.object)
    }

    /// The objects of one namespace, by name.
    pub(crate) fn in_namespace(&self, namespace: &str) -> impl Iterator<Item = &Arc<S>> {
        self.objects.in_namespace(namespace).into_iter().map(|entry| &entry.object)
    }

    pub(crate) fn by_owner(&self, uid: &Uid) -> Vec<Arc<S>> {
        self.indexes.by_owner(uid).iter().filter_map(|key| self.get(key)).collect()
    }

    pub(crate) fn by_index(&self, name: &str, value: &str) -> Option<Vec<Arc<S>>> {
        Some(self.indexes.by_value(name, value)?.iter().filter_map(|key| self.get(key)).collect())
    }

    pub(crate) fn declare_index(&mut self, name: &str, extract: Extract<S>) {
        if self.indexes.declare(name, extract) {
            for entry in self.objects.iter() {
                self.indexes.fill_newest(&entry.object);
            }
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.objects.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.objects.len() * size_of::<Entry<S>>()
    }

    #[cfg(test)]
    pub(crate) fn tombstones(&self) -> usize {
        self.tombstones.len()
    }
}

// News from lists and watches.
impl<S: Shape> Store<S> {
    /// A list begins (again).
    pub(crate) fn begin_list(&mut self) {
        self.lists += 1;
        self.listing = true;
    }

    /// The list shows this object.
    pub(crate) fn listed(&mut self, object: S) -> Vec<Change<S>> {
        let origin = if self.synced_once { Origin::Relist } else { Origin::InitialList };
        let key = object.meta().key.clone();
        let changes = self.put(object, origin);
        self.mark_seen(&key);
        changes
    }

    /// The list shows an object that cannot be decoded: whatever is known of it stays.
    pub(crate) fn mark_seen(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.objects.get_mut(key) {
            entry.seen = self.lists;
        }
    }

    /// The list has shown everything there was at this version.
    pub(crate) fn end_list(&mut self, version: &ResourceVersion) -> Result<Vec<Change<S>>, WentBackwards> {
        self.listing = false;
        if *version < self.watched {
            self.watched = ResourceVersion::default();
            self.distrust = true;
            self.tombstones.clear();
            self.emptied.clear();
            return Err(WentBackwards);
        }
        let list = self.lists;
        let mut vanished: Vec<ObjectKey> = self
            .objects
            .iter()
            .filter(|entry| entry.seen != list)
            .filter(|entry| {
                if self.distrust {
                    // Only what was written since the list began may be newer than it.
                    entry.stored != list
                } else {
                    !entry.object.meta().resource_version.supersedes(version)
                }
            })
            .map(|entry| entry.key().clone())
            .collect();
        vanished.sort_unstable();
        let changes = vanished.iter().filter_map(|key| self.take(key, Origin::Relist)).collect();
        self.synced_once = true;
        self.distrust = false;
        // A list is a consistent read: what was deleted before it began cannot come back after it.
        self.tombstones.retain(|_, tombstone| tombstone.lists >= list);
        self.progressed(version);
        Ok(changes)
    }

    /// The watch says that an object was added or modified.
    pub(crate) fn applied(&mut self, object: S) -> Vec<Change<S>> {
        let version = object.meta().resource_version.clone();
        let changes = self.put(object, Origin::Watch);
        self.progressed(&version);
        changes
    }

    /// The watch says that an object was deleted or left the selection; `object` is its last form.
    pub(crate) fn deleted(
        &mut self,
        uid: &Uid,
        key: &ObjectKey,
        version: &ResourceVersion,
    ) -> Vec<Change<S>> {
        self.tombstones.remove(uid);
        let outlived = self.objects.get(key).is_some_and(|entry| {
            let known = entry.object.meta();
            // At the same version the watch knows better: it has evaluated the selector.
            if known.uid == *uid {
                version.covers(&known.resource_version)
            } else {
                version.supersedes(&known.resource_version)
            }
        });
        let change = if outlived { self.take(key, Origin::Watch) } else { None };
        self.progressed(version);
        change.into_iter().collect()
    }

    /// Everything up to this version has been seen.
    pub(crate) fn progressed(&mut self, version: &ResourceVersion) {
        // During a list events say nothing about what else there was: it comes in the order of names.
        if self.listing || !version.supersedes(&self.watched) {
            return;
        }
        self.watched = version.clone();
        if !self.emptied.is_empty() {
            self.emptied.retain(|_, at| !version.covers(at));
            // After a burst of writes it would stay as large as it was.
            self.emptied.shrink_to(self.emptied.len() * 2);
        }
    }

    /// Forgets deletions that nothing confirmed for a long time.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.tombstones.retain(|_, tombstone| now.duration_since(tombstone.at) < TOMBSTONE_LIFE);
    }
}

// News from writes of this process.
impl<S: Shape> Store<S> {
    /// A write was answered with this object, which is of the selection, or may be.
    pub(crate) fn wrote(&mut self, object: S, certain: bool) -> Vec<Change<S>> {
        let meta = object.meta();
        // The watch has been there already: it knows this version, or what came of it since.
        if self.watched.covers(&meta.resource_version) {
            return Vec::new();
        }
        // Where only the server can tell, the watch will say if it left; a new object is the watch's to bring.
        let known = || self.objects.get(&meta.key).is_some_and(|entry| entry.object.meta().uid == meta.uid);
        if certain || known() { self.put(object, Origin::Write) } else { Vec::new() }
    }

    /// A write was answered with an object that is not of the selection, or not any more.
    pub(crate) fn wrote_outside(&mut self, meta: &Meta) -> Vec<Change<S>> {
        if self.watched.covers(&meta.resource_version) {
            return Vec::new();
        }
        let outdated = self
            .objects
            .get(&meta.key)
            .is_some_and(|entry| meta.resource_version.supersedes(&entry.object.meta().resource_version));
        let change = if outdated { self.take(&meta.key, Origin::Write) } else { None };
        self.emptied.insert(meta.key.clone(), meta.resource_version.clone());
        change.into_iter().collect()
    }

    /// A write was answered: this incarnation is gone.
    pub(crate) fn wrote_gone(&mut self, uid: Uid, key: &ObjectKey, now: Instant) -> Vec<Change<S>> {
        let known = self.objects.get(key).is_some_and(|entry| entry.object.meta().uid == uid);
        let change = if known { self.take(key, Origin::Write) } else { None };
        if let Some(old) = change.as_ref().and_then(|change| change.old.as_ref()) {
            self.emptied.insert(key.clone(), old.meta().resource_version.clone());
        }
        self.expire(now);
        self.tombstones.insert(uid, Tombstone { lists: self.lists, at: now });
        change.into_iter().collect()
    }
}

// How anything gets in and out.
impl<S: Shape> Store<S> {
    /// Stores an object unless something newer is known, and says what changed.
    fn put(&mut self, object: S, origin: Origin) -> Vec<Change<S>> {
        let meta = object.meta();
        if self.tombstones.contains_key(&meta.uid) {
            return Vec::new();
        }
        if self.emptied.get(&meta.key).is_some_and(|at| !meta.resource_version.supersedes(at)) {
            return Vec::new();
        }
        let old = match self.objects.get(&meta.key) {
            Some(entry) => {
                let known = entry.object.meta();
                let comparable = !self.distrust || entry.stored == self.lists;
                if comparable && !meta.resource_version.supersedes(&known.resource_version) {
                    return Vec::new();
                }
                if known.uid == meta.uid && known.resource_version == meta.resource_version {
                    return Vec::new();
                }
                Some(Arc::clone(&entry.object))
            }
            None => None,
        };
        let object = Arc::new(object);
        if let Some(old) = &old {
            self.bytes -= old.approximate_size();
            self.indexes.remove(old);
        }
        self.bytes += object.approximate_size();
        self.indexes.insert(&object);
        let seen = self.objects.get(&object.meta().key).map_or(0, |entry| entry.seen);
        self.objects.insert(Entry { object: Arc::clone(&object), seen, stored: self.lists });
        match old {
            Some(old) if old.meta().uid != object.meta().uid => vec![
                Change { old: Some(old), new: None, origin },
                Change { old: None, new: Some(object), origin },
            ],
            old => vec![Change { old, new: Some(object), origin }],
        }
    }

    /// Removes an object and says so.
    fn take(&mut self, key: &ObjectKey, origin: Origin) -> Option<Change<S>> {
        let entry = self.objects.remove(key)?;
        self.bytes -= entry.object.approximate_size();
        self.indexes.remove(&entry.object);
        Some(Change { old: Some(entry.object), new: None, origin })
    }
}

#[cfg(test)]
mod tests;
