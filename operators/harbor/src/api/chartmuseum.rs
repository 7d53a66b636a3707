//! ChartMuseum: Helm charts, up to Harbor 2.7.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::chartmuseum_storage::ChartStorage;
use super::component::{ComponentSpec, Served, Tls};
use super::driver::truth;
use super::duration::GoDuration;
use super::network::Network;
use super::pattern;
use super::redis::RedisConnection;
use super::status::ComponentStatus;

/// What ChartMuseum should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "ChartMuseum",
    plural = "chartmuseums",
    namespaced,
    category = "goharbor",
    doc = "ChartMuseum keeps Helm charts, up to Harbor 2.7.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ChartMuseumSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Who may ask it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<ChartMuseumAuthentication>,
    /// What is kept nearer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ChartMuseumCache>,
    /// The charts.
    pub chart: Charts,
    /// What it does not do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable: Option<ChartMuseumDisable>,
    /// What it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<ChartMuseumLog>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// How it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ChartMuseumServer>,
}

impl ChartMuseumSpec {
    /// How it is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.server.as_ref().and_then(|server| server.tls.as_ref()))
    }
}

/// Who may ask ChartMuseum.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMuseumAuthentication {
    /// Whether anybody may read.
    pub anonymous_get: bool,
    /// The Secret with username and password of who may do all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub basic_auth_ref: Option<String>,
    /// Who has a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<ChartMuseumBearer>,
}

/// Which tokens ChartMuseum takes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartMuseumBearer {
    /// Where they are had.
    pub realm: String,
    /// What they are for.
    pub service: String,
    /// The Secret with the certificate of the key that signs them, under tls.crt.
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
}

/// What ChartMuseum keeps nearer.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMuseumCache {
    /// In Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisConnection>,
}

/// The charts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Charts {
    /// Whether a version can be uploaded again.
    #[serde(default = "truth")]
    pub allow_overwrite: bool,
    /// Whether versions must be semantic ones.
    #[serde(rename = "onlySemver2", default)]
    pub only_semver2: bool,
    /// The URL before the paths of charts; without it they are listed by their paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::EXTERNAL_URL))]
    pub url: Option<String>,
    /// The list of charts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<ChartIndex>,
    /// The names of fields in uploads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_form_field_name: Option<ChartFormFields>,
    /// How repositories are nested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<ChartRepo>,
    /// Where they are.
    pub storage: ChartStorage,
}

/// The list of charts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartIndex {
    /// How many charts are read at the same time; 0 is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub parallel_limit: Option<i32>,
    /// How far clocks may be apart.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_timestamp_tolerance: Option<GoDuration>,
}

/// The names of fields in uploads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartFormFields {
    /// Of the chart.
    #[schemars(length(min = 1))]
    pub chart: String,
    /// Of its signature.
    #[schemars(length(min = 1))]
    pub provenance: String,
}

impl Default for ChartFormFields {
    fn default() -> Self {
        Self { chart: "chart".into(), provenance: "prov".into() }
    }
}

/// How repositories are nested.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartRepo {
    /// How deep.
    #[schemars(range(min = 0))]
    pub depth: i32,
    /// Whether at any depth.
    pub depth_dynamic: bool,
}

impl Default for ChartRepo {
    fn default() -> Self {
        Self { depth: 1, depth_dynamic: false }
    }
}

/// What ChartMuseum does not do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools)] // as it is
pub struct ChartMuseumDisable {
    /// Serve its API.
    pub api: bool,
    /// Delete.
    pub delete: bool,
    /// Overwrite when asked to by force.
    pub force_overwrite: bool,
    /// Serve metrics.
    pub metrics: bool,
    /// Keep its list in a file.
    pub statefiles: bool,
}

/// What ChartMuseum logs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools)] // as it is
pub struct ChartMuseumLog {
    /// All that it does.
    pub debug: bool,
    /// Questions for its health.
    pub health: bool,
    /// As JSON.
    pub json: bool,
    /// Times as whole numbers.
    pub latency_integer: bool,
}

impl Default for ChartMuseumLog {
    fn default() -> Self {
        Self { debug: false, health: false, json: false, latency_integer: true }
    }
}

/// How ChartMuseum serves.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMuseumServer {
    /// Pages of these origins may ask it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_allow_origin: Option<String>,
    /// How large an upload may be, in bytes.
    #[schemars(range(min = 0))]
    pub max_upload_size: i64,
    /// How long a question may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_timeout: Option<GoDuration>,
    /// How long an answer may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_timeout: Option<GoDuration>,
    /// The certificate with which it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl Default for ChartMuseumServer {
    fn default() -> Self {
        Self {
            cors_allow_origin: None,
            max_upload_size: 20_971_520,
            read_timeout: None,
            write_timeout: None,
            tls: None,
        }
    }
}
