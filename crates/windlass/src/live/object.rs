//! The part of a live object that a controller keeps in memory: metadata, our entry in `managedFields`, and
//! the few fields that readiness depends on.
//!
//! One shape fits all kinds, because the kinds use the same names for the same things. It is lenient: a field
//! of another type than expected counts as absent, since custom kinds are free to call a map `conditions`.

use std::ops::Deref;
use std::sync::{Arc, LazyLock};

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde_json::value::RawValue;
use windlass_runtime::cache::Shape;
use windlass_runtime::intern::Str;
use windlass_runtime::meta::Meta;

/// The known part of a live object.
#[derive(Debug, serde::Deserialize)]
pub struct Live {
    /// The metadata of the object.
    pub metadata: Meta,
    /// The fields of its spec that matter for readiness.
    #[serde(default, deserialize_with = "lenient")]
    pub spec: LiveSpec,
    /// The fields of its status that matter for readiness.
    #[serde(default, deserialize_with = "lenient")]
    pub status: LiveStatus,
}

/// The fields of a spec that matter for readiness: its [fields](SpecFields), in one word of memory if there
/// are none.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(from = "SpecFields")]
pub struct LiveSpec(Option<Box<SpecFields>>);

/// The fields of a status that matter for readiness: its [fields](StatusFields), in one word of memory if
/// there are none.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(from = "StatusFields")]
pub struct LiveStatus(Option<Box<StatusFields>>);

impl From<SpecFields> for LiveSpec {
    fn from(fields: SpecFields) -> Self {
        Self((fields != SpecFields::default()).then(|| Box::new(fields)))
    }
}

impl From<StatusFields> for LiveStatus {
    fn from(fields: StatusFields) -> Self {
        Self((fields != StatusFields::default()).then(|| Box::new(fields)))
    }
}

impl Deref for LiveSpec {
    type Target = SpecFields;

    fn deref(&self) -> &SpecFields {
        static NONE: LazyLock<SpecFields> = LazyLock::new(SpecFields::default);
        self.0.as_deref().unwrap_or_else(|| &*NONE)
    }
}

impl Deref for LiveStatus {
    type Target = StatusFields;

    fn deref(&self) -> &StatusFields {
        static NONE: LazyLock<StatusFields> = LazyLock::new(StatusFields::default);
        self.0.as_deref().unwrap_or_else(|| &*NONE)
    }
}

/// The fields of a spec that matter for readiness.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct SpecFields {
    /// The desired number of replicas.
    #[serde(deserialize_with = "lenient")]
    pub replicas: Option<i64>,
    /// The type of a Service.
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub type_: Option<Str>,
    /// True if a Job is suspended.
    #[serde(deserialize_with = "lenient")]
    pub suspend: Option<bool>,
    /// True if the rollout of a Deployment is paused.
    #[serde(deserialize_with = "lenient")]
    pub paused: Option<bool>,
    /// The update strategy of a StatefulSet or DaemonSet.
    #[serde(deserialize_with = "lenient")]
    pub update_strategy: UpdateStrategy,
}

/// The update strategy of a StatefulSet or DaemonSet.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct UpdateStrategy {
    /// `RollingUpdate` or `OnDelete`.
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub type_: Option<Str>,
    /// The parameters of a rolling update.
    #[serde(deserialize_with = "lenient")]
    pub rolling_update: RollingUpdate,
}

/// The parameters of a rolling update.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct RollingUpdate {
    /// For a StatefulSet: pods below this ordinal are not updated.
    #[serde(deserialize_with = "lenient")]
    pub partition: Option<i64>,
}

/// The fields of a status that matter for readiness, named as in the API.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct StatusFields {
    #[serde(deserialize_with = "lenient")]
    pub observed_generation: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub replicas: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub ready_replicas: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub updated_replicas: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub available_replicas: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub desired_number_scheduled: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub updated_number_scheduled: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub number_available: Option<i64>,
    #[serde(deserialize_with = "lenient")]
    pub current_revision: Option<Str>,
    #[serde(deserialize_with = "lenient")]
    pub update_revision: Option<Str>,
    #[serde(deserialize_with = "lenient")]
    pub phase: Option<Str>,
    #[serde(deserialize_with = "lenient")]
    pub load_balancer: LoadBalancer,
    #[serde(deserialize_with = "each")]
    pub conditions: Box<[LiveCondition]>,
}

/// The status of a load balancer.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct LoadBalancer {
    /// The addresses that the load balancer was given.
    #[serde(deserialize_with = "each")]
    pub ingress: Box<[Address]>,
}

/// An address of a load balancer.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default)]
pub struct Address {
    /// The IP address.
    #[serde(deserialize_with = "lenient")]
    pub ip: Option<Str>,
    /// The host name.
    #[serde(deserialize_with = "lenient")]
    pub hostname: Option<Str>,
}

/// The fields of a condition that matter for readiness.
#[derive(Debug, Default, PartialEq, serde::Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LiveCondition {
    /// The type of the condition, such as `Ready`.
    #[serde(rename = "type", deserialize_with = "lenient")]
    pub type_: Option<Str>,
    /// `True`, `False` or `Unknown`.
    #[serde(deserialize_with = "lenient")]
    pub status: Option<Str>,
    /// The reason in one word.
    #[serde(deserialize_with = "lenient")]
    pub reason: Option<Str>,
    /// The message for people. It is not interned, because messages rarely repeat.
    #[serde(deserialize_with = "lenient")]
    pub message: Option<Box<str>>,
    /// The generation that the condition is about.
    #[serde(deserialize_with = "lenient")]
    pub observed_generation: Option<i64>,
}

impl StatusFields {
    /// Returns the condition of a type.
    pub fn condition(&self, kind: &str) -> Option<&LiveCondition> {
        self.conditions.iter().find(|condition| condition.type_.as_deref() == Some(kind))
    }
}

impl LiveCondition {
    /// Returns whether the condition has this status: `True`, `False` or `Unknown`.
    pub fn is(&self, status: &str) -> bool {
        self.status.as_deref() == Some(status)
    }

    /// Returns reason and message, if there are any.
    pub fn explanation(&self) -> String {
        let message = self.message.as_deref().filter(|message| !message.is_empty());
        let parts = [self.reason.as_deref().filter(|reason| !reason.is_empty()), message];
        parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
    }
}

/// Decodes a value; a value of another type becomes the default.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(deserializer: D) -> Result<T, D::Error> {
    let raw = Box::<RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_slice(raw.get().as_bytes()).unwrap_or_default())
}

/// Decodes the elements of an array that have the expected type.
fn each<'de, D: Deserializer<'de>, T: DeserializeOwned>(deserializer: D) -> Result<Box<[T]>, D::Error> {
    let raw: Vec<Box<RawValue>> = lenient(deserializer)?;
    Ok(raw.iter().filter_map(|element| serde_json::from_slice(element.get().as_bytes()).ok()).collect())
}

/// Access to a live object of any kind.
pub(crate) trait AsLive: Send + Sync {
    fn live(&self) -> &Live;
}

pub(crate) type LiveRef = Arc<dyn AsLive>;

/// An object with the fields that readiness depends on.
pub(crate) struct Watched(Live);

/// The metadata of an object, for kinds that are ready when they exist.
pub(crate) struct Bare(Live);

impl AsLive for Watched {
    fn live(&self) -> &Live {
        &self.0
    }
}

impl AsLive for Bare {
    fn live(&self) -> &Live {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Watched {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Live::deserialize(deserializer)?))
    }
}

impl<'de> Deserialize<'de> for Bare {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Object {
            metadata: Meta,
        }

        let metadata = Object::deserialize(deserializer)?.metadata;
        Ok(Self(Live { metadata, spec: LiveSpec::default(), status: LiveStatus::default() }))
    }
}

impl Shape for Watched {
    fn meta(&self) -> &Meta {
        &self.0.metadata
    }
}

impl Shape for Bare {
    fn meta(&self) -> &Meta {
        &self.0.metadata
    }

    fn needs_body() -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_fields_of_a_deployment_are_decoded() {
        let live: Live = serde_json::from_value(json!({
            "metadata": {"name": "web", "generation": 3},
            "spec": {"replicas": 2, "template": {"spec": {}}, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}},
            "status": {"observedGeneration": 3, "readyReplicas": 1, "loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]},
                "conditions": [{"type": "Available", "status": "True", "reason": "R", "message": "m", "lastUpdateTime": "x"}]},
        }))
        .unwrap();
        assert_eq!((live.spec.replicas, live.status.ready_replicas), (Some(2), Some(1)));
        assert_eq!(live.status.load_balancer.ingress.len(), 1);
        assert_eq!(live.spec.update_strategy.rolling_update.partition, Some(1));
        let available = live.status.condition("Available").unwrap();
        assert!(available.is("True"));
        assert_eq!(available.explanation(), "R: m");
    }

    #[test]
    fn a_custom_kind_with_fields_of_other_types_can_be_decoded() {
        for odd in [
            json!(7),
            json!("x"),
            json!(true),
            json!(null),
            json!(1.5),
            json!([1, {"a": []}]),
            json!({"a": {"b": []}}),
        ] {
            let live: Live = serde_json::from_value(json!({
                "metadata": {"name": "x"}, "ignored": odd,
                "spec": {"replicas": odd, "type": odd, "updateStrategy": odd, "suspend": odd},
                "status": {"conditions": odd, "phase": odd, "loadBalancer": odd, "observedGeneration": odd},
            }))
            .unwrap_or_else(|error| panic!("{odd}: {error}"));
            assert!(live.status.condition("Ready").is_none());
        }
        serde_json::from_value::<Live>(
            json!({"metadata": {}, "status": {"conditions": [3, {"type": 7, "status": []}]}}),
        )
        .unwrap();
    }
}
