//! Trivy: it looks for known holes.

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

/// What Trivy should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Trivy",
    plural = "trivies",
    namespaced,
    category = "goharbor",
    doc = "Trivy looks for known holes in images.",
    derive = "PartialEq",
    status = "ComponentStatus"
)]
#[serde(rename_all = "camelCase")]
pub struct TrivySpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Whether nothing is asked of the world while scanning.
    #[serde(default)]
    pub offline_scan: bool,
    /// Which holes are told of.
    #[serde(default = "all_severities")]
    pub severities: Vec<String>,
    /// How long a scan may take.
    #[serde(default = "five_minutes")]
    #[schemars(with = "String")]
    pub timeout: GoDuration,
    /// In what holes are looked for.
    #[serde(default = "all_vulnerability_types")]
    pub vulnerability_types: Vec<String>,
    /// What it logs.
    #[serde(default)]
    pub log: TrivyLog,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Its way into the world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Its Redis.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<TrivyRedis>,
    /// How it serves.
    pub server: TrivyServer,
    /// Where it keeps what it knows.
    pub storage: TrivyVolumes,
    /// How it learns of new holes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub update: Option<TrivyUpdate>,
}

impl TrivySpec {
    /// How it is reached inside the cluster.
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

/// What Trivy logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyLog {
    /// From this level on.
    pub level: NotaryLogLevel,
}

/// Trivy's Redis.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrivyRedis {
    /// Where it is.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// The prefix of its keys.
    #[serde(default = "store_namespace")]
    pub namespace: String,
    /// Its queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jobs: Option<TrivyJobs>,
    /// How many connections, and for how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<TrivyPool>,
}

fn store_namespace() -> String {
    "harbor.scanner.trivy:store".into()
}

/// Trivy's queue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyJobs {
    /// The prefix of its keys. The name is as it is.
    #[serde(rename = "Namespace")]
    pub namespace: String,
    /// How long the result of a scan is kept.
    #[serde(rename = "scanTTL")]
    pub scan_ttl: GoDuration,
}

impl Default for TrivyJobs {
    fn default() -> Self {
        Self { namespace: "harbor.scanner.trivy:job-queue".into(), scan_ttl: "1h".into() }
    }
}

/// Trivy's connections to Redis.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyPool {
    /// How many there may be.
    #[schemars(range(min = 0))]
    pub max_active: i64,
    /// How many are kept when idle.
    #[schemars(range(min = 0))]
    pub max_idle: i64,
    /// After which idle time one is closed.
    pub idle_timeout: GoDuration,
    /// How long it may take to connect.
    pub connection_timeout: GoDuration,
    /// How long an answer may take.
    pub read_timeout: GoDuration,
    /// How long a question may take.
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

/// How Trivy serves.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyServer {
    /// Secrets with the authorities of who may ask, under ca.crt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub client_certificate_authority_refs: Vec<String>,
    /// Secrets with the authorities of where tokens are had, under ca.crt.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub token_service_certificate_authority_refs: Vec<String>,
    /// Whether Trivy says all it does.
    pub debug_mode: bool,
    /// Whether holes that nobody has mended are left out.
    pub ignore_unfixed: bool,
    /// Whether certificates of registries are not checked.
    pub insecure: bool,
    /// How long a connection may be idle.
    pub idle_timeout: GoDuration,
    /// How long a question may take.
    pub read_timeout: GoDuration,
    /// How long an answer may take.
    pub write_timeout: GoDuration,
    /// Its way into the world; `proxy` of the spec is newer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<TrivyServerProxy>,
    /// The certificate with which it serves.
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

/// Trivy's way into the world.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrivyServerProxy {
    /// The proxy.
    #[serde(rename = "URL")]
    #[schemars(regex(pattern = pattern::URL))]
    pub url: String,
    /// Hosts that are reached without it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub no_proxy: Vec<String>,
}

/// Where Trivy keeps what it knows.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TrivyVolumes {
    /// Its database of holes.
    pub cache: Volume,
    /// What it found.
    pub reports: Volume,
}

/// How Trivy learns of new holes.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TrivyUpdate {
    /// The Secret with a token of GitHub, under github-token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub github_token_ref: Option<String>,
    /// Whether it does not.
    pub skip: bool,
}
