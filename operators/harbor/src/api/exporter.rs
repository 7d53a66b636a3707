//! The exporter: what Harbor as a whole does, for Prometheus.

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

/// What the exporter should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Exporter",
    plural = "exporters",
    namespaced,
    category = "goharbor",
    doc = "Exporter says what Harbor as a whole does, for Prometheus.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct ExporterSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// The path under which metrics are read.
    #[serde(default = "metrics_path")]
    #[schemars(regex(pattern = pattern::PATH))]
    pub path: String,
    /// The port on which they are read.
    #[serde(default = "metrics_port")]
    #[schemars(range(min = 1))]
    pub port: i32,
    /// How long it keeps what it has read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ExporterCache>,
    /// Core.
    pub core: ExporterCore,
    /// Core's database.
    pub database: CoreDatabase,
    /// The job service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobservice: Option<ExporterJobService>,
    /// What it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<ExporterLog>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// The certificate by which it knows Core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl ExporterSpec {
    /// How Core is reached.
    pub fn served(&self) -> Served {
        Served::with(self.tls.as_ref())
    }

    /// What it logs.
    pub fn log_level(&self) -> ExporterLogLevel {
        self.log.as_ref().map_or(ExporterLogLevel::Info, |log| log.level)
    }
}

pub(super) fn metrics_path() -> String {
    "/metrics".into()
}

pub(super) fn metrics_port() -> i32 {
    8001
}

/// How long the exporter keeps what it has read.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExporterCache {
    /// How long it is true.
    pub duration: GoDuration,
    /// How often what is no longer true is dropped.
    pub clean_interval: GoDuration,
}

impl Default for ExporterCache {
    fn default() -> Self {
        Self { duration: "30s".into(), clean_interval: "4h".into() }
    }
}

/// Core, as the exporter sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExporterCore {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// The job service, as the exporter sees it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ExporterJobService {
    /// Its queue's Redis; the namespace must be the job service's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis_pool: Option<RedisPool>,
}

/// What the exporter logs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExporterLog {
    /// From this level on.
    #[serde(default)]
    pub level: ExporterLogLevel,
}
