//! Exporter: Prometheus metrics of Harbor as a whole.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{ComponentSpec, Served, Tls};
use super::duration::GoDuration;
use super::log::ExporterLogLevel;
use super::network::Network;
use super::pattern;
use super::postgres::CoreDatabase;
use super::redis::RedisPool;
use super::status::ComponentStatus;

/// Desired state of the exporter, which serves Prometheus metrics of Harbor as a whole.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Exporter",
    plural = "exporters",
    namespaced,
    category = "goharbor",
    doc = "Exporter serves Prometheus metrics of Harbor as a whole.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ExporterSpec {
    /// Pod settings of the exporter.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// HTTP path of the metrics (`HARBOR_EXPORTER_METRICS_PATH` of Harbor). Default: `/metrics`.
    #[serde(default = "metrics_path")]
    #[schemars(regex(pattern = pattern::PATH))]
    pub path: String,
    /// Port of the metrics, plain HTTP (`HARBOR_EXPORTER_PORT` of Harbor). Default: 8001.
    #[serde(default = "metrics_port")]
    #[schemars(range(min = 1))]
    pub port: i32,
    /// Cache of collected metrics. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ExporterCache>,
    /// Address of Core inside the cluster.
    pub core: ExporterCore,
    /// PostgreSQL connection of Core's database.
    pub database: CoreDatabase,
    /// Job queue of JobService. If unset, the exporter has no metrics of the queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobservice: Option<ExporterJobService>,
    /// Log settings of the exporter. If unset, the level is `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<ExporterLog>,
    /// IP families to listen on. The values are validated, but have no effect on the exporter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Certificate with which the exporter verifies Core. If unset, no internal certificate is mounted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl ExporterSpec {
    /// Returns the scheme under which Core is reached.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }

    /// Returns the log level, with the default applied.
    pub(crate) fn log_level(&self) -> ExporterLogLevel {
        self.log.as_ref().map_or(ExporterLogLevel::Info, |log| log.level)
    }
}

pub(super) fn metrics_path() -> String {
    "/metrics".into()
}

pub(super) fn metrics_port() -> i32 {
    8001
}

/// Cache of collected metrics.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExporterCache {
    /// Time for which collected metrics are cached, as a Go duration in whole seconds
    /// (`HARBOR_EXPORTER_CACHE_TIME` of Harbor). Default: `30s`.
    pub duration: GoDuration,
    /// Interval at which expired cache entries are removed, as a Go duration in whole seconds
    /// (`HARBOR_EXPORTER_CACHE_CLEAN_INTERVAL` of Harbor). Default: `4h`.
    pub clean_interval: GoDuration,
}

impl Default for ExporterCache {
    fn default() -> Self {
        Self { duration: "30s".into(), clean_interval: "4h".into() }
    }
}

/// Core as called by the exporter.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExporterCore {
    /// URL of Core inside the cluster. Default port: 443 for https, 80 for http.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// Job queue of JobService as read by the exporter.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExporterJobService {
    /// Redis connection of the job queue. `namespace` must equal that of JobService, otherwise no jobs are
    /// found. If unset, there are no metrics of the job queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis_pool: Option<RedisPool>,
}

/// Log settings of the exporter.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExporterLog {
    /// Lowest level of log entries that the exporter writes: `debug`, `info`, `warning`, `error` or `panic`
    /// (`LOG_LEVEL` of Harbor). Default: `info`.
    #[serde(default)]
    pub level: ExporterLogLevel,
}
