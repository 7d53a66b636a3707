//! Owners as a cache keeps them: their text.
//!
//! Of all that a controller keeps, an owner is the largest: the type of a Harbor takes eight kilobytes, most of them for what it does not say.
//! As text it takes what it says; and one cache of texts does for the owners of all blueprints, where one of types is compiled for each. A
//! reconcile reads its owner once, so it is decoded then.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error as _};
use serde_json::Value;
use windlass_runtime::cache::{Digest, Shape};
use windlass_runtime::intern::Str;
use windlass_runtime::json::typed;
use windlass_runtime::meta::Meta;

/// An owner without its `managedFields`.
pub(crate) struct OwnerText {
    meta: Meta,
    annotations: Digest,
    text: Box<[u8]>,
    /// Field managers, and the top-level fields of the status that each has applied.
    status_fields: Box<[(Str, Str)]>,
}

/// The owner is not what its type says. Not the decoder's own message: it may quote the content.
#[derive(Debug, thiserror::Error)]
#[error(
    "the object cannot be read as a {kind}: something at byte {at} of its compact form is not what this operator's schema says"
)]
pub(crate) struct Unreadable {
    kind: String,
    at: usize,
}

impl OwnerText {
    /// The owner, decoded.
    pub(crate) fn read<K: kube::Resource<DynamicType = ()> + DeserializeOwned>(
        &self,
    ) -> Result<K, Unreadable> {
        let unreadable =
            |error: serde_json::Error| Unreadable { kind: K::kind(&()).into_owned(), at: error.column() };
        serde_json::from_slice(&self.text).map_err(unreadable)
    }

    /// The top-level fields of the status that a field manager has applied.
    pub(crate) fn status_fields(&self, manager: &str) -> Vec<String> {
        let of_manager = self.status_fields.iter().filter(|(by, _)| **by == *manager);
        of_manager.map(|(_, field)| field.to_string()).collect()
    }

    /// Returns whether the step from `old` is worth a reconcile. The status is ours; what others write there we do not look at.
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

/// Who has applied which top-level fields of the status.
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
    fn what_is_read_is_what_was_there_but_for_its_managers() {
        let mut plain: ConfigMap = typed(&owner()).unwrap();
        plain.metadata.managed_fields = None;
        let kept = text(&owner());
        assert_eq!(kept.read::<ConfigMap>().unwrap(), plain);
        assert_eq!(kept.meta().name(), "o");
    }

    #[test]
    fn what_the_user_says_is_news_and_what_the_status_says_is_none() {
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
    fn the_fields_that_a_manager_has_applied_to_the_status_are_known() {
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
    fn what_cannot_be_read_is_not_quoted() {
        let mut odd = owner();
        odd["data"] = json!("hunter2");
        let said = text(&odd).read::<ConfigMap>().unwrap_err().to_string();
        assert!(said.contains("ConfigMap") && !said.contains("hunter2"), "{said}");
    }
}
