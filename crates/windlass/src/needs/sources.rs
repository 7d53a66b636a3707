//! All watched objects of a controller, by the request that they answer.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use super::form::SourceKey;

/// The number of entries up to which the map is never swept.
const FEW: usize = 64;

/// Watched objects by the request that they answer, held weakly: owners hold them.
///
/// The end of a pass costs only what that owner released, however many objects other owners watch.
pub(super) struct SourceMap<T> {
    entries: HashMap<Arc<SourceKey>, Weak<T>>,
    /// The number of entries at which all are looked at, for those that nobody released.
    sweep_at: usize,
}

impl<T> Default for SourceMap<T> {
    fn default() -> Self {
        Self { entries: HashMap::new(), sweep_at: FEW }
    }
}

impl<T> SourceMap<T> {
    pub(super) fn get(&self, key: &SourceKey) -> Option<Arc<T>> {
        self.entries.get(key).and_then(Weak::upgrade)
    }

    pub(super) fn insert(&mut self, key: Arc<SourceKey>, source: &Arc<T>) {
        if self.entries.len() >= self.sweep_at {
            self.entries.retain(|_, source| source.strong_count() > 0);
            self.sweep_at = FEW.max(self.entries.len() * 2);
        }
        self.entries.insert(key, Arc::downgrade(source));
    }

    /// Forgets those of these entries that nobody holds any more. Returns the number of entries that it
    /// looked at.
    pub(super) fn release(&mut self, keys: &[Arc<SourceKey>]) -> usize {
        for key in keys {
            if self.entries.get(key).is_some_and(|source| source.strong_count() == 0) {
                self.entries.remove(key);
            }
        }
        keys.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::form::Form;
    use super::*;
    use k8s_openapi::api::core::v1::Secret;
    use windlass_runtime::key::ObjectKey;
    use windlass_runtime::resource::ResourceType;

    fn key(number: usize) -> Arc<SourceKey> {
        let (resource, form) = (ResourceType::of::<Secret>(), Form::ALL[0]);
        Arc::new(SourceKey { resource, key: ObjectKey::namespaced("shop", format!("s{number}")), form })
    }

    #[test]
    fn seam_low_the_end_of_a_pass_looks_only_at_what_the_owner_released() {
        let mut sources = SourceMap::default();
        let held: Vec<Arc<()>> = (0..2000).map(|_| Arc::new(())).collect();
        for (number, source) in held.iter().enumerate() {
            sources.insert(key(number), source);
        }
        let looked: usize = (0..2000).map(|number| sources.release(&[key(number)])).sum();
        assert_eq!(looked, 2000, "and not 2000 for each of 2000 owners");
        assert_eq!(sources.entries.len(), 2000, "all are held");
        drop(held);
        sources.release(&[key(7)]);
        assert_eq!((sources.entries.len(), sources.get(&key(7))), (1999, None));
    }

    #[test]
    fn entries_that_nobody_released_do_not_accumulate() {
        let mut sources = SourceMap::default();
        for number in 0..10_000 {
            sources.insert(key(number), &Arc::new(()));
        }
        assert!(sources.entries.len() <= FEW, "{}", sources.entries.len());
    }
}
