//! A desired object in its canonical form.
//!
//! It promises: equal objects have equal forms, whatever built them. Nulls, the status, and empty label and
//! annotation maps are removed; `stringData` of a Secret is moved to `data`, so that the applied object
//! equals the stored one.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::{Map, Value, json};
use windlass_runtime::cache::Digest;
use windlass_runtime::intern::Str;
use windlass_runtime::key::ObjectKey;
use windlass_runtime::resource::ResourceType;

use crate::error::PlanError;
use crate::live::Kind;
use crate::live::kind::{has_content, id, is_secret};
use crate::names::mark;

/// An object in its desired state.
#[derive(Clone, PartialEq)]
pub struct Desired {
    pub(crate) resource: ResourceType,
    pub(crate) key: ObjectKey,
    pub(crate) body: Value,
}

impl Desired {
    /// Returns the canonical form of an object. An object without a namespace is placed in `namespace` if its
    /// kind is namespaced.
    pub(crate) fn of<K: Kind + Serialize>(object: &K, namespace: Option<&str>) -> Result<Self, PlanError> {
        let resource = ResourceType::of::<K>();
        let body = serde_json::to_value(object).map_err(|error| {
            PlanError::new(format!("a {} cannot be written as JSON: {error}", resource.kind))
        })?;
        Self::from_value(resource, body, namespace)
    }

    /// Returns the canonical form of an object that is already JSON.
    pub(crate) fn from_value(
        resource: ResourceType,
        mut body: Value,
        namespace: Option<&str>,
    ) -> Result<Self, PlanError> {
        tidy(&mut body);
        let Some(name) =
            body.pointer("/metadata/name").and_then(Value::as_str).filter(|name| !name.is_empty())
        else {
            return Err(PlanError::new(format!(
                "a {} of the plan has no name: set metadata.name",
                resource.kind
            )));
        };
        let own = body.pointer("/metadata/namespace").and_then(Value::as_str);
        let key = match own.or(namespace).filter(|_| resource.namespaced) {
            Some(namespace) => ObjectKey::namespaced(Str::new(namespace), name),
            None if resource.namespaced => {
                let message = format!(
                    "{} {name} has no namespace, and neither has its owner: set metadata.namespace",
                    resource.kind
                );
                return Err(PlanError::new(message));
            }
            None => ObjectKey::cluster(name),
        };
        body["apiVersion"] = resource.api_version().into();
        body["kind"] = json!(resource.kind);
        if let Some(namespace) = key.namespace() {
            body["metadata"]["namespace"] = namespace.into();
        }
        if resource.group.is_empty() && resource.kind == "Secret" {
            encode_string_data(&mut body);
        }
        Ok(Self { resource, key, body })
    }

    /// Returns the kind of the object.
    pub fn resource(&self) -> &ResourceType {
        &self.resource
    }

    /// Returns the namespace and the name of the object.
    pub fn key(&self) -> &ObjectKey {
        &self.key
    }

    /// Returns the object as JSON, to be changed by a mutation. A mutation must not change the kind or the
    /// name.
    pub fn body_mut(&mut self) -> &mut Value {
        &mut self.body
    }

    /// Returns the object as JSON.
    pub fn body(&self) -> &Value {
        &self.body
    }

    /// Sets a label of the object itself.
    pub fn label(&mut self, key: &str, value: impl Into<String>) {
        self.set(&["metadata", "labels"], key, value);
    }

    /// Sets an annotation of the object itself.
    pub fn annotate(&mut self, key: &str, value: impl Into<String>) {
        self.set(&["metadata", "annotations"], key, value);
    }

    /// Sets a label of the pods that the object creates, if it creates any. The label is not added to the
    /// selector, which is immutable.
    pub fn label_pods(&mut self, key: &str, value: impl Into<String>) {
        if self.makes_pods() {
            self.set(&["spec", "template", "metadata", "labels"], key, value);
        }
    }

    /// Sets an annotation of the pods that the object creates, if it creates any: changing it rolls the pods.
    pub fn annotate_pods(&mut self, key: &str, value: impl Into<String>) {
        if self.makes_pods() {
            self.set(&["spec", "template", "metadata", "annotations"], key, value);
        }
    }

    /// Returns whether the object creates pods from a template.
    pub fn makes_pods(&self) -> bool {
        let known = matches!(
            (&*self.resource.group, &*self.resource.kind),
            ("apps", "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet") | ("batch", "Job")
        );
        known && self.body.pointer("/spec/template").is_some_and(Value::is_object)
    }

    /// Returns whether the content of the object is secret, so that its digest must be keyed.
    pub(crate) fn is_secret(&self) -> bool {
        is_secret(&self.resource)
    }

    /// Returns whether other nodes depend on the content of the object, not only on its existence.
    pub(crate) fn has_content(&self) -> bool {
        has_content(&self.resource)
    }

    /// Returns the content of the object without its metadata.
    pub(crate) fn content(&self) -> Value {
        let mut content = self.body.clone();
        if let Some(members) = content.as_object_mut() {
            members.remove("metadata");
        }
        content
    }

    /// Returns the digest of the content that flows into the nodes after it, if its kind has content.
    pub(crate) fn content_digest(&self) -> Result<Option<Vec<u8>>, PlanError> {
        if !self.has_content() {
            return Ok(None);
        }
        Ok(Some(Digest::of(&self.content())?.as_bytes().to_vec()))
    }

    /// Returns the readable name of the object: `Deployment shop-core`, with the namespace if that is not the
    /// owner's.
    pub(crate) fn id(&self, home: Option<&str>) -> String {
        id(&self.resource, &self.key, home)
    }

    fn set(&mut self, path: &[&str], key: &str, value: impl Into<String>) {
        let mut at = &mut self.body;
        for name in path {
            if !at[*name].is_object() {
                at[*name] = Value::Object(Map::new());
            }
            at = &mut at[*name];
        }
        at[key] = value.into().into();
    }
}

impl std::fmt::Debug for Desired {
    // The body is left out of debug output: the object may be a Secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.resource.kind, self.key)
    }
}

/// Returns the digest that is written to an object.
pub(crate) fn digest_of(desired: &Desired) -> String {
    let annotations = desired.body.pointer("/metadata/annotations");
    let digest = annotations.and_then(|annotations| annotations.get(mark::DIGEST)).and_then(Value::as_str);
    digest.unwrap_or_default().to_owned()
}

/// Removes empty values.
fn tidy(body: &mut Value) {
    drop_nulls(body);
    if let Some(members) = body.as_object_mut() {
        members.remove("status");
    }
    tidy_metadata(body.get_mut("metadata"));
    tidy_metadata(body.pointer_mut("/spec/template/metadata"));
}

fn tidy_metadata(metadata: Option<&mut Value>) {
    if let Some(metadata) = metadata.and_then(Value::as_object_mut) {
        for name in ["labels", "annotations"] {
            if metadata.get(name).and_then(Value::as_object).is_some_and(Map::is_empty) {
                metadata.remove(name);
            }
        }
        for name in ["managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"]
        {
            metadata.remove(name);
        }
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Moves `stringData` to `data`. The server would do the same, and then keep `stringData` among the fields
/// that we own although the stored object does not have it.
fn encode_string_data(body: &mut Value) {
    let Some(members) = body.as_object_mut() else { return };
    let Some(Value::Object(texts)) = members.remove("stringData") else { return };
    let data = members.entry("data").or_insert_with(|| Value::Object(Map::new()));
    for (key, text) in texts {
        data[key] = BASE64_STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use k8s_openapi::api::apps::v1::Deployment;
    use k8s_openapi::api::core::v1::{Namespace, Secret};

    fn of<K: Kind + Serialize + serde::de::DeserializeOwned>(object: Value) -> Result<Desired, PlanError> {
        Desired::of(&serde_json::from_value::<K>(object).unwrap(), Some("shop"))
    }

    #[test]
    fn empty_values_are_removed() {
        let object = json!({"metadata": {"name": "web", "labels": {}, "annotations": {}, "uid": "x"},
            "spec": {"selector": {}, "template": {"metadata": {"labels": {}}, "spec": {"containers": [], "securityContext": {}}}},
            "status": {"replicas": 1}});
        assert_eq!(
            of::<Deployment>(object).unwrap().body,
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
                "spec": {"selector": {}, "template": {"metadata": {}, "spec": {"containers": [], "securityContext": {}}}}})
        );
    }

    #[test]
    fn string_data_becomes_data() {
        let secret =
            of::<Secret>(json!({"metadata": {"name": "s"}, "data": {"a": "eA=="}, "stringData": {"b": "y"}}))
                .unwrap();
        assert_eq!(secret.body["data"], json!({"a": "eA==", "b": "eQ=="}));
        assert!(secret.body.get("stringData").is_none());
        assert!(!format!("{secret:?}").contains("eQ"), "never in a log");
    }

    #[test]
    fn an_object_without_a_namespace_is_placed_in_that_of_its_owner_if_its_kind_is_namespaced() {
        assert_eq!(of::<Secret>(json!({"metadata": {"name": "s"}})).unwrap().key.to_string(), "shop/s");
        assert_eq!(
            of::<Secret>(json!({"metadata": {"name": "s", "namespace": "n"}})).unwrap().key.to_string(),
            "n/s"
        );
        assert_eq!(of::<Namespace>(json!({"metadata": {"name": "n"}})).unwrap().key.to_string(), "n");
        let homeless = Desired::of(
            &Secret {
                metadata: kube::api::ObjectMeta { name: Some("s".into()), ..Default::default() },
                ..Default::default()
            },
            None,
        );
        assert!(homeless.unwrap_err().to_string().contains("set metadata.namespace"));
    }

    #[test]
    fn an_object_without_a_name_is_refused() {
        assert!(of::<Secret>(json!({"metadata": {}})).unwrap_err().to_string().contains("metadata.name"));
    }
}
