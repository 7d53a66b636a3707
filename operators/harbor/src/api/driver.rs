//! Where images and charts are stored.

use k8s_openapi::api::core::v1::PersistentVolumeClaimVolumeSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

/// Amazon S3, or what speaks like it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools)] // as it is
pub struct S3 {
    /// The access key; without one, the rights of the ServiceAccount are used.
    #[serde(rename = "accesskey", skip_serializing_if = "Option::is_none")]
    pub access_key: Option<String>,
    /// The Secret with the secret key, under secret.
    #[serde(rename = "secretkeyRef", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_key_ref: Option<String>,
    /// The region of the bucket.
    pub region: String,
    /// The endpoint, where it is not Amazon's.
    #[serde(rename = "regionendpoint", skip_serializing_if = "Option::is_none")]
    pub region_endpoint: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// The directory in it.
    #[serde(rename = "rootdirectory", skip_serializing_if = "Option::is_none")]
    pub root_directory: Option<String>,
    /// The class in which objects are stored.
    #[serde(rename = "storageclass", default = "standard")]
    pub storage_class: String,
    /// The id of the KMS key with which objects are encrypted.
    #[serde(rename = "keyid", skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Whether objects are encrypted.
    #[serde(default)]
    pub encrypt: bool,
    /// Whether certificates are not checked.
    #[serde(rename = "skipverify", default)]
    pub skip_verify: bool,
    /// The Secret with the certificate authority of the endpoint, under ca.crt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
    /// Whether https is used.
    #[serde(default = "truth")]
    pub secure: bool,
    /// Whether requests are signed in version 4.
    #[serde(rename = "v4auth", default = "truth")]
    pub v4_auth: bool,
    /// The size of the parts of an upload, in bytes.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5_242_880))]
    pub chunk_size: Option<i64>,
    /// The size of the parts of a copy, in bytes.
    #[serde(rename = "multipartcopychunksize", skip_serializing_if = "Option::is_none")]
    pub multipart_copy_chunk_size: Option<i64>,
    /// How many parts are copied at the same time.
    #[serde(rename = "multipartcopymaxconcurrency", skip_serializing_if = "Option::is_none")]
    pub multipart_copy_max_concurrency: Option<i64>,
    /// The size from which a copy is made in parts, in bytes.
    #[serde(rename = "multipartcopythresholdsize", skip_serializing_if = "Option::is_none")]
    pub multipart_copy_threshold_size: Option<i64>,
}

pub(super) fn truth() -> bool {
    true
}

fn standard() -> String {
    "STANDARD".into()
}

choice! {
    /// Which of Swift's endpoints.
    SwiftEndpoint { Public = "public", Internal = "internal", Admin = "admin" }
}

/// OpenStack Swift.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Swift {
    /// The URL where tokens are had.
    #[serde(rename = "authurl")]
    pub auth_url: String,
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The Secret with the password, under secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// The container.
    pub container: String,
    /// The tenant's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// The tenant's id.
    #[serde(rename = "tenantID", skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// The domain's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The domain's id.
    #[serde(rename = "domainID", skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<String>,
    /// The trust's id.
    #[serde(rename = "trustid", skip_serializing_if = "Option::is_none")]
    pub trust_id: Option<String>,
    /// Whether certificates are not checked.
    #[serde(rename = "insecureskipverify", default)]
    pub insecure_skip_verify: bool,
    /// The size of the parts of an upload, in bytes.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5_242_880))]
    pub chunk_size: Option<i64>,
    /// The prefix of what is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The Secret with the key of temporary URLs, under secret.
    #[serde(rename = "secretkeyRef", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_key_ref: Option<String>,
    /// The access key of temporary URLs.
    #[serde(rename = "accesskey", skip_serializing_if = "Option::is_none")]
    pub access_key: Option<String>,
    /// The version of the API where tokens are had.
    #[serde(rename = "authversion", skip_serializing_if = "Option::is_none")]
    pub auth_version: Option<String>,
    /// Which endpoint is used.
    #[serde(rename = "endpointtype", default = "public_endpoint")]
    pub endpoint_type: SwiftEndpoint,
}

fn public_endpoint() -> SwiftEndpoint {
    SwiftEndpoint::Public
}

/// Azure's blobs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Azure {
    /// The account.
    #[serde(rename = "accountname", skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
    /// The Secret with its key, under secret.
    #[serde(rename = "accountkeyRef", skip_serializing_if = "Option::is_none")]
    pub account_key_ref: Option<String>,
    /// The container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// The domain of the service.
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// Where charts are. Images have never been under it.
    pub path_prefix: String,
}

impl Default for Azure {
    fn default() -> Self {
        Self {
            account_name: None,
            account_key_ref: None,
            container: None,
            base_url: "core.windows.net".into(),
            path_prefix: "/azure/harbor/charts".into(),
        }
    }
}

/// Google Cloud Storage.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Gcs {
    /// The Secret with the key of the account, under GCS_KEY_DATA.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_data_ref: Option<String>,
    /// The bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// The directory in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// The size of the parts of an upload, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<String>,
}

/// Alibaba's OSS.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Oss {
    /// The id of the access key.
    #[serde(rename = "accessKeyID")]
    pub access_key_id: String,
    /// The Secret with its secret, under secret.
    pub access_secret_ref: String,
    /// The region.
    #[schemars(regex(pattern = pattern::OSS_REGION))]
    pub region: String,
    /// The bucket.
    pub bucket: String,
    /// The endpoint, where it is not the region's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The directory in the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Whether the endpoint inside Alibaba's network is used.
    #[serde(default)]
    pub internal: bool,
    /// Whether objects are encrypted.
    #[serde(default)]
    pub encrypt: bool,
    /// Whether https is used.
    #[serde(default = "truth")]
    pub secure: bool,
    /// The size of the parts of an upload, in bytes.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5_242_880))]
    pub chunk_size: Option<i64>,
}

/// A PersistentVolumeClaim, and the directory in it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Its name.
    pub claim_name: String,
    /// Whether it is mounted for reading only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The directory in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

impl Claim {
    /// As a volume of a pod.
    pub fn source(&self) -> PersistentVolumeClaimVolumeSource {
        PersistentVolumeClaimVolumeSource { claim_name: self.claim_name.clone(), read_only: self.read_only }
    }
}

/// The PersistentVolumeClaim of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryClaim {
    /// Which one.
    #[serde(flatten)]
    pub claim: Claim,
    /// How many files are read and written at the same time.
    #[serde(rename = "maxthreads", default = "threads")]
    #[schemars(range(min = 25))]
    pub max_threads: i32,
}

pub(super) fn threads() -> i32 {
    100
}

/// Volumes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSystem {
    /// Charts; with the images if nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_persistent_volume: Option<Claim>,
    /// Images.
    pub registry_persistent_volume: RegistryClaim,
}

/// Whether downloads are redirected to the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageRedirect {
    /// Whether they are not.
    pub disable: bool,
}

/// Where a Harbor stores images and charts: in exactly one place.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem)].exists(x, x)",
        "message": "imageChartStorage names no store: give exactly one of s3, swift, azure, gcs, oss, filesystem",
    },
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem)].filter(x, x).size() < 2",
        "messageExpression": "'imageChartStorage names' + (has(self.s3) ? ' s3' : '') + (has(self.swift) ? ' swift' : '') + (has(self.azure) ? ' azure' : '') + (has(self.gcs) ? ' gcs' : '') + (has(self.oss) ? ' oss' : '') + (has(self.filesystem) ? ' filesystem' : '') + ': give exactly one of s3, swift, azure, gcs, oss, filesystem'",
    },
]))]
pub struct ImageChartStorage {
    /// Whether downloads are redirected to the store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<StorageRedirect>,
    /// In volumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FileSystem>,
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

/// The store that a Harbor uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Store<'a> {
    /// Volumes.
    FileSystem(&'a FileSystem),
    /// S3.
    S3(&'a S3),
    /// Swift.
    Swift(&'a Swift),
    /// Azure.
    Azure(&'a Azure),
    /// Google Cloud Storage.
    Gcs(&'a Gcs),
    /// OSS.
    Oss(&'a Oss),
}

impl Store<'_> {
    /// Its name, for Core and for users.
    pub const fn name(self) -> &'static str {
        match self {
            Self::FileSystem(_) => "filesystem",
            Self::S3(_) => "s3",
            Self::Swift(_) => "swift",
            Self::Azure(_) => "azure",
            Self::Gcs(_) => "gcs",
            Self::Oss(_) => "oss",
        }
    }
}

impl ImageChartStorage {
    /// All stores that are named. There should be one.
    pub fn stores(&self) -> Vec<Store<'_>> {
        let all = [
            self.s3.as_ref().map(Store::S3),
            self.swift.as_ref().map(Store::Swift),
            self.azure.as_ref().map(Store::Azure),
            self.gcs.as_ref().map(Store::Gcs),
            self.oss.as_ref().map(Store::Oss),
            self.filesystem.as_ref().map(Store::FileSystem),
        ];
        all.into_iter().flatten().collect()
    }

    /// The store that is used.
    pub fn store(&self) -> Option<Store<'_>> {
        self.stores().into_iter().next()
    }

    /// Whether downloads are redirected to the store.
    pub fn redirects(&self) -> bool {
        !self.redirect.as_ref().is_some_and(|redirect| redirect.disable)
    }
}
