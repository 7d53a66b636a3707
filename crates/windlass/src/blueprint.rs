//! What the author of an operator writes.

use std::fmt;

use kube::core::object::HasStatus;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::desired::Kind;
use crate::error::DrawError;
use crate::inputs::{Inputs, Resolved};
use crate::kinds::Kinds;
use crate::plan::Plan;
use crate::seen::Seen;

/// A kind that can own a plan: one made with `#[derive(CustomResource)]` that has a status.
pub trait OwnerKind:
    Kind + HasStatus<Status: Serialize> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

impl<K> OwnerKind for K where
    K: Kind + HasStatus<Status: Serialize> + Serialize + DeserializeOwned + Clone + fmt::Debug + Send + Sync
{
}

/// Which resources make up one thing, and what each of them waits for. See the [crate](crate) for an example.
///
/// `inputs`, `further_inputs` and `draw` are pure: they do no I/O, look at no clock, and give the same for the same owner and inputs, to the byte.
/// They run at every event, so they should be quick.
pub trait Blueprint: Send + Sync + 'static {
    /// Whose plan it is.
    type Owner: OwnerKind;

    /// Its name: field manager, label value, controller name in logs and metrics. **Never to be changed** once a cluster has seen
    /// it: every object is known by it. At most 63 letters, digits, `-`, `_` and `.`.
    const NAME: &'static str;

    /// Whether an owner may ever need [ordered deletion](Self::ordered_deletion). Where none does, say `false`: the operator then
    /// has no right to change its owners, only their status.
    const FINALIZES: bool = true;

    /// The kinds that are planned and required. A kind that is not declared here cannot be used.
    fn kinds(&self, kinds: &mut Kinds);

    /// Why nothing is to be done for an owner yet, if so; its status says it. Pure, and asked at every look: a change of the owner's
    /// spec, labels or annotations is a look.
    ///
    /// For owners that are written by another controller: what was written by one that it succeeds is not worth rolling pods for.
    fn awaits(&self, owner: &Self::Owner) -> Option<String> {
        let _ = owner;
        None
    }

    /// What the owner needs of others.
    fn inputs(&self, owner: &Self::Owner, inputs: &mut Inputs) {
        let _ = (owner, inputs);
    }

    /// What it needs besides, that only other inputs tell of: Secrets that a required object names. Asked once those have been read;
    /// what is not there yet is not [given](Resolved::object).
    fn further_inputs(&self, owner: &Self::Owner, given: &Resolved, inputs: &mut Inputs) {
        let _ = (owner, given, inputs);
    }

    /// Draws the plan. It is also drawn while inputs are missing: what depends on their values is then [pending](Plan::pending).
    ///
    /// An error is terminal until the owner or an input changes, and changes nothing in the cluster: nothing is pruned.
    fn draw(&self, owner: &Self::Owner, given: &Resolved, plan: &mut Plan) -> Result<(), DrawError>;

    /// Whether the order of deletion matters, or something outside of the cluster has to be undone: then the owner gets a
    /// finalizer, and the plan is taken down in reverse. Otherwise the garbage collector does it, at no cost. Not asked where the
    /// blueprint never [finalizes](Self::FINALIZES).
    fn ordered_deletion(&self, owner: &Self::Owner) -> bool {
        let _ = owner;
        false
    }

    /// Fields of the status beside the [standard ones](crate::Status), as a JSON object: what this kind shows its users.
    ///
    /// Its `conditions`, if it has any, are more conditions: of each a `type`, a `status`, and as you like `reason` and `message`.
    fn status(&self, owner: &Self::Owner, seen: &Seen<'_>) -> Option<serde_json::Value> {
        let _ = (owner, seen);
        None
    }
}
