//! Status types of the Harbor kinds.
//!
//! The schema is as permissive as that of the CRDs which these kinds take over from: stored objects must stay
//! valid, with reasons that contain spaces and without transition times. Unknown fields are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::choice::choice;

/// Controller that wrote the status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorStatus {
    /// Name of the controller that wrote the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub controller_name: Option<String>,
    /// Version of the operator that wrote the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub controller_version: Option<String>,
    /// Git commit that the operator was built from, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub controller_git_commit: Option<String>,
}

/// Condition of an object, as in Kubernetes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// Type of the condition, such as `Ready`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Status of the condition: `True`, `False` or `Unknown`.
    pub status: String,
    /// Reason for the last transition, as one CamelCase word for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Details about the last transition, as a sentence for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Time of the last change of the condition's status, in RFC 3339 format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Generation of the object that the condition was computed for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// Names of the Harbor-specific conditions.
pub mod condition {
    /// True until everything is ready. Kept for scripts written for the upstream operator.
    pub(crate) const IN_PROGRESS: &str = "InProgress";
    /// Core and Harbor: no interrupted migration of the database was found.
    pub(crate) const SCHEMA_CLEAN: &str = "SchemaClean";
    /// HarborCluster: the cache is ready.
    pub(crate) const CACHE_READY: &str = "CacheReady";
    /// HarborCluster: the database is ready.
    pub(crate) const DATABASE_READY: &str = "DatabaseReady";
    /// HarborCluster: the storage is ready.
    pub(crate) const STORAGE_READY: &str = "StorageReady";
    /// HarborCluster: the Harbor itself is ready.
    pub(crate) const SERVICE_READY: &str = "ServiceReady";
    /// Names of all Harbor-specific conditions.
    pub const ALL: [&str; 6] =
        [IN_PROGRESS, SCHEMA_CLEAN, CACHE_READY, DATABASE_READY, STORAGE_READY, SERVICE_READY];
}

/// Reason for a part of a HarborCluster that was ready with the current spec and no longer is.
pub const NOT_READY: &str = "NotReady";

/// Observed state of a component or of a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ComponentStatus {
    /// Controller that wrote the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorStatus>,
    /// Generation of the spec that the status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Last generation of the spec that was applied completely, with nothing left of an older one. Absent
    /// while that is the observed generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_generation: Option<i64>,
    /// Number of pods of the component, for the scale subresource.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// Conditions of the object, such as `Ready`, `Progressing` and `Failed`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// All other fields, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

choice! {
    /// Summary of the state of a HarborCluster.
    Health { Provisioning = "provisioning", Healthy = "healthy", Unhealthy = "unhealthy" }
}

/// Observed state of a HarborCluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HarborClusterStatus {
    /// Controller that wrote the status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorStatus>,
    /// Summary of the state: `provisioning`, `healthy` or `unhealthy`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Generation of the spec that the status was computed for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Last generation of the spec that was applied completely, with nothing left of an older one. Absent
    /// while that is the observed generation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub complete_generation: Option<i64>,
    /// Number that grows whenever `status` or a condition changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// Conditions of the object, such as `CacheReady`, `DatabaseReady`, `StorageReady` and `ServiceReady`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// All other fields, kept as they are.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_of_the_upstream_operator_is_read_and_kept() {
        let written = json!({
            "status": "healthy",
            "revision": 1_658_000_000_000_000_000_i64,
            "conditions": [
                {"type": "DatabaseReady", "status": "True", "reason": "Database is ready"},
                {"type": "InProgress", "status": "False", "reason": "", "message": ""},
            ],
            "fromTheFuture": [1],
        });
        let status: HarborClusterStatus = serde_json::from_value(written.clone()).unwrap();
        assert_eq!(serde_json::to_value(status).unwrap(), written);
    }
}
