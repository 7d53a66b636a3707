//! The only place where the types of a blueprint are known. What is done for an owner is the same for all of them, so that its code is in
//! the program once, however many controllers it has.

use std::sync::Arc;

use kube::Resource;
use kube::api::ObjectMeta;
use serde_json::Value;
use windlass_runtime::cache::{Full, Reader, Shape};
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::Meta;
use windlass_runtime::object::owner::OwnerError;

use super::builder::BY_UID;
use super::owner::OwnerView;
use crate::blueprint::Blueprint;
use crate::error::DrawError;
use crate::inputs::{Inputs, Resolved};
use crate::plan::Plan;
use crate::seen::Seen;

/// The owners of a blueprint.
pub(crate) trait Owners: Send + Sync {
    fn get(&self, key: &ObjectKey) -> Option<Box<dyn Subject + '_>>;
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
    pub(super) owners: Reader<Full<B::Owner>>,
}

struct SubjectOf<'b, B: Blueprint> {
    blueprint: &'b B,
    owner: Arc<Full<B::Owner>>,
}

impl<B: Blueprint> Owners for OwnersOf<B> {
    fn get(&self, key: &ObjectKey) -> Option<Box<dyn Subject + '_>> {
        let owner = self.owners.get(key)?;
        Some(Box::new(SubjectOf { blueprint: &self.blueprint, owner }))
    }

    fn of_uid(&self, uid: &str) -> Vec<ObjectKey> {
        self.owners.by_index(BY_UID, uid).iter().map(|owner| Shape::meta(&**owner).key.clone()).collect()
    }
}

impl<B: Blueprint> Subject for SubjectOf<'_, B> {
    fn view(&self) -> Result<OwnerView, OwnerError> {
        OwnerView::of(self.owner.object(), Shape::meta(&*self.owner))
    }

    fn meta(&self) -> &Meta {
        Shape::meta(&*self.owner)
    }

    fn object_meta(&self) -> &ObjectMeta {
        Resource::meta(self.owner.object())
    }

    fn finalizes(&self) -> bool {
        B::FINALIZES && self.blueprint.ordered_deletion(self.owner.object())
    }

    fn awaits(&self) -> Option<String> {
        self.blueprint.awaits(self.owner.object())
    }

    fn inputs(&self, inputs: &mut Inputs) {
        self.blueprint.inputs(self.owner.object(), inputs);
    }

    fn further_inputs(&self, given: &Resolved, inputs: &mut Inputs) {
        self.blueprint.further_inputs(self.owner.object(), given, inputs);
    }

    fn draw(&self, given: &Resolved, plan: &mut Plan) -> Result<(), DrawError> {
        self.blueprint.draw(self.owner.object(), given, plan)
    }

    fn status(&self, seen: &Seen<'_>) -> Option<Value> {
        self.blueprint.status(self.owner.object(), seen)
    }
}
