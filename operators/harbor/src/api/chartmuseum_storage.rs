//! Storage backends of ChartMuseum.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::driver::Azure;
use super::embedded::{Embedded, VolumeSource};
use super::pattern;

/// Storage backend of the charts. Exactly one backend is needed.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartStorage {
    /// Maximum number of objects per repository; 0 means no limit (`maxstorageobjects` of ChartMuseum).
    /// Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_storage_object: Option<i64>,
    /// Store charts in Amazon S3 or a compatible object store. Exactly one backend must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amazon: Option<ChartAmazon>,
    /// Store charts in Azure Blob Storage. Exactly one backend must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// Store charts in a volume. Exactly one backend must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<ChartFileSystem>,
    /// Store charts in Google Cloud Storage. Exactly one backend must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<ChartGcs>,
    /// Store charts in OpenStack Swift. Exactly one backend must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openstack: Option<ChartOpenStack>,
    /// Store charts in Alibaba Cloud OSS. Exactly one backend must be set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<ChartOss>,
}

/// Charts in Amazon S3 or a compatible object store.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartAmazon {
    /// ID of the access key (`AWS_ACCESS_KEY_ID`). If unset, the identity of the pod is used.
    #[serde(rename = "accessKeyID", skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// Name of the Secret with the secret access key, in key `secret` (`AWS_SECRET_ACCESS_KEY`). Set
    /// it together with `accessKeyID`. If unset, the identity of the pod is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub access_secret_ref: Option<String>,
    /// Name of the S3 bucket (`STORAGE_AMAZON_BUCKET` of ChartMuseum).
    pub bucket: String,
    /// URL of a compatible object store (`STORAGE_AMAZON_ENDPOINT` of ChartMuseum). If unset, Amazon's
    /// endpoint of the region is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// Directory in the bucket; charts are stored in `chart_storage` below it (`STORAGE_AMAZON_PREFIX` of
    /// ChartMuseum). If unset, the root of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Region of the S3 bucket (`STORAGE_AMAZON_REGION` of ChartMuseum). If unset, `us-east-1` where
    /// `endpoint` is set; without `endpoint`, ChartMuseum does not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Server-side encryption algorithm, such as `AES256` (`STORAGE_AMAZON_SSE` of ChartMuseum). If unset,
    /// none is requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_encryption: Option<String>,
}

/// Charts in a volume, mounted at `/mnt/chartstorage`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartFileSystem {
    /// Volume source, as in a Pod but without a name.
    pub volume_source: Embedded<VolumeSource>,
    /// Subdirectory of the volume. For compatibility it is applied twice: charts are in `<prefix>/<prefix>`.
    /// If unset, charts are at the root of the volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// Charts in Google Cloud Storage.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartGcs {
    /// Name of the bucket (`STORAGE_GOOGLE_BUCKET` of ChartMuseum).
    pub bucket: String,
    /// Name of the Secret with the service account key as JSON, in key `GCS_KEY_DATA`.
    pub key_data_secret_ref: String,
    /// Directory in the bucket; charts are stored in `chart_storage` below it (`STORAGE_GOOGLE_PREFIX` of
    /// ChartMuseum). If unset, the root of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// Ignored, and kept for compatibility.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<String>,
}

/// Charts in OpenStack Swift.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartOpenStack {
    /// URL of the OpenStack authentication service (`OS_AUTH_URL`).
    #[serde(rename = "authenticationURL")]
    pub authentication_url: String,
    /// Name of the Swift container (`STORAGE_OPENSTACK_CONTAINER` of ChartMuseum).
    pub container: String,
    /// Directory in the container; charts are stored in `chart_storage` below it (`STORAGE_OPENSTACK_PREFIX`
    /// of ChartMuseum). If unset, the root of the container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// OpenStack region of the container (`STORAGE_OPENSTACK_REGION` of ChartMuseum). ChartMuseum does not
    /// start without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// Name of the OpenStack tenant or project (`OS_TENANT_NAME`). It takes precedence over `tenantID`; if
    /// both are unset, none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    /// ID of the OpenStack tenant or project (`OS_TENANT_ID`). Used only if `tenant` is unset; if both are
    /// unset, none is sent.
    #[serde(rename = "tenantID", skip_serializing_if = "Option::is_none")]
    pub tenant_id: Option<String>,
    /// Name of the OpenStack domain (`OS_DOMAIN_NAME`). It takes precedence over `domainID`; if both are
    /// unset, none is sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// ID of the OpenStack domain (`OS_DOMAIN_ID`). Used only if `domain` is unset; if both are unset, none
    /// is sent.
    #[serde(rename = "domainID", skip_serializing_if = "Option::is_none")]
    pub domain_id: Option<String>,
    /// Name of the OpenStack user (`OS_USERNAME`). It takes precedence over `userid`; if both are unset,
    /// authentication fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// ID of the OpenStack user (`OS_USERID`). Used only if `username` is unset; if both are unset,
    /// authentication fails.
    #[serde(rename = "userid", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Name of the Secret with the password of the OpenStack user, in key `secret` (`OS_PASSWORD`). If unset,
    /// authentication fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
}

/// Charts in Alibaba Cloud OSS.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartOss {
    /// ID of the access key (`ALIBABA_CLOUD_ACCESS_KEY_ID`).
    #[serde(rename = "accessKeyID")]
    pub access_key_id: String,
    /// Name of the Secret with the access key secret, in key `secret` (`ALIBABA_CLOUD_ACCESS_KEY_SECRET`).
    pub access_secret_ref: String,
    /// Name of the OSS bucket (`STORAGE_ALIBABA_BUCKET` of ChartMuseum).
    pub bucket: String,
    /// Host of the OSS endpoint (`STORAGE_ALIBABA_ENDPOINT` of ChartMuseum).
    pub endpoint: String,
    /// Directory in the bucket; charts are stored in `chart_storage` below it (`STORAGE_ALIBABA_PREFIX` of
    /// ChartMuseum). If unset, the root of the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
}
