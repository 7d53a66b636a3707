//! What every style declares: whose controller it is, its name, its kinds, its status.

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

/// How the objects of a deleted owner go.
pub enum Deletion<O> {
    /// The garbage collector deletes them, in any order and at no cost. The operator then has no right to change its owners,
    /// only their status.
    GarbageCollected,
    /// The owner gets a finalizer, and its plan is taken down in reverse: for plans whose order matters, or that have to undo
    /// something outside of the cluster.
    Ordered,
    /// [`Ordered`](Self::Ordered) for the owners of which this is true, and garbage collected for all others.
    OrderedWhen(fn(&O) -> bool),
}

impl<O> Deletion<O> {
    /// Returns whether an owner is deleted in order.
    pub(crate) fn is_ordered(&self, owner: &O) -> bool {
        match self {
            Self::GarbageCollected => false,
            Self::Ordered => true,
            Self::OrderedWhen(ordered) => ordered(owner),
        }
    }

    /// Returns whether any owner may be deleted in order, so that the operator needs the right to set finalizers.
    pub(crate) fn may_be_ordered(&self) -> bool {
        !matches!(self, Self::GarbageCollected)
    }
}

/// A controller of one kind of owner, whatever its style.
pub trait Controls: Send + Sync + 'static {
    /// The kind of the owners: each has a plan.
    type Owner: OwnerKind;

    /// The name of the controller: field manager, label value, name in logs and metrics. **Never change it** once a cluster has
    /// seen it: every object is known by it. At most 63 letters, digits, `-`, `_` and `.`.
    const NAME: &'static str;

    /// How the objects of a deleted owner go. Default: the garbage collector deletes them.
    const DELETION: Deletion<Self::Owner> = Deletion::GarbageCollected;

    /// Declares the kinds that are planned and asked for. A kind that is not declared here cannot be used.
    fn kinds(&self, kinds: &mut Kinds);

    /// Returns fields of the status beside the [standard ones](crate::Status), as a JSON object: what this kind shows its
    /// users.
    ///
    /// Its `conditions`, if it has any, are more conditions: of each a `type`, a `status`, and optionally `reason` and
    /// `message`.
    fn status(&self, owner: &Self::Owner, state: &PlanState<'_>) -> Option<serde_json::Value> {
        let _ = (owner, state);
        None
    }

    /// Returns what is taken over from a former operator. Default: nothing.
    fn takeover(&self) -> Takeover<Self::Owner> {
        Takeover::none()
    }
}
