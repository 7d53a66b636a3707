//! The only place where the types of a blueprint are known. What is done for an owner is the same for all of them, so that its code is in
//! the program once, however many controllers it has.

use std::sync::Arc;

use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::Value;
use windlass_runtime::cache::{Reader, Shape as _};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::object::owner::OwnerError;

use super::builder::BY_UID;
use super::owner::OwnerView;
use super::text::{OwnerText, Unreadable};
use crate::blueprint::Blueprint;
use crate::error::DrawError;
use crate::inputs::{Inputs, Resolved};
use crate::plan::Plan;
use crate::seen::Seen;

/// The owners of a blueprint.
pub(crate) trait Owners: Send + Sync {
    fn get(&self, key: &ObjectKey) -> Option<Result<Box<dyn Subject + '_>, Unreadable>>;
    /// The owner of this uid, if there is one.
    fn of_uid(&self, uid: &str) -> Vec<ObjectKey>;
}

/// One owner, with what its [`Blueprint`] says of it.
pub(crate) trait Subject: Send + Sync {
    fn view(&self) -> Result<OwnerView, OwnerError>;
    fn meta(&self) -> &Meta;
    fn object_meta(&self) -> &ObjectMeta;
    /// Whether its deletion waits for a finalizer of ours.
    fn finalizes(&self) -> bool;
    fn awaits(&self) -> Option<String>;
    fn inputs(&self, inputs: &mut Inputs);
    fn further_inputs(&self, given: &Resolved, inputs: &mut Inputs);
    fn draw(&self, given: &Resolved, plan: &mut Plan) -> Result<(), DrawError>;
    fn status(&self, seen: &Seen<'_>) -> Option<Value>;
}

pub(super) struct OwnersOf<B: Blueprint> {
    pub(super) blueprint: B,
    pub(super) owners: Reader<OwnerText>,
}

struct SubjectOf<'b, B: Blueprint> {
    blueprint: &'b B,
    text: Arc<OwnerText>,
    owner: B::Owner,
}

impl<B: Blueprint> Owners for OwnersOf<B> {
    fn get(&self, key: &ObjectKey) -> Option<Result<Box<dyn Subject + '_>, Unreadable>> {
        let text = self.owners.get(key)?;
        let subject = |owner| -> Box<dyn Subject + '_> {
            Box::new(SubjectOf { blueprint: &self.blueprint, text: Arc::clone(&text), owner })
        };
        Some(text.read::<B::Owner>().map(subject))
    }

    fn of_uid(&self, uid: &str) -> Vec<ObjectKey> {
        self.owners.by_index(BY_UID, uid).iter().map(|owner| owner.meta().key.clone()).collect()
    }
}

impl<B: Blueprint> Subject for SubjectOf<'_, B> {
    fn view(&self) -> Result<OwnerView, OwnerError> {
        OwnerView::of(&self.owner, self.text.meta())
    }

    fn meta(&self) -> &Meta {
        self.text.meta()
    }

    fn object_meta(&self) -> &ObjectMeta {
        Resource::meta(&self.owner)
    }

    fn finalizes(&self) -> bool {
        B::FINALIZES && self.blueprint.ordered_deletion(&self.owner)
    }

    fn awaits(&self) -> Option<String> {
        self.blueprint.awaits(&self.owner)
    }

    fn inputs(&self, inputs: &mut Inputs) {
        self.blueprint.inputs(&self.owner, inputs);
    }

    fn further_inputs(&self, given: &Resolved, inputs: &mut Inputs) {
        self.blueprint.further_inputs(&self.owner, given, inputs);
    }

    fn draw(&self, given: &Resolved, plan: &mut Plan) -> Result<(), DrawError> {
        self.blueprint.draw(&self.owner, given, plan)
    }

    fn status(&self, seen: &Seen<'_>) -> Option<Value> {
        self.blueprint.status(&self.owner, seen)
    }
}
