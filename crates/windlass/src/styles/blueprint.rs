//! The blueprint style: the resources of one owner, and their order.

use super::controls::Controls;
use crate::error::PlanError;
use crate::plan::{Needs, Plan};

/// The resources that make up one owner, and the order between them. See the [crate](crate) for an example.
pub trait Blueprint: Controls {
    /// Draws the plan of an owner.
    ///
    /// It is pure: it does no I/O, reads no clock, and gives the same plan for the same owner and answers, to
    /// the byte. It runs in every reconcile, so it should be quick. It is also called while something that it
    /// [asked for](Needs) is missing: what depends on the values is then [pending](Plan::pending).
    ///
    /// # Errors
    /// An error is terminal until the owner, or an object that the plan asked for, changes. It changes
    /// nothing in the cluster: nothing is pruned.
    fn draw(&self, owner: &Self::Owner, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError>;
}
