//! Storage backends of images and charts.

use k8s_openapi::api::core::v1::PersistentVolumeClaimVolumeSource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::pattern;

/// Amazon S3 or a compatible object store (driver `s3` of Distribution).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[allow(clippy::struct_excessive_bools)] // as it is
pub struct S3 {
    /// Access key ID for the bucket (`accesskey` of Distribution). If unset, the identity of the pod's
    /// ServiceAccount or node is used. Set it together with `secretkeyRef`.
    #[serde(rename = "accesskey", skip_serializing_if = "Option::is_none")]
    pub access_key: Option<String>,
    /// Name of the Secret with the secret access key, in key `secret`. Set it together with `accesskey`.
    #[serde(rename = "secretkeyRef", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_key_ref: Option<String>,
    /// Region of the S3 bucket, such as `us-east-1`.
    pub region: String,
    /// URL of a compatible object store (`regionendpoint` of Distribution). If unset, Amazon's endpoint of
    /// the region is used.
    #[serde(rename = "regionendpoint", skip_serializing_if = "Option::is_none")]
    pub region_endpoint: Option<String>,
    /// Name of the S3 bucket.
    pub bucket: String,
    /// Directory in the bucket under which everything is stored (`rootdirectory` of Distribution). If unset,
    /// the root of the bucket.
    #[serde(rename = "rootdirectory", skip_serializing_if = "Option::is_none")]
    pub root_directory: Option<String>,
    /// Storage class of new objects (`storageclass` of Distribution). Default: `STANDARD`.
    #[serde(rename = "storageclass", default = "standard")]
    pub storage_class: String,
    /// ID of the KMS key that encrypts objects, if `encrypt` is true (`keyid` of Distribution). If unset, S3
    /// encrypts with a key that it manages itself (SSE-S3, `AES256`).
    #[serde(rename = "keyid", skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// Store objects with server-side encryption (`encrypt` of Distribution). Default: false.
    #[serde(default)]
    pub encrypt: bool,
    /// Skip the verification of the endpoint's certificate (`skipverify` of Distribution). Default: false.
    #[serde(rename = "skipverify", default)]
    pub skip_verify: bool,
    /// Name of the Secret with the CA certificate of the endpoint, in key `ca.crt`. If unset, only well-known
    /// CAs are trusted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
    /// Use https for the endpoint (`secure` of Distribution). Default: true.
    #[serde(default = "truth")]
    pub secure: bool,
    /// Sign requests with AWS Signature Version 4 (`v4auth` of Distribution). Default: true.
    #[serde(rename = "v4auth", default = "truth")]
    pub v4_auth: bool,
    /// Size of the parts of an upload, in bytes; at least 5242880 (`chunksize` of Distribution). If unset,
    /// Distribution uses 10485760.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5_242_880))]
    pub chunk_size: Option<i64>,
    /// Size of the parts of a copy, in bytes (`multipartcopychunksize` of Distribution). If unset,
    /// Distribution uses 33554432.
    #[serde(rename = "multipartcopychunksize", skip_serializing_if = "Option::is_none")]
    pub multipart_copy_chunk_size: Option<i64>,
    /// Maximum number of parts that are copied concurrently (`multipartcopymaxconcurrency` of Distribution).
    /// If unset, Distribution uses 100.
    #[serde(rename = "multipartcopymaxconcurrency", skip_serializing_if = "Option::is_none")]
    pub multipart_copy_max_concurrency: Option<i64>,
    /// Object size above which copies are made in parts, in bytes (`multipartcopythresholdsize` of
    /// Distribution). If unset, Distribution uses 33554432.
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
    /// Endpoint type of OpenStack Swift.
    SwiftEndpoint { Public = "public", Internal = "internal", Admin = "admin" }
}

/// OpenStack Swift object storage (driver `swift` of Distribution).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Swift {
    /// URL of the OpenStack authentication service (`authurl` of Distribution).
    #[serde(rename = "authurl")]
    pub auth_url: String,
    /// OpenStack user name (`username` of Distribution). The registry does not start without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// Name of the Secret with the password of the OpenStack user, in key `secret` (`password` of
    /// Distribution). The registry does not start without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
    /// OpenStack region of the container (`region` of Distribution). If unset, the first region that the
    /// authentication service lists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Name of the Swift container.
    pub container: String,
    /// Name of the OpenStack tenant or project (`tenant` of Distribution). If it and `tenantID` are unset,
    /// none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// ID of the OpenStack tenant or project (`tenantid` of Distribution). If it and `tenant` are unset, none
    /// is sent.
    #[serde(rename = "tenantID", skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Name of the OpenStack domain, for version 3 of the identity API (`domain` of Distribution). If it and
    /// `domainID` are unset, none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// ID of the OpenStack domain, for version 3 of the identity API (`domainid` of Distribution). If it and
    /// `domain` are unset, none is sent.
    #[serde(rename = "domainID", skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<String>,
    /// ID of the OpenStack trust, for version 3 of the identity API (`trustid` of Distribution). If unset,
    /// the user acts without a trust.
    #[serde(rename = "trustid", skip_serializing_if = "Option::is_none")]
    pub trust_id: Option<String>,
    /// Skip the verification of the endpoint's certificate (`insecureskipverify` of Distribution). Default:
    /// false.
    #[serde(rename = "insecureskipverify", default)]
    pub insecure_skip_verify: bool,
    /// Size of the segments of an upload, in bytes; at least 5242880 (`chunksize` of Distribution). If unset,
    /// Distribution uses 20971520.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5_242_880))]
    pub chunk_size: Option<i64>,
    /// Prefix of the object names in the container (`prefix` of Distribution). If unset, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Name of the Secret with the key that signs temporary URLs, in key `secret` (`secretkey` of
    /// Distribution). If unset, the key of the container or account is used; Distribution generates one if
    /// there is none.
    #[serde(rename = "secretkeyRef", skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_key_ref: Option<String>,
    /// Access key for temporary URLs (`accesskey` of Distribution). Only HP Cloud Object Storage needs it; if
    /// unset, temporary URLs are signed with the key of `secretkeyRef` alone.
    #[serde(rename = "accesskey", skip_serializing_if = "Option::is_none")]
    pub access_key: Option<String>,
    /// Version of the identity API: `1`, `2` or `3` (`authversion` of Distribution). If unset, Distribution
    /// detects it from `authurl`.
    #[serde(rename = "authversion", skip_serializing_if = "Option::is_none")]
    pub auth_version: Option<String>,
    /// Endpoint type of the service: `public`, `internal` or `admin` (`endpointtype` of Distribution).
    /// Default: `public`.
    #[serde(rename = "endpointtype", default = "public_endpoint")]
    pub endpoint_type: SwiftEndpoint,
}

fn public_endpoint() -> SwiftEndpoint {
    SwiftEndpoint::Public
}

/// Azure Blob Storage (driver `azure` of Distribution).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Azure {
    /// Name of the storage account (`accountname` of Distribution). Required.
    #[serde(rename = "accountname", skip_serializing_if = "Option::is_none")]
    pub account_name: Option<String>,
    /// Name of the Secret with the key of the storage account, in key `secret`. Required.
    #[serde(rename = "accountkeyRef", skip_serializing_if = "Option::is_none")]
    pub account_key_ref: Option<String>,
    /// Name of the blob container (`container` of Distribution). Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container: Option<String>,
    /// Domain suffix of the storage service (`realm` of Distribution). Default: `core.windows.net`.
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// Directory of charts in the container. Default: `/azure/harbor/charts`. Images are always stored at the
    /// root of the container.
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

/// Google Cloud Storage (driver `gcs` of Distribution).
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Gcs {
    /// Name of the Secret with the service account key as JSON, in key `GCS_KEY_DATA`. If unset, the identity
    /// of the pod is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_data_ref: Option<String>,
    /// Name of the bucket. Required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<String>,
    /// Directory in the bucket under which everything is stored (`rootdirectory` of Distribution). If unset,
    /// the root of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Size of the chunks of an upload, in bytes, a multiple of 262144 (`chunksize` of Distribution). If
    /// unset, Distribution 2 uses 5242880.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<String>,
}

/// Alibaba Cloud OSS (driver `oss` of Distribution).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Oss {
    /// ID of the access key (`accesskeyid` of Distribution).
    #[serde(rename = "accessKeyID")]
    pub access_key_id: String,
    /// Name of the Secret with the access key secret, in key `secret`.
    pub access_secret_ref: String,
    /// Region of the bucket, such as `oss-cn-hangzhou`.
    #[schemars(regex(pattern = pattern::OSS_REGION))]
    pub region: String,
    /// Name of the OSS bucket.
    pub bucket: String,
    /// Host of the endpoint without the bucket, which the operator puts in front (`endpoint` of
    /// Distribution). If unset, the endpoint of the region is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Directory in the bucket under which everything is stored (`rootdirectory` of Distribution). If unset,
    /// the root of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Use the endpoint inside Alibaba Cloud's network (`internal` of Distribution). Default: false.
    #[serde(default)]
    pub internal: bool,
    /// Store objects with server-side encryption (`encrypt` of Distribution). Default: false.
    #[serde(default)]
    pub encrypt: bool,
    /// Use https for the endpoint (`secure` of Distribution). Default: true.
    #[serde(default = "truth")]
    pub secure: bool,
    /// Size of the parts of an upload, in bytes; at least 5242880 (`chunksize` of Distribution). If unset,
    /// Distribution uses 10485760.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 5_242_880))]
    pub chunk_size: Option<i64>,
}

/// PersistentVolumeClaim with an optional subdirectory.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Claim {
    /// Name of the PersistentVolumeClaim, which must exist in the namespace.
    pub claim_name: String,
    /// Mount the volume read-only. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Subdirectory of the volume. If unset, the root of the volume. It is honoured for images and charts
    /// only, and ignored for scan data exports and Trivy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

impl Claim {
    /// Returns the claim as a volume source of a pod.
    pub fn source(&self) -> PersistentVolumeClaimVolumeSource {
        PersistentVolumeClaimVolumeSource { claim_name: self.claim_name.clone(), read_only: self.read_only }
    }
}

/// PersistentVolumeClaim of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryClaim {
    /// Name and subdirectory of the claim.
    #[serde(flatten)]
    pub claim: Claim,
    /// Maximum number of concurrent file operations; at least 25 (`maxthreads` of Distribution). Default:
    /// 100.
    #[serde(rename = "maxthreads", default = "threads")]
    #[schemars(range(min = 25))]
    pub max_threads: i32,
}

pub(super) fn threads() -> i32 {
    100
}

/// Existing PersistentVolumeClaims for images and charts (driver `filesystem` of Distribution).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileSystem {
    /// PersistentVolumeClaim of the charts. If unset, charts are stored at the root of the images' claim.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_persistent_volume: Option<Claim>,
    /// PersistentVolumeClaim of the images.
    pub registry_persistent_volume: RegistryClaim,
}

/// Redirect of downloads to the storage backend.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageRedirect {
    /// Pass downloads through the registry instead of redirecting clients to the storage backend
    /// (`redirect.disable` of Distribution). Default: false.
    pub disable: bool,
}

/// Storage of images and charts. Exactly one backend is needed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(extend("x-kubernetes-validations" = [
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem)].exists(x, x)",
        "message": "imageChartStorage sets no storage backend: set exactly one of s3, swift, azure, gcs, oss, filesystem",
    },
    {
        "rule": "[has(self.s3), has(self.swift), has(self.azure), has(self.gcs), has(self.oss), has(self.filesystem)].filter(x, x).size() < 2",
        "messageExpression": "'imageChartStorage sets' + (has(self.s3) ? ' s3' : '') + (has(self.swift) ? ' swift' : '') + (has(self.azure) ? ' azure' : '') + (has(self.gcs) ? ' gcs' : '') + (has(self.oss) ? ' oss' : '') + (has(self.filesystem) ? ' filesystem' : '') + ': set exactly one of s3, swift, azure, gcs, oss, filesystem'",
    },
]))]
pub struct ImageChartStorage {
    /// Redirect of downloads to the storage backend. If unset, downloads are redirected where the backend
    /// supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<StorageRedirect>,
    /// Store images and charts in existing PersistentVolumeClaims. Exactly one storage must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<FileSystem>,
    /// Store images and charts in Amazon S3 or a compatible object store. Exactly one storage must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3>,
    /// Store images and charts in OpenStack Swift. Exactly one storage must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub swift: Option<Swift>,
    /// Store images and charts in Azure Blob Storage. Exactly one storage must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// Store images and charts in Google Cloud Storage. Exactly one storage must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<Gcs>,
    /// Store images and charts in Alibaba Cloud OSS. Exactly one storage must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<Oss>,
}

/// Storage backend that a Harbor uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Store<'a> {
    /// PersistentVolumeClaims that already exist.
    FileSystem(&'a FileSystem),
    /// Amazon S3 or a compatible object store.
    S3(&'a S3),
    /// OpenStack Swift object storage.
    Swift(&'a Swift),
    /// Azure Blob Storage container.
    Azure(&'a Azure),
    /// Google Cloud Storage bucket.
    Gcs(&'a Gcs),
    /// Alibaba Cloud OSS bucket.
    Oss(&'a Oss),
}

impl Store<'_> {
    /// Returns the name of the backend in Core's settings and in messages.
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
    /// Returns all backends that are set; a valid spec has exactly one.
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

    /// Returns the backend that is used.
    pub fn store(&self) -> Option<Store<'_>> {
        self.stores().into_iter().next()
    }
}
