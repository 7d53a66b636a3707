//! Owners as the cache keeps them: as JSON text.
//!
//! An owner is the largest object that a controller keeps: the Rust type of a Harbor takes eight kilobytes,
//! most of them for unset fields. Text takes only the space of the fields that are set; and one cache of
//! texts serves the owners of all blueprints, while a cache of types would be compiled for each. A reconcile
//! decodes its owner once.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;
use windlass_runtime::cache::{Digest, Shape};
use windlass_runtime::intern::Str;
use windlass_runtime::json::typed;
use windlass_runtime::meta::Meta;
use windlass_runtime::resource::ResourceType;

use super::unreadable::Unreadable;
use crate::live::Kind;

/// An owner without its `managedFields`.
pub(crate) struct OwnerText {
    meta: Meta,
    annotations: Digest,
    text: Box<[u8]>,
    /// Field managers, and the top-level fields of the status that each has applied.
    status_fields: Box<[(Str, Str)]>,
}

impl OwnerText {
    /// Decodes the owner.
    pub(crate) fn read<K: Kind + DeserializeOwned>(&self) -> Result<K, Unreadable> {
        serde_json::from_slice(&self.text).map_err(|error| {
            let resource = ResourceType::of::<K>();
            Unreadable::new(resource, &error, &self.meta, &self.text, &self.status_fields)
        })
    }

    /// Returns the top-level fields of the status that a field manager has applied.
    pub(crate) fn status_fields(&self, manager: &str) -> Vec<String> {
        let of_manager = self.status_fields.iter().filter(|(by, _)| **by == *manager);
        of_manager.map(|(_, field)| field.to_string()).collect()
    }

    /// Returns whether the change from `old` needs a reconcile. The status is ours; changes that others make
    /// there are ignored.
    pub(crate) fn is_news_after(&self, old: &Self) -> bool {
        (old.meta.generation, old.annotations) != (self.meta.generation, self.annotations)
            || old.meta.labels != self.meta.labels
            || old.meta.finalizers != self.meta.finalizers
    }
}

impl Shape for OwnerText {
    fn meta(&self) -> &Meta {
        &self.meta
    }

    fn approximate_size(&self) -> usize {
        size_of::<Self>() + self.meta.heap_size() + self.text.len()
    }
}

impl<'de> Deserialize<'de> for OwnerText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut object = Value::deserialize(deserializer)?;
        let metadata = object.get_mut("metadata").ok_or_else(|| D::Error::missing_field("metadata"))?;
        let managed = metadata.as_object_mut().and_then(|metadata| metadata.remove("managedFields"));
        let status_fields = managed.as_ref().map(status_fields).unwrap_or_default();
        let meta = typed(metadata).map_err(D::Error::custom)?;
        let annotations = Digest::of(&metadata["annotations"]).map_err(D::Error::custom)?;
        let text = serde_json::to_vec(&object).map_err(D::Error::custom)?;
        Ok(Self { meta, annotations, text: text.into(), status_fields })
    }
}

/// Returns the top-level fields of the status with the manager that applied each of them.
fn status_fields(managed: &Value) -> Box<[(Str, Str)]> {
    let entries = managed.as_array().into_iter().flatten();
    let applied = entries.filter(|entry| entry["operation"] == "Apply" && entry["subresource"] == "status");
    let fields = applied.flat_map(|entry| {
        let by = Str::new(entry["manager"].as_str().unwrap_or_default());
        let status = entry.pointer("/fieldsV1/f:status").and_then(Value::as_object);
        let names = status.into_iter().flat_map(|status| status.keys());
        names.filter_map(move |key| Some((by.clone(), Str::new(key.strip_prefix("f:")?))))
    });
    fields.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::json;

    fn text(object: &Value) -> OwnerText {
        serde_json::from_str(&object.to_string()).unwrap()
    }

    fn owner() -> Value {
        json!({"metadata": {"name": "o", "generation": 1, "annotations": {"a": "b"}, "managedFields": [{"manager": "m"}]}, "data": {"k": "v"}})
    }

    #[test]
    fn an_owner_is_decoded_unchanged_except_for_its_managed_fields() {
        let mut plain: ConfigMap = typed(&owner()).unwrap();
        plain.metadata.managed_fields = None;
        let kept = text(&owner());
        assert_eq!(kept.read::<ConfigMap>().unwrap(), plain);
        assert_eq!(kept.meta().name(), "o");
    }

    #[test]
    fn a_change_by_the_user_needs_a_reconcile_and_a_change_of_the_status_does_not() {
        let old = text(&owner());
        let after = |change: &dyn Fn(&mut Value)| {
            let mut new = owner();
            change(&mut new);
            text(&new).is_news_after(&old)
        };
        assert!(!after(&|_| {}));
        assert!(!after(&|new| new["status"] = json!({"phase": "x"})));
        assert!(after(&|new| new["metadata"]["generation"] = json!(2)));
        assert!(after(&|new| new["metadata"]["annotations"]["a"] = json!("c")));
        assert!(after(&|new| new["metadata"]["labels"] = json!({"a": "c"})));
        assert!(after(&|new| new["metadata"]["finalizers"] = json!(["a/b"])));
    }

    #[test]
    fn the_status_fields_of_a_manager_are_read_from_managed_fields() {
        let mut object = owner();
        object["metadata"]["managedFields"] = json!([
            {"manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {"f:phase": {}, "f:conditions": {}}}},
            {"manager": "us", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "them", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {"f:note": {}}}},
        ]);
        let owner = text(&object);
        assert_eq!(owner.status_fields("us"), ["conditions", "phase"]);
        assert_eq!(owner.status_fields("them"), ["note"]);
        assert_eq!(owner.status_fields("nobody"), [""; 0]);
    }

    #[test]
    fn the_error_for_an_undecodable_owner_does_not_quote_its_content() {
        let mut odd = owner();
        odd["data"] = json!("hunter2");
        let error = text(&odd).read::<ConfigMap>().unwrap_err();
        assert!(error.to_string().contains("ConfigMap: data is not"), "{error}");
        assert!(!format!("{error} {error:?}").contains("hunter2"), "{error}");
    }
}
