//! Where a store keeps its objects: found by their key in a few steps, however many there are.
//!
//! By namespace first, so that those of one namespace are found without a look at all others; within it a hash table that holds no
//! keys of its own, since the objects have them. A tree that is ordered by key takes, by calculation, some 50 bytes more for each object, and a
//! look at it follows the key of every object that it passes: W3 of the benchmarks was slower with ten thousand of them. Order is made where
//! somebody wants it.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::intern::Str;
use crate::key::ObjectKey;

/// Something that knows its own key.
pub(super) trait Keyed {
    fn key(&self) -> &ObjectKey;
}

/// A table is made smaller when it is less full than this.
const SPARSE: usize = 8;

/// Things by their keys.
pub(super) struct Shelf<T> {
    of_cluster: HashTable<T>,
    /// None of them is empty.
    namespaces: HashMap<Str, HashTable<T>>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        let hasher = DefaultHashBuilder::default();
        Self { of_cluster: HashTable::new(), namespaces: HashMap::default(), hasher }
    }
}

impl<T: Keyed> Shelf<T> {
    pub(super) fn len(&self) -> usize {
        self.of_cluster.len() + self.namespaces.values().map(HashTable::len).sum::<usize>()
    }

    pub(super) fn get(&self, key: &ObjectKey) -> Option<&T> {
        let table = match key.namespace() {
            Some(namespace) => self.namespaces.get(namespace)?,
            None => &self.of_cluster,
        };
        table.find(self.hasher.hash_one(key.name()), |item| item.key().name() == key.name())
    }

    pub(super) fn get_mut(&mut self, key: &ObjectKey) -> Option<&mut T> {
        let table = table_of(&mut self.of_cluster, &mut self.namespaces, key)?;
        table.find_mut(self.hasher.hash_one(key.name()), |item| item.key().name() == key.name())
    }

    /// Puts something in the place of its key, whatever was there.
    pub(super) fn insert(&mut self, item: T) {
        let Self { of_cluster, namespaces, hasher } = self;
        let table = match item.key().shared_namespace() {
            Some(namespace) => namespaces.entry(namespace.clone()).or_default(),
            None => of_cluster,
        };
        let hash = hasher.hash_one(item.key().name());
        if let Some(there) = table.find_mut(hash, |other| other.key().name() == item.key().name()) {
            *there = item;
        } else {
            table.insert_unique(hash, item, |other| hasher.hash_one(other.key().name()));
        }
    }

    pub(super) fn remove(&mut self, key: &ObjectKey) -> Option<T> {
        let Self { of_cluster, namespaces, hasher } = self;
        let table = table_of(of_cluster, namespaces, key)?;
        let found = table.find_entry(hasher.hash_one(key.name()), |item| item.key().name() == key.name());
        let (item, _) = found.ok()?.remove();
        if table.len() * SPARSE < table.capacity() {
            table.shrink_to(table.len() * 2, |other| hasher.hash_one(other.key().name()));
        }
        if let Some(namespace) = key.namespace()
            && table.is_empty()
        {
            namespaces.remove(namespace);
        }
        Some(item)
    }

    /// All, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.of_cluster.iter().chain(self.namespaces.values().flatten())
    }

    /// All, by namespace and name.
    pub(super) fn sorted(&self) -> Vec<&T> {
        sorted(self.iter())
    }

    /// Those of one namespace, by name.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<&T> {
        sorted(self.namespaces.get(namespace).into_iter().flatten())
    }
}

/// The table that a key belongs to, if there is one.
fn table_of<'a, T>(
    of_cluster: &'a mut HashTable<T>,
    namespaces: &'a mut HashMap<Str, HashTable<T>>,
    key: &ObjectKey,
) -> Option<&'a mut HashTable<T>> {
    match key.namespace() {
        Some(namespace) => namespaces.get_mut(namespace),
        None => Some(of_cluster),
    }
}

fn sorted<'a, T: Keyed>(items: impl Iterator<Item = &'a T>) -> Vec<&'a T> {
    let mut items: Vec<&T> = items.collect();
    items.sort_unstable_by(|one, other| one.key().cmp(other.key()));
    items
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Item(ObjectKey, u32);

    impl Keyed for Item {
        fn key(&self) -> &ObjectKey {
            &self.0
        }
    }

    fn keys() -> impl Strategy<Value = ObjectKey> {
        let namespace = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
        (namespace, 0..20_u8).prop_map(|(namespace, name)| {
            let name = format!("n{name}");
            match namespace {
                Some(namespace) => ObjectKey::namespaced(namespace, name),
                None => ObjectKey::cluster(name),
            }
        })
    }

    proptest! {
        #[test]
        fn it_holds_what_an_ordered_map_holds(steps in prop::collection::vec((keys(), prop::option::weighted(0.6, any::<u32>())), 0..200)) {
            let (mut shelf, mut map) = (Shelf::default(), BTreeMap::new());
            for (key, value) in steps {
                if let Some(value) = value {
                    shelf.insert(Item(key.clone(), value));
                    map.insert(key.clone(), Item(key.clone(), value));
                } else {
                    prop_assert_eq!(shelf.remove(&key), map.remove(&key));
                }
                prop_assert_eq!(shelf.get(&key), map.get(&key));
                prop_assert_eq!(shelf.get_mut(&key).cloned(), map.get(&key).cloned());
                prop_assert_eq!(shelf.len(), map.len());
            }
            prop_assert_eq!(shelf.sorted(), map.values().collect::<Vec<_>>());
            prop_assert_eq!(shelf.iter().count(), map.len());
            for namespace in ["a", "b", "c"] {
                let there = map.values().filter(|item| item.0.namespace() == Some(namespace));
                prop_assert_eq!(shelf.in_namespace(namespace), there.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn room_is_given_back_with_what_was_in_it() {
        let key = |index: usize| ObjectKey::namespaced("a", format!("n{index}"));
        let mut shelf = Shelf::default();
        (0..10_000).for_each(|index| shelf.insert(Item(key(index), 0)));
        assert!(shelf.namespaces["a"].capacity() >= 10_000);
        (10..10_000).for_each(|index| drop(shelf.remove(&key(index))));
        assert!(shelf.namespaces["a"].capacity() < 200, "{}", shelf.namespaces["a"].capacity());
        (0..10).for_each(|index| drop(shelf.remove(&key(index))));
        assert!(shelf.namespaces.is_empty() && shelf.len() == 0);
    }
}
