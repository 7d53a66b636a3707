//! Storage settings of a Registry.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::driver::{Azure, Gcs, Oss, S3, StorageRedirect, Swift, threads, truth};
use super::duration::GoDuration;
use super::embedded::{Embedded, VolumeSource};

/// Storage of the registry (`storage` of Distribution).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryStorage {
    /// Cache of blob metadata (`storage.cache` of Distribution). If unset, it is kept in memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<RegistryCache>,
    /// Deletion of blobs and manifests (`storage.delete` of Distribution). If unset, it is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<RegistryDelete>,
    /// Storage backend of the images. Exactly one backend is needed.
    pub driver: RegistryDriver,
    /// Maintenance of the storage (`storage.maintenance` of Distribution). If unset, uploads are not purged
    /// and writing is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<RegistryMaintenance>,
    /// Redirect of downloads to the storage backend (`storage.redirect` of Distribution). If unset, downloads
    /// are redirected where the backend supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<StorageRedirect>,
}

choice! {
    /// Backend of the cache of blob metadata.
    BlobDescriptorCache { InMemory = "inmemory", Redis = "redis" }
}

/// Cache of blob metadata.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryCache {
    /// Backend of the cache: `inmemory` or `redis` (`blobdescriptor` of Distribution). If unset, `inmemory`
    /// is used. `redis` requires `spec.redis`.
    #[serde(rename = "blobdescriptor", skip_serializing_if = "Option::is_none")]
    pub blob_descriptor: Option<BlobDescriptorCache>,
}

/// Deletion of blobs and manifests.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryDelete {
    /// Allow the deletion of blobs and manifests, which garbage collection needs (`delete.enabled` of
    /// Distribution). Default: true.
    #[serde(default = "truth")]
    pub enabled: bool,
}

/// Storage backend of the images. Exactly one backend is needed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem), has(self.inmemory)].exists(x, x)",
        "message": "driver sets no storage backend: set exactly one of s3, swift, azure, gcs, oss, filesystem, inmemory",
    },
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem), has(self.inmemory)].filter(x, x).size() < 2",
        "messageExpression": "'driver sets' + (has(self.s3) ? ' s3' : '') + (has(self.swift) ? ' swift' : '') + (has(self.azure) ? ' azure' : '') + (has(self.gcs) ? ' gcs' : '') + (has(self.oss) ? ' oss' : '') + (has(self.filesystem) ? ' filesystem' : '') + (has(self.inmemory) ? ' inmemory' : '') + ': set exactly one of s3, swift, azure, gcs, oss, filesystem, inmemory'",
    },
]))]
pub struct RegistryDriver {
    /// Store images in the memory of the process (driver `inmemory` of Distribution). For tests only. Exactly
    /// one driver must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inmemory: Option<InMemory>,
    /// Store images in a volume (driver `filesystem` of Distribution). Exactly one driver must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<RegistryFileSystem>,
    /// Store images in Amazon S3 or a compatible object store (driver `s3` of Distribution). Exactly one
    /// driver must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3>,
    /// Store images in OpenStack Swift (driver `swift` of Distribution). Exactly one driver must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swift: Option<Swift>,
    /// Store images in Azure Blob Storage (driver `azure` of Distribution). Exactly one driver must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// Store images in Google Cloud Storage (driver `gcs` of Distribution). Exactly one driver must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<Gcs>,
    /// Store images in Alibaba Cloud OSS (driver `oss` of Distribution). Exactly one driver must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<Oss>,
}

/// Storage in the memory of the process, without settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct InMemory {}

impl RegistryDriver {
    /// Returns the names of all backends that are set; a valid spec has exactly one.
    pub fn names(&self) -> Vec<&'static str> {
        let all = [
            self.s3.as_ref().map(|_| "s3"),
            self.swift.as_ref().map(|_| "swift"),
            self.azure.as_ref().map(|_| "azure"),
            self.gcs.as_ref().map(|_| "gcs"),
            self.oss.as_ref().map(|_| "oss"),
            self.filesystem.as_ref().map(|_| "filesystem"),
            self.inmemory.as_ref().map(|_| "inmemory"),
        ];
        all.into_iter().flatten().collect()
    }
}

/// Storage of images in a volume, mounted at `/var/lib/registry`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryFileSystem {
    /// Volume source, as in a Pod but without a name.
    pub volume_source: Embedded<VolumeSource>,
    /// Subdirectory of the volume to mount. If unset, the root of the volume is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Maximum number of concurrent file operations; at least 25 (`maxthreads` of Distribution). Default:
    /// 100.
    #[serde(rename = "maxthreads", default = "threads")]
    #[schemars(range(min = 25))]
    pub max_threads: i32,
}

/// Maintenance of the registry's storage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryMaintenance {
    /// Read-only mode (`maintenance.readonly` of Distribution). If unset, writing is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<RegistryReadOnly>,
    /// Purging of unfinished uploads (`maintenance.uploadpurging` of Distribution). If unset, they are not
    /// purged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_purging: Option<UploadPurging>,
}

/// Read-only mode of the registry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryReadOnly {
    /// Reject pushes and deletions. Default: false.
    pub enabled: bool,
}

/// Purging of unfinished uploads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UploadPurging {
    /// Purge unfinished uploads. Default: false.
    pub enabled: bool,
    /// Age after which an unfinished upload is deleted, as a Go duration. Default: `168h`.
    pub age: GoDuration,
    /// Time between two purges, as a Go duration. Default: `24h`.
    pub interval: GoDuration,
    /// Only log the uploads that would be deleted (`dryrun` of Distribution). Default: false.
    pub dry_run: bool,
}

impl Default for UploadPurging {
    fn default() -> Self {
        Self { enabled: false, age: "168h".into(), interval: "24h".into(), dry_run: false }
    }
}
