//! When a registry is healthy, and who is told of what happens in it.

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

/// When the registry is healthy.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryHealth {
    /// While these files are not there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub file: Vec<FileCheck>,
    /// While these URLs answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub http: Vec<HttpCheck>,
    /// While its storage answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_driver: Option<StorageDriverCheck>,
    /// While these addresses answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpCheck>,
}

/// A file that must not be there.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileCheck {
    /// Which.
    pub path: String,
    /// How often it is looked for.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
}

/// A URL that must answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HttpCheck {
    /// Which.
    #[schemars(regex(pattern = pattern::URL))]
    pub uri: String,
    /// Sent with the question.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// How often it is asked.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
    /// With what it must answer.
    #[serde(rename = "statuscode", default = "ok")]
    #[schemars(range(min = 0))]
    pub status_code: i32,
    /// After how many failures it counts.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub threshold: i32,
    /// How long the answer may take.
    #[serde(default = "five_seconds")]
    pub timeout: GoDuration,
}

/// Whether the storage must answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StorageDriverCheck {
    /// Whether it must.
    #[serde(default = "truth")]
    pub enabled: bool,
    /// How often it is asked.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
    /// After how many failures it counts.
    #[serde(default = "three")]
    #[schemars(range(min = 1))]
    pub threshold: i32,
}

/// An address that must answer.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TcpCheck {
    /// Which, with its port.
    pub address: String,
    /// How often it is asked.
    #[serde(default = "five_seconds")]
    pub interval: GoDuration,
    /// After how many failures it counts.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub threshold: i32,
    /// How long it may take to connect.
    #[serde(default = "five_seconds")]
    pub timeout: GoDuration,
}

/// Who is told of what happens.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryNotifications {
    /// These.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub endpoints: Vec<NotificationEndpoint>,
    /// Of what.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub events: Option<NotificationEvents>,
}

/// Somebody who is told of what happens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationEndpoint {
    /// Their name.
    pub name: String,
    /// Where they are told.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// How long one waits after failures.
    #[serde(default = "ten_seconds")]
    pub backoff: GoDuration,
    /// Whether they are not told.
    #[serde(default)]
    pub disabled: bool,
    /// Sent with what is told.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Vec<String>>,
    /// Types that they are not told of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored_media_types: Vec<String>,
    /// After how many failures one waits.
    #[serde(default = "three")]
    #[schemars(range(min = 0))]
    pub threshold: i32,
    /// How long the answer may take.
    #[serde(default = "five_seconds")]
    pub timeout: GoDuration,
    /// What they are not told of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore: Option<NotificationIgnore>,
}

/// What somebody is not told of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NotificationIgnore {
    /// What is done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<String>,
    /// To what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub media_types: Vec<String>,
}

/// What is told.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NotificationEvents {
    /// Whether it says what a manifest refers to.
    #[serde(default = "truth")]
    pub include_references: bool,
}
