//! Core: the API, tokens, and the way into everything else.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::component::{ComponentSpec, Served, Tls};
use super::driver::truth;
use super::duration::GoDuration;
use super::log::CoreLogLevel;
use super::network::{Network, Proxy};
use super::observe::{Metrics, Trace};
use super::pattern;
use super::postgres::CoreDatabase;
use super::redis::{RedisConnection, RedisWithIdleTimeout};
use super::status::ComponentStatus;

choice! {
    /// How users are known.
    AuthMode { Database = "db_auth" }
}

choice! {
    /// Where Core keeps what it has read of charts.
    ChartCacheDriver { Redis = "redis" }
}

/// What Core should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Core",
    plural = "cores",
    namespaced,
    category = "goharbor",
    doc = "Core is Harbor's API.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct CoreSpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// The Secret with the administrator's first password, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub admin_initial_password_ref: String,
    /// How users are known.
    #[serde(default = "database")]
    pub auth_mode: AuthMode,
    /// How long settings are kept before they are read again.
    #[serde(default = "five_seconds")]
    pub config_expiration: GoDuration,
    /// The Secret with the key against forged requests, under key.
    #[schemars(regex(pattern = pattern::NAME))]
    pub csrf_key_ref: String,
    /// The URL under which users reach Harbor.
    #[schemars(regex(pattern = pattern::URL))]
    pub external_endpoint: String,
    /// The Secret with the certificate authority that users may download, under ca.crt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub public_certificate_ref: Option<String>,
    /// The Secret by which other components know Core, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
    /// Where the other components are.
    pub components: CoreComponents,
    /// Its database.
    pub database: CoreDatabase,
    /// How it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<CoreHttp>,
    /// What it logs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<CoreLog>,
    /// Its metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Its way into the world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Its Redis.
    pub redis: RedisWithIdleTimeout,
    /// Its traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

impl CoreSpec {
    /// How it is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.components.tls.as_ref())
    }

    /// What it logs.
    pub fn log_level(&self) -> CoreLogLevel {
        self.log.as_ref().map_or(CoreLogLevel::Info, |log| log.level)
    }
}

fn database() -> AuthMode {
    AuthMode::Database
}

pub(super) fn five_seconds() -> GoDuration {
    "5s".into()
}

/// Where the other components are.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreComponents {
    /// ChartMuseum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_repository: Option<CoreChartRepository>,
    /// The job service.
    pub job_service: CoreJobService,
    /// The Notary server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notary_server: Option<CoreNotaryServer>,
    /// The portal.
    pub portal: CorePortal,
    /// The registry.
    pub registry: CoreRegistry,
    /// The certificate with which Core serves, and by which it knows the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Where tokens are had, and what they are signed with.
    pub token_service: CoreTokenService,
    /// Trivy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trivy: Option<CoreTrivy>,
}

/// ChartMuseum, as Core sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreChartRepository {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// Whether charts are listed with whole URLs.
    #[serde(rename = "absoluteURL", default)]
    pub absolute_url: bool,
    /// Where Core keeps what it has read.
    #[serde(default = "in_redis")]
    pub cache_driver: ChartCacheDriver,
}

fn in_redis() -> ChartCacheDriver {
    ChartCacheDriver::Redis
}

/// The job service, as Core sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreJobService {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// The Secret by which it is known, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
}

/// The Notary server, as Core sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreNotaryServer {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// The portal, as Core sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorePortal {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// The registry, as Core sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreRegistry {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// The URL of its controller.
    #[serde(rename = "controllerURL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub controller_url: String,
    /// What it stores in, for Core's own reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub storage_provider_name: Option<String>,
    /// Whether Core reads all of it when it starts.
    #[serde(default)]
    pub sync: bool,
    /// Whom Core is there.
    pub credentials: RegistryCredentials,
    /// The Redis of its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisConnection>,
}

/// A user of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryCredentials {
    /// The user.
    pub username: String,
    /// The Secret with the password, under secret.
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: String,
}

/// Where tokens are had.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreTokenService {
    /// The URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// The Secret with the key that signs them, under tls.key.
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
}

/// Trivy, as Core sees it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreTrivy {
    /// Its URL.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// The URL of its adapter.
    #[serde(rename = "adapterURL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub adapter_url: String,
}

/// How Core answers.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreHttp {
    /// Whether answers are compressed.
    #[serde(default = "truth")]
    pub enable_gzip: bool,
}

/// What Core logs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreLog {
    /// From this level on.
    #[serde(default)]
    pub level: CoreLogLevel,
}
