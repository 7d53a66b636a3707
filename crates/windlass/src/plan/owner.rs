//! The owner of a plan, as far as the applier needs to know it.

use std::collections::BTreeMap;

use kube::api::ObjectMeta;
use kube::core::object::HasStatus;
use serde::Serialize;
use serde_json::Value;
use windlass_runtime::events::Regarding;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::meta::{Meta, Uid};
use windlass_runtime::object::owner::{Owner, OwnerError};
use windlass_runtime::resource::ResourceType;

use crate::live::Kind;
use crate::names::{self, ask, label};

/// The owner of a plan, without its spec.
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

    /// Returns the view of an owner that cannot be decoded as its kind, from its metadata and its status.
    pub(crate) fn undecoded(
        resource: ResourceType,
        object_meta: &ObjectMeta,
        meta: &Meta,
        status: Value,
        status_fields: Vec<String>,
    ) -> Result<Self, OwnerError> {
        let (name, uid) = (object_meta.name.as_deref(), object_meta.uid.as_deref());
        let (api_version, kind) = (resource.api_version(), resource.kind.to_string());
        let reference = Owner::new(api_version, kind, object_meta.namespace.as_deref(), name, uid)?;
        Ok(Self {
            resource,
            key: meta.key.clone(),
            uid: meta.uid,
            generation: meta.generation,
            status: without_nulls(status),
            status_fields,
            reference,
            annotations: object_meta.annotations.clone().unwrap_or_default(),
        })
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    pub(crate) fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(String::as_str)
    }

    /// Returns `<Kind>/<name>`, as annotations name the owner.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.resource.kind, self.key.name())
    }

    pub(crate) fn regarding(&self) -> Regarding {
        Regarding::new(&self.resource, &self.key, self.uid)
    }

    /// Returns whether the garbage collector can delete an object in `namespace` together with this owner.
    pub(crate) fn can_be_referred_to_from(&self, namespace: Option<&str>) -> bool {
        self.reference.controller_reference(namespace).is_ok()
    }

    pub(crate) fn reference_for(&self, namespace: Option<&str>) -> Result<Value, OwnerError> {
        let reference = self.reference.controller_reference(namespace)?;
        Ok(serde_json::to_value(reference).unwrap_or_default())
    }

    /// Returns whether a live object belongs to this owner, by reference or by label.
    ///
    /// A reference counts only from where it is valid. A label counts in the owner's own namespace; users of
    /// another one may set it on objects of theirs, so there this controller must have applied the object.
    pub(crate) fn has(&self, meta: &Meta) -> bool {
        let namespace = meta.namespace();
        if let Some(controller) = meta.controller() {
            return controller.uid == self.uid && self.can_be_referred_to_from(namespace);
        }
        let labelled = meta.labels.get(label::OWNER);
        labelled.is_some_and(|uid| **uid == *self.uid.to_string())
            && (namespace == self.namespace() || !meta.managed.is_empty())
    }

    /// Returns whether this owner may delete a live object: a copy that somebody made of one of its objects
    /// has its labels too, but was never applied by this controller.
    pub(crate) fn made(&self, meta: &Meta) -> bool {
        self.has(meta) && (meta.controller().is_some() || !meta.managed.is_empty())
    }

    /// Returns the generated objects that the owner's status lists: `Secret/key`, or `key` if an older
    /// version wrote the entry.
    pub(crate) fn generated(&self) -> Vec<String> {
        let generated = self.status.get("generated").and_then(Value::as_array);
        generated.into_iter().flatten().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    /// Returns whether an object was generated for this owner before. An entry without a kind counts for
    /// every kind.
    pub(crate) fn has_generated(&self, kind: &str, name: &str) -> bool {
        let entry = generated_entry(kind, name);
        self.generated().iter().any(|generated| *generated == entry || generated == name)
    }

    /// Returns whether the user allows a generated object to be generated again.
    pub(crate) fn may_regenerate(&self, kind: &str, name: &str) -> bool {
        let entry = generated_entry(kind, name);
        self.annotation(ask::REGENERATE).is_some_and(|names| {
            names.split(',').map(str::trim).any(|allowed| allowed == name || allowed == entry)
        })
    }

    /// Returns whether the plan of this generation was complete before, as the status says.
    pub(crate) fn was_complete(&self) -> bool {
        self.is_complete() && condition(&self.status, "Ready").is_some_and(|(status, _)| status == "True")
    }

    /// Returns whether a plan of the present generation was complete.
    fn is_complete(&self) -> bool {
        complete_generation(&self.status) == Some(self.generation)
    }

    /// Returns whether a deletion of more than half of the owner's objects is explained.
    pub(crate) fn explains_pruning(&self) -> bool {
        !self.is_complete() || self.annotation(ask::ALLOW_PRUNE) == Some(&*self.generation.to_string())
    }
}

/// Returns the last generation with a complete plan, as a status records it. Usually this is the observed
/// generation, and always if an older version wrote the status.
pub(crate) fn complete_generation(status: &Value) -> Option<i64> {
    let field = |name: &str| status.get(name).and_then(Value::as_i64);
    field(names::status::COMPLETE).or_else(|| field(names::status::OBSERVED))
}

/// Returns an entry of `status.generated`.
pub(crate) fn generated_entry(kind: &str, name: &str) -> String {
    format!("{kind}/{name}")
}

/// Returns status and reason of a condition in the status of an owner.
pub(crate) fn condition(status: &Value, kind: &str) -> Option<(String, String)> {
    let found = find_condition(status, kind)?;
    Some((text(found, "status"), text(found, "reason")))
}

/// Returns the message of a condition in the status of an owner; empty if there is none.
pub(crate) fn condition_message(status: &Value, kind: &str) -> String {
    find_condition(status, kind).map(|found| text(found, "message")).unwrap_or_default()
}

fn find_condition<'s>(status: &'s Value, kind: &str) -> Option<&'s Value> {
    let conditions = status.get("conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == *kind)
}

fn text(condition: &Value, field: &str) -> String {
    condition[field].as_str().unwrap_or_default().to_owned()
}

/// Removes nulls: a typed status writes absent fields as null, and the cluster does not have them.
fn without_nulls(mut value: Value) -> Value {
    if let Some(members) = value.as_object_mut() {
        members.retain(|_, value| !value.is_null());
    }
    value
}

#[cfg(test)]
impl OwnerView {
    /// Returns an owner for tests: a ConfigMap of this name with this status.
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_runtime::meta::Keep;

    const UID: &str = "0b8d1c1e-9b1f-4f0e-8a63-7a5d1f0c2e9d";

    /// The owner of the sample, or the same owner without a namespace.
    fn owner(namespace: Option<&str>) -> OwnerView {
        let mut owner = OwnerView::sample("web", Value::Null);
        owner.reference = Owner::new("v1", "ConfigMap", namespace, Some("web"), Some(UID)).unwrap();
        if namespace.is_none() {
            owner.key = ObjectKey::cluster("web");
        }
        owner
    }

    fn object(namespace: Option<&str>, referring: bool, applied: bool) -> Meta {
        let mut meta = json!({"name": "a", "uid": "6a2b2c53-8b2b-4b39-9d3b-0c3a0a8f4d11", "labels": {label::OWNER: UID}});
        if let Some(namespace) = namespace {
            meta["namespace"] = namespace.into();
        }
        if referring {
            meta["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "web", "uid": UID, "controller": true}]);
        }
        if applied {
            meta["managedFields"] = json!([{"manager": "m", "operation": "Apply", "apiVersion": "v1",
                "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {}}}]);
        }
        let keep = Keep::default().manager("m");
        keep.scope(|| serde_json::from_str(&meta.to_string())).unwrap()
    }

    #[test]
    fn seam_low_an_object_with_forged_labels_in_another_namespace_belongs_to_nobody() {
        let namespaced = owner(Some("shop"));
        assert!(namespaced.has(&object(Some("shop"), false, false)), "in its own namespace");
        assert!(!namespaced.made(&object(Some("shop"), false, false)), "a copy");
        for elsewhere in [Some("other"), None] {
            assert!(!namespaced.has(&object(elsewhere, false, false)), "a label in {elsewhere:?}");
            let applied = object(elsewhere, false, true);
            assert!(namespaced.has(&applied) && namespaced.made(&applied), "planned in {elsewhere:?}");
            let referring = object(elsewhere, true, true);
            assert!(!namespaced.has(&referring) && !namespaced.made(&referring), "from {elsewhere:?}");
        }
        let refers = object(Some("shop"), true, false);
        assert!(namespaced.has(&refers) && namespaced.made(&refers));
    }

    #[test]
    fn seam_low_objects_of_a_cluster_scoped_owner_belong_to_it_by_reference_in_every_namespace() {
        let cluster = owner(None);
        for place in [Some("shop"), None] {
            assert!(cluster.made(&object(place, true, false)), "by reference in {place:?}");
            assert!(cluster.made(&object(place, false, true)), "retained in {place:?}");
        }
        assert!(!cluster.has(&object(Some("shop"), false, false)), "a label that any user may set");
    }
}
