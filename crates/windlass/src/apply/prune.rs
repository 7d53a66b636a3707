//! Pruning: which objects have left the plan, and the order in which they are deleted.
//!
//! It promises: no object is deleted that is in the plan, is retained, or belongs to somebody else; no object
//! is deleted before everything in the plan is ready, unless the plan says so (make before break); dependents
//! are deleted before their dependencies, and data is deleted last; no object is deleted if the owner has
//! changed since it was read; and no mistake in a plan deletes most of an owner's objects without a change of
//! its spec.

use std::time::Duration;

use windlass_graph::Outcome as NodeOutcome;
use windlass_runtime::controller::Error;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, Uid};
use windlass_runtime::resource::ResourceType;

use super::applier::{Applier, Report};
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
    /// The position of the object in the order of creation.
    order: usize,
    retained: bool,
    deleting: bool,
    planned: bool,
    /// The time of its deletion after it has left the plan.
    turn: Turn,
    /// The finalizers that must be removed before the object is gone.
    finalizers: Vec<String>,
}

/// The time of deletion of an object that has left the plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Turn {
    /// When everything in the plan is ready.
    WhenReady,
    /// Before everything in the plan is ready.
    First,
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
        let turn = match mark(mark::PRUNE).as_deref() {
            Some(mark::FIRST) => Turn::First,
            _ => Turn::WhenReady,
        };
        let finalizers = meta.finalizers.iter().map(ToString::to_string).collect();
        let resource = resource.clone();
        Self { resource, key, uid, order, retained, deleting, planned, turn, finalizers }
    }

    fn is_leaving(&self) -> bool {
        !self.planned && !self.retained
    }

    fn title(&self) -> String {
        format!("{} {}", self.resource.kind, self.key.name())
    }
}

/// The decision about the objects that have left the plan.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Pruning {
    /// Every object that belongs to the owner is in the plan.
    Nothing,
    /// These objects are deleted now.
    Delete(Vec<Belonging>),
    /// These objects are being deleted; their dependencies stay until they are gone.
    Wait(Vec<Belonging>),
    /// These objects are deleted when everything in the plan is ready.
    Hold(Vec<Belonging>),
    /// Too many objects would be deleted at once without a change of the spec that explains it: the number of
    /// objects, and the total.
    HeldBack(usize, usize),
}

/// Lists the objects that are being deleted, with the finalizers that hold them.
pub(crate) fn going(objects: &[Belonging]) -> String {
    let one = |object: &Belonging| {
        let held = if object.finalizers.is_empty() {
            String::new()
        } else {
            format!(", held by {}", object.finalizers.join(", "))
        };
        format!("{} is being deleted{held}", object.title())
    };
    objects.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// Decides about everything that belongs to an owner. `explained`: its spec changed since the last complete
/// run, or a user allowed the deletion. `ready`: everything in the plan is ready.
pub(crate) fn decide(inventory: Vec<Belonging>, explained: bool, ready: bool) -> Pruning {
    let total = inventory.iter().filter(|object| !object.retained).count();
    let leaving: Vec<Belonging> = inventory.into_iter().filter(Belonging::is_leaving).collect();
    if leaving.is_empty() {
        return Pruning::Nothing;
    }
    let fresh = leaving.iter().filter(|object| !object.deleting).count();
    if fresh * 2 > total && !explained {
        return Pruning::HeldBack(fresh, total);
    }
    let may_go = |object: &Belonging| ready || object.turn == Turn::First || object.deleting;
    let (mut leaving, held): (Vec<_>, Vec<_>) = leaving.into_iter().partition(may_go);
    if leaving.iter().any(|object| !is_data(&object.resource)) {
        leaving.retain(|object| !is_data(&object.resource));
    }
    let Some(last) = leaving.iter().map(|object| object.order).max() else { return Pruning::Hold(held) };
    leaving.retain(|object| object.order == last);
    let (going, staying): (Vec<_>, Vec<_>) = leaving.into_iter().partition(|object| object.deleting);
    if staying.is_empty() { Pruning::Wait(going) } else { Pruning::Delete(staying) }
}

/// The result of pruning.
pub(crate) enum Pruned {
    /// No object is left that is not in the plan.
    Done,
    /// Objects were deleted, and not all of them are gone yet.
    Deleted,
    /// Objects are being deleted: their names, and the finalizers that hold them.
    Going(String),
    /// These objects have left the plan, and are deleted when everything in it is ready.
    Held(Vec<String>),
    /// The server has another version of the owner than the one that the plan was drawn from.
    Outdated,
    /// Too many objects would be deleted at once: the message says why and how to allow it.
    HeldBack(String),
}

impl Applier {
    /// Deletes the objects that have left the plan. Call it for complete plans only, with the report of their
    /// run.
    pub(crate) async fn prune(
        &self,
        owner: &OwnerView,
        drawn: &Drawn,
        report: &Report,
    ) -> Result<Pruned, Error> {
        let ready = report.is_ready();
        let inventory = || {
            let mut inventory = self.inventory(owner, |resource, key| drawn.holds(resource, key));
            for object in inventory.iter_mut().filter(|object| is_replaced(object, drawn, report)) {
                object.turn = Turn::First;
            }
            inventory
        };
        match decide(inventory(), owner.explains_pruning(), ready) {
            Pruning::Nothing => Ok(Pruned::Done),
            Pruning::Delete(objects) => {
                if !self.is_present(owner).await? {
                    return Ok(Pruned::Outdated);
                }
                for object in &objects {
                    let Belonging { resource, key, uid, .. } = object;
                    tracing::info!(object = %format!("{} {key}", resource.kind), "pruned: it has left the plan");
                    self.writer.delete(resource, key, *uid).await?;
                    self.metrics.visited(self.name, &resource.kind, NodeResult::Deleted, Duration::ZERO);
                }
                // An object that still exists causes an event when it is gone; if all are gone, the next ones
                // are deleted at once.
                let gone = decide(inventory(), true, ready) == Pruning::Nothing;
                Ok(if gone { Pruned::Done } else { Pruned::Deleted })
            }
            Pruning::Wait(objects) => Ok(Pruned::Going(going(&objects))),
            Pruning::Hold(objects) => Ok(Pruned::Held(objects.iter().map(Belonging::title).collect())),
            Pruning::HeldBack(leaving, all) => Ok(Pruned::HeldBack(format!(
                "the plan no longer has {leaving} of {all} objects, though the spec has not changed: nothing is deleted. If that \
                 is right, allow it with the annotation {}={}",
                ask::ALLOW_PRUNE,
                owner.generation
            ))),
        }
    }

    /// Returns the objects that have left the plan and still exist, by kind and name.
    pub(super) fn leftovers(&self, owner: &OwnerView, drawn: &Drawn) -> Vec<String> {
        let inventory = self.inventory(owner, |resource, key| drawn.holds(resource, key)).into_iter();
        inventory.filter(Belonging::is_leaving).map(|object| object.title()).collect()
    }

    /// Returns everything that belongs to an owner.
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

/// Returns whether the plan says that an object is deleted now, even if not everything is ready.
fn is_replaced(object: &Belonging, drawn: &Drawn, report: &Report) -> bool {
    let is_ready = |index: &usize| {
        let node = report.nodes().nth(*index);
        node.is_some_and(|node| matches!(node.outcome(), NodeOutcome::Ready))
    };
    drawn
        .departure(&object.resource, &object.key)
        .is_some_and(|departure| departure.replaced_by.iter().all(is_ready))
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
    fn dependents_are_deleted_first() {
        let inventory = vec![
            map("a", "0", false),
            map("b", "2", false),
            map("c", "2", false),
            map("d", "1", true),
            map("e", "1", true),
            map("f", "1", true),
        ];
        assert_eq!(names(decide(inventory, false, true)), ["b", "c"]);
        assert_eq!(decide(vec![map("d", "1", true)], false, true), Pruning::Nothing);
    }

    #[test]
    fn an_object_that_is_being_deleted_is_waited_for() {
        let going = Belonging::new(&ResourceType::of::<ConfigMap>(), &object("b", "2", None, true), false);
        let pruning =
            decide(vec![map("a", "0", false), going, map("c", "0", true), map("d", "0", true)], false, true);
        assert!(matches!(pruning, Pruning::Wait(_)));
        assert_eq!(names(pruning), ["b"]);
    }

    #[test]
    fn pruning_more_than_half_of_the_objects_needs_an_explanation() {
        let inventory = || vec![map("a", "0", false), map("b", "0", false), map("c", "0", true)];
        assert_eq!(decide(inventory(), false, true), Pruning::HeldBack(2, 3));
        assert_eq!(names(decide(inventory(), true, true)), ["a", "b"]);
        let half = vec![map("a", "0", false), map("c", "0", true)];
        assert_eq!(names(decide(half, false, true)), ["a"]);
    }

    #[test]
    fn only_objects_marked_first_are_deleted_before_the_plan_is_ready() {
        let first = Belonging { turn: Turn::First, ..map("first", "0", false) };
        let inventory =
            || vec![map("a", "1", false), first.clone(), map("b", "0", true), map("c", "0", true)];
        assert_eq!(names(decide(inventory(), true, false)), ["first"]);
        let held = decide(vec![map("a", "1", false), map("b", "0", true)], true, false);
        assert_eq!(held, Pruning::Hold(vec![map("a", "1", false)]));
        assert_eq!(names(decide(inventory(), true, true)), ["a"]);
    }

    #[test]
    fn data_is_deleted_last() {
        let claims = ResourceType::of::<PersistentVolumeClaim>();
        let data = Belonging::new(&claims, &object("data", "2", Some("false"), false), false);
        assert_eq!(names(decide(vec![data.clone(), map("a", "0", false)], true, true)), ["a"]);
        assert_eq!(names(decide(vec![data, map("a", "0", true)], true, true)), ["data"]);
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
        assert_eq!(decide(stay.to_vec(), true, true), Pruning::Nothing);
        let goes = Belonging::new(&claims, &object("scratch", "0", Some("false"), false), false);
        assert_eq!(names(decide(vec![goes], true, true)), ["scratch"]);
    }
}
