//! Trivy: the vulnerability scanner of Harbor.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::component::{ComponentSpec, Served, Tls};
use super::duration::GoDuration;
use super::jobservice::Volume;
use super::log::NotaryLogLevel;
use super::network::{Network, Proxy};
use super::pattern;
use super::redis::RedisConnection;
use super::status::ComponentStatus;

/// Desired state of Trivy, which scans images for known vulnerabilities.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Trivy",
    plural = "trivies",
    namespaced,
    category = "goharbor",
    doc = "Trivy scans images for known vulnerabilities.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct TrivySpec {
    /// Pod settings of Trivy.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Scan without network requests for package metadata (`SCANNER_TRIVY_OFFLINE_SCAN` of the adapter).
    /// Default: false.
    #[serde(default)]
    pub offline_scan: bool,
    /// Severities of vulnerabilities to report (`SCANNER_TRIVY_SEVERITY` of the adapter). Default: all of
    /// `UNKNOWN`, `LOW`, `MEDIUM`, `HIGH` and `CRITICAL`.
    #[serde(default = "all_severities")]
    pub severities: Vec<String>,
    /// Timeout of a scan, as a Go duration (`SCANNER_TRIVY_TIMEOUT` of the adapter). Default: `5m0s`.
    #[serde(default = "five_minutes")]
    #[schemars(with = "String")]
    pub timeout: GoDuration,
    /// Types of vulnerabilities to look for: `os`, `library` (`SCANNER_TRIVY_VULN_TYPE` of the adapter).
    /// Default: both.
    #[serde(default = "all_vulnerability_types")]
    pub vulnerability_types: Vec<String>,
    /// Log settings of the Trivy adapter. Default: level `info`.
    #[serde(default)]
    pub log: TrivyLog,
    /// IP families to listen on. The values are validated, but have no effect on Trivy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// HTTP proxy for outbound connections of Trivy. It takes precedence over `server.proxy`. If neither is
    /// set, Trivy connects directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Redis connection of the scan queue and reports. Trivy is not deployed without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<TrivyRedis>,
    /// HTTP server and scan settings of the Trivy adapter.
    pub server: TrivyServer,
    /// Volumes of the vulnerability database and the reports.
    pub storage: TrivyVolumes,
    /// Updates of the vulnerability database. If unset, the database is updated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<TrivyUpdate>,
}

impl TrivySpec {
    /// Returns the scheme under which Trivy is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.server.tls.as_ref())
    }
}

fn all_severities() -> Vec<String> {
    ["UNKNOWN", "LOW", "MEDIUM", "HIGH", "CRITICAL"].map(str::to_owned).into()
}

fn all_vulnerability_types() -> Vec<String> {
    ["os", "library"].map(str::to_owned).into()
}

fn five_minutes() -> GoDuration {
    "5m0s".into()
}

/// Log settings of the Trivy adapter.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyLog {
    /// Lowest level of log entries that the adapter writes: `debug`, `info`, `warning`, `error`, `fatal` or
    /// `panic` (`SCANNER_LOG_LEVEL` of the adapter). Default: `info`.
    pub level: NotaryLogLevel,
}

/// Redis connection of Trivy's scan queue and reports.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrivyRedis {
    /// Server, credentials and database number.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// Key prefix of the reports in Redis (`SCANNER_STORE_REDIS_NAMESPACE` of the adapter). Default:
    /// `harbor.scanner.trivy:store`.
    #[serde(default = "store_namespace")]
    pub namespace: String,
    /// Scan queue in Redis. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<TrivyJobs>,
    /// Connection pool of the Redis client. If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<TrivyPool>,
}

fn store_namespace() -> String {
    "harbor.scanner.trivy:store".into()
}

/// Scan queue of Trivy in Redis.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyJobs {
    /// Key prefix of the scan queue in Redis (`SCANNER_JOB_QUEUE_REDIS_NAMESPACE` of the adapter). Default:
    /// `harbor.scanner.trivy:job-queue`. The field is capitalised for compatibility.
    #[serde(rename = "Namespace")]
    pub namespace: String,
    /// Time for which scan jobs and reports are kept in Redis, as a Go duration
    /// (`SCANNER_STORE_REDIS_SCAN_JOB_TTL` of the adapter). Default: `1h`.
    #[serde(rename = "scanTTL")]
    pub scan_ttl: GoDuration,
}

impl Default for TrivyJobs {
    fn default() -> Self {
        Self { namespace: "harbor.scanner.trivy:job-queue".into(), scan_ttl: "1h".into() }
    }
}

/// Connection pool of Trivy's Redis client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyPool {
    /// Maximum number of open connections (`SCANNER_REDIS_POOL_MAX_ACTIVE` of the adapter). Default: 5.
    #[schemars(range(min = 0))]
    pub max_active: i64,
    /// Maximum number of idle connections (`SCANNER_REDIS_POOL_MAX_IDLE` of the adapter). Default: 5.
    #[schemars(range(min = 0))]
    pub max_idle: i64,
    /// Idle time after which a connection is closed, as a Go duration (`SCANNER_REDIS_POOL_IDLE_TIMEOUT` of
    /// the adapter). Default: `5m`.
    pub idle_timeout: GoDuration,
    /// Timeout for connecting to Redis, as a Go duration (`SCANNER_REDIS_POOL_CONNECTION_TIMEOUT` of the
    /// adapter). Default: `1s`.
    pub connection_timeout: GoDuration,
    /// Timeout for reading from Redis, as a Go duration (`SCANNER_REDIS_POOL_READ_TIMEOUT` of the adapter).
    /// Default: `1s`.
    pub read_timeout: GoDuration,
    /// Timeout for writing to Redis, as a Go duration (`SCANNER_REDIS_POOL_WRITE_TIMEOUT` of the adapter).
    /// Default: `1s`.
    pub write_timeout: GoDuration,
}

impl Default for TrivyPool {
    fn default() -> Self {
        Self {
            max_active: 5,
            max_idle: 5,
            idle_timeout: "5m".into(),
            connection_timeout: "1s".into(),
            read_timeout: "1s".into(),
            write_timeout: "1s".into(),
        }
    }
}

/// HTTP server and scan settings of the Trivy adapter.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyServer {
    /// Names of Secrets with the CA certificates that client certificates must be signed by, each in key
    /// `ca.crt` (`SCANNER_API_SERVER_CLIENT_CAS` of the adapter). If empty, no client certificate is
    /// required.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_certificate_authority_refs: Vec<String>,
    /// Names of Secrets with the CA certificates of the token service, each in key `ca.crt`. A Secret without
    /// that key is skipped.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_service_certificate_authority_refs: Vec<String>,
    /// Write debug messages of the Trivy scanner (`SCANNER_TRIVY_DEBUG_MODE` of the adapter). Default: false.
    pub debug_mode: bool,
    /// Report only vulnerabilities for which a fix exists (`SCANNER_TRIVY_IGNORE_UNFIXED` of the adapter).
    /// Default: false.
    pub ignore_unfixed: bool,
    /// Skip the verification of registry certificates (`SCANNER_TRIVY_INSECURE` of the adapter). Default:
    /// false.
    pub insecure: bool,
    /// Timeout of idle client connections, as a Go duration (`SCANNER_API_SERVER_IDLE_TIMEOUT` of the
    /// adapter). Default: `60s`.
    pub idle_timeout: GoDuration,
    /// Timeout for reading a request, as a Go duration (`SCANNER_API_SERVER_READ_TIMEOUT` of the adapter).
    /// Default: `15s`.
    pub read_timeout: GoDuration,
    /// Timeout for writing a response, as a Go duration (`SCANNER_API_SERVER_WRITE_TIMEOUT` of the adapter).
    /// Default: `15s`.
    pub write_timeout: GoDuration,
    /// HTTP proxy for outbound connections, in the older form. Used only if `spec.proxy` is unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<TrivyServerProxy>,
    /// Internal TLS certificate of Trivy. If unset, Trivy serves plain HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl Default for TrivyServer {
    fn default() -> Self {
        Self {
            client_certificate_authority_refs: Vec::new(),
            token_service_certificate_authority_refs: Vec::new(),
            debug_mode: false,
            ignore_unfixed: false,
            insecure: false,
            idle_timeout: "60s".into(),
            read_timeout: "15s".into(),
            write_timeout: "15s".into(),
            proxy: None,
            tls: None,
        }
    }
}

/// HTTP proxy for outbound connections of Trivy, in the older form.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrivyServerProxy {
    /// URL of the proxy for http and https.
    #[serde(rename = "URL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// Hosts and domains that are reached without the proxy (`NO_PROXY`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_proxy: Vec<String>,
}

/// Volumes of Trivy's pods.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrivyVolumes {
    /// Volume of the vulnerability database (`SCANNER_TRIVY_CACHE_DIR` of the adapter).
    pub cache: Volume,
    /// Volume of the scan reports (`SCANNER_TRIVY_REPORTS_DIR` of the adapter).
    pub reports: Volume,
}

/// Updates of the vulnerability database.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyUpdate {
    /// Name of the Secret with a GitHub token for downloading the vulnerability database, in key
    /// `github-token` (`SCANNER_TRIVY_GITHUB_TOKEN` of the adapter). If unset, GitHub is called without a
    /// token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github_token_ref: Option<String>,
    /// Skip updates of the vulnerability database (`SCANNER_TRIVY_SKIP_UPDATE` of the adapter). Default:
    /// false.
    pub skip: bool,
    /// OCI repository of the vulnerability database, from Harbor 2.15 on (`SCANNER_TRIVY_DB_REPOSITORY` of
    /// the adapter). If unset, Trivy's own default is used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub db_repository: Option<String>,
    /// OCI repository of the Java index database, from Harbor 2.15 on (`SCANNER_TRIVY_JAVA_DB_REPOSITORY` of
    /// the adapter). If unset, Trivy's own default is used.
    #[serde(rename = "javaDBRepository", skip_serializing_if = "Option::is_none")]
    pub java_db_repository: Option<String>,
}
