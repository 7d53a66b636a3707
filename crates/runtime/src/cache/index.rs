//! Indexes, updated as objects are added and removed.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::Shape;
use crate::intern::Str;
use crate::key::ObjectKey;
use crate::meta::Uid;

/// Extracts the index values of an object: calls its argument once for each value.
pub(crate) type Extract<S> = Arc<dyn Fn(&S, &mut dyn FnMut(&str)) + Send + Sync>;

pub(crate) struct Indexes<S> {
    owners: HashMap<Uid, Posting>,
    named: Vec<Named<S>>,
}

struct Named<S> {
    name: Arc<str>,
    extract: Extract<S>,
    values: HashMap<Str, Posting>,
}

/// The keys of the objects under one value. Most values have one object.
enum Posting {
    One(ObjectKey),
    Many(BTreeSet<ObjectKey>),
}

impl Posting {
    fn insert(&mut self, key: &ObjectKey) {
        match self {
            Self::One(first) if first == key => {}
            Self::One(first) => *self = Self::Many(BTreeSet::from([first.clone(), key.clone()])),
            Self::Many(keys) => {
                keys.insert(key.clone());
            }
        }
    }

    /// Removes a key; returns true when no key is left.
    fn remove(&mut self, key: &ObjectKey) -> bool {
        match self {
            Self::One(only) => only == key,
            Self::Many(keys) => {
                keys.remove(key);
                keys.is_empty()
            }
        }
    }

    fn keys(&self) -> Vec<ObjectKey> {
        match self {
            Self::One(key) => vec![key.clone()],
            Self::Many(keys) => keys.iter().cloned().collect(),
        }
    }
}

impl<S> Default for Indexes<S> {
    fn default() -> Self {
        Self { owners: HashMap::new(), named: Vec::new() }
    }
}

impl<S: Shape> Indexes<S> {
    pub(crate) fn insert(&mut self, object: &S) {
        let key = &object.meta().key;
        for owner in &object.meta().owners {
            put(&mut self.owners, owner.uid, key);
        }
        for index in &mut self.named {
            index.insert(object);
        }
    }

    pub(crate) fn remove(&mut self, object: &S) {
        let key = &object.meta().key;
        for owner in &object.meta().owners {
            take(&mut self.owners, &owner.uid, key);
        }
        for index in &mut self.named {
            let values = &mut index.values;
            (index.extract)(object, &mut |value| take(values, value, key));
        }
    }

    /// Adds an index unless one of that name exists. Returns true if it is new and must be filled.
    pub(crate) fn declare(&mut self, name: &str, extract: Extract<S>) -> bool {
        if self.named.iter().any(|index| &*index.name == name) {
            return false;
        }
        self.named.push(Named { name: name.into(), extract, values: HashMap::new() });
        true
    }

    /// Adds one object to the index declared last.
    pub(crate) fn fill_newest(&mut self, object: &S) {
        if let Some(index) = self.named.last_mut() {
            index.insert(object);
        }
    }

    pub(crate) fn by_owner(&self, uid: &Uid) -> Vec<ObjectKey> {
        self.owners.get(uid).map(Posting::keys).unwrap_or_default()
    }

    /// `None` if there is no such index.
    pub(crate) fn by_value(&self, name: &str, value: &str) -> Option<Vec<ObjectKey>> {
        let index = self.named.iter().find(|index| &*index.name == name)?;
        Some(index.values.get(value).map(Posting::keys).unwrap_or_default())
    }
}

impl<S: Shape> Named<S> {
    fn insert(&mut self, object: &S) {
        let values = &mut self.values;
        (self.extract)(object, &mut |value| {
            put(values, Str::new(value), &object.meta().key);
        });
    }
}

fn put<V: std::hash::Hash + Eq>(postings: &mut HashMap<V, Posting>, value: V, key: &ObjectKey) {
    postings
        .entry(value)
        .and_modify(|posting| posting.insert(key))
        .or_insert_with(|| Posting::One(key.clone()));
}

fn take<V, Q>(postings: &mut HashMap<V, Posting>, value: &Q, key: &ObjectKey)
where
    V: std::hash::Hash + Eq + std::borrow::Borrow<Q>,
    Q: std::hash::Hash + Eq + ?Sized,
{
    if postings.get_mut(value).is_some_and(|posting| posting.remove(key)) {
        postings.remove(value);
    }
}
