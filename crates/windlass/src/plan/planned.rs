//! The handle of a node that was planned.

use std::borrow::Borrow;
use std::sync::Arc;

use parking_lot::Mutex;
use windlass_runtime::resource::ResourceType;

use super::draft::{BeforeUs, Draft};
use super::{Conflicts, Drafts, Immutable};
use crate::desired::{Desired, Kind};
use crate::error::DrawError;
use crate::live::Live;
use crate::readiness::Readiness;

/// A node that was planned: to order others after it, and to say more about it.
#[derive(Clone)]
pub struct Planned {
    drafts: Arc<Mutex<Drafts>>,
    index: usize,
}

#[allow(clippy::return_self_not_must_use)] // the plan holds the node; the handle is for whoever needs it
impl Planned {
    pub(super) fn new(drafts: Arc<Mutex<Drafts>>, index: usize) -> Self {
        Self { drafts, index }
    }

    /// It waits until all of these are ready. The content of those that have one (ConfigMaps, Secrets, inputs) flows into it: if it
    /// is a workload, its pods are replaced when that content changes.
    ///
    /// They must have been planned before it: so an order in circles cannot be written.
    pub fn after<P: Borrow<Planned>>(self, others: impl IntoIterator<Item = P>) -> Self {
        for other in others {
            let other: &Planned = other.borrow();
            let foreign = !Arc::ptr_eq(&self.drafts, &other.drafts);
            let mut drafts = self.drafts.lock();
            if foreign || other.index >= self.index {
                let said = match drafts.nodes.get(other.index).filter(|_| !foreign) {
                    Some(later) => format!(
                        "{} comes after {}, which is planned later",
                        drafts.nodes[self.index].id, later.id
                    ),
                    None => format!("{} comes after a node of another plan", drafts.nodes[self.index].id),
                };
                drafts.errors.push(DrawError::new(said));
            } else {
                drafts.nodes[self.index].after.push(other.index);
            }
        }
        self
    }

    /// Ready when this check says so, instead of the check of its kind. For objects only.
    pub fn ready_when(self, check: impl Fn(&Live) -> Readiness + Send + Sync + 'static) -> Self {
        self.with(|draft| draft.check = Some(Box::new(check)))
    }

    /// Changes the object before it is applied. Several run in the order given; the first error stops.
    pub fn mutate(
        self,
        mutation: impl Fn(&mut Desired) -> Result<(), DrawError> + Send + Sync + 'static,
    ) -> Self {
        self.with(|draft| draft.mutations.push(Box::new(mutation)))
    }

    /// Only if this is so. Otherwise it is as if it had not been planned: its object is pruned, and what comes after it does
    /// not wait for it.
    pub fn when(self, condition: bool) -> Self {
        self.with(|draft| draft.enabled &= condition)
    }

    /// What to do where another field manager holds a field. Default: [take it](Conflicts::Take).
    pub fn conflicts(self, policy: Conflicts) -> Self {
        self.with(|draft| draft.conflicts = policy)
    }

    /// What to do where a field differs that cannot be changed.
    pub fn immutable(self, policy: Immutable) -> Self {
        self.with(|draft| draft.immutable = Some(policy))
    }

    /// Keeps the object when it leaves the plan, and when its owner is deleted. The default for PersistentVolumeClaims.
    pub fn retain(self) -> Self {
        self.with(|draft| draft.retain = Some(true))
    }

    /// Deletes the object when it leaves the plan, and with its owner, though its kind is usually retained.
    pub fn delete(self) -> Self {
        self.with(|draft| draft.retain = Some(false))
    }

    /// An operator that we succeed has it written by an object of this kind and name, in the same namespace (a certificate by a
    /// `Certificate`, say). Where that object belongs to the owner, what it wrote is the owner's too: it is taken over as it is, and
    /// the writer is deleted, since two would write it in turn.
    ///
    /// It is looked for when something of the planned name is found that is not ours yet, and when somebody has changed a
    /// [renewed](crate::Plan::renew) object: so it costs nothing once that is over. The kind is to be
    /// [declared](crate::Kinds::supersedes).
    pub fn supersedes<K: Kind>(self, name: impl Into<String>) -> Self {
        self.had_before::<K>(name, false)
    }

    /// An operator that we succeed gave it to an object of this kind and name, in the same namespace (a Secret to the `Tenant` that uses
    /// it, say), which has its place in the plan as well. Where that object belongs to the owner, what it controls is the owner's too, and
    /// so is what its spec names and nobody controls: it is taken over, and the other stays as it is.
    ///
    /// It is looked for when something of the planned name is found that is not ours yet, and costs nothing once that is over.
    pub fn vouched_for_by<K: Kind>(self, name: impl Into<String>) -> Self {
        self.had_before::<K>(name, true)
    }

    fn had_before<K: Kind>(self, name: impl Into<String>, stays: bool) -> Self {
        let before = BeforeUs { resource: ResourceType::of::<K>(), name: name.into(), stays };
        self.with(|draft| draft.before_us.push(before))
    }

    fn with(self, change: impl FnOnce(&mut Draft)) -> Self {
        change(&mut self.drafts.lock().nodes[self.index]);
        self
    }
}

impl std::fmt::Debug for Planned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Planned({})", self.drafts.lock().nodes[self.index].id)
    }
}
