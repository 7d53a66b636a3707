//! Health checks and webhook notifications of the registry.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::core_kind::five_seconds;
use super::driver::truth;
use super::duration::GoDuration;
use super::pattern;

fn three() -> i32 {
    3
}

fn ok() -> i32 {
    200
}

fn ten_seconds() -> GoDuration {
    "10s".into()
}

/// Health checks that the registry runs on itself and its dependencies.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryHealth {
    /// Files whose existence makes the registry unhealthy (`health.file` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file: Vec<FileCheck>,
    /// URLs that must respond as expected (`health.http` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpCheck>,
    /// Check of the storage driver (`health.storagedriver` of Distribution). If unset, it is checked every 5s
    /// with a threshold of 3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_driver: Option<StorageDriverCheck>,
    /// Addresses that must accept TCP connections (`health.tcp` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpCheck>,
}

/// Health check that fails while a file exists.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCheck {
    /// Path of the file in the container.
    pub path: String,
    /// Time between two checks, as a Go duration. Default: `5s`.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
}

/// Health check that requests a URL.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpCheck {
    /// URL that the check requests.
    #[schemars(regex(pattern = pattern::URL))]
    pub uri: String,
    /// Headers added to the request. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Time between two checks, as a Go duration. Default: `5s`.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
    /// Expected HTTP status code of the response. Default: 200.
    #[serde(rename = "statuscode", default = "ok")]
    #[schemars(range(min = 0))]
    pub status_code: i32,
    /// Number of failed checks after which the registry is unhealthy. Default: 3.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub threshold: i32,
    /// Timeout of the request, as a Go duration. Default: `5s`.
    #[serde(default = "five_seconds")]
    pub timeout: GoDuration,
}

/// Health check of the storage driver.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageDriverCheck {
    /// Check the storage driver. Default: true.
    #[serde(default = "truth")]
    pub enabled: bool,
    /// Time between two checks, as a Go duration. Default: `5s`.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
    /// Number of failed checks after which the registry is unhealthy. Default: 3.
    #[serde(default = "three")]
    #[schemars(range(min = 1))]
    pub threshold: i32,
}

/// Health check that opens a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpCheck {
    /// Address to connect to, as `host:port` (`addr` of Distribution).
    pub address: String,
    /// Time between two checks, as a Go duration. Default: `5s`.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
    /// Number of failed checks after which the registry is unhealthy. Default: 3.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub threshold: i32,
    /// Timeout for connecting, as a Go duration. Default: `5s`.
    #[serde(default = "five_seconds")]
    pub timeout: GoDuration,
}

/// Webhook notifications of the registry.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryNotifications {
    /// Endpoints that receive the notifications (`notifications.endpoints` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<NotificationEndpoint>,
    /// Content of the notifications (`notifications.events` of Distribution). If unset, references are
    /// included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<NotificationEvents>,
}

/// Endpoint that receives notifications of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationEndpoint {
    /// Human-readable name of the endpoint.
    pub name: String,
    /// URL to which notifications are sent.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// Time to wait after `threshold` failures before the endpoint is tried again, as a Go duration. Default:
    /// `10s`.
    #[serde(default = "ten_seconds")]
    pub backoff: GoDuration,
    /// Send no notifications to this endpoint. Default: false.
    #[serde(default)]
    pub disabled: bool,
    /// Headers added to every notification. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Media types for which no notification is sent (`ignoredmediatypes` of Distribution). Older form of
    /// `ignore.mediaTypes`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_media_types: Vec<String>,
    /// Number of failures after which the backoff begins. Default: 3.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub threshold: i32,
    /// Timeout of a notification, as a Go duration. Default: `5s`.
    #[serde(default = "five_seconds")]
    pub timeout: GoDuration,
    /// Events for which no notification is sent (`ignore` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<NotificationIgnore>,
}

/// Events for which no notification is sent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NotificationIgnore {
    /// Actions for which no notification is sent, such as `pull`. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// Media types for which no notification is sent (`mediatypes` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media_types: Vec<String>,
}

/// Content of the registry's notifications.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationEvents {
    /// Include the references of a manifest in its events (`includereferences` of Distribution). Default:
    /// true.
    #[serde(default = "truth")]
    pub include_references: bool,
}
