//! Where ChartMuseum keeps charts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::driver::Azure;
use super::embedded::{Embedded, VolumeSource};
use super::pattern;

/// Where charts are.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartStorage {
    /// How many of one chart are kept; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub max_storage_object: Option<i64>,
    /// In S3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amazon: Option<ChartAmazon>,
    /// In Azure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub azure: Option<Azure>,
    /// In a volume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filesystem: Option<ChartFileSystem>,
    /// In Google Cloud Storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gcs: Option<ChartGcs>,
    /// In Swift.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub openstack: Option<ChartOpenStack>,
    /// In OSS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oss: Option<ChartOss>,
}

/// Charts in S3.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartAmazon {
    /// The id of the access key.
    #[serde(rename = "accessKeyID", skip_serializing_if = "Option::is_none")]
    pub access_key_id: Option<String>,
    /// The Secret with its secret, under secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub access_secret_ref: Option<String>,
    /// The bucket.
    pub bucket: String,
    /// The endpoint, where it is not Amazon's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    /// The directory in the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
    /// How objects are encrypted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_side_encryption: Option<String>,
}

/// Charts in a volume.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartFileSystem {
    /// Which, as in a Pod.
    pub volume_source: Embedded<VolumeSource>,
    /// The directory in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// Charts in Google Cloud Storage.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartGcs {
    /// The bucket.
    pub bucket: String,
    /// The Secret with the key of the account, under GCS_KEY_DATA.
    pub key_data_secret_ref: String,
    /// The directory in the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
    /// The size of the parts of an upload, in bytes.
    #[serde(rename = "chunksize", skip_serializing_if = "Option::is_none")]
    pub chunk_size: Option<String>,
}

/// Charts in Swift.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartOpenStack {
    /// The URL where tokens are had.
    #[serde(rename = "authenticationURL")]
    pub authentication_url: String,
    /// The container.
    pub container: String,
    /// The directory in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// The region.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
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
    /// The user's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub username: Option<String>,
    /// The user's id.
    #[serde(rename = "userid", skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// The Secret with the password, under secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: Option<String>,
}

/// Charts in OSS.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartOss {
    /// The id of the access key.
    #[serde(rename = "accessKeyID")]
    pub access_key_id: String,
    /// The Secret with its secret, under secret.
    pub access_secret_ref: String,
    /// The bucket.
    pub bucket: String,
    /// The endpoint.
    pub endpoint: String,
    /// The directory in the bucket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path_prefix: Option<String>,
}
