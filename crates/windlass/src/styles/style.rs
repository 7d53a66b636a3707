//! The part of a controller that differs between styles: one pass of one owner.

use std::time::Duration;

use serde_json::Value;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;

use super::blueprint::Blueprint;
use super::controls::Controls;
use crate::error::PlanError;
use crate::owner::PlanState;
use crate::plan::{Needs, Plan};

/// A style of writing an operator, for controllers of the type `C`.
pub(crate) trait Style<C: Controls>: Send + Sync + 'static {
    /// The state of one pass of one owner.
    type Pass: Send + Sync;

    /// Begins a pass.
    fn begin(&self, owner: &Meta) -> Self::Pass;

    /// Draws the plan. Pure; called several times in one pass.
    fn draw(
        &self,
        controls: &C,
        owner: &C::Owner,
        pass: &Self::Pass,
        needs: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError>;

    /// Called when the plan of the pass has been drawn for the last time, before it is applied.
    fn drawn(&self, name: &'static str, pass: &Self::Pass) {
        let _ = (name, pass);
    }

    /// Returns whether nothing was decided in this pass, so that the status stays as it is.
    fn is_undecided(&self, pass: &Self::Pass) -> bool {
        let _ = pass;
        false
    }

    /// Returns the kind's own part of the status.
    fn status(
        &self,
        controls: &C,
        owner: &C::Owner,
        pass: &Self::Pass,
        state: &PlanState<'_>,
    ) -> Option<Value> {
        let _ = pass;
        controls.status(owner, state)
    }

    /// Returns the time after which the pass has to be repeated, beside what the plan says.
    fn due(&self, pass: &Self::Pass) -> Option<Duration> {
        let _ = pass;
        None
    }

    /// Returns whether the objects of a deleted owner are found by their marks, without its plan.
    fn is_torn_down_by_inventory(&self) -> bool {
        false
    }

    /// Forgets an owner that is gone.
    fn forget(&self, key: &ObjectKey) {
        let _ = key;
    }
}

/// The style of a blueprint.
pub(crate) struct Drawing;

impl<B: Blueprint> Style<B> for Drawing {
    type Pass = ();

    fn begin(&self, _: &Meta) {}

    fn draw(
        &self,
        blueprint: &B,
        owner: &B::Owner,
        (): &(),
        needs: &mut Needs<'_>,
        plan: &mut Plan,
    ) -> Result<(), PlanError> {
        blueprint.draw(owner, needs, plan)
    }
}
