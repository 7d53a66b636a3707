//! Where a Registry keeps images, and how it cares for them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::driver::{Azure, Gcs, Oss, S3, StorageRedirect, Swift, threads, truth};
use super::duration::GoDuration;
use super::embedded::{Embedded, VolumeSource};

/// Where images are.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryStorage {
    /// What is kept nearer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<RegistryCache>,
    /// Whether images can be deleted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delete: Option<RegistryDelete>,
    /// In what.
    pub driver: RegistryDriver,
    /// How they are cared for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maintenance: Option<RegistryMaintenance>,
    /// Whether downloads are redirected to the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<StorageRedirect>,
}

choice! {
    /// Where what is known of blobs is kept.
    BlobDescriptorCache { InMemory = "inmemory", Redis = "redis" }
}

/// What is kept nearer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryCache {
    /// What is known of blobs.
    #[serde(rename = "blobdescriptor", skip_serializing_if = "Option::is_none")]
    pub blob_descriptor: Option<BlobDescriptorCache>,
}

/// Whether images can be deleted.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryDelete {
    /// Whether they can.
    #[serde(default = "truth")]
    pub enabled: bool,
}

/// In what images are: in exactly one of these.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem), has(self.inmemory)].exists(x, x)",
        "message": "driver names no store: give exactly one of s3, swift, azure, gcs, oss, filesystem, inmemory",
    },
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem), has(self.inmemory)].filter(x, x).size() < 2",
        "messageExpression": "'driver names' + (has(self.s3) ? ' s3' : '') + (has(self.swift) ? ' swift' : '') + (has(self.azure) ? ' azure' : '') + (has(self.gcs) ? ' gcs' : '') + (has(self.oss) ? ' oss' : '') + (has(self.filesystem) ? ' filesystem' : '') + (has(self.inmemory) ? ' inmemory' : '') + ': give exactly one of s3, swift, azure, gcs, oss, filesystem, inmemory'",
    },
]))]
pub struct RegistryDriver {
    /// In memory: for tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inmemory: Option<InMemory>,
    /// In a volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<RegistryFileSystem>,
    /// In S3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3>,
    /// In Swift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swift: Option<Swift>,
    /// In Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// In Google Cloud Storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<Gcs>,
    /// In OSS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<Oss>,
}

/// In memory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct InMemory {}

impl RegistryDriver {
    /// The names of all that are given. There should be one.
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

/// In a volume.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryFileSystem {
    /// Which, as in a Pod.
    pub volume_source: Embedded<VolumeSource>,
    /// The directory in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// How many files are read and written at the same time.
    #[serde(rename = "maxthreads", default = "threads")]
    #[schemars(range(min = 25))]
    pub max_threads: i32,
}

/// How images are cared for.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryMaintenance {
    /// Nobody may change them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<RegistryReadOnly>,
    /// Uploads that nobody finished go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upload_purging: Option<UploadPurging>,
}

/// Whether nobody may change images.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryReadOnly {
    /// Whether nobody may.
    pub enabled: bool,
}

/// When uploads that nobody finished go.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UploadPurging {
    /// Whether they do.
    pub enabled: bool,
    /// At which age.
    pub age: GoDuration,
    /// How often they are looked for.
    pub interval: GoDuration,
    /// Whether it is only said.
    pub dry_run: bool,
}

impl Default for UploadPurging {
    fn default() -> Self {
        Self { enabled: false, age: "168h".into(), interval: "24h".into(), dry_run: false }
    }
}
