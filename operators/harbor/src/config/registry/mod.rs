//! Registry: Distribution's `config.yml`, with credentials in the environment.
//!
//! Both containers of the registry's pod read this file and open the same storage: the registry and its
//! controller.

mod file;
mod storage;

use std::collections::BTreeMap;
use std::time::Duration;

use windlass_operator::yaml::Style;

use crate::catalogue::{Feature, Release};

use super::confidential::Confidential;
use super::env::{Environment, SecretKey};
use super::outbound::Outbound;
use super::redis::Redis;
use super::rendered::{Rendered, Vault};
use super::yaml::registry_env_value;

pub use storage::Storage;

/// Key of `config.yml` in the ConfigMap, or in the Secret if the file contains secrets.
pub const CONFIG_KEY: &str = "config.yml";
/// Mount path of the configuration file.
pub(crate) const CONFIG_DIR: &str = "/etc/registry";
/// Mount path of the internal TLS certificate.
pub const SSL_DIR: &str = "/etc/registry/ssl";
/// Mount path of the htpasswd file.
pub const HTPASSWD_PATH: &str = "/etc/registry/auth/htpasswd";
/// Mount path of the volume with images.
pub const STORAGE_DIR: &str = "/var/lib/registry";
/// Mount path of the Google Cloud Storage key.
pub(crate) const GCS_KEY_PATH: &str = "/etc/gcs/gcs-key.json";
/// Mount path of the token service's certificate authority.
pub(crate) const TOKEN_BUNDLE_PATH: &str = "/etc/registry/auth-certificates/tls.crt";
/// Mount path of the key that signs schema 1 manifests.
pub(crate) const SCHEMA1_KEY_PATH: &str = "/etc/registry/compatibility-schema1/tls.key";

/// Options of a middleware, hook or reporter. All values come from Secrets.
pub type Options = BTreeMap<String, Confidential>;

/// The settings of the registry.
#[derive(Debug, Clone)]
pub struct Registry {
    /// Settings of the log.
    pub log: Log,
    /// HTTP server settings.
    pub http: Http,
    /// The secret that signs the state of uploads (`http.secret`).
    pub http_secret: Option<HttpSecret>,
    /// Error reporting services with their options.
    pub reporting: BTreeMap<String, Options>,
    /// The storage driver.
    pub storage: Storage,
    /// The cache of blob descriptors.
    pub cache: Cache,
    /// Enables the deletion of images, which garbage collection needs.
    pub delete: bool,
    /// Serves blobs itself instead of redirecting clients to the storage.
    pub redirect_disabled: bool,
    /// Refuses all writes.
    pub read_only: bool,
    /// Purging of abandoned uploads; `None` keeps them.
    pub upload_purging: Option<UploadPurging>,
    /// The middlewares of the registry.
    pub middlewares: Middlewares,
    /// Settings of schema 1 manifests.
    pub schema1: Schema1,
    /// Validation of manifests.
    pub validation: Validation,
    /// The authentication; `None` lets everybody in.
    pub auth: Option<Auth>,
    /// Notifications about registry events.
    pub notifications: Notifications,
    /// Health checks of the registry.
    pub health: Health,
    /// The outbound HTTP proxies.
    pub outbound: Outbound,
}

/// Settings of the log.
#[derive(Debug, Clone)]
pub struct Log {
    /// Disables the access log.
    pub access_log_disabled: bool,
    /// Log level: `debug`, `info`, `warning` or `error`; `fatal` means `error`.
    pub level: String,
    /// `text`, `json` or `logstash`.
    pub formatter: String,
    /// Fields that are added to each line.
    pub fields: BTreeMap<String, String>,
    /// Hooks that are called for log lines.
    pub hooks: Vec<Hook>,
}

/// A log hook, which is called for some levels.
#[derive(Debug, Clone)]
pub struct Hook {
    /// The type of the hook: `mail`.
    pub kind: String,
    /// The levels for which the hook is called.
    pub levels: Vec<String>,
    /// The options of the hook.
    pub options: Options,
}

/// HTTP server settings.
#[derive(Debug, Clone)]
pub struct Http {
    /// `tcp` or `unix`.
    pub net: String,
    /// The external URL of the registry.
    pub host: Option<String>,
    /// The path prefix of all URLs.
    pub prefix: Option<String>,
    /// Headers of all responses.
    pub headers: BTreeMap<String, Vec<String>>,
    /// Disables HTTP/2 on the server.
    pub http2_disabled: bool,
    /// Returns relative URLs in `Location` headers.
    pub relative_urls: bool,
    /// Time that running requests have to finish when the registry stops. Without it they are cut off.
    pub drain_timeout: Option<Duration>,
    /// Enables internal TLS between the components.
    pub tls: bool,
    /// The debug server, which serves metrics.
    pub debug: Option<Debug>,
}

/// The debug server.
#[derive(Debug, Clone)]
pub struct Debug {
    /// Port of the debug server.
    pub port: u16,
    /// Path of the metrics; `None` without metrics.
    pub metrics_path: Option<String>,
}

/// The cache of blob descriptors.
#[derive(Debug, Clone)]
pub enum Cache {
    /// Redis, shared by all replicas.
    Redis(RegistryRedis),
    /// The memory of each process.
    InMemory,
}

impl Cache {
    /// Returns the Redis settings, if Redis is used.
    pub(crate) const fn redis(&self) -> Option<&RegistryRedis> {
        match self {
            Self::Redis(redis) => Some(redis),
            Self::InMemory => None,
        }
    }
}

/// Purging of abandoned uploads.
#[derive(Debug, Clone)]
pub struct UploadPurging {
    /// Age at which uploads are purged.
    pub age: Duration,
    /// Interval between two purges.
    pub interval: Duration,
    /// Only logs what would be purged.
    pub dry_run: bool,
}

/// The middlewares of the registry.
#[derive(Debug, Clone, Default)]
pub struct Middlewares {
    /// Middlewares of the registry.
    pub(crate) registry: Vec<Middleware>,
    /// Middlewares of each repository.
    pub(crate) repository: Vec<Middleware>,
    /// Middlewares of the storage: `cloudfront`.
    pub(crate) storage: Vec<Middleware>,
}

/// A middleware of the registry.
#[derive(Debug, Clone)]
pub(crate) struct Middleware {
    /// The name of the middleware.
    pub name: String,
    /// The options of the middleware.
    pub options: Options,
}

/// The Redis of the registry's cache.
#[derive(Debug, Clone)]
pub struct RegistryRedis {
    /// The Redis server or sentinels.
    pub server: Redis,
    /// The index of the database in Redis.
    pub database: u8,
    /// Timeout for opening a connection.
    pub dial_timeout: Duration,
    /// Timeout for reading a response.
    pub read_timeout: Duration,
    /// Timeout for writing a request.
    pub write_timeout: Duration,
    /// Maximum number of idle connections.
    pub max_idle: u32,
    /// Maximum number of connections.
    pub max_active: u32,
    /// Idle timeout of connections.
    pub idle_timeout: Duration,
}

impl RegistryRedis {
    /// Returns settings with the values of Harbor's installer.
    pub fn new(server: Redis, database: u8) -> Self {
        let ten = Duration::from_secs(10);
        Self {
            server,
            database,
            dial_timeout: ten,
            read_timeout: ten,
            write_timeout: ten,
            max_idle: 100,
            max_active: 500,
            idle_timeout: Duration::from_mins(1),
        }
    }
}

/// Settings of schema 1 manifests.
#[derive(Debug, Clone, Default)]
pub struct Schema1 {
    /// Accepts schema 1 manifests.
    pub enabled: bool,
    /// True if a signing key is mounted at [`SCHEMA1_KEY_PATH`].
    pub key: bool,
}

/// Validation of manifests.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    /// Disables the validation.
    pub disabled: bool,
    /// Regular expressions of allowed URLs.
    pub allow: Vec<String>,
    /// Regular expressions of denied URLs.
    pub deny: Vec<String>,
}

/// The authentication of clients.
#[derive(Debug, Clone)]
pub enum Auth {
    /// Accepts any `Authorization` header: for tests only.
    Silly {
        /// The realm of the challenge.
        realm: String,
        /// The service of the challenge.
        service: String,
    },
    /// Accepts tokens of an issuer whose certificate is mounted at [`TOKEN_BUNDLE_PATH`].
    Token {
        /// The URL of the token service.
        realm: String,
        /// The service that tokens are issued for.
        service: String,
        /// The issuer of tokens.
        issuer: String,
        /// Derives the realm from the host name of the request (`autoredirect` of Distribution).
        autoredirect: bool,
    },
    /// Accepts the users in the file at [`HTPASSWD_PATH`].
    Htpasswd {
        /// The realm of the challenge.
        realm: String,
    },
}

/// Notifications about registry events.
#[derive(Debug, Clone)]
pub struct Notifications {
    /// Includes the blobs of a manifest in events.
    pub include_references: bool,
    /// The receivers of events.
    pub endpoints: Vec<Endpoint>,
}

/// A receiver of events.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The name of the endpoint.
    pub name: String,
    /// Disables the endpoint.
    pub disabled: bool,
    /// The URL of the endpoint.
    pub url: String,
    /// Headers of each request.
    pub headers: BTreeMap<String, Vec<String>>,
    /// Timeout of a request.
    pub timeout: Duration,
    /// Number of failures after which requests pause.
    pub threshold: u32,
    /// Duration of a pause.
    pub backoff: Duration,
    /// Media types that are ignored; the former name of `ignore_media_types`.
    pub ignored_media_types: Vec<String>,
    /// Media types that are ignored.
    pub ignore_media_types: Vec<String>,
    /// Actions that are ignored.
    pub ignore_actions: Vec<String>,
}

/// Health checks of the registry.
#[derive(Debug, Clone)]
pub struct Health {
    /// Check of the storage; `None` disables it.
    pub storage: Option<HealthCheck>,
    /// Files whose existence means unhealthy, with the interval of the check.
    pub files: Vec<(String, Duration)>,
    /// HTTP servers that must respond.
    pub http: Vec<HttpCheck>,
    /// TCP servers that must accept connections.
    pub tcp: Vec<TcpCheck>,
}

/// Interval and failure threshold of a health check.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// Interval of the check.
    pub interval: Duration,
    /// Number of failures after which the registry is unhealthy.
    pub threshold: u32,
}

/// A check of an HTTP server.
#[derive(Debug, Clone)]
pub struct HttpCheck {
    /// The URI of the request.
    pub uri: String,
    /// Headers of the request.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The expected HTTP status.
    pub status: u32,
    /// Timeout of the request.
    pub timeout: Duration,
    /// Interval and failure threshold.
    pub check: HealthCheck,
}

/// A check of a TCP server.
#[derive(Debug, Clone)]
pub struct TcpCheck {
    /// The address of the server, as `host:port`.
    pub address: String,
    /// Timeout of the connection.
    pub timeout: Duration,
    /// Interval and failure threshold.
    pub check: HealthCheck,
}

/// The variable, and the key, of the secret with which all replicas of the registry sign upload states.
pub(crate) const HTTP_SECRET: &str = "REGISTRY_HTTP_SECRET";

/// The secret that signs upload states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpSecret {
    /// The registry reads the value unchanged.
    Plain(SecretKey),
    /// The registry would parse the value as something else, so a quoted copy is written into a Secret of
    /// ours.
    Quoted(Confidential),
}

/// Renders the registry for one release. `secret` is the name of the Secret with [`Rendered::secret`].
///
/// The file is in [`Rendered::config`]. If it contains options of middlewares, hooks or reporters, the whole
/// file is in [`Rendered::secret`], because these options come from Secrets and cannot be set in the
/// environment.
pub fn render(registry: &Registry, release: &Release, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let mut environment = Environment::default();
    let http_secret = registry.http_secret.as_ref().map(|secret| match secret {
        HttpSecret::Plain(key) => key.clone(),
        HttpSecret::Quoted(value) => vault.put(HTTP_SECRET, registry_env_value(value)),
    });
    environment.secret_some(HTTP_SECRET, http_secret.as_ref());
    if let Some(redis) = registry.cache.redis() {
        let mut quoted = |name: &str, value: &Confidential| {
            environment.secret(name, &vault.put(name, registry_env_value(value)));
        };
        if let Some(password) = &redis.server.password {
            quoted("REGISTRY_REDIS_PASSWORD", password);
        }
        if redis.server.tls && release.has(Feature::RegistryRedisTls) {
            // Set in the environment, because releases differ in the name of the key in the file.
            environment.set("REGISTRY_REDIS_ENABLETLS", true);
        }
    }
    for (name, value) in registry.storage.secrets() {
        environment.secret(&name, &vault.put(&name, registry_env_value(value)));
    }
    if registry.schema1.key {
        environment.set("REGISTRY_COMPATIBILITY_SCHEMA1_SIGNINGKEYFILE", SCHEMA1_KEY_PATH);
    }
    registry.outbound.environment(&mut environment);
    let text = file::render(registry, release).document(Style::File);
    let mut config = BTreeMap::new();
    if has_options(registry) {
        vault.put(CONFIG_KEY, Confidential::new(text));
    } else {
        config.insert(CONFIG_KEY.to_owned(), text);
    }
    Rendered { config, secret: vault.finish(), env: environment.finish() }
}

fn has_options(registry: &Registry) -> bool {
    let Middlewares { registry: around, repository, storage } = &registry.middlewares;
    let middlewares =
        [around, repository, storage].into_iter().flatten().map(|middleware| &middleware.options);
    let hooks = registry.log.hooks.iter().map(|hook| &hook.options);
    middlewares.chain(hooks).chain(registry.reporting.values()).any(|options| !options.is_empty())
}
