//! Registry: the Distribution server that stores and serves images.

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

/// Desired state of the registry, the Distribution server that stores and serves images.
#[derive(Clone, Debug, PartialEq, CustomResource, Deserialize, Serialize, JsonSchema)]
#[kube(
    group = "goharbor.io",
    version = "v1beta1",
    kind = "Registry",
    plural = "registries",
    namespaced,
    category = "goharbor",
    doc = "Registry is the Distribution server that stores and serves images.",
    derive = "PartialEq",
    status = "ComponentStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas")
)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySpec {
    /// Pod settings of the registry.
    #[serde(flatten)]
    pub component: ComponentSpec,
    /// Names of Secrets with additional trusted CA certificates, each in key `ca.crt`. Default: none, which
    /// trusts the CAs of the image only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub certificate_refs: Vec<String>,
    /// Error reporting services (`reporting` of Distribution): name of the service (`bugsnag` or `newrelic`),
    /// and name of the Secret whose keys and values are its options. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reporting: BTreeMap<String, String>,
    /// Update strategy of the Deployment: `RollingUpdate` or `Recreate`. Default: `RollingUpdate`. `Recreate`
    /// is always used while a volume can be mounted by a single node only.
    #[serde(default = "rolling")]
    pub update_strategy_type: String,
    /// Authentication of clients (`auth` of Distribution). If unset, the registry accepts every client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub authentication: Option<RegistryAuthentication>,
    /// Support of deprecated formats (`compatibility` of Distribution). If unset, none is supported.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compatibility: Option<RegistryCompatibility>,
    /// Health checks of the registry (`health` of Distribution). If unset, only the storage driver is
    /// checked, every 5s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub health: Option<RegistryHealth>,
    /// HTTP server of the registry (`http` of Distribution). If unset, the defaults of the fields apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http: Option<RegistryHttp>,
    /// Log settings of the registry (`log` of Distribution). Default: text at level `info`.
    #[serde(default)]
    pub log: RegistryLog,
    /// Middleware of the registry (`middleware` of Distribution). If unset, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub middlewares: Option<RegistryMiddlewares>,
    /// IP families to listen on. The values are validated, but have no effect on the registry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
    /// Webhook notifications of the registry (`notifications` of Distribution). If unset, none are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notifications: Option<RegistryNotifications>,
    /// HTTP proxy for outbound connections of the registry. If unset, the registry connects directly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// Redis connection of the registry's cache (`redis` of Distribution). Required if
    /// `storage.cache.blobdescriptor` is `redis`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redis: Option<RegistryRedis>,
    /// Storage of the registry (`storage` of Distribution).
    pub storage: RegistryStorage,
    /// Distributed tracing of the registry controller, which runs in the registry's pods. If unset, no traces
    /// are sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
    /// Validation of pushed manifests (`validation` of Distribution). If unset, validation is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<RegistryValidation>,
}

impl RegistrySpec {
    /// Returns the scheme under which the registry is reached inside the cluster.
    pub fn served(&self) -> Served {
        Served::with(self.http.as_ref().and_then(|http| http.tls.as_ref()))
    }
}

/// Authentication of the registry's clients. If several are set, `htPasswd` takes precedence over `token`,
/// and `token` over `silly`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryAuthentication {
    /// Basic authentication with an htpasswd file (`auth.htpasswd` of Distribution). It takes precedence over
    /// `token` and `silly`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ht_passwd: Option<RegistryHtPasswd>,
    /// Accept every `Authorization` header (`auth.silly` of Distribution). For tests only. Used only if
    /// `htPasswd` and `token` are unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silly: Option<RegistrySilly>,
    /// Authentication with bearer tokens (`auth.token` of Distribution). Used only if `htPasswd` is unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<RegistryToken>,
}

/// Basic authentication with an htpasswd file.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryHtPasswd {
    /// Realm sent in the `WWW-Authenticate` challenge.
    pub realm: String,
    /// Name of the Secret with the htpasswd file (bcrypt hashes), in key `htpasswd`.
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: String,
}

/// Authentication that accepts every `Authorization` header, for tests only.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrySilly {
    /// Realm sent in the `WWW-Authenticate` challenge.
    pub realm: String,
    /// Service name sent in the `WWW-Authenticate` challenge.
    pub service: String,
}

/// Authentication with bearer tokens.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryToken {
    /// URL of the token endpoint, sent as the realm in the `WWW-Authenticate` challenge.
    pub realm: String,
    /// Service name sent in the `WWW-Authenticate` challenge; tokens must be issued for it.
    pub service: String,
    /// Issuer that a token must name in its `iss` claim.
    pub issuer: String,
    /// Name of the Secret with the certificate that verifies token signatures, in key `tls.crt`
    /// (`rootcertbundle` of Distribution).
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: String,
    /// Redirect unauthenticated clients to the token endpoint, using the host name of the request
    /// (`autoredirect` of Distribution). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoredirect: Option<bool>,
}

/// Support of deprecated formats.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryCompatibility {
    /// Image manifests of schema version 1 (`compatibility.schema1` of Distribution). If unset, they are
    /// rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema1: Option<RegistrySchema1>,
}

/// Support of image manifests of schema version 1.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistrySchema1 {
    /// Accept image manifests of schema version 1. Default: false.
    pub enabled: bool,
    /// Name of the Secret with the key that signs these manifests, in key `tls.key` (`signingkeyfile` of
    /// Distribution). If unset, Distribution generates a key at each start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub certificate_ref: Option<String>,
}

choice! {
    /// Network of the registry's listener (`http.net` of Distribution).
    Listen { Unix = "unix", Tcp = "tcp" }
}

/// HTTP server of the registry.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryHttp {
    /// Time for open requests to finish when the registry stops, as a Go duration such as `60s`
    /// (`draintimeout` of Distribution). Default: 60s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_timeout: Option<GoDuration>,
    /// Headers added to every response (`headers` of Distribution). Default: `X-Content-Type-Options:
    /// nosniff`.
    pub headers: BTreeMap<String, Vec<String>>,
    /// External URL of the registry, used in the URLs that it returns (`host` of Distribution). If unset,
    /// Distribution derives it from the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Network of the listener: `tcp` or `unix` (`net` of Distribution). Default: `tcp`.
    pub net: Listen,
    /// Path prefix of all routes, beginning and ending with a slash (`prefix` of Distribution). If unset, the
    /// registry serves at the root.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::PREFIX))]
    pub prefix: Option<String>,
    /// Return relative URLs in `Location` headers (`relativeurls` of Distribution). Default: true.
    #[serde(rename = "relativeURLs")]
    pub relative_urls: bool,
    /// Name of the Secret with the key that signs the state of uploads, in key `REGISTRY_HTTP_SECRET` or
    /// `secret` (`http.secret` of Distribution). All replicas need the same key. If unset, each replica
    /// generates its own, and uploads fail with several replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub secret_ref: Option<String>,
    /// Debug server with metrics (`debug` of Distribution). If unset, there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub debug: Option<RegistryDebug>,
    /// HTTP/2 settings of the server (`http2` of Distribution). If unset, HTTP/2 is enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http2: Option<RegistryHttp2>,
    /// Internal TLS certificate of the registry. If unset, the registry serves plain HTTP.
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

/// Debug server of the registry, with metrics.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryDebug {
    /// Port of the debug server. Default: 5001.
    #[schemars(range(min = 1))]
    pub port: i32,
    /// Prometheus metrics of the debug server. If unset, it serves no metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prometheus: Option<RegistryPrometheus>,
}

impl Default for RegistryDebug {
    fn default() -> Self {
        Self { port: 5001, prometheus: None }
    }
}

/// Prometheus metrics of the registry.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryPrometheus {
    /// Serve Prometheus metrics on the debug server. Default: false.
    pub enabled: bool,
    /// HTTP path of the metrics. Default: `/metrics`.
    pub path: String,
}

impl Default for RegistryPrometheus {
    fn default() -> Self {
        Self { enabled: false, path: "/metrics".into() }
    }
}

/// HTTP/2 settings of the registry's server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryHttp2 {
    /// Disable HTTP/2 for the registry. Default: false.
    pub disabled: bool,
}

/// Middleware of the registry, by extension point.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryMiddlewares {
    /// Middleware around the whole registry (`middleware.registry` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub registry: Vec<RegistryMiddleware>,
    /// Middleware around each repository (`middleware.repository` of Distribution). Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub repository: Vec<RegistryMiddleware>,
    /// Middleware around the storage driver, such as `cloudfront` (`middleware.storage` of Distribution).
    /// Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub storage: Vec<RegistryMiddleware>,
}

/// One middleware of the registry, with its options.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryMiddleware {
    /// Name of the middleware, as Distribution registers it.
    pub name: String,
    /// Name of the Secret whose keys and values are the options of the middleware. If unset, it has no
    /// options.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = pattern::NAME))]
    pub options_ref: Option<String>,
}

/// Redis connection of the registry's cache.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistryRedis {
    /// Server, credentials and database number.
    #[serde(flatten)]
    pub connection: RedisConnection,
    /// Timeout for connecting to Redis, as a Go duration (`dialtimeout` of Distribution). Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dial_timeout: Option<GoDuration>,
    /// Timeout for reading from Redis, as a Go duration (`readtimeout` of Distribution). Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_timeout: Option<GoDuration>,
    /// Timeout for writing to Redis, as a Go duration (`writetimeout` of Distribution). Default: 10s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_timeout: Option<GoDuration>,
    /// Connection pool of the registry's Redis client. If unset, at most 500 connections of which 100 idle,
    /// closed after 60s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<RegistryRedisPool>,
}

/// Connection pool of the registry's Redis client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryRedisPool {
    /// Idle time after which a connection is closed, as a Go duration (`idletimeout` of Distribution).
    /// Default: `30s`.
    pub idle_timeout: GoDuration,
    /// Maximum number of open connections (`maxactive` of Distribution). Default: 5.
    #[schemars(range(min = 0))]
    pub max_active: i32,
    /// Maximum number of idle connections (`maxidle` of Distribution). Default: 3.
    #[schemars(range(min = 0))]
    pub max_idle: i32,
}

impl Default for RegistryRedisPool {
    fn default() -> Self {
        Self { idle_timeout: "30s".into(), max_active: 5, max_idle: 3 }
    }
}

/// Validation of pushed manifests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryValidation {
    /// Disable the validation of manifests (`validation.disabled` of Distribution). Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled: Option<bool>,
    /// Validation rules for manifests (`validation.manifests` of Distribution). If unset, manifests that
    /// contain URLs are rejected, unless validation is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifests: Option<RegistryManifests>,
}

/// Validation rules for manifests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryManifests {
    /// Rules for the URLs of foreign layers in manifests (`urls` of Distribution). If unset, manifests that
    /// contain URLs are rejected, unless validation is disabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub urls: Option<RegistryManifestUrls>,
}

/// Rules for the URLs of foreign layers in manifests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct RegistryManifestUrls {
    /// Regular expressions of URLs that manifests may contain (`allow` of Distribution). If empty, manifests
    /// that contain URLs are rejected, unless validation is disabled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub allow: Vec<String>,
    /// Regular expressions of URLs that manifests must not contain (`deny` of Distribution). If empty, all
    /// URLs that match `allow` are accepted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub deny: Vec<String>,
}
