//! Owners that cannot be decoded as their kind.
//!
//! An object may be older than its CRD, or the CRD newer than the operator. Such an owner has no plan, but it
//! has a status and events as others have, its own status fields are kept, and it can be deleted.

use kube::api::ObjectMeta;
use serde_json::{Map, Value};
use windlass_runtime::json::typed;
use windlass_runtime::meta::Meta;
use windlass_runtime::object::owner::OwnerError;

use super::handle::OwnerHandle;
use super::state::PlanState;
use super::unreadable::Unreadable;
use crate::error::PlanError;
use crate::names::status as field;
use crate::plan::owner::OwnerView;
use crate::plan::{Needs, Plan};

/// An owner that cannot be decoded.
pub(super) struct UndecodedOwner {
    unreadable: Unreadable,
    object_meta: ObjectMeta,
    /// The top-level fields of the status that this controller has applied.
    status_fields: Vec<String>,
}

impl UndecodedOwner {
    /// Returns the handle of an owner of this controller.
    pub(super) fn of(unreadable: Unreadable, controller: &str) -> Result<Box<dyn OwnerHandle>, Unreadable> {
        let Ok(object_meta) = typed(&unreadable.object["metadata"]) else { return Err(unreadable) };
        let of_controller = unreadable.status_fields.iter().filter(|(by, _)| **by == *controller);
        let status_fields = of_controller.map(|(_, field)| field.to_string()).collect();
        Ok(Box::new(Self { unreadable, object_meta, status_fields }))
    }

    fn written_status(&self) -> Value {
        self.unreadable.object.get("status").cloned().unwrap_or_default()
    }
}

impl OwnerHandle for UndecodedOwner {
    fn view(&self) -> Result<OwnerView, OwnerError> {
        let Unreadable { resource, meta, .. } = &self.unreadable;
        let (status, fields) = (self.written_status(), self.status_fields.clone());
        OwnerView::undecoded((**resource).clone(), &self.object_meta, meta, status, fields)
    }

    fn meta(&self) -> &Meta {
        &self.unreadable.meta
    }

    fn object_meta(&self) -> &ObjectMeta {
        &self.object_meta
    }

    fn is_deleted_in_order(&self) -> bool {
        false
    }

    fn was_deleted_in_order(&self) -> bool {
        false
    }

    fn why_wait(&self) -> Option<String> {
        None
    }

    fn draw(&self, _: &mut Needs<'_>, _: &mut Plan) -> Result<(), PlanError> {
        Err(PlanError::new(self.unreadable.to_string()))
    }

    /// Returns the kind's own fields as they were written before: guards, such as the version of the data,
    /// depend on them.
    fn status(&self, _: &PlanState<'_>) -> Option<Value> {
        let standard = ["conditions", field::OBSERVED, field::COMPLETE, field::GENERATED];
        let written = self.written_status();
        let own = self.status_fields.iter().filter(|name| !standard.contains(&name.as_str()));
        let own = own.filter_map(|name| Some((name.clone(), written.get(name)?.clone())));
        Some(Value::Object(own.collect::<Map<_, _>>()))
    }
}
