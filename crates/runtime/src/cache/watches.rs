//! All watches of a cache, found by their key, and by the objects that they may contain.
//!
//! A write looks only at the watches that may contain its object, so its cost does not depend on how many
//! objects are watched by name.

use std::collections::HashMap;
use std::sync::Arc;

use super::watch::{Watch, WatchKey};
use crate::key::ObjectKey;
use crate::resource::ResourceType;

#[derive(Default)]
pub(super) struct Watches {
    by_key: HashMap<WatchKey, Arc<Watch>>,
    by_kind: HashMap<ResourceType, OfKind>,
}

/// The watches of one kind.
#[derive(Default)]
struct OfKind {
    /// Watches with a field selector for one name, by that name.
    named: HashMap<String, Vec<Arc<Watch>>>,
    /// Watches without a field selector for a name.
    wide: Vec<Arc<Watch>>,
}

impl Watches {
    pub(super) fn get(&self, key: &WatchKey) -> Option<&Arc<Watch>> {
        self.by_key.get(key)
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn values(&self) -> impl Iterator<Item = &Arc<Watch>> {
        self.by_key.values()
    }

    /// Returns the watch with this key; creates it if there is none.
    pub(super) fn enter(&mut self, key: &WatchKey) -> Arc<Watch> {
        if let Some(watch) = self.by_key.get(key) {
            return Arc::clone(watch);
        }
        let watch = Arc::new(Watch::new(key.clone()));
        self.by_key.insert(key.clone(), Arc::clone(&watch));
        let of_kind = self.by_kind.entry(key.resource.clone()).or_default();
        match key.fields.name() {
            Some(name) => of_kind.named.entry(name.to_owned()).or_default().push(Arc::clone(&watch)),
            None => of_kind.wide.push(Arc::clone(&watch)),
        }
        watch
    }

    pub(super) fn remove(&mut self, key: &WatchKey) {
        let (Some(watch), Some(of_kind)) = (self.by_key.remove(key), self.by_kind.get_mut(&key.resource))
        else {
            return;
        };
        let other = |one: &Arc<Watch>| !Arc::ptr_eq(one, &watch);
        match key.fields.name() {
            Some(name) => {
                if let Some(named) = of_kind.named.get_mut(name) {
                    named.retain(other);
                    if named.is_empty() {
                        of_kind.named.remove(name);
                    }
                }
            }
            None => of_kind.wide.retain(other),
        }
        if of_kind.wide.is_empty() && of_kind.named.is_empty() {
            self.by_kind.remove(&key.resource);
        }
    }

    /// Returns true if anything of this kind is watched.
    pub(super) fn hold(&self, resource: &ResourceType) -> bool {
        self.by_kind.contains_key(resource)
    }

    /// Returns the watches that may contain this object.
    pub(super) fn concerned(&self, resource: &ResourceType, object: &ObjectKey) -> Vec<Arc<Watch>> {
        let Some(of_kind) = self.by_kind.get(resource) else { return Vec::new() };
        let named = of_kind.named.get(object.name()).into_iter().flatten();
        let here = |watch: &&Arc<Watch>| {
            watch.key().namespace.is_none() || watch.key().namespace.as_deref() == object.namespace()
        };
        named.chain(&of_kind.wide).filter(here).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, Secret};

    fn key(resource: ResourceType, namespace: Option<&str>, fields: &str) -> WatchKey {
        WatchKey {
            resource,
            namespace: namespace.map(Into::into),
            labels: crate::cache::LabelSelector::default(),
            fields: fields.parse().unwrap(),
        }
    }

    #[test]
    fn a_write_reaches_the_watches_of_its_name_and_the_unrestricted_ones_of_its_namespace() {
        let secrets = ResourceType::of::<Secret>;
        let all = key(secrets(), None, "");
        let here = key(secrets(), Some("a"), "type!=Opaque");
        let there = key(secrets(), Some("b"), "");
        let one = key(secrets(), Some("a"), "metadata.name=one");
        let two = key(secrets(), Some("a"), "metadata.name=two");
        let far = key(secrets(), Some("b"), "metadata.name=one");
        let other = key(ResourceType::of::<ConfigMap>(), Some("a"), "metadata.name=one");
        let every = [&all, &here, &there, &one, &two, &far, &other];
        let mut watches = Watches::default();
        for key in every {
            let watch = watches.enter(key);
            assert!(Arc::ptr_eq(&watch, &watches.enter(key)), "shared");
        }
        let concerned = |watches: &Watches| -> Vec<WatchKey> {
            let object = ObjectKey::namespaced("a", "one");
            watches.concerned(&secrets(), &object).iter().map(|watch| watch.key().clone()).collect()
        };
        assert_eq!(concerned(&watches), [one.clone(), all.clone(), here.clone()]);
        watches.remove(&one);
        watches.remove(&all);
        assert_eq!(concerned(&watches), std::slice::from_ref(&here));
        for key in every {
            watches.remove(key);
        }
        assert!(!watches.hold(&secrets()));
        assert_eq!((watches.by_kind.len(), watches.values().count()), (0, 0), "nothing is left behind");
    }
}
