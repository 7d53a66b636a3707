//! ChartMuseum: the Helm chart repository of Harbor, up to version 2.7.

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

/// Desired state of ChartMuseum, the Helm chart repository of Harbor up to version 2.7.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "ChartMuseum",
    plural = "chartmuseums",
    namespaced,
    category = "goharbor",
    doc = "ChartMuseum is the Helm chart repository of Harbor, up to version 2.7.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ChartMuseumSpec {
    /// Pod settings of ChartMuseum.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Authentication of clients. If unset, ChartMuseum accepts every client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<ChartMuseumAuthentication>,
    /// Cache of the chart index. If unset, ChartMuseum uses no external cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ChartMuseumCache>,
    /// Repository and storage settings of the charts.
    pub chart: Charts,
    /// Features of ChartMuseum to disable. If unset, all are enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable: Option<ChartMuseumDisable>,
    /// Log settings of ChartMuseum. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<ChartMuseumLog>,
    /// IP families to listen on. The values are validated, but have no effect on ChartMuseum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// HTTP server of ChartMuseum. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<ChartMuseumServer>,
}

impl ChartMuseumSpec {
    /// Returns the scheme under which ChartMuseum is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.server.as_ref().and_then(|server| server.tls.as_ref()))
    }
}

/// Authentication of ChartMuseum's clients.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMuseumAuthentication {
    /// Allow reading without authentication (`authanonymousget` of ChartMuseum). Default: false.
    pub anonymous_get: bool,
    /// Name of the Secret with the credentials for basic authentication, in keys `username` and `password`.
    /// If unset, basic authentication is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub basic_auth_ref: Option<String>,
    /// Authentication with bearer tokens (`bearerauth` of ChartMuseum). If unset, it is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bearer: Option<ChartMuseumBearer>,
}

/// Authentication with bearer tokens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChartMuseumBearer {
    /// URL of the token endpoint, sent as the realm in the `WWW-Authenticate` challenge (`authrealm` of
    /// ChartMuseum).
    pub realm: String,
    /// Service name sent in the `WWW-Authenticate` challenge; tokens must be issued for it (`authservice` of
    /// ChartMuseum).
    pub service: String,
    /// Name of the Secret with the certificate that verifies token signatures, in key `tls.crt`
    /// (`authcertpath` of ChartMuseum).
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
}

/// Cache of the chart index.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMuseumCache {
    /// Redis connection of the cache (`CACHE_REDIS_*` of ChartMuseum). If unset, ChartMuseum uses no external
    /// cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisConnection>,
}

/// Repository and storage settings of the charts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Charts {
    /// Allow uploading a chart version that already exists (`allowoverwrite` of ChartMuseum). Default: true.
    #[serde(default = "truth")]
    pub allow_overwrite: bool,
    /// Accept only chart versions that follow Semantic Versioning 2 (`enforce-semver2` of ChartMuseum).
    /// Default: false.
    #[serde(rename = "onlySemver2", default)]
    pub only_semver2: bool,
    /// Absolute URL in front of the chart paths in the index (`CHART_URL` of ChartMuseum). If unset, the
    /// index has relative paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::EXTERNAL_URL))]
    pub url: Option<String>,
    /// Generation of the chart index. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<ChartIndex>,
    /// Form field names of uploads. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub post_form_field_name: Option<ChartFormFields>,
    /// Nesting depth of repositories. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repo: Option<ChartRepo>,
    /// Storage backend of the charts. Exactly one backend is needed.
    pub storage: ChartStorage,
}

/// Generation of the chart index.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartIndex {
    /// Maximum number of charts that are indexed concurrently; 0 means no limit (`indexlimit` of
    /// ChartMuseum). Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub parallel_limit: Option<i32>,
    /// Tolerated clock difference between ChartMuseum and the storage, as a Go duration
    /// (`STORAGE_TIMESTAMP_TOLERANCE` of ChartMuseum). Default: 1s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub storage_timestamp_tolerance: Option<GoDuration>,
}

/// Form field names of uploads.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartFormFields {
    /// Form field of the chart package (`chartpostformfieldname` of ChartMuseum). Default: `chart`.
    #[schemars(length(min = 1))]
    pub chart: String,
    /// Form field of the provenance file (`provpostformfieldname` of ChartMuseum). Default: `prov`.
    #[schemars(length(min = 1))]
    pub provenance: String,
}

impl Default for ChartFormFields {
    fn default() -> Self {
        Self { chart: "chart".into(), provenance: "prov".into() }
    }
}

/// Nesting depth of repositories.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartRepo {
    /// Number of levels of nested repositories (`depth` of ChartMuseum). Default: 1. Ignored if
    /// `depthDynamic` is true.
    #[schemars(range(min = 0))]
    pub depth: i32,
    /// Allow repositories at any depth (`depthdynamic` of ChartMuseum). Default: false.
    pub depth_dynamic: bool,
}

impl Default for ChartRepo {
    fn default() -> Self {
        Self { depth: 1, depth_dynamic: false }
    }
}

/// Features of ChartMuseum to disable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools)] // upstream's field layout
pub struct ChartMuseumDisable {
    /// Disable all routes under `/api` (`disableapi` of ChartMuseum). Default: false.
    pub api: bool,
    /// Disable the deletion of charts (`disabledelete` of ChartMuseum). Default: false.
    pub delete: bool,
    /// Disable overwriting a chart version with the `force` parameter (`disableforceoverwrite` of
    /// ChartMuseum). Default: false.
    pub force_overwrite: bool,
    /// Disable the Prometheus metrics (`disablemetrics` of ChartMuseum). Default: false.
    pub metrics: bool,
    /// Disable the index cache file in the storage (`disablestatefiles` of ChartMuseum). Default: false.
    pub statefiles: bool,
}

/// Log settings of ChartMuseum.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[allow(clippy::struct_excessive_bools)] // upstream's field layout
pub struct ChartMuseumLog {
    /// Write debug messages to the log (`debug` of ChartMuseum). Default: false.
    pub debug: bool,
    /// Log requests to the health endpoint (`loghealth` of ChartMuseum). Default: false.
    pub health: bool,
    /// Write the log as JSON (`logjson` of ChartMuseum). Default: false.
    pub json: bool,
    /// Log latencies as integers instead of text with a unit (`loglatencyinteger` of ChartMuseum). Default:
    /// true.
    pub latency_integer: bool,
}

impl Default for ChartMuseumLog {
    fn default() -> Self {
        Self { debug: false, health: false, json: false, latency_integer: true }
    }
}

/// HTTP server of ChartMuseum.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ChartMuseumServer {
    /// Value of the `Access-Control-Allow-Origin` header of responses (`cors.alloworigin` of ChartMuseum). If
    /// unset, the header is not sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors_allow_origin: Option<String>,
    /// Maximum size of an upload, in bytes (`maxuploadsize` of ChartMuseum). Default: 20971520 (20 MiB).
    #[schemars(range(min = 0))]
    pub max_upload_size: i64,
    /// Timeout for reading a request, as a Go duration in whole seconds (`readtimeout` of ChartMuseum). If
    /// unset, ChartMuseum's own default applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_timeout: Option<GoDuration>,
    /// Timeout for writing a response, as a Go duration in whole seconds (`writetimeout` of ChartMuseum). If
    /// unset, ChartMuseum's own default applies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_timeout: Option<GoDuration>,
    /// Internal TLS certificate of ChartMuseum. If unset, ChartMuseum serves plain HTTP.
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
