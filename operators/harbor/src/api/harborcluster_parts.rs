//! The database, cache and storage that a HarborCluster has run: by other operators, or by ours.

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

/// What is asked of the Redis operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RedisFailover {
    /// The image.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Read by nobody, kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// The Sentinels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<RedisSentinel>,
    /// The servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<RedisServer>,
}

/// The Sentinels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisSentinel {
    /// How many.
    #[serde(default = "one")]
    pub replicas: i64,
}

/// The servers.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisServer {
    /// How many.
    #[serde(default = "one")]
    pub replicas: i64,
    /// The ServiceAccount under which they run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The size of the volume of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// The class of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// CPU and memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
}

/// What is asked of Zalando's operator.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ZalandoPostgres {
    /// The image.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Read by nobody, kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator_version: Option<String>,
    /// How many servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<i64>,
    /// The size of the volume of each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// The class of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
    /// CPU and memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
    /// Read by nobody, kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connect_timeout: Option<i64>,
    /// Read by nobody, kept as it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssl_config: Option<String>,
}

/// What is asked of MinIO's operator.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MinIo {
    /// The image.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// Read by nobody, kept as it is.
    #[serde(default = "minio_operator")]
    pub operator_version: String,
    /// How many servers.
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// How many volumes each of them has. All together there are at least 4.
    #[schemars(range(min = 1))]
    pub volumes_per_server: i32,
    /// The volumes, as a PersistentVolumeClaim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub volume_claim_template: Option<Embedded<ClaimTemplate>>,
    /// CPU and memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
    /// The Secret with accesskey and secretkey; one is made if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: Option<String>,
    /// Whether downloads are redirected to it; counts if `storage.spec.redirect` is not there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<ClusterRedirect>,
    /// The image that makes the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mc: Option<ImageSpec>,
}

fn minio_operator() -> String {
    "4.0.6".into()
}

/// Whether downloads are redirected to the storage.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterRedirect {
    /// Whether they are.
    #[serde(default = "truth")]
    pub enable: bool,
    /// How users reach the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expose: Option<StorageExpose>,
}

/// How users reach the storage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageExpose {
    /// By an Ingress.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// With this certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

/// A cache that we run ourselves: one server, with a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInCache {
    /// The image.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// The volume.
    #[serde(flatten)]
    pub volume: BuiltInVolume,
    /// CPU and memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
}

/// A PostgreSQL that we run ourselves: one server, with a volume.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInDatabase {
    /// The image.
    #[serde(flatten)]
    pub image: ImageSpec,
    /// The volume.
    #[serde(flatten)]
    pub volume: BuiltInVolume,
    /// CPU and memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Embedded<ResourceRequirements>>,
}

/// A volume that we claim ourselves, for images and charts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInStorage {
    /// The volume.
    #[serde(flatten)]
    pub volume: BuiltInVolume,
    /// How it can be mounted: ReadWriteOnce if nothing is said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub access_modes: Vec<String>,
}

/// The volume of something that we run ourselves.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct BuiltInVolume {
    /// Its size, as a quantity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage: Option<String>,
    /// Its class; the cluster's default if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_class_name: Option<String>,
}
