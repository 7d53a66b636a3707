//! The owner of a plan, as far as applying the plan needs to know it.

use std::collections::BTreeMap;

use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::Value;
use windlass_runtime::events::Regarding;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, Uid};
use windlass_runtime::object::owner::{Owner, OwnerError};
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::names::{ask, label};

/// The owner of a plan, in every respect but its spec.
pub(crate) struct OwnerView {
    pub(crate) resource: ResourceType,
    pub(crate) key: ObjectKey,
    pub(crate) uid: Uid,
    pub(crate) generation: i64,
    pub(crate) status: Value,
    /// The top-level fields of the status that this controller has applied.
    pub(crate) status_fields: Vec<String>,
    reference: Owner,
    annotations: BTreeMap<String, String>,
}

impl OwnerView {
    pub(crate) fn of<K>(owner: &K, meta: &Meta, status_fields: Vec<String>) -> Result<Self, OwnerError>
    where
        K: Kind + HasStatus<Status: Serialize> + Serialize,
    {
        let status = owner.status().and_then(|status| serde_json::to_value(status).ok()).unwrap_or_default();
        Ok(Self {
            resource: ResourceType::of::<K>(),
            key: meta.key.clone(),
            uid: meta.uid,
            generation: meta.generation,
            status: without_nulls(status),
            status_fields,
            reference: Owner::of(owner)?,
            annotations: kube::Resource::meta(owner).annotations.clone().unwrap_or_default(),
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

    /// Returns whether the garbage collector can see to it that an object in `namespace` goes with this owner.
    pub(crate) fn can_be_referred_to_from(&self, namespace: Option<&str>) -> bool {
        self.reference.controller_reference(namespace).is_ok()
    }

    pub(crate) fn reference_for(&self, namespace: Option<&str>) -> Result<Value, OwnerError> {
        let reference = self.reference.controller_reference(namespace)?;
        Ok(serde_json::to_value(reference).unwrap_or_default())
    }

    /// Returns whether a live object belongs to this owner, by label or by reference.
    pub(crate) fn has(&self, meta: &Meta) -> bool {
        match meta.controller() {
            Some(controller) => controller.uid == self.uid,
            None => meta.labels.get(label::OWNER).is_some_and(|uid| **uid == *self.uid.to_string()),
        }
    }

    /// Returns whether a live object is this owner's to delete: a copy that somebody made of one of ours has our labels too, but was
    /// never applied by us.
    pub(crate) fn made(&self, meta: &Meta) -> bool {
        self.has(meta) && (meta.controller().is_some() || !meta.managed.is_empty())
    }

    /// What was generated for this owner, as its status says: `Secret/key`, or `key` where an older version wrote it.
    pub(crate) fn generated(&self) -> Vec<String> {
        let generated = self.status.get("generated").and_then(Value::as_array);
        generated.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// Returns whether an object was generated for this owner before. An entry without a kind counts for every kind.
    pub(crate) fn has_generated(&self, kind: &str, name: &str) -> bool {
        let entry = generated_entry(kind, name);
        self.generated().iter().any(|generated| *generated == entry || generated == name)
    }

    /// Returns whether the user allows that a generated object is generated anew.
    pub(crate) fn may_regenerate(&self, kind: &str, name: &str) -> bool {
        let entry = generated_entry(kind, name);
        self.annotation(ask::REGENERATE).is_some_and(|names| {
            names.split(',').map(str::trim).any(|allowed| allowed == name || allowed == entry)
        })
    }

    /// Returns whether all of this plan has been there: the status says so, of this very generation.
    pub(crate) fn was_complete(&self) -> bool {
        self.is_observed() && condition(&self.status, "Ready").is_some_and(|(status, _)| status == "True")
    }

    fn is_observed(&self) -> bool {
        self.status.get("observedGeneration").and_then(Value::as_i64) == Some(self.generation)
    }

    /// Returns whether a deletion of more than half of its objects is explained.
    pub(crate) fn explains_pruning(&self) -> bool {
        !self.is_observed() || self.annotation(ask::ALLOW_PRUNE) == Some(&*self.generation.to_string())
    }
}

/// An entry of `status.generated`.
pub(crate) fn generated_entry(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// Status and reason of a condition in the status of an owner.
pub(crate) fn condition(status: &Value, kind: &str) -> Option<(String, String)> {
    let conditions = status.get("conditions").and_then(Value::as_array);
    let found = conditions.into_iter().flatten().find(|condition| condition["type"] == *kind)?;
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    Some((text("status"), text("reason")))
}

/// A typed status writes absent fields as null or not at all; the cluster does not have them.
fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    value
}

#[cfg(test)]
impl OwnerView {
    /// An owner for tests: a ConfigMap of this name with this status.
    pub(crate) fn sample(name: &str, status: Value) -> Self {
        use k8s_openapi::api::core::v1::ConfigMap;
        let uid: Uid = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d".parse().unwrap();
        let meta = serde_json::json!({"name": name, "namespace": "shop", "uid": uid.to_string()});
        let object: ConfigMap = serde_json::from_value(serde_json::json!({"metadata": meta})).unwrap();
        Self {
            resource: ResourceType::of::<ConfigMap>(),
            key: ObjectKey::namespaced("shop", name),
            uid,
            generation: 1,
            status,
            status_fields: Vec::new(),
            reference: Owner::of(&object).unwrap(),
            annotations: BTreeMap::new(),
        }
    }
}
