//! Predicates: filters for the changes that cause a reconcile.
//!
//! A predicate sees the object before and after a change. Comparing predicates ([`generation_changed`] and
//! similar ones) filter updates only: an object that is added, removed, or marked for deletion passes all of
//! them, however they are combined. Predicates on one object ([`matches()`]) pass a change if the object
//! satisfies them before *or* after, so that an object that stops matching is seen too.
//!
//! Predicates save reconciles, not memory: restrict what is watched with a
//! [`Selection`](crate::cache::Selection).
//!
//! ```
//! use k8s_openapi::api::apps::v1::Deployment;
//! use windlass_runtime::cache::MetadataOnly;
//! use windlass_runtime::controller::predicate::{Predicate, generation_changed, labels_changed, matches};
//!
//! let spec_or_labels: Predicate<MetadataOnly<Deployment>> = generation_changed() | labels_changed();
//! let not_ours = !matches(|deployment: &MetadataOnly<Deployment>| deployment.labels.get("ours").is_some());
//! let both = spec_or_labels & not_ours;
//! ```

use std::fmt;
use std::ops::{BitAnd, BitOr, Not};
use std::sync::Arc;

use crate::cache::{Change, Shape};

/// Judges one form of the object within its change; `None` means that the predicate does not apply to such a
/// change.
type Rule<S> = dyn Fn(&S, &Change<S>) -> Option<bool> + Send + Sync;

/// A filter for the changes that cause a reconcile. See [the module](self).
pub struct Predicate<S>(Arc<Rule<S>>);

impl<S> Clone for Predicate<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> fmt::Debug for Predicate<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Predicate(..)")
    }
}

impl<S: Shape> Predicate<S> {
    /// Returns true if the change passes.
    pub fn admits(&self, change: &Change<S>) -> bool {
        let forms = [change.new.as_deref(), change.old.as_deref()];
        forms.into_iter().flatten().any(|form| (self.0)(form, change) != Some(false))
    }

    fn new(rule: impl Fn(&S, &Change<S>) -> Option<bool> + Send + Sync + 'static) -> Self {
        Self(Arc::new(rule))
    }
}

/// Passes updates for which `differ` returns true: it gets the old and the new object.
pub fn changed<S: Shape>(differ: impl Fn(&S, &S) -> bool + Send + Sync + 'static) -> Predicate<S> {
    Predicate::new(move |_: &S, change: &Change<S>| match (change.old.as_deref(), change.new.as_deref()) {
        (Some(old), Some(new))
            if old.meta().uid == new.meta().uid && old.meta().deleting == new.meta().deleting =>
        {
            Some(differ(old, new))
        }
        _ => None,
    })
}

/// Passes changes of objects that satisfy `test` before or after the change.
pub fn matches<S: Shape>(test: impl Fn(&S) -> bool + Send + Sync + 'static) -> Predicate<S> {
    Predicate::new(move |form: &S, _| Some(test(form)))
}

/// Passes updates of the spec. Passes every update of kinds without generations, such as ConfigMaps.
pub fn generation_changed<S: Shape>() -> Predicate<S> {
    changed(|old: &S, new: &S| new.meta().generation == 0 || old.meta().generation != new.meta().generation)
}

/// Passes updates of labels.
pub fn labels_changed<S: Shape>() -> Predicate<S> {
    changed(|old: &S, new: &S| old.meta().labels != new.meta().labels)
}

/// Passes updates of annotations that the reader keeps.
pub fn annotations_changed<S: Shape>() -> Predicate<S> {
    changed(|old: &S, new: &S| old.meta().annotations != new.meta().annotations)
}

/// Passes updates that changed anything, but not an object that a relist delivers unchanged.
pub fn resource_version_changed<S: Shape>() -> Predicate<S> {
    changed(|old: &S, new: &S| old.meta().resource_version != new.meta().resource_version)
}

/// A predicate that passes changes that pass both.
impl<S: Shape> BitAnd for Predicate<S> {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        Self::new(move |form: &S, change: &Change<S>| {
            match ((self.0)(form, change), (other.0)(form, change)) {
                (Some(one), Some(two)) => Some(one && two),
                (one, two) => one.or(two),
            }
        })
    }
}

/// A predicate that passes changes that pass either one.
impl<S: Shape> BitOr for Predicate<S> {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self::new(move |form: &S, change: &Change<S>| {
            match ((self.0)(form, change), (other.0)(form, change)) {
                (Some(one), Some(two)) => Some(one || two),
                (one, two) => one.or(two),
            }
        })
    }
}

/// The negation of a predicate. Changes to which the predicate does not apply still pass.
impl<S: Shape> Not for Predicate<S> {
    type Output = Self;

    fn not(self) -> Self {
        Self::new(move |form: &S, change: &Change<S>| (self.0)(form, change).map(|passes| !passes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{MetadataOnly, Origin};
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    type Object = MetadataOnly<ConfigMap>;

    fn object(generation: i64, label: &str, version: u32) -> Arc<Object> {
        let uid = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";
        let object = json!({"metadata": {"name": "a", "namespace": "n", "uid": uid, "generation": generation,
            "labels": {"l": label}, "resourceVersion": version.to_string()}});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn deleting(generation: i64) -> Arc<Object> {
        let uid = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";
        let object = json!({"metadata": {"name": "a", "namespace": "n", "uid": uid, "generation": generation,
            "labels": {"l": "x"}, "resourceVersion": "9", "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn update(old: Arc<Object>, new: Arc<Object>) -> Change<Object> {
        Change { old: Some(old), new: Some(new), origin: Origin::Watch }
    }

    fn goes() -> Change<Object> {
        Change { old: Some(object(1, "x", 1)), new: None, origin: Origin::Watch }
    }

    fn comes() -> Change<Object> {
        Change { old: None, new: Some(object(1, "x", 1)), origin: Origin::Watch }
    }

    fn comparing() -> Vec<Predicate<Object>> {
        vec![generation_changed(), labels_changed(), annotations_changed(), resource_version_changed()]
    }

    #[test]
    fn each_predicate_passes_the_update_that_it_is_named_after() {
        let spec = update(object(1, "x", 1), object(2, "x", 2));
        let label = update(object(1, "x", 1), object(1, "y", 2));
        let nothing = update(object(1, "x", 1), object(1, "x", 1));
        let verdicts = |change: &Change<Object>| {
            comparing().iter().map(|predicate| predicate.admits(change)).collect::<Vec<_>>()
        };
        assert_eq!(verdicts(&spec), [true, false, false, true]);
        assert_eq!(verdicts(&label), [false, true, false, true]);
        assert_eq!(verdicts(&nothing), [false, false, false, false]);
    }

    #[test]
    fn no_combination_of_predicates_drops_an_added_removed_or_terminating_object() {
        let begins = update(object(1, "x", 9), deleting(1));
        for one in comparing() {
            for two in comparing() {
                let combined = [
                    one.clone() & two.clone(),
                    one.clone() | two.clone(),
                    !one.clone(),
                    !(one.clone() & !two),
                ];
                for predicate in combined {
                    assert!([comes(), goes(), begins.clone()].iter().all(|change| predicate.admits(change)));
                }
            }
        }
    }

    #[test]
    fn a_kind_without_generations_passes_generation_changed() {
        assert!(generation_changed().admits(&update(object(0, "x", 1), object(0, "x", 2))));
    }

    #[test]
    fn an_object_that_starts_or_stops_matching_passes() {
        let is_x = matches(|object: &Object| object.labels.get("l").is_some_and(|label| label == "x"));
        let enters = update(object(1, "y", 1), object(1, "x", 2));
        let leaves = update(object(1, "x", 1), object(1, "y", 2));
        let other = update(object(1, "y", 1), object(1, "z", 2));
        for change in [&enters, &leaves, &goes()] {
            assert!(is_x.admits(change));
        }
        assert!(!is_x.admits(&other));
        let is_not_x = !is_x;
        for change in [&enters, &leaves, &other] {
            assert!(is_not_x.admits(change));
        }
        assert!(!is_not_x.admits(&goes()));
    }

    #[test]
    fn predicates_are_combined_by_and_and_or() {
        let both = generation_changed() & labels_changed();
        assert!(!both.admits(&update(object(1, "x", 1), object(2, "x", 2))));
        assert!(both.admits(&update(object(1, "x", 1), object(2, "y", 2))));
        let either = generation_changed() | labels_changed();
        assert!(either.admits(&update(object(1, "x", 1), object(2, "x", 2))));
        assert!(!either.admits(&update(object(1, "x", 1), object(1, "x", 2))));
    }
}
