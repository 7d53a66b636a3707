//! HarborCluster: a Harbor together with its database, cache and storage.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::driver::{Azure, FileSystem, Gcs, Oss, S3, Swift};
use super::harbor::HarborCommon;
use super::harborcluster_parts::{
    BuiltInCache, BuiltInDatabase, BuiltInStorage, ClusterRedirect, MinIo, RedisFailover, ZalandoPostgres,
};
use super::postgres::HarborDatabase;
use super::redis::RedisHost;
use super::status::HarborClusterStatus;

/// Desired state of a HarborCluster: a Harbor with its database, cache and storage.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "HarborCluster",
    plural = "harborclusters",
    namespaced,
    doc = "HarborCluster is a Harbor with its database, cache and storage: external, run by other operators, or built in.",
    derive = "PartialEq",
    status = "HarborClusterStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct HarborClusterSpec {
    /// Settings that do not depend on database, cache and storage.
    #[serde(flatten)]
    pub common: HarborCommon,
    /// Redis cache of Harbor. A `v1alpha3` object may lack it and is rejected at its next change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub cache: Option<Cache>,
    /// PostgreSQL database of Harbor. A `v1alpha3` object may lack it and is rejected at its next change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub database: Option<ClusterDatabase>,
    /// Storage of images and charts. A `v1alpha3` object may lack it and is rejected at its next change.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub storage: Option<ClusterStorage>,
}

choice! {
    /// Backend of the cache.
    CacheKind {
        /// An external Redis server or Sentinels.
        Redis = "Redis",
        /// A RedisFailover, run by the Redis operator of Spotahome.
        RedisFailover = "RedisFailover",
        /// A single Redis or Valkey server that this operator runs.
        BuiltIn = "BuiltIn",
    }
}

/// Redis cache of a HarborCluster. Settings of other kinds than the selected one are kept and have no effect.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.kind != 'Redis' || has(self.spec.redis)",
        "message": "cache.kind is Redis, but cache.spec.redis is missing: set the address of Redis",
    },
    {
        "rule": "self.kind != 'RedisFailover' || has(self.spec.redisFailover)",
        "message": "cache.kind is RedisFailover, but cache.spec.redisFailover is missing: set it; {} is enough",
    },
]))]
pub struct Cache {
    /// Backend of the cache: `Redis`, `RedisFailover` or `BuiltIn`. Changing it needs the annotation
    /// `harbor.windlass.dev/data-moved`.
    pub kind: CacheKind,
    /// Settings of the selected backend.
    pub spec: CacheSpec,
}

/// Settings of the cache backends.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheSpec {
    /// External Redis. Required for kind `Redis`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisHost>,
    /// RedisFailover of the Redis operator. Required for kind `RedisFailover`; `{}` takes all defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis_failover: Option<RedisFailover>,
    /// Redis server that this operator runs, for kind `BuiltIn`. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<BuiltInCache>,
}

choice! {
    /// Backend of the database.
    DatabaseKind {
        /// An external PostgreSQL server.
        PostgreSql = "PostgreSQL",
        /// A PostgreSQL cluster run by Zalando's operator; the misspelt value is kept for compatibility.
        Zalando = "Zlando/PostgreSQL",
        /// A single PostgreSQL server that this operator runs.
        BuiltIn = "BuiltIn",
    }
}

/// PostgreSQL database of a HarborCluster. Settings of other kinds than the selected one are kept and have no
/// effect.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.kind != 'PostgreSQL' || has(self.spec.postgresql)",
        "message": "database.kind is PostgreSQL, but database.spec.postgresql is missing: set the address of PostgreSQL",
    },
    {
        "rule": "self.kind != 'Zlando/PostgreSQL' || has(self.spec.zlandoPostgreSql)",
        "message": "database.kind is Zlando/PostgreSQL, but database.spec.zlandoPostgreSql is missing: set it; {} is enough",
    },
]))]
pub struct ClusterDatabase {
    /// Backend of the database: `PostgreSQL`, `Zlando/PostgreSQL` or `BuiltIn`. Changing it needs the
    /// annotation `harbor.windlass.dev/data-moved`.
    pub kind: DatabaseKind,
    /// Settings of the selected backend.
    pub spec: DatabaseSpec,
}

/// Settings of the database backends.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DatabaseSpec {
    /// External PostgreSQL. Required for kind `PostgreSQL`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgresql: Option<HarborDatabase>,
    /// PostgreSQL of Zalando's operator. Required for kind `Zlando/PostgreSQL`; `{}` takes all defaults. The
    /// misspelt field name is kept for compatibility.
    #[serde(rename = "zlandoPostgreSql", skip_serializing_if = "Option::is_none")]
    pub zalando: Option<ZalandoPostgres>,
    /// PostgreSQL server that this operator runs, for kind `BuiltIn`. If unset, the defaults of the fields
    /// apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<BuiltInDatabase>,
}

choice! {
    /// Backend of the storage.
    StorageKind {
        /// A MinIO tenant, run by the MinIO operator.
        MinIo = "MinIO",
        /// Amazon S3 or a compatible object store.
        S3 = "S3",
        /// OpenStack Swift object storage.
        Swift = "Swift",
        /// PersistentVolumeClaims that already exist.
        FileSystem = "FileSystem",
        /// Azure Blob Storage container.
        Azure = "Azure",
        /// Google Cloud Storage bucket.
        Gcs = "Gcs",
        /// Alibaba Cloud OSS bucket.
        Oss = "Oss",
        /// A PersistentVolumeClaim that this operator creates.
        BuiltIn = "BuiltIn",
    }
}

impl StorageKind {
    /// Returns the field of `storage.spec` that belongs to this kind.
    pub const fn field(self) -> &'static str {
        match self {
            Self::MinIo => "minIO",
            Self::S3 => "s3",
            Self::Swift => "swift",
            Self::FileSystem => "fileSystem",
            Self::Azure => "azure",
            Self::Gcs => "gcs",
            Self::Oss => "oss",
            Self::BuiltIn => "builtIn",
        }
    }
}

/// Storage of images and charts. Settings of other kinds than the selected one are kept and have no effect.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.kind == 'BuiltIn' || (self.kind == 'MinIO' && has(self.spec.minIO)) || (self.kind == 'S3' && has(self.spec.s3)) || (self.kind == 'Swift' && has(self.spec.swift)) || (self.kind == 'FileSystem' && has(self.spec.fileSystem)) || (self.kind == 'Azure' && has(self.spec.azure)) || (self.kind == 'Gcs' && has(self.spec.gcs)) || (self.kind == 'Oss' && has(self.spec.oss))",
        "messageExpression": "'storage.kind is ' + self.kind + ', but its settings are missing: set storage.spec.' + (self.kind == 'MinIO' ? 'minIO' : self.kind == 'FileSystem' ? 'fileSystem' : self.kind.lowerAscii())",
    },
    {
        "rule": "self.kind != 'MinIO' || !has(self.spec.minIO) || self.spec.minIO.replicas * self.spec.minIO.volumesPerServer >= 4",
"message": "storage.spec.minIO: replicas * volumesPerServer is below the 4 volumes that MinIO needs: raise one of them",
    },
    {
        "rule": "self.kind != 'MinIO' || (has(self.spec.redirect) ? (!self.spec.redirect.enable || (has(self.spec.redirect.expose) && has(self.spec.redirect.expose.ingress))) : (!has(self.spec.minIO) || !has(self.spec.minIO.redirect) || !self.spec.minIO.redirect.enable || (has(self.spec.minIO.redirect.expose) && has(self.spec.minIO.redirect.expose.ingress))))",
        "message": "downloads are redirected to MinIO, which clients outside the cluster cannot reach: set redirect.expose.ingress, or set redirect.enable to false",
    },
]))]
pub struct ClusterStorage {
    /// Backend of the storage: `MinIO`, `S3`, `Swift`, `FileSystem`, `Azure`, `Gcs`, `Oss` or `BuiltIn`.
    /// Changing it needs the annotation `harbor.windlass.dev/data-moved`.
    pub kind: StorageKind,
    /// Settings of the selected backend.
    pub spec: StorageSpec,
}

/// Settings of the storage backends.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageSpec {
    /// Tenant of the MinIO operator. Required for kind `MinIO`.
    #[serde(rename = "minIO", skip_serializing_if = "Option::is_none")]
    pub minio: Option<MinIo>,
    /// Amazon S3 or a compatible object store. Required for kind `S3`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3>,
    /// OpenStack Swift object storage. Required for kind `Swift`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swift: Option<Swift>,
    /// Existing PersistentVolumeClaims. Required for kind `FileSystem`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystem>,
    /// Azure Blob Storage. Required for kind `Azure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// Google Cloud Storage. Required for kind `Gcs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<Gcs>,
    /// Alibaba Cloud OSS. Required for kind `Oss`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<Oss>,
    /// PersistentVolumeClaim that this operator creates, for kind `BuiltIn`. If unset, the defaults of the
    /// fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<BuiltInStorage>,
    /// Redirect downloads to the storage instead of passing them through the registry. It takes precedence
    /// over `minIO.redirect`. If both are unset, downloads from MinIO are not redirected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<ClusterRedirect>,
}

impl StorageSpec {
    /// Returns the effective redirect settings: those of the storage, otherwise those of MinIO.
    pub fn redirect(&self) -> Option<&ClusterRedirect> {
        self.redirect.as_ref().or_else(|| self.minio.as_ref()?.redirect.as_ref())
    }
}
