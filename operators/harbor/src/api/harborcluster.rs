//! HarborCluster: a Harbor, and what it needs.

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

/// What a HarborCluster should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "HarborCluster",
    plural = "harborclusters",
    namespaced,
    doc = "HarborCluster is a Harbor with its database, cache and storage: external ones, those of other operators, or built in.",
    derive = "PartialEq",
    status = "HarborClusterStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct HarborClusterSpec {
    /// What is the same for every Harbor.
    #[serde(flatten)]
    pub common: HarborCommon,
    /// Its cache. One of the older version may lack it, and is refused when it is next changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub cache: Option<Cache>,
    /// Its database.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub database: Option<ClusterDatabase>,
    /// Where images and charts are.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(required)]
    pub storage: Option<ClusterStorage>,
}

choice! {
    /// Whose cache.
    CacheKind {
        /// An external Redis:
        Redis = "Redis",
        /// One of the Redis operator:
        RedisFailover = "RedisFailover",
        /// One that we run ourselves:
        BuiltIn = "BuiltIn",
    }
}

/// The cache. Only what belongs to the kind counts; the rest is kept, and does nothing.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.kind != 'Redis' || has(self.spec.redis)",
        "message": "cache.kind is Redis, but cache.spec.redis is missing: say where the Redis is",
    },
    {
        "rule": "self.kind != 'RedisFailover' || has(self.spec.redisFailover)",
        "message": "cache.kind is RedisFailover, but cache.spec.redisFailover is missing: give it, {} will do",
    },
]))]
pub struct Cache {
    /// Whose.
    pub kind: CacheKind,
    /// Which.
    pub spec: CacheSpec,
}

/// Which cache.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheSpec {
    /// For kind Redis: where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisHost>,
    /// For kind RedisFailover: what is asked of the Redis operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis_failover: Option<RedisFailover>,
    /// For kind BuiltIn: how it is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<BuiltInCache>,
}

choice! {
    /// Whose database.
    DatabaseKind {
        /// An external PostgreSQL:
        PostgreSql = "PostgreSQL",
        /// One of Zalando's operator; the name is as it is:
        Zalando = "Zlando/PostgreSQL",
        /// One that we run ourselves:
        BuiltIn = "BuiltIn",
    }
}

/// The database. Only what belongs to the kind counts; the rest is kept, and does nothing.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.kind != 'PostgreSQL' || has(self.spec.postgresql)",
        "message": "database.kind is PostgreSQL, but database.spec.postgresql is missing: say where the PostgreSQL is",
    },
    {
        "rule": "self.kind != 'Zlando/PostgreSQL' || has(self.spec.zlandoPostgreSql)",
        "message": "database.kind is Zlando/PostgreSQL, but database.spec.zlandoPostgreSql is missing: give it, {} will do",
    },
]))]
pub struct ClusterDatabase {
    /// Whose.
    pub kind: DatabaseKind,
    /// Which.
    pub spec: DatabaseSpec,
}

/// Which database.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct DatabaseSpec {
    /// For kind PostgreSQL: where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub postgresql: Option<HarborDatabase>,
    /// For kind Zlando/PostgreSQL: what is asked of Zalando's operator. The name is as it is.
    #[serde(rename = "zlandoPostgreSql", skip_serializing_if = "Option::is_none")]
    pub zalando: Option<ZalandoPostgres>,
    /// For kind BuiltIn: how it is run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<BuiltInDatabase>,
}

choice! {
    /// Whose storage.
    StorageKind {
        /// One of MinIO's operator:
        MinIo = "MinIO",
        /// S3:
        S3 = "S3",
        /// Swift:
        Swift = "Swift",
        /// Volumes that are there:
        FileSystem = "FileSystem",
        /// Azure:
        Azure = "Azure",
        /// Google Cloud Storage:
        Gcs = "Gcs",
        /// OSS:
        Oss = "Oss",
        /// A volume that we claim ourselves:
        BuiltIn = "BuiltIn",
    }
}

impl StorageKind {
    /// The field of `storage.spec` that belongs to it.
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

/// Where images and charts are. Only what belongs to the kind counts; the rest is kept, and does nothing.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "self.kind == 'BuiltIn' || (self.kind == 'MinIO' && has(self.spec.minIO)) || (self.kind == 'S3' && has(self.spec.s3)) || (self.kind == 'Swift' && has(self.spec.swift)) || (self.kind == 'FileSystem' && has(self.spec.fileSystem)) || (self.kind == 'Azure' && has(self.spec.azure)) || (self.kind == 'Gcs' && has(self.spec.gcs)) || (self.kind == 'Oss' && has(self.spec.oss))",
        "messageExpression": "'storage.kind is ' + self.kind + ', but what belongs to it is missing: fill in storage.spec.' + (self.kind == 'MinIO' ? 'minIO' : self.kind == 'FileSystem' ? 'fileSystem' : self.kind.lowerAscii())",
    },
    {
        "rule": "self.kind != 'MinIO' || !has(self.spec.minIO) || self.spec.minIO.replicas * self.spec.minIO.volumesPerServer >= 4",
"message": "storage.spec.minIO: replicas * volumesPerServer is below the 4 volumes that MinIO needs: raise one of them",
    },
    {
        "rule": "self.kind != 'MinIO' || (has(self.spec.redirect) ? (!self.spec.redirect.enable || (has(self.spec.redirect.expose) && has(self.spec.redirect.expose.ingress))) : (!has(self.spec.minIO) || !has(self.spec.minIO.redirect) || !self.spec.minIO.redirect.enable || (has(self.spec.minIO.redirect.expose) && has(self.spec.minIO.redirect.expose.ingress))))",
        "message": "downloads are redirected to MinIO, which nobody outside can reach: fill in redirect.expose.ingress, or set redirect.enable to false",
    },
]))]
pub struct ClusterStorage {
    /// Whose.
    pub kind: StorageKind,
    /// Which.
    pub spec: StorageSpec,
}

/// Which storage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageSpec {
    /// For kind MinIO: what is asked of its operator.
    #[serde(rename = "minIO", skip_serializing_if = "Option::is_none")]
    pub minio: Option<MinIo>,
    /// For kind S3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3>,
    /// For kind Swift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swift: Option<Swift>,
    /// For kind FileSystem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_system: Option<FileSystem>,
    /// For kind Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// For kind Gcs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<Gcs>,
    /// For kind Oss.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<Oss>,
    /// For kind BuiltIn: the volume that is claimed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_in: Option<BuiltInStorage>,
    /// Whether downloads are redirected to the storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<ClusterRedirect>,
}

impl StorageSpec {
    /// Whether downloads are redirected, and how the storage is reached then. What MinIO says counts if nothing else is said.
    pub fn redirect(&self) -> Option<&ClusterRedirect> {
        self.redirect.as_ref().or_else(|| self.minio.as_ref()?.redirect.as_ref())
    }
}
