//! HarborCluster in `v1alpha3`, whose database, cache and storage have a different structure.

#![allow(dead_code)] // only the schema is used

use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::component::ImageSpec;
use super::driver::ImageChartStorage;
use super::embedded::{ClaimTemplate, Embedded};
use super::harbor::HarborCommon;
use super::harborcluster_parts::{ClusterRedirect, RedisSentinel};
use super::pattern;
use super::postgres::HarborDatabase;
use super::redis::RedisHost;

/// Spec of a HarborCluster in `v1alpha3`: external backends by address, or backends run by other operators.
#[derive(Clone, Debug, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1alpha3",
    kind = "HarborCluster",
    root = "OldHarborCluster",
    plural = "harborclusters",
    namespaced
)]
#[serde(rename_all = "camelCase")]
pub(super) struct OldHarborClusterSpec {
    #[serde(flatten)]
    common: HarborCommon,
    database: Option<HarborDatabase>,
    redis: Option<RedisHost>,
    image_chart_storage: Option<ImageChartStorage>,
    in_cluster_cache: Option<InClusterCache>,
    in_cluster_database: Option<InClusterDatabase>,
    in_cluster_storage: Option<InClusterStorage>,
}

choice! {
    /// Backend of the in-cluster cache.
    InClusterCacheKind { Redis = "Redis" }
}

choice! {
    /// Backend of the in-cluster database. The misspelt value is kept for compatibility.
    InClusterDatabaseKind { PostgresSql = "PostgresSQL" }
}

choice! {
    /// Backend of the in-cluster storage.
    InClusterStorageKind { MinIo = "MinIO" }
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InClusterCache {
    kind: InClusterCacheKind,
    redis_spec: InClusterRedis,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InClusterRedis {
    #[serde(flatten)]
    image: ImageSpec,
    sentinel: Option<RedisSentinel>,
    server: Option<InClusterRedisServer>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InClusterRedisServer {
    #[serde(default = "one")]
    replicas: i64,
    resources: Option<Embedded<ResourceRequirements>>,
    storage: Option<String>,
    storage_class_name: Option<String>,
}

fn one() -> i64 {
    1
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InClusterDatabase {
    kind: InClusterDatabaseKind,
    postgres_sql_spec: InClusterPostgres,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InClusterPostgres {
    #[serde(flatten)]
    image: ImageSpec,
    #[schemars(range(min = 1))]
    replicas: Option<i64>,
    resources: Option<Embedded<ResourceRequirements>>,
    storage: Option<String>,
    storage_class_name: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InClusterStorage {
    kind: InClusterStorageKind,
    #[serde(rename = "minIOSpec")]
    minio_spec: Option<InClusterMinIo>,
}

#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct InClusterMinIo {
    #[serde(flatten)]
    image: ImageSpec,
    mc: Option<ImageSpec>,
    redirect: Option<ClusterRedirect>,
    #[schemars(range(min = 1))]
    replicas: i32,
    #[schemars(range(min = 1))]
    volumes_per_server: i32,
    resources: Option<Embedded<ResourceRequirements>>,
    #[schemars(regex(pattern = pattern::NAME))]
    secret_ref: Option<String>,
    volume_claim_template: Option<Embedded<ClaimTemplate>>,
}
