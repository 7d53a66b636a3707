//! The registry: images come in and go out.

use std::collections::BTreeMap;

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choice::choice;
use super::component::{ComponentSpec, Served, Tls};
use super::duration::GoDuration;
use super::jobservice::rolling;
use super::network::{Network, Proxy};
use super::observe::Trace;
use super::pattern;
use super::redis::RedisConnection;
use super::registry_health::{RegistryHealth, RegistryNotifications};
use super::registry_log::RegistryLog;
use super::registry_storage::RegistryStorage;
use super::status::ComponentStatus;

/// What the registry should be.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Registry",
    plural = "registries",
    namespaced,
    category = "goharbor",
    doc = "Registry is where images come in and go out.",
    derive = "PartialEq",
    status = "ComponentStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas")
)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySpec {
    /// How its pods are run.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Secrets with more certificate authorities to trust, under ca.crt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Services that are told of errors, each with the Secret of its options.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reporting: BTreeMap<String, String>,
    /// How pods are replaced: RollingUpdate or Recreate.
    #[serde(default = "rolling")]
    pub update_strategy_type: String,
    /// Who may ask it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<RegistryAuthentication>,
    /// What it still understands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<RegistryCompatibility>,
    /// When it is healthy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<RegistryHealth>,
    /// How it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<RegistryHttp>,
    /// What it logs.
    #[serde(default)]
    pub log: RegistryLog,
    /// What is put between.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub middlewares: Option<RegistryMiddlewares>,
    /// The addresses on which it listens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Who is told of what happens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notifications: Option<RegistryNotifications>,
    /// Its way into the world.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// The Redis of its cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RegistryRedis>,
    /// Where images are.
    pub storage: RegistryStorage,
    /// Its traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// What it refuses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<RegistryValidation>,
}

impl RegistrySpec {
    /// How it is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.http.as_ref().and_then(|http| http.tls.as_ref()))
    }
}

/// Who may ask the registry.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryAuthentication {
    /// Who has a password in a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ht_passwd: Option<RegistryHtPasswd>,
    /// Who says anything at all: for tests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silly: Option<RegistrySilly>,
    /// Who has a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<RegistryToken>,
}

/// Passwords in a file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryHtPasswd {
    /// What is said to who has none.
    pub realm: String,
    /// The Secret with the file, under htpasswd.
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
}

/// Anybody.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySilly {
    /// What is said to who says nothing.
    pub realm: String,
    /// For what.
    pub service: String,
}

/// Which tokens the registry takes.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryToken {
    /// Where they are had.
    pub realm: String,
    /// What they are for.
    pub service: String,
    /// Who issues them.
    pub issuer: String,
    /// The Secret with the certificate of the key that signs them, under tls.crt.
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
    /// Whether who has none is sent to where they are had, by the name that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoredirect: Option<bool>,
}

/// What the registry still understands.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryCompatibility {
    /// Manifests of the first schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema1: Option<RegistrySchema1>,
}

/// Manifests of the first schema.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistrySchema1 {
    /// Whether they are understood.
    pub enabled: bool,
    /// The Secret with the key that signs them, under tls.key.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

choice! {
    /// On what is listened.
    Listen { Unix = "unix", Tcp = "tcp" }
}

/// How the registry serves.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryHttp {
    /// How long open requests may take when it stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_timeout: Option<GoDuration>,
    /// Added to every answer.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The URL by which it calls itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// On what it listens.
    pub net: Listen,
    /// The path under which it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::PREFIX))]
    pub prefix: Option<String>,
    /// Whether it calls itself by the path alone.
    #[serde(rename = "relativeURLs")]
    pub relative_urls: bool,
    /// The Secret with the key of what users carry for it, under REGISTRY_HTTP_SECRET.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: Option<String>,
    /// Metrics, and what developers ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debug: Option<RegistryDebug>,
    /// HTTP/2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<RegistryHttp2>,
    /// The certificate with which it serves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
}

impl Default for RegistryHttp {
    fn default() -> Self {
        Self {
            drain_timeout: None,
            headers: [("X-Content-Type-Options".to_owned(), vec!["nosniff".to_owned()])].into(),
            host: None,
            net: Listen::Tcp,
            prefix: None,
            relative_urls: true,
            secret_ref: None,
            debug: None,
            http2: None,
            tls: None,
        }
    }
}

/// Metrics, and what developers ask.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryDebug {
    /// On this port.
    #[schemars(range(min = 1))]
    pub port: i32,
    /// Metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<RegistryPrometheus>,
}

impl Default for RegistryDebug {
    fn default() -> Self {
        Self { port: 5001, prometheus: None }
    }
}

/// Metrics of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryPrometheus {
    /// Whether there are any.
    pub enabled: bool,
    /// The path under which they are read.
    pub path: String,
}

impl Default for RegistryPrometheus {
    fn default() -> Self {
        Self { enabled: false, path: "/metrics".into() }
    }
}

/// HTTP/2.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryHttp2 {
    /// Whether it is not spoken.
    pub disabled: bool,
}

/// What is put between the registry and others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryMiddlewares {
    /// In front of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registry: Vec<RegistryMiddleware>,
    /// In front of each repository.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repository: Vec<RegistryMiddleware>,
    /// In front of the storage.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<RegistryMiddleware>,
}

/// Something that is put between.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryMiddleware {
    /// What.
    pub name: String,
    /// The Secret whose keys and values are its options.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub options_ref: Option<String>,
}

/// The Redis of the registry's cache.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryRedis {
    /// Where it is.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// How long it may take to connect.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dial_timeout: Option<GoDuration>,
    /// How long an answer may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_timeout: Option<GoDuration>,
    /// How long a question may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_timeout: Option<GoDuration>,
    /// How many connections, and for how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<RegistryRedisPool>,
}

/// The registry's connections to Redis.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryRedisPool {
    /// After which idle time one is closed.
    pub idle_timeout: GoDuration,
    /// How many there may be.
    #[schemars(range(min = 0))]
    pub max_active: i32,
    /// How many are kept when idle.
    #[schemars(range(min = 0))]
    pub max_idle: i32,
}

impl Default for RegistryRedisPool {
    fn default() -> Self {
        Self { idle_timeout: "30s".into(), max_active: 5, max_idle: 3 }
    }
}

/// What the registry refuses.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryValidation {
    /// Whether it refuses nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// What in manifests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifests: Option<RegistryManifests>,
}

/// What the registry refuses in manifests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryManifests {
    /// URLs of layers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<RegistryManifestUrls>,
}

/// Which URLs of layers the registry takes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryManifestUrls {
    /// Patterns of those it takes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Patterns of those it refuses.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}
