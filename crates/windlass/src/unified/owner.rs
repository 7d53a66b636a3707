//! What a run needs to know of its owner.

use std::collections::BTreeMap;

use kube::Resource;
use serde_json::Value;
use windlass_runtime::events::Regarding;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, Uid};
use windlass_runtime::object::owner::{Owner, OwnerError};
use windlass_runtime::resource::ResourceType;

use crate::blueprint::OwnerKind;
use crate::names::{ask, label};
use crate::status;

/// The owner of a plan, in every respect but its spec.
pub(crate) struct OwnerView {
    pub(crate) resource: ResourceType,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) generation: i64,
    pub(crate) status: Value,
    reference: Owner,
    annotations: BTreeMap<String, String>,
}

impl OwnerView {
    pub(crate) fn of<K: OwnerKind>(owner: &K, meta: &Meta) -> Result<Self, OwnerError> {
        let status = owner.status().and_then(|status| serde_json::to_value(status).ok()).unwrap_or_default();
        Ok(Self {
            resource: ResourceType::of::<K>(),
            key: meta.key.clone(),
            uid: meta.uid,
            generation: meta.generation,
            status: without_nulls(status),
            reference: Owner::of(owner)?,
            annotations: Resource::meta(owner).annotations.clone().unwrap_or_default(),
        })
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    pub(crate) fn is_paused(&self) -> bool {
        self.annotation(ask::PAUSED) == Some("true")
    }

    /// `<Kind>/<name>`, as annotations name it.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.resource.kind, self.key.name())
    }

    pub(crate) fn regarding(&self) -> Regarding {
        Regarding::new(&self.resource, &self.key, self.uid)
    }

    /// Whether the garbage collector can see to it that an object in `namespace` goes with this owner.
    pub(crate) fn can_be_referred_to_from(&self, namespace: Option<&str>) -> bool {
        self.reference.controller_reference(namespace).is_ok()
    }

    pub(crate) fn reference_for(&self, namespace: Option<&str>) -> Result<Value, OwnerError> {
        let reference = self.reference.controller_reference(namespace)?;
        Ok(serde_json::to_value(reference).unwrap_or_default())
    }

    /// Whether a live object belongs to this owner, by label or by reference.
    pub(crate) fn has(&self, meta: &Meta) -> bool {
        match meta.controller() {
            Some(controller) => controller.uid == self.uid,
            None => meta.labels.get(label::OWNER).is_some_and(|uid| **uid == *self.uid.to_string()),
        }
    }

    /// Whether a live object is this owner's to delete: a copy that somebody made of one of ours has our labels too, but was
    /// never applied by us.
    pub(crate) fn made(&self, meta: &Meta) -> bool {
        self.has(meta) && (meta.controller().is_some() || !meta.managed.is_empty())
    }

    /// What was generated for this owner, by its status.
    pub(crate) fn generated(&self) -> Vec<String> {
        let generated = self.status.get("generated").and_then(Value::as_array);
        generated.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// Whether a generated object may be made anew.
    pub(crate) fn may_regenerate(&self, name: &str) -> bool {
        self.annotation(ask::REGENERATE)
            .is_some_and(|names| names.split(',').any(|allowed| allowed.trim() == name))
    }

    /// Whether all of this plan has been there: the status says so, of this very generation.
    pub(crate) fn was_complete(&self) -> bool {
        self.is_observed()
            && status::said(&self.status, status::condition::READY).is_some_and(|(truth, _)| truth == "True")
    }

    fn is_observed(&self) -> bool {
        self.status.get("observedGeneration").and_then(Value::as_i64) == Some(self.generation)
    }

    /// Whether a deletion of more than half of its objects is explained.
    pub(crate) fn explains_pruning(&self) -> bool {
        !self.is_observed() || self.annotation(ask::ALLOW_PRUNE) == Some(&*self.generation.to_string())
    }
}

/// A typed status writes absent fields as null or not at all; the cluster does not have them.
fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    value
}
