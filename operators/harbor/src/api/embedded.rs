//! Types of Kubernetes inside our specs, kept as they were written.
//!
//! Promises that nothing in them is lost, whatever the version of Kubernetes it was written for, and that an odd value in one
//! does not make the whole object unreadable. Their schemas would be most of a definition's bytes (a volume has thirty kinds),
//! so that the large ones are open: the API server keeps every field and checks none. What is wrong in them is said when the
//! object is admitted, and when it is drawn.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use k8s_openapi::api::core::v1::{
    Affinity, EnvVar, PersistentVolumeClaimSpec, PersistentVolumeClaimVolumeSource, ResourceRequirements,
    Toleration, TopologySpreadConstraint, Volume, VolumeMount,
};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Value, json};
use windlass_runtime::json::{Unfit, typed};

/// A type of Kubernetes that a spec embeds.
pub trait Embed {
    /// Its name, in errors.
    const NAME: &'static str;

    /// What the API server checks of it: that it is an object, unless said otherwise.
    fn schema() -> Schema {
        json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
    }
}

macro_rules! open {
    ($($kind:ty = $name:literal),+ $(,)?) => {
        $(impl Embed for $kind { const NAME: &'static str = $name; })+
    };
}

open! {
    Affinity = "Affinity",
    EnvVar = "EnvVar",
    PersistentVolumeClaimSpec = "PersistentVolumeClaimSpec",
    TopologySpreadConstraint = "TopologySpreadConstraint",
    Volume = "Volume",
    VolumeMount = "VolumeMount",
    VolumeSource = "VolumeSource",
    ClaimTemplate = "PersistentVolumeClaim",
}

/// A [`Volume`] without its name, which we give it: [`Embedded::volume`].
#[derive(Clone, Copy, Debug)]
pub enum VolumeSource {}

/// The template of a PersistentVolumeClaim, as MinIO's operator takes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ClaimTemplate {
    /// Name, labels and annotations.
    #[serde(default)]
    pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    /// What is claimed.
    #[serde(default)]
    pub spec: PersistentVolumeClaimSpec,
}

impl Embed for ResourceRequirements {
    const NAME: &'static str = "ResourceRequirements";

    fn schema() -> Schema {
        let quantities = json_schema!({
            "type": "object",
            "additionalProperties": {"x-kubernetes-int-or-string": true},
        });
        json_schema!({
            "type": "object",
            "properties": {
                "limits": quantities,
                "requests": quantities,
                "claims": {
                    "type": "array",
                    "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            },
        })
    }
}

impl Embed for Toleration {
    const NAME: &'static str = "Toleration";

    fn schema() -> Schema {
        json_schema!({
            "type": "object",
            "properties": {
                "key": {"type": "string"},
                "operator": {"type": "string"},
                "value": {"type": "string"},
                "effect": {"type": "string"},
                "tolerationSeconds": {"type": "integer", "format": "int64"},
            },
        })
    }
}

/// A value of a type of Kubernetes, as it was written.
pub struct Embedded<T> {
    raw: Value,
    kind: PhantomData<fn() -> T>,
}

/// An embedded value that Kubernetes would not understand.
#[derive(Debug, thiserror::Error)]
#[error("is no {kind}: {source}; write it as in a Pod")]
pub struct NotEmbedded {
    kind: &'static str,
    source: Unfit,
}

impl<T> Embedded<T> {
    /// As it was written.
    pub fn raw(&self) -> &Value {
        &self.raw
    }
}

impl<T: Embed + DeserializeOwned> Embedded<T> {
    /// As its type. Quantities that were written as numbers are understood.
    pub fn typed(&self) -> Result<T, NotEmbedded> {
        read(self.raw.clone(), T::NAME)
    }
}

impl Embedded<VolumeSource> {
    /// Of something that a pod can have as a volume, without the name: `{"emptyDir": {}}`.
    pub fn new(raw: Value) -> Self {
        Self { raw, kind: PhantomData }
    }

    /// An empty directory of this size.
    pub fn empty_dir(size_limit: &str) -> Self {
        Self::new(json!({"emptyDir": {"sizeLimit": size_limit}}))
    }

    /// A claim.
    pub fn claim(claim: &PersistentVolumeClaimVolumeSource) -> Self {
        Self::new(json!({"persistentVolumeClaim": claim}))
    }

    /// As the volume of a pod, under this name.
    pub fn volume(&self, name: impl Into<String>) -> Result<Volume, NotEmbedded> {
        let mut volume: Volume = read(self.raw.clone(), VolumeSource::NAME)?;
        volume.name = name.into();
        Ok(volume)
    }

    /// The name of the claim, where it is one.
    pub fn claim_name(&self) -> Option<&str> {
        self.raw.get("persistentVolumeClaim")?.get("claimName")?.as_str()
    }
}

fn read<T: DeserializeOwned>(mut raw: Value, kind: &'static str) -> Result<T, NotEmbedded> {
    quantities_as_text(&mut raw);
    typed(&raw).map_err(|source| NotEmbedded { kind, source })
}

impl<T: Serialize> From<T> for Embedded<T> {
    fn from(value: T) -> Self {
        // Types of Kubernetes have no maps whose keys are not strings: they can always be written.
        Self { raw: serde_json::to_value(value).unwrap_or_default(), kind: PhantomData }
    }
}

/// Pods take `cpu: 1` and `cpu: "1"`; definitions keep the difference, and the typed quantity is a string.
fn quantities_as_text(value: &mut Value) {
    let text = |value: &mut Value| {
        if let Value::Number(number) = value {
            *value = Value::String(number.to_string());
        }
    };
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match (name.as_str(), &mut *value) {
                    ("limits" | "requests", Value::Object(quantities)) => {
                        quantities.values_mut().for_each(text);
                    }
                    ("sizeLimit" | "divisor", value) => text(value),
                    (_, value) => quantities_as_text(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(quantities_as_text),
        _ => {}
    }
}

// By hand, because what is embedded need be none of these itself.
impl<T> Clone for Embedded<T> {
    fn clone(&self) -> Self {
        Self { raw: self.raw.clone(), kind: PhantomData }
    }
}

impl<T> fmt::Debug for Embedded<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.raw)
    }
}

impl<T> PartialEq for Embedded<T> {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw
    }
}

impl<'de, T> Deserialize<'de> for Embedded<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self { raw: Value::deserialize(deserializer)?, kind: PhantomData })
    }
}

impl<T> Serialize for Embedded<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.raw.serialize(serializer)
    }
}

impl<T: Embed> JsonSchema for Embedded<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        T::NAME.into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        T::schema()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded<T>(raw: Value) -> Embedded<T> {
        serde_json::from_value(raw).unwrap()
    }

    #[test]
    fn what_we_do_not_know_survives() {
        let raw = json!({"emptyDir": {"sizeLimit": 5}, "fromTheFuture": {"x": null}});
        let volume: Embedded<VolumeSource> = embedded(raw.clone());
        assert_eq!(serde_json::to_value(&volume).unwrap(), raw);
        assert_eq!(volume.volume("x").unwrap().empty_dir.unwrap().size_limit.unwrap().0, "5");
    }

    #[test]
    fn quantities_may_be_numbers() {
        let resources: Embedded<ResourceRequirements> =
            embedded(json!({"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 0.5}}));
        let typed = resources.typed().unwrap();
        let limits: Vec<_> = typed.limits.unwrap().into_values().map(|quantity| quantity.0).collect();
        assert_eq!(limits, ["1", "1Gi"]);
        assert_eq!(typed.requests.unwrap()["cpu"].0, "0.5");
    }

    #[test]
    fn what_kubernetes_would_not_understand_is_named() {
        let volume: Embedded<VolumeSource> = embedded(json!({"emptyDir": "yes"}));
        let error = volume.volume("x").unwrap_err().to_string();
        assert!(
            error.starts_with("is no VolumeSource: ") && error.ends_with("write it as in a Pod"),
            "{error}"
        );
    }
}
