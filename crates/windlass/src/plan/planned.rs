//! The handle of a node that was planned.

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

/// A node that was planned: to order others after it, and to say more about it.
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

    /// Waits until all of these are ready. The content of those that have one (ConfigMaps, Secrets, what was asked for) flows
    /// into this node: if it is a workload, its pods are replaced when that content changes.
    ///
    /// The others must have been planned before it: so an order in circles cannot be written.
    pub fn after<P: Borrow<Planned>>(self, others: impl IntoIterator<Item = P>) -> Self {
        self.comes_after(others, true)
    }

    /// Waits until all of these are ready, as [`after`](Self::after) does, but a change of their content replaces no pods.
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

    /// Ready when this check says so, instead of the check of its kind. For objects only.
    pub fn ready_when(self, check: impl Fn(&Live) -> Readiness + Send + Sync + 'static) -> Self {
        self.with(|draft| draft.options.check = Some(Box::new(check)))
    }

    /// Changes the object before it is applied. Several run in the order given; the first error stops.
    pub fn mutate(
        self,
        mutation: impl Fn(&mut Desired) -> Result<(), PlanError> + Send + Sync + 'static,
    ) -> Self {
        self.with(|draft| draft.options.mutations.push(Box::new(mutation)))
    }

    /// Plans the node only if this is true. Otherwise it is as if it had not been planned: its object is pruned, and nodes
    /// that come after it do not wait for it.
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

    /// Keeps the object when it leaves the plan, and when its owner is deleted. The default for PersistentVolumeClaims.
    pub fn retain(self) -> Self {
        self.with(|draft| draft.options.retain = Some(true))
    }

    /// Deletes the object when it leaves the plan, and with its owner, though its kind is usually retained.
    pub fn delete(self) -> Self {
        self.with(|draft| draft.options.retain = Some(false))
    }

    /// The object belonged to a former operator's object before it was ours: for migrations only.
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
