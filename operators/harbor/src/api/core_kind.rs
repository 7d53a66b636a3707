//! Core: the Harbor API, the token service, and the entry point to all other components.

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
    /// Authentication mode of Harbor users (`auth_mode` of Harbor).
    AuthMode { Database = "db_auth" }
}

choice! {
    /// Cache backend of the chart index in Core (`CHART_CACHE_DRIVER` of Harbor).
    ChartCacheDriver { Redis = "redis" }
}

/// Desired state of Core, the Harbor API server and token service.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Core",
    plural = "cores",
    namespaced,
    category = "goharbor",
    doc = "Core is the Harbor API server and token service.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct CoreSpec {
    /// Pod settings of Core.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Name of the Secret with the initial password of the Harbor user `admin`, in key `secret`
    /// (`HARBOR_ADMIN_PASSWORD` of Harbor). It has no effect after the first start; change the password in
    /// Harbor from then on.
    #[schemars(regex(pattern = pattern::NAME))]
    pub admin_initial_password_ref: String,
    /// Authentication mode of Harbor users (`auth_mode` of Harbor). Only `db_auth`, the default, is accepted.
    #[serde(default = "database")]
    pub auth_mode: AuthMode,
    /// Time for which Core caches its configuration before it reads it from the database again, as a Go
    /// duration in whole seconds (`CFG_EXPIRATION` of Harbor). Default: `5s`.
    #[serde(default = "five_seconds")]
    pub config_expiration: GoDuration,
    /// Name of the Secret with the key for CSRF tokens, in key `key`, 32 characters (`CSRF_KEY` of Harbor).
    #[schemars(regex(pattern = pattern::NAME))]
    pub csrf_key_ref: String,
    /// External URL under which users reach Harbor (`EXT_ENDPOINT` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub external_endpoint: String,
    /// Name of the Secret with the CA certificate that users can download from Harbor, in key `ca.crt`. If
    /// unset, no download is offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub public_certificate_ref: Option<String>,
    /// Name of the Secret with which Core authenticates to other components, in key `secret` (`CORE_SECRET`
    /// of Harbor).
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
    /// Addresses and credentials of the components that Core calls.
    pub components: CoreComponents,
    /// PostgreSQL connection and encryption key of Core.
    pub database: CoreDatabase,
    /// Cache of projects, repositories, artifacts and manifests in database 7 of Core's Redis, from Harbor
    /// 2.6 on. Releases before 2.9 may keep it in Core's own database. If unset, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_layer: Option<CacheLayer>,
    /// HTTP response settings of Core. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<CoreHttp>,
    /// Log settings of Core. If unset, the level is `info`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log: Option<CoreLog>,
    /// Prometheus metrics of Core. If unset, Core serves no metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// IP families to listen on. The values are validated, but have no effect on Core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// HTTP proxy for outbound connections of Core. If unset, Core connects directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Redis connection of Core, for sessions and caching (`_REDIS_URL_CORE` of Harbor).
    pub redis: RedisWithIdleTimeout,
    /// Distributed tracing of Core. If unset, Core sends no traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

impl CoreSpec {
    /// Returns the scheme under which Core is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.components.tls.as_ref())
    }

    /// Returns the log level, with the default applied.
    pub(crate) fn log_level(&self) -> CoreLogLevel {
        self.log.as_ref().map_or(CoreLogLevel::Info, |log| log.level)
    }
}

fn database() -> AuthMode {
    AuthMode::Database
}

pub(super) fn five_seconds() -> GoDuration {
    "5s".into()
}

/// Addresses and credentials of the components that Core calls.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreComponents {
    /// ChartMuseum, up to Harbor 2.7. If unset, Harbor has no chart repository (`WITH_CHARTMUSEUM` is false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chart_repository: Option<CoreChartRepository>,
    /// Address and secret of JobService.
    pub job_service: CoreJobService,
    /// Notary server, up to Harbor 2.8. If unset, content trust is disabled (`WITH_NOTARY` is false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notary_server: Option<CoreNotaryServer>,
    /// Address of the portal, the Harbor web interface.
    pub portal: CorePortal,
    /// Address and credentials of the registry.
    pub registry: CoreRegistry,
    /// Internal TLS certificate of Core, also used to verify the other components. If unset, Core serves
    /// plain HTTP inside the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Token service URL and the key that signs bearer tokens.
    pub token_service: CoreTokenService,
    /// Trivy vulnerability scanner. If unset, Harbor has no built-in scanner (`WITH_TRIVY` is false).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trivy: Option<CoreTrivy>,
}

/// ChartMuseum as called by Core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreChartRepository {
    /// URL of ChartMuseum inside the cluster (`CHART_REPOSITORY_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// List charts with absolute URLs. Default: false. Kept for compatibility; `chart.url` of the ChartMuseum
    /// decides.
    #[serde(rename = "absoluteURL", default)]
    pub absolute_url: bool,
    /// Cache backend of the chart index in Core (`CHART_CACHE_DRIVER` of Harbor). Only `redis`, the default,
    /// is accepted.
    #[serde(default = "in_redis")]
    pub cache_driver: ChartCacheDriver,
}

fn in_redis() -> ChartCacheDriver {
    ChartCacheDriver::Redis
}

/// JobService as called by Core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreJobService {
    /// URL of JobService inside the cluster (`JOBSERVICE_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// Name of the Secret with which JobService authenticates to Core, in key `secret` (`JOBSERVICE_SECRET`
    /// of Harbor).
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
}

/// Notary server as called by Core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreNotaryServer {
    /// URL of the Notary server inside the cluster (`NOTARY_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// Portal as called by Core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CorePortal {
    /// URL of the portal inside the cluster (`PORTAL_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
}

/// Registry as called by Core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreRegistry {
    /// URL of the registry inside the cluster (`REGISTRY_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// URL of the registry controller inside the cluster (`REGISTRY_CONTROLLER_URL` of Harbor).
    #[serde(rename = "controllerURL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub controller_url: String,
    /// Storage driver of the registry, for the statistics that Core reports, such as `s3` or `filesystem`
    /// (`REGISTRY_STORAGE_PROVIDER_NAME` of Harbor). Default: `filesystem`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1))]
    pub storage_provider_name: Option<String>,
    /// Import the existing repositories of the registry into the database when Core starts (`SYNC_REGISTRY`
    /// of Harbor). Default: false.
    #[serde(default)]
    pub sync: bool,
    /// User name and password with which Core authenticates to the registry.
    pub credentials: RegistryCredentials,
    /// Redis connection of the registry's cache, needed for garbage collection (`_REDIS_URL_REG` of Harbor).
    /// If unset, database 1 of Core's own Redis is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RedisConnection>,
}

/// User name and password of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryCredentials {
    /// User name for the registry (`REGISTRY_CREDENTIAL_USERNAME` of Harbor).
    pub username: String,
    /// Name of the Secret with the password for the registry, in key `secret` (`REGISTRY_CREDENTIAL_PASSWORD`
    /// of Harbor).
    #[schemars(regex(pattern = pattern::NAME))]
    pub password_ref: String,
}

/// Token service of Core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreTokenService {
    /// URL of the token service, used up to Harbor 2.8 (`TOKEN_SERVICE_URL` of Harbor).
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// Name of the Secret with the private key that signs bearer tokens, in key `tls.key`.
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
}

/// Trivy as called by Core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreTrivy {
    /// URL of Trivy. Kept for compatibility; Core uses `adapterURL`.
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// URL of the Trivy scanner adapter inside the cluster (`TRIVY_ADAPTER_URL` of Harbor).
    #[serde(rename = "adapterURL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub adapter_url: String,
}

/// Cache of projects, repositories, artifacts and manifests in Redis, for many concurrent pulls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CacheLayer {
    /// Time after which a cached entry expires, in hours (`CACHE_EXPIRE_HOURS` of Harbor). Default: 24.
    #[schemars(range(min = 1))]
    pub expire_hours: i32,
}

impl Default for CacheLayer {
    fn default() -> Self {
        Self { expire_hours: 24 }
    }
}

/// HTTP response settings of Core.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreHttp {
    /// Compress responses with gzip (`enablegzip` of Core's `app.conf`). Default: true.
    #[serde(default = "truth")]
    pub enable_gzip: bool,
}

/// Log settings of Core.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CoreLog {
    /// Lowest level of log entries that Core writes: `debug`, `info`, `warn` or `error` (`LOG_LEVEL` of
    /// Harbor). Default: `info`.
    #[serde(default)]
    pub level: CoreLogLevel,
}
