//! Owners without their types.
//!
//! The work for an owner is the same for all kinds, so its code is compiled once for all controllers of a
//! program. A style implements these traits for its owners.

use std::time::Duration;

use kube::api::ObjectMeta;
use serde_json::Value;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::object::owner::OwnerError;

use super::state::PlanState;
use super::unreadable::Unreadable;
use crate::error::PlanError;
use crate::plan::owner::OwnerView;
use crate::plan::{Needs, Plan};

/// The owners of a controller.
pub(crate) trait Owners: Send + Sync {
    /// Returns the owner of a key, if it exists.
    fn get(&self, key: &ObjectKey) -> Option<Result<Box<dyn OwnerHandle + '_>, Unreadable>>;
    /// Returns the keys of the owners with this uid.
    fn of_uid(&self, uid: &str) -> Vec<ObjectKey>;
    /// Forgets an owner that is gone, is being deleted, or belongs to another instance.
    fn forget(&self, key: &ObjectKey);
}

/// One owner, with the declarations of its controller.
pub(crate) trait OwnerHandle: Send + Sync {
    fn view(&self) -> Result<OwnerView, OwnerError>;
    fn meta(&self) -> &Meta;
    fn object_meta(&self) -> &ObjectMeta;
    fn has_finalizer(&self, name: &str) -> bool {
        self.meta().finalizers.iter().any(|finalizer| **finalizer == *name)
    }
    /// Returns whether the owner is deleted in order, so that it needs a finalizer.
    fn is_deleted_in_order(&self) -> bool;
    /// Returns whether owners of this kind were deleted in order by a former version of the operator, so that
    /// the finalizer of that version is removed.
    fn was_deleted_in_order(&self) -> bool;
    /// Returns whether the objects of the owner are found by their marks when it is deleted, without its
    /// plan.
    fn is_torn_down_by_inventory(&self) -> bool {
        false
    }
    /// Returns the reason why nothing is done for the owner yet.
    fn why_wait(&self) -> Option<String>;
    fn draw(&self, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError>;
    /// Called when the plan has been drawn for the last time in this pass, before it is applied.
    fn drawn(&self) {}
    /// Returns whether nothing was decided in this pass, so that the status stays as it is.
    fn is_undecided(&self) -> bool {
        false
    }
    fn status(&self, state: &PlanState<'_>) -> Option<Value>;
    /// Returns the time after which the pass has to be repeated, beside what its plan says.
    fn due(&self) -> Option<Duration> {
        None
    }
}
