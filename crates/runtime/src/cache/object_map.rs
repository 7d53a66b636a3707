//! The map in which a store keeps its objects, with constant-time lookup by key.
//!
//! Objects are grouped by namespace, so that listing one namespace does not scan the others. Within a
//! namespace a hash table holds the objects without separate keys, since every object has its own. A tree
//! ordered by key takes, by calculation, some 50 bytes more for each object, and a lookup dereferences the
//! key of every object on its path: W3 of the benchmarks was slower with ten thousand objects. Results are
//! sorted only where the caller needs an order.

use std::hash::BuildHasher as _;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};

use crate::intern::Str;
use crate::key::ObjectKey;

/// An object with a key.
pub(super) trait Keyed {
    fn key(&self) -> &ObjectKey;
}

/// A table is shrunk when its capacity exceeds its length by this factor.
const SPARSE: usize = 8;

/// Objects by their keys.
pub(super) struct ObjectMap<T> {
    of_cluster: HashTable<T>,
    /// Tables by namespace; none of them is empty.
    namespaces: HashMap<Str, HashTable<T>>,
    hasher: DefaultHashBuilder,
}

impl<T> Default for ObjectMap<T> {
    fn default() -> Self {
        let hasher = DefaultHashBuilder::default();
        Self { of_cluster: HashTable::new(), namespaces: HashMap::default(), hasher }
    }
}

impl<T: Keyed> ObjectMap<T> {
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

    /// Inserts an object, and replaces the one with the same key.
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

    /// Iterates over all objects, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        self.of_cluster.iter().chain(self.namespaces.values().flatten())
    }

    /// Returns all objects, ordered by namespace and name.
    pub(super) fn sorted(&self) -> Vec<&T> {
        sorted(self.iter())
    }

    /// Returns the objects of one namespace, ordered by name.
    pub(super) fn in_namespace(&self, namespace: &str) -> Vec<&T> {
        sorted(self.namespaces.get(namespace).into_iter().flatten())
    }
}

/// Returns the table of a key's namespace, if there is one.
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
        fn an_object_map_equals_an_ordered_map(steps in prop::collection::vec((keys(), prop::option::weighted(0.6, any::<u32>())), 0..200)) {
            let (mut object_map, mut map) = (ObjectMap::default(), BTreeMap::new());
            for (key, value) in steps {
                if let Some(value) = value {
                    object_map.insert(Item(key.clone(), value));
                    map.insert(key.clone(), Item(key.clone(), value));
                } else {
                    prop_assert_eq!(object_map.remove(&key), map.remove(&key));
                }
                prop_assert_eq!(object_map.get(&key), map.get(&key));
                prop_assert_eq!(object_map.get_mut(&key).cloned(), map.get(&key).cloned());
                prop_assert_eq!(object_map.len(), map.len());
            }
            prop_assert_eq!(object_map.sorted(), map.values().collect::<Vec<_>>());
            prop_assert_eq!(object_map.iter().count(), map.len());
            for namespace in ["a", "b", "c"] {
                let there = map.values().filter(|item| item.0.namespace() == Some(namespace));
                prop_assert_eq!(object_map.in_namespace(namespace), there.collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn removing_objects_shrinks_the_map() {
        let key = |index: usize| ObjectKey::namespaced("a", format!("n{index}"));
        let mut object_map = ObjectMap::default();
        (0..10_000).for_each(|index| object_map.insert(Item(key(index), 0)));
        assert!(object_map.namespaces["a"].capacity() >= 10_000);
        (10..10_000).for_each(|index| drop(object_map.remove(&key(index))));
        assert!(object_map.namespaces["a"].capacity() < 200, "{}", object_map.namespaces["a"].capacity());
        (0..10).for_each(|index| drop(object_map.remove(&key(index))));
        assert!(object_map.namespaces.is_empty() && object_map.len() == 0);
    }
}
