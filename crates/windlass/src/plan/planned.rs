//! The handle of a planned node.

use std::borrow::Borrow;
use std::sync::Arc;

use super::desired::Desired;
use super::draft::{Draft, Edge, Index};
use super::options::{Conflicts, Immutable};
use super::takeover::Predecessor;
use super::{Drafting, Drafts};
use crate::error::PlanError;
use crate::live::Live;
use crate::live::readiness::Readiness;

/// The handle of a planned node: orders other nodes after it, and sets its options.
#[derive(Clone)]
pub struct Planned {
    drafts: Drafts,
    index: Index,
}

#[allow(clippy::return_self_not_must_use)] // the plan holds the node; the handle is for whoever needs it
impl Planned {
    pub(super) fn new(drafts: Drafts, index: Index) -> Self {
        Self { drafts, index }
    }

    /// Waits until all of these nodes are ready. The content of those that have content (ConfigMaps, Secrets,
    /// objects that were asked for) flows into this node: if it is a workload, its pods are replaced when
    /// that content changes.
    ///
    /// The other nodes must have been planned before this one, so that a cyclic order cannot be expressed.
    pub fn after<P: Borrow<Planned>>(self, others: impl IntoIterator<Item = P>) -> Self {
        self.comes_after(others, true)
    }

    /// Waits until all of these nodes are ready, as [`after`](Self::after) does, but a change of their
    /// content replaces no pods.
    ///
    /// For software that reloads its users, certificates or settings by itself.
    pub fn behind<P: Borrow<Planned>>(self, others: impl IntoIterator<Item = P>) -> Self {
        self.comes_after(others, false)
    }

    fn comes_after<P: Borrow<Planned>>(self, others: impl IntoIterator<Item = P>, content: bool) -> Self {
        for other in others {
            let other: &Planned = other.borrow();
            let foreign = !Arc::ptr_eq(&self.drafts, &other.drafts);
            let mut drafts = self.drafts.lock();
            let id = id_of(&drafts, self.index);
            if foreign {
                let message = format!("{id} comes after a node of another plan");
                drafts.errors.push(PlanError::new(message));
            } else if other.index >= self.index {
                let message =
                    format!("{id} comes after {}, which is planned later", id_of(&drafts, other.index));
                drafts.errors.push(PlanError::new(message));
            } else if let Some(draft) = drafts.get_mut(self.index) {
                draft.after.push(Edge { to: other.index, content });
            }
        }
        self
    }

    /// Sets the readiness check of the object, in place of the check of its kind. For objects only.
    pub fn ready_when(self, check: impl Fn(&Live) -> Readiness + Send + Sync + 'static) -> Self {
        self.with(|draft| draft.options.check = Some(Box::new(check)))
    }

    /// Changes the object before it is applied. Several mutations run in the order in which they were added;
    /// the first error stops.
    pub fn mutate(
        self,
        mutation: impl Fn(&mut Desired) -> Result<(), PlanError> + Send + Sync + 'static,
    ) -> Self {
        self.with(|draft| draft.options.mutations.push(Box::new(mutation)))
    }

    /// Plans the node only if the condition is true. Otherwise the node is left out of the plan: its object
    /// is pruned, and nodes that come after it do not wait for it.
    pub fn when(self, condition: bool) -> Self {
        self.with(|draft| draft.enabled &= condition)
    }

    /// Sets the policy for fields that another field manager holds. Default: [take them](Conflicts::Take).
    pub fn conflicts(self, policy: Conflicts) -> Self {
        self.with(|draft| draft.options.conflicts = policy)
    }

    /// Sets the policy for fields that differ and cannot be changed.
    pub fn immutable(self, policy: Immutable) -> Self {
        self.with(|draft| draft.options.immutable = Some(policy))
    }

    /// Deletes the object as soon as it leaves the plan. By default an object that has left the plan stays
    /// until everything in the plan is ready (make before break).
    ///
    /// For objects that block their own replacement: a Service that holds a node port, a workload that holds
    /// a volume. The object carries an annotation while it is planned, so that this also holds when a later
    /// plan does not mention the object at all.
    pub fn pruned_first(self) -> Self {
        self.with(|draft| draft.options.pruned_first = true)
    }

    /// Deletes the object, if it is [not planned](Self::when), as soon as these nodes are ready, even if
    /// others are not. By default the object stays until everything in the plan is ready.
    pub fn replaced_by<P: Borrow<Planned>>(self, others: impl IntoIterator<Item = P>) -> Self {
        let mut by = Vec::new();
        for other in others {
            let other: &Planned = other.borrow();
            if Arc::ptr_eq(&self.drafts, &other.drafts) {
                by.push(other.index);
            } else {
                let mut drafts = self.drafts.lock();
                let message = format!("{} is replaced by a node of another plan", id_of(&drafts, self.index));
                drafts.errors.push(PlanError::new(message));
            }
        }
        self.with(|draft| draft.replaced_by.get_or_insert_default().extend(by))
    }

    /// Keeps the object when it leaves the plan, and when its owner is deleted. This is the default for
    /// PersistentVolumeClaims.
    pub fn retain(self) -> Self {
        self.with(|draft| draft.options.retain = Some(true))
    }

    /// Deletes the object when it leaves the plan, and with its owner, even if its kind is retained by
    /// default.
    pub fn delete(self) -> Self {
        self.with(|draft| draft.options.retain = Some(false))
    }

    /// Takes the object over from an object of a former operator: for migrations only.
    pub fn takes_over(self, from: Predecessor) -> Self {
        self.with(|draft| draft.options.predecessors.push(from))
    }

    fn with(self, change: impl FnOnce(&mut Draft)) -> Self {
        if let Some(draft) = self.drafts.lock().get_mut(self.index) {
            change(draft);
        }
        self
    }
}

fn id_of(drafts: &Drafting, index: Index) -> String {
    drafts.get(index).map(|draft| draft.id.clone()).unwrap_or_default()
}

impl std::fmt::Debug for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Planned({})", id_of(&self.drafts.lock(), self.index))
    }
}
