//! The kinds of other operators, as far as we speak of them.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a RedisFailover should be.
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
    /// All of it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// What a database of Zalando's operator should be.
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
    /// All of it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// What has become of a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(default)]
pub struct PostgresqlStatus {
    /// In one word: `Creating`, `Running`, `CreateFailed`, …
    #[serde(rename = "PostgresClusterStatus", skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
}

/// What a tenant of MinIO should be.
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
    /// All of it.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// What has become of a tenant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TenantStatus {
    /// In a few words: `Initialized`, `Provisioning MinIO Statefulset`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub current_state: Option<String>,
    /// How many servers can serve.
    pub available_replicas: i32,
    /// Its pools.
    pub pools: Vec<PoolStatus>,
}

/// What has become of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolStatus {
    /// Its StatefulSet.
    pub ss_name: String,
    /// In one word: `PoolInitialized`.
    pub state: String,
}

/// What a spec has at a place, which is written as `pools/0/name`.
pub(super) fn at<'a>(fields: &'a Map<String, Value>, place: &str) -> Option<&'a Value> {
    let (member, below) = place.split_at(place.find('/').unwrap_or(place.len()));
    fields.get(member)?.pointer(below)
}

/// A spec of these fields; what is null is not said.
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
