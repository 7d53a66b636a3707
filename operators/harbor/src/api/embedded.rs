//! Kubernetes types inside the Harbor specs, kept as written.
//!
//! No field is lost, whatever version of Kubernetes the value was written for, and an unexpected value in one
//! field does not make the whole object unreadable. Full schemas would make up most of a CRD's size (a volume
//! has thirty variants), so the large types have an open schema: the API server keeps every field and
//! validates none. Errors in them are reported by the admission webhook and by the controller.

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

/// Kubernetes type that a spec embeds.
pub trait Embed {
    /// Name of the type, for error messages.
    const NAME: &'static str;

    /// Returns the schema that the API server validates: any object by default.
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

/// A [`Volume`] without a name; [`Embedded::volume`] adds the name.
#[derive(Clone, Copy, Debug)]
pub enum VolumeSource {}

/// Template of a PersistentVolumeClaim, as the MinIO operator expects it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct ClaimTemplate {
    /// Name, labels and annotations of the claim.
    #[serde(default)]
    pub metadata: k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta,
    /// Spec of the claim.
    #[serde(default)]
    pub spec: PersistentVolumeClaimSpec,
}

impl Embed for ResourceRequirements {
    const NAME: &'static str = "ResourceRequirements";

    fn schema() -> Schema {
        let quantities = |description: &str| {
            json_schema!({
                "type": "object",
                "additionalProperties": {"x-kubernetes-int-or-string": true},
                "description": description,
            })
        };
        json_schema!({
            "type": "object",
            "properties": {
                "limits": quantities("Maximum of CPU and memory, such as `memory: 512Mi`. Unlimited if unset."),
                "requests": quantities("Guaranteed CPU and memory, such as `cpu: 100m`. Default: the limits."),
                "claims": {
                    "description": "Names of entries in the pod's `resourceClaims`. Rejected, because the pods have no such entries.",
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
                "key": {
                    "type": "string",
                    "description": "Key of the taint. If unset, all keys; then `operator` must be `Exists`.",
                },
                "operator": {"type": "string", "description": "`Equal` or `Exists`. Default: `Equal`."},
                "value": {"type": "string", "description": "Value of the taint, with operator `Equal`."},
                "effect": {
                    "type": "string",
                    "description": "`NoSchedule`, `PreferNoSchedule` or `NoExecute`. All effects if unset.",
                },
                "tolerationSeconds": {
                    "type": "integer",
                    "format": "int64",
                    "description": "Seconds until eviction by a `NoExecute` taint. Never if unset.",
                },
            },
        })
    }
}

/// Value of a Kubernetes type, kept as written.
pub struct Embedded<T> {
    raw: Value,
    kind: PhantomData<fn() -> T>,
}

/// Error for a value that does not fit its Kubernetes type.
#[derive(Debug, thiserror::Error)]
#[error("is not a valid {kind}: {source}; write it as in a Pod")]
pub struct NotEmbedded {
    kind: &'static str,
    source: Unfit,
}

impl<T> Embedded<T> {
    /// Returns the JSON as written.
    pub(crate) fn raw(&self) -> &Value {
        &self.raw
    }
}

impl<T: Embed + DeserializeOwned> Embedded<T> {
    /// Parses the value. Quantities written as numbers are accepted.
    pub fn typed(&self) -> Result<T, NotEmbedded> {
        read(self.raw.clone(), T::NAME)
    }
}

impl Embedded<VolumeSource> {
    /// Wraps a volume source without a name, such as `{"emptyDir": {}}`.
    pub fn new(raw: Value) -> Self {
        Self { raw, kind: PhantomData }
    }

    /// Returns an `emptyDir` with a size limit.
    pub(crate) fn empty_dir(size_limit: &str) -> Self {
        Self::new(json!({"emptyDir": {"sizeLimit": size_limit}}))
    }

    /// Returns an `emptyDir` without a size limit.
    pub(crate) fn unlimited_empty_dir() -> Self {
        Self::new(json!({"emptyDir": {}}))
    }

    /// Returns a volume source for a PersistentVolumeClaim.
    pub fn claim(claim: &PersistentVolumeClaimVolumeSource) -> Self {
        Self::new(json!({"persistentVolumeClaim": claim}))
    }

    /// Parses the value as a pod volume with the given name.
    pub fn volume(&self, name: impl Into<String>) -> Result<Volume, NotEmbedded> {
        let mut volume: Volume = read(self.raw.clone(), VolumeSource::NAME)?;
        volume.name = name.into();
        Ok(volume)
    }

    /// Returns the name of the PersistentVolumeClaim, if the volume source is one.
    pub(crate) fn claim_name(&self) -> Option<&str> {
        self.raw.get("persistentVolumeClaim")?.get("claimName")?.as_str()
    }
}

fn read<T: DeserializeOwned>(mut raw: Value, kind: &'static str) -> Result<T, NotEmbedded> {
    quantities_as_text(&mut raw);
    typed(&raw).map_err(|source| NotEmbedded { kind, source })
}

impl<T: Serialize> From<T> for Embedded<T> {
    fn from(value: T) -> Self {
        // Kubernetes types have no maps with non-string keys, so serialization cannot fail.
        Self { raw: serde_json::to_value(value).unwrap_or_default(), kind: PhantomData }
    }
}

/// Turns numeric quantities into strings. Pods accept `cpu: 1` and `cpu: "1"`, CRDs keep the difference, and
/// the typed quantity is a string.
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

// Implemented by hand: derives would require the traits of the embedded type.
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
    fn unknown_fields_of_embedded_objects_survive() {
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
    fn invalid_embedded_objects_are_named_in_the_error() {
        let volume: Embedded<VolumeSource> = embedded(json!({"emptyDir": "yes"}));
        let error = volume.volume("x").unwrap_err().to_string();
        assert!(
            error.starts_with("is not a valid VolumeSource: ") && error.ends_with("write it as in a Pod"),
            "{error}"
        );
    }
}
