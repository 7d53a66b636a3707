//! Database, cache and storage that a HarborCluster lets other operators run, or that this operator runs.

use k8s_openapi::api::core::v1::ResourceRequirements;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{ImageSpec, Tls};
use super::embedded::{ClaimTemplate, Embedded};
use super::network::Ingress;
use super::pattern;

fn one() -> i64 {
    1
}

fn truth() -> bool {
    true
}

/// RedisFailover of the Redis operator of Spotahome.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RedisFailover {
    /// Image of the Redis servers and Sentinels.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Ignored, and kept for compatibility.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// Settings of the Sentinels. If unset, there are 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<RedisSentinel>,
    /// Settings of the Redis servers. If unset, there are 3, with volumes of 1Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<RedisServer>,
}

/// Settings of the Sentinels of a RedisFailover.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisSentinel {
    /// Number of Sentinels. Default: 1.
    #[serde(default = "one")]
    pub replicas: i64,
}

/// Settings of the Redis servers of a RedisFailover.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisServer {
    /// Number of Redis servers. Default: 1.
    #[serde(default = "one")]
    pub replicas: i64,
    /// Name of the ServiceAccount of the servers and Sentinels. If unset, the Redis operator decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Size of the volume of each server, as a Kubernetes quantity. Default: 1Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Name of the StorageClass of the volumes. If unset, the default StorageClass of the cluster applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// CPU and memory requests and limits of the servers and Sentinels, as in a Pod. If unset, the
    /// operator sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
}

/// PostgreSQL cluster of Zalando's operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ZalandoPostgres {
    /// Image of the PostgreSQL servers.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Ignored, and kept for compatibility.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// Number of PostgreSQL servers (`numberOfInstances` of Zalando's operator). Default: 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// Size of the volume of each server, as a Kubernetes quantity. Default: 1Gi.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Name of the StorageClass of the volumes. If unset, the default StorageClass of the cluster applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// CPU and memory requests and limits of the servers, as in a Pod. If unset, Zalando's operator decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
    /// Ignored, and kept for compatibility.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<i64>,
    /// Ignored, and kept for compatibility.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl_config: Option<String>,
}

/// Tenant of the MinIO operator.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinIo {
    /// Image of the MinIO servers.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Ignored, and kept for compatibility. Default: `4.0.6`.
    #[serde(default = "minio_operator")]
    pub operator_version: String,
    /// Number of MinIO servers. `replicas` times `volumesPerServer` must be at least 4.
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// Number of volumes of each MinIO server. `replicas` times `volumesPerServer` must be at least 4.
    #[schemars(range(min = 1))]
    pub volumes_per_server: i32,
    /// Template of the volumes, as a PersistentVolumeClaim. If unset, volumes of 10Gi with access mode
    /// `ReadWriteOnce` are claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim_template: Option<Embedded<ClaimTemplate>>,
    /// CPU and memory requests and limits of the servers, as in a Pod. If unset, the operator sets none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
    /// Name of the Secret with the MinIO credentials, in keys `accesskey` and `secretkey`. If unset, the
    /// operator generates one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: Option<String>,
    /// Redirect downloads to MinIO. Used only if `storage.spec.redirect` is unset; if both are unset,
    /// downloads are not redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<ClusterRedirect>,
    /// Image of the MinIO client `mc`, which creates the bucket. If unset, the operator's own choice of image
    /// is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mc: Option<ImageSpec>,
}

fn minio_operator() -> String {
    "4.0.6".into()
}

/// Redirect of downloads to the storage.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRedirect {
    /// Redirect downloads to the storage instead of passing them through the registry. Default: true.
    #[serde(default = "truth")]
    pub enable: bool,
    /// Exposure of the storage to users. Required for MinIO if downloads are redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose: Option<StorageExpose>,
}

/// Exposure of the storage to users.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageExpose {
    /// Ingress in front of MinIO. Its host must be reachable by users and by the registry's pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// Certificate of the Ingress. If unset, MinIO is exposed with plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// Redis or Valkey server that this operator runs: a single server with a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInCache {
    /// Image of the server.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Volume of the server; 1Gi by default.
    #[serde(flatten)]
    pub volume: BuiltInVolume,
    /// CPU and memory requests and limits of the server, as in a Pod. If unset, it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
}

/// PostgreSQL server that this operator runs: a single server with a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInDatabase {
    /// Image of the server.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Volume of the server; 10Gi by default.
    #[serde(flatten)]
    pub volume: BuiltInVolume,
    /// CPU and memory requests and limits of the server, as in a Pod. If unset, it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
}

/// PersistentVolumeClaim for images and charts that this operator creates.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInStorage {
    /// Volume of images and charts; 50Gi by default.
    #[serde(flatten)]
    pub volume: BuiltInVolume,
    /// Access modes of the PersistentVolumeClaim. Default: `ReadWriteOnce`. Several replicas of the registry
    /// on different nodes need `ReadWriteMany`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,
}

impl BuiltInVolume {
    /// Default size of the volume of the cache.
    pub(crate) const OF_CACHE: &'static str = "1Gi";
    /// Default size of the volume of the database.
    pub(crate) const OF_DATABASE: &'static str = "10Gi";
    /// Default size of the volume of images and charts.
    pub(crate) const OF_IMAGES: &'static str = "50Gi";
}

/// Volume of a built-in cache, database or storage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInVolume {
    /// Size of the volume, as a Kubernetes quantity; it can grow, and cannot shrink. Default: 1Gi for the
    /// cache, 10Gi for the database, 50Gi for images and charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Name of the StorageClass of the volume. If unset, the default StorageClass of the cluster applies. An
    /// existing volume keeps its class.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}
