//! What has left the plan, and in which order it goes.
//!
//! It promises: nothing is deleted that the plan has a place for, that is retained, or that belongs to somebody else; dependents
//! go before what they depend on; and no mistake in a plan deletes most of an owner's objects without a change of its spec.

use std::time::Duration;

use windlass_runtime::controller::Error;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, Uid};
use windlass_runtime::resource::ResourceType;

use super::applier::Applier;
use crate::live::kind::is_data;
use crate::metrics::NodeResult;
use crate::names::{ask, mark};
use crate::plan::drawn::Drawn;
use crate::plan::owner::OwnerView;

/// An object that belongs to the owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Belonging {
    pub(crate) resource: ResourceType,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    /// Its place in the order in which it was created.
    order: usize,
    retained: bool,
    deleting: bool,
    planned: bool,
    /// Who must finish before it goes.
    finalizers: Vec<String>,
}

impl Belonging {
    pub(crate) fn new(resource: &ResourceType, meta: &Meta, planned: bool) -> Self {
        let mark = |key| meta.annotations.get(key).map(|value| value.as_str().to_owned());
        let retained = match mark(mark::RETAIN).as_deref() {
            None => is_data(resource),
            Some(value) => value != "false",
        };
        let order = mark(mark::ORDER).and_then(|order| order.parse().ok()).unwrap_or(0);
        let (key, uid, deleting) = (meta.key.clone(), meta.uid, meta.deleting);
        let finalizers = meta.finalizers.iter().map(ToString::to_string).collect();
        Self { resource: resource.clone(), key, uid, order, retained, deleting, planned, finalizers }
    }
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pruning {
    /// Everything that belongs to the owner has its place.
    Nothing,
    /// These go now.
    Delete(Vec<Belonging>),
    /// These are on their way; what they depend on stays until they are gone.
    Wait(Vec<Belonging>),
    /// Too many at once, without a change of the spec that explains it: this many of so many.
    HeldBack(usize, usize),
}

/// What is on its way out, and who holds it.
pub(crate) fn going(objects: &[Belonging]) -> String {
    let one = |object: &Belonging| {
        let held = if object.finalizers.is_empty() {
            String::new()
        } else {
            format!(", held by {}", object.finalizers.join(", "))
        };
        format!("{} {} is being deleted{held}", object.resource.kind, object.key.name())
    };
    objects.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Decides over everything that belongs to an owner. `explained`: its spec changed since the last complete run, or somebody allowed it.
pub(crate) fn decide(inventory: Vec<Belonging>, explained: bool) -> Pruning {
    let total = inventory.iter().filter(|object| !object.retained).count();
    let mut leaving: Vec<Belonging> =
        inventory.into_iter().filter(|object| !object.planned && !object.retained).collect();
    let Some(last) = leaving.iter().map(|object| object.order).max() else { return Pruning::Nothing };
    let fresh = leaving.iter().filter(|object| !object.deleting).count();
    if fresh * 2 > total && !explained {
        return Pruning::HeldBack(fresh, total);
    }
    leaving.retain(|object| object.order == last);
    let (going, staying): (Vec<_>, Vec<_>) = leaving.into_iter().partition(|object| object.deleting);
    if staying.is_empty() { Pruning::Wait(going) } else { Pruning::Delete(staying) }
}

/// The result of pruning.
pub(crate) enum Pruned {
    /// Nothing is left that has no place in the plan.
    Done,
    /// Something was deleted, and not all of it is gone yet.
    Deleted,
    /// Something is being deleted: what, and what holds it.
    Going(String),
    /// Too much would be deleted at once: why it was not, and how to allow it.
    HeldBack(String),
}

impl Applier {
    /// Deletes what has left the plan. Call it for complete plans only.
    pub(crate) async fn prune(&self, owner: &OwnerView, drawn: &Drawn) -> Result<Pruned, Error> {
        let inventory = || self.inventory(owner, |resource, key| drawn.holds(resource, key));
        match decide(inventory(), owner.explains_pruning()) {
            Pruning::Nothing => Ok(Pruned::Done),
            Pruning::Delete(objects) => {
                for object in &objects {
                    let Belonging { resource, key, uid, .. } = object;
                    tracing::info!(object = %format!("{} {key}", resource.kind), "pruned: it has left the plan");
                    self.writer.delete(resource, key, *uid).await?;
                    self.metrics.visited(self.name, &resource.kind, NodeResult::Deleted, Duration::ZERO);
                }
                // What still exists tells us when it goes; what is gone lets the next go at once.
                let gone = decide(inventory(), true) == Pruning::Nothing;
                Ok(if gone { Pruned::Done } else { Pruned::Deleted })
            }
            Pruning::Wait(objects) => Ok(Pruned::Going(going(&objects))),
            Pruning::HeldBack(leaving, all) => Ok(Pruned::HeldBack(format!(
                "the plan no longer has {leaving} of {all} objects, though the spec has not changed: nothing is deleted. If that \
                 is right, allow it with the annotation {}={}",
                ask::ALLOW_PRUNE,
                owner.generation
            ))),
        }
    }

    /// Everything that belongs to an owner.
    pub(super) fn inventory(
        &self,
        owner: &OwnerView,
        planned: impl Fn(&ResourceType, &ObjectKey) -> bool,
    ) -> Vec<Belonging> {
        let mut inventory = Vec::new();
        for kind in &self.kinds {
            for object in kind.belonging_to(&owner.uid) {
                let meta = &object.live().metadata;
                if owner.made(meta) {
                    let planned = planned(kind.resource(), &meta.key);
                    inventory.push(Belonging::new(kind.resource(), meta, planned));
                }
            }
        }
        inventory
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim};
    use serde_json::json;
    use windlass_runtime::meta::Keep;

    fn object(name: &str, order: &str, retain: Option<&str>, deleting: bool) -> Meta {
        let keep = Keep::default().annotation(mark::ORDER).annotation(mark::RETAIN);
        let mut meta = json!({"name": name, "namespace": "shop", "uid": "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d",
            "annotations": {mark::ORDER: order}});
        if let Some(retain) = retain {
            meta["annotations"][mark::RETAIN] = retain.into();
        }
        if deleting {
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        keep.scope(|| serde_json::from_str(&meta.to_string())).unwrap()
    }

    fn map(name: &str, order: &str, planned: bool) -> Belonging {
        Belonging::new(&ResourceType::of::<ConfigMap>(), &object(name, order, None, false), planned)
    }

    fn names(pruning: Pruning) -> Vec<String> {
        match pruning {
            Pruning::Delete(objects) | Pruning::Wait(objects) => {
                objects.iter().map(|object| object.key.name().to_owned()).collect()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_depends_goes_first() {
        let inventory = vec![
            map("a", "0", false),
            map("b", "2", false),
            map("c", "2", false),
            map("d", "1", true),
            map("e", "1", true),
            map("f", "1", true),
        ];
        assert_eq!(names(decide(inventory, false)), ["b", "c"]);
        assert_eq!(decide(vec![map("d", "1", true)], false), Pruning::Nothing);
    }

    #[test]
    fn what_is_on_its_way_is_waited_for() {
        let going = Belonging::new(&ResourceType::of::<ConfigMap>(), &object("b", "2", None, true), false);
        let pruning =
            decide(vec![map("a", "0", false), going, map("c", "0", true), map("d", "0", true)], false);
        assert!(matches!(pruning, Pruning::Wait(_)));
        assert_eq!(names(pruning), ["b"]);
    }

    #[test]
    fn more_than_half_needs_an_explanation() {
        let inventory = || vec![map("a", "0", false), map("b", "0", false), map("c", "0", true)];
        assert_eq!(decide(inventory(), false), Pruning::HeldBack(2, 3));
        assert_eq!(names(decide(inventory(), true)), ["a", "b"]);
        let half = vec![map("a", "0", false), map("c", "0", true)];
        assert_eq!(names(decide(half, false)), ["a"]);
    }

    #[test]
    fn retained_objects_and_data_stay() {
        let claims = ResourceType::of::<PersistentVolumeClaim>();
        let maps = ResourceType::of::<ConfigMap>();
        let stay = [
            Belonging::new(&claims, &object("data", "0", None, false), false),
            Belonging::new(&maps, &object("key", "0", Some("unplanned"), false), false),
            Belonging::new(&maps, &object("state", "0", Some("Shop/web"), false), false),
        ];
        assert_eq!(decide(stay.to_vec(), true), Pruning::Nothing);
        let goes = Belonging::new(&claims, &object("scratch", "0", Some("false"), false), false);
        assert_eq!(names(decide(vec![goes], true)), ["scratch"]);
    }
}
