//! What is said in return.
//!
//! The schema is as lax as that of the definitions which these succeed: objects that are stored must stay valid, with reasons
//! that have spaces in them, and without times of transition. Fields that we do not know are kept.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::choice::choice;

/// Who wrote a status.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct OperatorStatus {
    /// The controller.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub controller_name: Option<String>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub controller_version: Option<String>,
    /// The commit that it was built from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub controller_git_commit: Option<String>,
}

/// One thing that is true, false or unknown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What.
    #[serde(rename = "type")]
    pub kind: String,
    /// True, False or Unknown.
    pub status: String,
    /// Why, in a word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Since when.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_transition_time: Option<String>,
    /// Of which generation of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The names of conditions, beside the standard ones.
pub mod condition {
    /// Not everything is as it should be yet: what the first operator of these kinds said, for those who script against it.
    pub const IN_PROGRESS: &str = "InProgress";
    /// Core and Harbor: no migration of the database was interrupted, as far as is known.
    pub const SCHEMA_CLEAN: &str = "SchemaClean";
    /// HarborCluster: the cache is ready.
    pub const CACHE_READY: &str = "CacheReady";
    /// HarborCluster: the database is ready.
    pub const DATABASE_READY: &str = "DatabaseReady";
    /// HarborCluster: the storage is ready.
    pub const STORAGE_READY: &str = "StorageReady";
    /// HarborCluster: Harbor itself is ready.
    pub const SERVICE_READY: &str = "ServiceReady";
    /// All of these.
    pub const ALL: [&str; 6] =
        [IN_PROGRESS, SCHEMA_CLEAN, CACHE_READY, DATABASE_READY, STORAGE_READY, SERVICE_READY];
}

/// The reason of a part of a HarborCluster that was ready with the present spec, and is not any more.
pub const NOT_READY: &str = "NotReady";

/// What has become of a component, or of a Harbor.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct ComponentStatus {
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorStatus>,
    /// The generation of the spec that it is said of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// How many pods there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i32>,
    /// What is true of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

choice! {
    /// A HarborCluster in one word.
    Health { Provisioning = "provisioning", Healthy = "healthy", Unhealthy = "unhealthy" }
}

/// What has become of a HarborCluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-preserve-unknown-fields" = true))]
pub struct HarborClusterStatus {
    /// Who says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<OperatorStatus>,
    /// In one word: provisioning, healthy or unhealthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The generation of the spec that it is said of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Changes with what is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revision: Option<i64>,
    /// What is true of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Everything else.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Map<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_the_first_operator_wrote_is_read_and_kept() {
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
