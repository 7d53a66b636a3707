//! The objects of one watch in one shape, and the rules by which lists, events and writes change them.
//!
//! Promises, in whatever order lists, events and write responses arrive:
//! - an object never goes back to an older version, nor comes back after it was deleted;
//! - every change is reported once, with the object that was in the store before;
//! - the response to a write stays until something newer replaces it, and its watch event changes nothing;
//! - an object that a list does not contain is deleted, unless it is newer than the list.
//!
//! There is no I/O and no clock here: the caller passes inputs and time. All of this relies on resource
//! versions of one kind being comparable, and on every list being a consistent read (never
//! `resourceVersion=0`).

mod tombstones;

use std::collections::HashMap;
use std::sync::Arc;

use tokio::time::Instant;

use self::tombstones::Tombstones;
use super::index::{Extract, Indexes};
use super::object_map::{Keyed, ObjectMap};
use super::{Change, Origin, Shape};
use crate::key::ObjectKey;
use crate::meta::{Meta, ResourceVersion, Uid};

/// The server's history has become shorter: it was restored from a backup. The list must be repeated; earlier
/// versions have no meaning any more.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct WentBackwards;

pub(crate) struct Store<S> {
    objects: ObjectMap<Entry<S>>,
    /// Objects that must not come back, by uid.
    tombstones: Tombstones,
    /// Keys that our writes have emptied, with the version of that write: until the watch has passed it,
    /// events under that key are older, even if their uid was never seen.
    emptied: HashMap<ObjectKey, ResourceVersion>,
    indexes: Indexes<S>,
    /// Everything up to this version has been seen, by list or watch.
    watched: ResourceVersion,
    /// The number of the present or last list.
    lists: u32,
    listing: bool,
    synced_once: bool,
    /// True if versions from before the present list cannot be compared: the server went backwards.
    distrust: bool,
    bytes: usize,
}

struct Entry<S> {
    object: Arc<S>,
    /// The last list that contained the object.
    seen: u32,
    /// The number of the list during or after which this version was stored.
    stored: u32,
}

impl<S: Shape> Keyed for Entry<S> {
    fn key(&self) -> &ObjectKey {
        &self.object.meta().key
    }
}

impl<S> Default for Store<S> {
    fn default() -> Self {
        Self {
            objects: ObjectMap::default(),
            tombstones: Tombstones::default(),
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

// Reads.
impl<S: Shape> Store<S> {
    pub(crate) fn get(&self, key: &ObjectKey) -> Option<Arc<S>> {
        self.objects.get(key).map(|entry| Arc::clone(&entry.object))
    }

    /// Iterates over all objects, ordered by namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<S>> {
        self.objects.sorted().into_iter().map(|entry| &entry.object)
    }

    /// Iterates over the objects of one namespace, ordered by name.
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

// Inputs from lists and watches.
impl<S: Shape> Store<S> {
    /// Starts a list, or starts it again.
    pub(crate) fn begin_list(&mut self) {
        self.lists += 1;
        self.listing = true;
    }

    /// Handles an object of the list.
    pub(crate) fn listed(&mut self, object: S) -> Vec<Change<S>> {
        let origin = if self.synced_once { Origin::Relist } else { Origin::InitialList };
        let key = object.meta().key.clone();
        let changes = self.put(object, origin);
        self.mark_seen(&key);
        changes
    }

    /// Handles an object of the list that cannot be decoded: the cached form is kept.
    pub(crate) fn mark_seen(&mut self, key: &ObjectKey) {
        if let Some(entry) = self.objects.get_mut(key) {
            entry.seen = self.lists;
        }
    }

    /// Ends a list that was complete at this version.
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
                    // Only objects written since the list began may be newer than it.
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
        // A list is a consistent read: an object that was deleted before it began cannot come back after it.
        self.tombstones.confirm_before(list);
        self.progressed(version);
        Ok(changes)
    }

    /// Handles a watch event: an object was added or modified.
    pub(crate) fn applied(&mut self, object: S) -> Vec<Change<S>> {
        let version = object.meta().resource_version.clone();
        let changes = self.put(object, Origin::Watch);
        self.progressed(&version);
        changes
    }

    /// Handles a watch event: an object was deleted or left the selection; `object` is its last form.
    pub(crate) fn deleted(
        &mut self,
        uid: &Uid,
        key: &ObjectKey,
        version: &ResourceVersion,
    ) -> Vec<Change<S>> {
        self.tombstones.confirm(uid);
        let outlived = self.objects.get(key).is_some_and(|entry| {
            let known = entry.object.meta();
            // At the same version the watch event wins: the server has evaluated the selector.
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

    /// Records that everything up to this version has been seen.
    pub(crate) fn progressed(&mut self, version: &ResourceVersion) {
        // During a streaming list, events are ordered by name, so their versions prove nothing about other
        // objects.
        if self.listing || !version.supersedes(&self.watched) {
            return;
        }
        self.watched = version.clone();
        if !self.emptied.is_empty() {
            self.emptied.retain(|_, at| !version.covers(at));
            // Without this, the map would keep its size after a burst of writes.
            self.emptied.shrink_to(self.emptied.len() * 2);
        }
    }

    /// Forgets deletions that nothing has confirmed for a long time.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.tombstones.expire(now);
    }
}

// Inputs from writes of this process.
impl<S: Shape> Store<S> {
    /// Handles the response to a write: an object that is, or may be (`certain` is false), in the selection.
    pub(crate) fn wrote(&mut self, object: S, certain: bool) -> Vec<Change<S>> {
        let meta = object.meta();
        // The watch has already delivered this version, or a newer one.
        if self.watched.covers(&meta.resource_version) {
            return Vec::new();
        }
        // If only the server can evaluate the selector, the watch reports an object that left it; a new
        // object is left to the watch.
        let known = || self.objects.get(&meta.key).is_some_and(|entry| entry.object.meta().uid == meta.uid);
        if certain || known() { self.put(object, Origin::Write) } else { Vec::new() }
    }

    /// Handles the response to a write: an object that is not in the selection, or not any more.
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

    /// Handles the response to a write: the object with this uid is deleted.
    pub(crate) fn wrote_gone(&mut self, uid: Uid, key: &ObjectKey, now: Instant) -> Vec<Change<S>> {
        let known = self.objects.get(key).is_some_and(|entry| entry.object.meta().uid == uid);
        let change = if known { self.take(key, Origin::Write) } else { None };
        if let Some(old) = change.as_ref().and_then(|change| change.old.as_ref()) {
            self.emptied.insert(key.clone(), old.meta().resource_version.clone());
        }
        self.expire(now);
        self.tombstones.insert(uid, self.lists, now);
        change.into_iter().collect()
    }
}

// Changes of the map.
impl<S: Shape> Store<S> {
    /// Stores an object unless something newer is known, and returns the changes.
    fn put(&mut self, object: S, origin: Origin) -> Vec<Change<S>> {
        let meta = object.meta();
        if self.tombstones.contains(&meta.uid) {
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

    /// Removes an object and returns the change.
    fn take(&mut self, key: &ObjectKey, origin: Origin) -> Option<Change<S>> {
        let entry = self.objects.remove(key)?;
        self.bytes -= entry.object.approximate_size();
        self.indexes.remove(&entry.object);
        Some(Change { old: Some(entry.object), new: None, origin })
    }
}

#[cfg(test)]
mod tests;
