//! Owners, without their types.
//!
//! What is done for an owner is the same for all kinds, so its code is in the program once, however many controllers it has.
//! A style implements these traits for its owners.

use kube::api::ObjectMeta;
use serde_json::Value;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::object::owner::OwnerError;

use super::state::PlanState;
use super::text::Unreadable;
use crate::error::PlanError;
use crate::plan::owner::OwnerView;
use crate::plan::{Needs, Plan};

/// The owners of a controller.
pub(crate) trait Owners: Send + Sync {
    /// The owner of a key, if it exists.
    fn get(&self, key: &ObjectKey) -> Option<Result<Box<dyn OwnerHandle + '_>, Unreadable>>;
    /// The owner of this uid, if it exists.
    fn of_uid(&self, uid: &str) -> Vec<ObjectKey>;
}

/// One owner, with what its controller says of it.
pub(crate) trait OwnerHandle: Send + Sync {
    fn view(&self) -> Result<OwnerView, OwnerError>;
    fn meta(&self) -> &Meta;
    fn object_meta(&self) -> &ObjectMeta;
    /// Returns whether its deletion has an order, so that it has a finalizer of ours.
    fn is_deleted_in_order(&self) -> bool;
    /// Why nothing is to be done for it yet.
    fn why_wait(&self) -> Option<String>;
    fn draw(&self, needs: &mut Needs<'_>, plan: &mut Plan) -> Result<(), PlanError>;
    fn status(&self, state: &PlanState<'_>) -> Option<Value>;
}
