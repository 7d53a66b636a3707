//! The kinds of other operators, with the fields that this operator uses.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Spec of a RedisFailover.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "databases.spotahome.com",
    version = "v1",
    kind = "RedisFailover",
    plural = "redisfailovers",
    namespaced,
    doc = "RedisFailover is a Redis with Sentinels."
)]
pub struct RedisFailoverSpec {
    /// All fields, without a schema.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Spec of a database of Zalando's operator.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "acid.zalan.do",
    version = "v1",
    kind = "postgresql",
    root = "Postgresql",
    plural = "postgresqls",
    namespaced,
    doc = "postgresql is a PostgreSQL of Zalando's operator.",
    status = "PostgresqlStatus"
)]
pub struct PostgresqlSpec {
    /// All fields, without a schema.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Status of a database of Zalando's operator.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct PostgresqlStatus {
    /// Summary of the state: `Creating`, `Running`, `CreateFailed`, …
    #[serde(rename = "PostgresClusterStatus", skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// Spec of a MinIO Tenant.
#[derive(Clone, Debug, Default, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "minio.min.io",
    version = "v2",
    kind = "Tenant",
    plural = "tenants",
    namespaced,
    doc = "Tenant is a MinIO of its operator.",
    status = "TenantStatus"
)]
pub struct TenantSpec {
    /// All fields, without a schema.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Status of a MinIO Tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantStatus {
    /// Summary of the state: `Initialized`, `Provisioning MinIO Statefulset`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_state: Option<String>,
    /// Number of servers that are available.
    pub available_replicas: i32,
    /// Status of each pool.
    pub pools: Vec<PoolStatus>,
}

/// Status of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    /// Name of the pool's StatefulSet.
    pub ss_name: String,
    /// State of the pool: `PoolInitialized` when it is ready.
    pub state: String,
}

/// Returns the value at a path such as `pools/0/name`.
pub(super) fn at<'a>(fields: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let (member, below) = place.split_at(place.find('/').unwrap_or(place.len()));
    fields.get(member)?.pointer(below)
}

/// Returns the fields of a spec without those that are null.
pub(super) fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_place_is_found_at_every_depth() {
        let spec = fields(json!({"image": "i", "pools": [{"name": "p"}], "none": null}));
        assert_eq!(at(&spec, "image"), Some(&json!("i")));
        assert_eq!(at(&spec, "pools/0/name"), Some(&json!("p")));
        for missing in ["none", "pools/1", "pools/0/other", "image/below"] {
            assert_eq!(at(&spec, missing), None, "{missing}");
        }
    }
}
