//! The declarations that every style shares: the kind of the owner, the controller's name, its kinds, its
//! status.

use std::fmt;

use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::live::Kind;
use crate::owner::PlanState;
use crate::plan::{Kinds, Takeover};

/// A kind that can own a plan: one made with `#[derive(CustomResource)]` that has a status.
pub trait OwnerKind:
    Kind + HasStatus<Status: Serialize> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

impl<K> OwnerKind for K where
    K: Kind + HasStatus<Status: Serialize> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

/// The way in which the objects of a deleted owner are deleted.
pub enum Deletion<O> {
    /// The garbage collector deletes them, in any order and at no cost. The operator then needs no right to
    /// change its owners, only their status.
    GarbageCollected,
    /// The owner gets a finalizer, and its plan is removed in reverse: for plans with an order that matters,
    /// or that have to undo something outside of the cluster.
    Ordered,
    /// [`Ordered`](Self::Ordered) for the owners for which the function returns true, and garbage collected
    /// for all others.
    OrderedWhen(fn(&O) -> bool),
    /// The garbage collector deletes them, as with [`GarbageCollected`](Self::GarbageCollected), and the
    /// finalizer that a former version of the operator put on existing owners is removed: for a controller
    /// whose deletion was [`Ordered`](Self::Ordered) once. Every owner then loses its finalizer at the first
    /// reconcile, also while it is being deleted.
    NoLongerOrdered,
}

impl<O> Deletion<O> {
    /// Returns whether an owner is deleted in order.
    pub(crate) fn is_ordered(&self, owner: &O) -> bool {
        match self {
            Self::GarbageCollected | Self::NoLongerOrdered => false,
            Self::Ordered => true,
            Self::OrderedWhen(ordered) => ordered(owner),
        }
    }

    /// Returns whether owners may carry a finalizer that only a former version of the operator needed.
    pub(crate) fn was_ordered(&self) -> bool {
        matches!(self, Self::NoLongerOrdered)
    }

    /// Returns whether the operator sets or removes finalizers of any owner, so that it needs the right to do
    /// so.
    pub(crate) fn writes_finalizers(&self) -> bool {
        !matches!(self, Self::GarbageCollected)
    }
}

/// A controller of one kind of owner, independent of its style.
pub trait Controls: Send + Sync + 'static {
    /// The kind of the owners: each owner has a plan.
    type Owner: OwnerKind;

    /// The name of the controller: field manager, label value, name in logs and metrics. **Never change it**
    /// once a cluster has seen it: it identifies every object. At most 63 letters, digits, `-`, `_` and `.`.
    const NAME: &'static str;

    /// The way in which the objects of a deleted owner are deleted. Default: the garbage collector deletes
    /// them.
    const DELETION: Deletion<Self::Owner> = Deletion::GarbageCollected;

    /// Declares the kinds that are planned and asked for. A kind that is not declared here cannot be used.
    fn kinds(&self, kinds: &mut Kinds);

    /// Returns fields of the status beside the [standard ones](crate::Status), as a JSON object: those that
    /// this kind shows its users.
    ///
    /// The field `conditions`, if the object has it, is added to the standard conditions: each one has a
    /// `type`, a `status`, and optionally `reason` and `message`.
    fn status(&self, owner: &Self::Owner, state: &PlanState<'_>) -> Option<serde_json::Value> {
        let _ = (owner, state);
        None
    }

    /// Returns the fields and objects that are taken over from a former operator. Default: none.
    fn takeover(&self) -> Takeover<Self::Owner> {
        Takeover::none()
    }
}
