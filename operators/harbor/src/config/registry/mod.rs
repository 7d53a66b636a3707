//! The registry: distribution's `config.yml`, with credentials by environment.
//!
//! Both containers of the registry's pod read this file and open the same storage: the registry and its controller.

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

/// The key of `config.yml` in the ConfigMap, or in the Secret where it holds secrets.
pub const CONFIG_KEY: &str = "config.yml";
/// Where it is mounted.
pub const CONFIG_DIR: &str = "/etc/registry";
/// Where the certificate of internal TLS is mounted.
pub const SSL_DIR: &str = "/etc/registry/ssl";
/// Where the users' hashed passwords are mounted.
pub const HTPASSWD_PATH: &str = "/etc/registry/auth/htpasswd";
/// Where the images are, if they are files.
pub const STORAGE_DIR: &str = "/var/lib/registry";
/// Where the key of Google's storage is mounted.
pub const GCS_KEY_PATH: &str = "/etc/gcs/gcs-key.json";
/// Where the authority of the token service is mounted.
pub const TOKEN_BUNDLE_PATH: &str = "/etc/registry/auth-certificates/tls.crt";
/// Where the key that signs manifests of schema 1 is mounted.
pub const SCHEMA1_KEY_PATH: &str = "/etc/registry/compatibility-schema1/tls.key";

/// Options of a middleware, hook or reporter: each comes from a Secret, so each is one.
pub type Options = BTreeMap<String, Confidential>;

/// What the registry is to be told.
#[derive(Debug, Clone)]
pub struct Registry {
    /// Logging.
    pub log: Log,
    /// The server.
    pub http: Http,
    /// The key that uploads are signed with.
    pub http_secret: Option<HttpSecret>,
    /// Services that errors are reported to.
    pub reporting: BTreeMap<String, Options>,
    /// Where the images are.
    pub storage: Storage,
    /// What remembers the blobs.
    pub cache: Cache,
    /// Whether images can be deleted, which garbage collection needs.
    pub delete: bool,
    /// Whether blobs are passed on rather than answered with a URL of the storage.
    pub redirect_disabled: bool,
    /// Whether nothing may be written.
    pub read_only: bool,
    /// What becomes of uploads that were given up; they stay, if none.
    pub upload_purging: Option<UploadPurging>,
    /// What is plugged in.
    pub middlewares: Middlewares,
    /// Manifests of schema 1.
    pub schema1: Schema1,
    /// What manifests may say.
    pub validation: Validation,
    /// Who may come in; anybody, if none.
    pub auth: Option<Auth>,
    /// Who is told of events.
    pub notifications: Notifications,
    /// What the registry watches about itself.
    pub health: Health,
    /// The way out.
    pub outbound: Outbound,
}

/// Logging.
#[derive(Debug, Clone)]
pub struct Log {
    /// Whether requests are not logged.
    pub access_log_disabled: bool,
    /// `debug`, `info`, `warning`, `error`, or `fatal`, which is taken for `error`.
    pub level: String,
    /// `text`, `json` or `logstash`.
    pub formatter: String,
    /// Said with each line.
    pub fields: BTreeMap<String, String>,
    /// Called for some lines.
    pub hooks: Vec<Hook>,
}

/// Something that is called for some lines of the log.
#[derive(Debug, Clone)]
pub struct Hook {
    /// Which: `mail`.
    pub kind: String,
    /// For which levels.
    pub levels: Vec<String>,
    /// How.
    pub options: Options,
}

/// The server.
#[derive(Debug, Clone)]
pub struct Http {
    /// `tcp` or `unix`.
    pub net: String,
    /// The URL that the registry is known by.
    pub host: Option<String>,
    /// The path that everything is below.
    pub prefix: Option<String>,
    /// Sent with each answer.
    pub headers: BTreeMap<String, Vec<String>>,
    /// Whether HTTP/2 is not spoken.
    pub http2_disabled: bool,
    /// Whether locations are answered without host.
    pub relative_urls: bool,
    /// How long running requests may go on when the registry stops. Without it they are cut off.
    pub drain_timeout: Option<Duration>,
    /// Whether the components speak TLS among themselves.
    pub tls: bool,
    /// The second server, with metrics.
    pub debug: Option<Debug>,
}

/// The registry's second server.
#[derive(Debug, Clone)]
pub struct Debug {
    /// Its port.
    pub port: u16,
    /// Where it has metrics, if it has.
    pub metrics_path: Option<String>,
}

/// What remembers the blobs.
#[derive(Debug, Clone)]
pub enum Cache {
    /// Redis, for all replicas.
    Redis(RegistryRedis),
    /// The process, each for itself.
    InMemory,
}

impl Cache {
    /// The Redis, if it is one.
    pub(crate) const fn redis(&self) -> Option<&RegistryRedis> {
        match self {
            Self::Redis(redis) => Some(redis),
            Self::InMemory => None,
        }
    }
}

/// What becomes of uploads that were given up.
#[derive(Debug, Clone)]
pub struct UploadPurging {
    /// How old they are when they go.
    pub age: Duration,
    /// How often they are looked for.
    pub interval: Duration,
    /// Whether they are only spoken of.
    pub dry_run: bool,
}

/// What is plugged into the registry.
#[derive(Debug, Clone, Default)]
pub struct Middlewares {
    /// Around the registry.
    pub registry: Vec<Middleware>,
    /// Around each repository.
    pub repository: Vec<Middleware>,
    /// Around the storage: `cloudfront`.
    pub storage: Vec<Middleware>,
}

/// Something plugged in.
#[derive(Debug, Clone)]
pub struct Middleware {
    /// Which.
    pub name: String,
    /// How.
    pub options: Options,
}

/// The Redis of the registry's cache.
#[derive(Debug, Clone)]
pub struct RegistryRedis {
    /// The server.
    pub server: Redis,
    /// The database in it.
    pub database: u8,
    /// How long to wait for a connection.
    pub dial_timeout: Duration,
    /// How long to wait for an answer.
    pub read_timeout: Duration,
    /// How long to wait while sending.
    pub write_timeout: Duration,
    /// Idle connections at most.
    pub max_idle: u32,
    /// Connections at most.
    pub max_active: u32,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
}

impl RegistryRedis {
    /// With the figures of Harbor's own installer.
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

/// Manifests of schema 1.
#[derive(Debug, Clone, Default)]
pub struct Schema1 {
    /// Whether they are accepted.
    pub enabled: bool,
    /// Whether a key to sign them with is mounted at [`SCHEMA1_KEY_PATH`].
    pub key: bool,
}

/// What manifests may say.
#[derive(Debug, Clone, Default)]
pub struct Validation {
    /// Whether nothing is checked.
    pub disabled: bool,
    /// Expressions of URLs that are allowed.
    pub allow: Vec<String>,
    /// Expressions of URLs that are not.
    pub deny: Vec<String>,
}

/// Who may come in.
#[derive(Debug, Clone)]
pub enum Auth {
    /// Whoever shows anything: for tests.
    Silly {
        /// Said to those who show nothing.
        realm: String,
        /// The same.
        service: String,
    },
    /// Whoever shows a token of an issuer whose certificate is mounted at [`TOKEN_BUNDLE_PATH`].
    Token {
        /// Where tokens are to be had.
        realm: String,
        /// What they are for.
        service: String,
        /// Who makes them.
        issuer: String,
        /// Whether the realm is below the host that was asked.
        autoredirect: bool,
    },
    /// Whoever is in the file at [`HTPASSWD_PATH`].
    Htpasswd {
        /// Said to those who show nothing.
        realm: String,
    },
}

/// Who is told of events.
#[derive(Debug, Clone)]
pub struct Notifications {
    /// Whether events name the blobs of a manifest.
    pub include_references: bool,
    /// Who is told.
    pub endpoints: Vec<Endpoint>,
}

/// Somebody who is told of events.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// A name.
    pub name: String,
    /// Whether it is not told now.
    pub disabled: bool,
    /// Where.
    pub url: String,
    /// Sent with each event.
    pub headers: BTreeMap<String, Vec<String>>,
    /// How long to wait.
    pub timeout: Duration,
    /// After how many failures to pause.
    pub threshold: u32,
    /// For how long.
    pub backoff: Duration,
    /// Media types it is not told of; a former form of the next.
    pub ignored_media_types: Vec<String>,
    /// Media types it is not told of.
    pub ignore_media_types: Vec<String>,
    /// Actions it is not told of.
    pub ignore_actions: Vec<String>,
}

/// What the registry watches about itself.
#[derive(Debug, Clone)]
pub struct Health {
    /// The storage, if it is watched.
    pub storage: Option<HealthCheck>,
    /// Files whose existence means that something is wrong, with how often they are looked for.
    pub files: Vec<(String, Duration)>,
    /// Servers that have to answer.
    pub http: Vec<HttpCheck>,
    /// Servers that have to listen.
    pub tcp: Vec<TcpCheck>,
}

/// How often, and how many failures are too many.
#[derive(Debug, Clone)]
pub struct HealthCheck {
    /// How often.
    pub interval: Duration,
    /// How many failures are too many.
    pub threshold: u32,
}

/// A server that has to answer.
#[derive(Debug, Clone)]
pub struct HttpCheck {
    /// Where.
    pub uri: String,
    /// Sent with the request.
    pub headers: BTreeMap<String, Vec<String>>,
    /// The status that is expected.
    pub status: u32,
    /// How long to wait.
    pub timeout: Duration,
    /// How often, and how many failures are too many.
    pub check: HealthCheck,
}

/// A server that has to listen.
#[derive(Debug, Clone)]
pub struct TcpCheck {
    /// `host:port`.
    pub address: String,
    /// How long to wait.
    pub timeout: Duration,
    /// How often, and how many failures are too many.
    pub check: HealthCheck,
}

/// The variable, and the key, of the secret with which registries of one Service sign for each other.
pub const HTTP_SECRET: &str = "REGISTRY_HTTP_SECRET";

/// That secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HttpSecret {
    /// It arrives as it is.
    Plain(SecretKey),
    /// The registry would read something else in it: it has to come in quotes, out of a Secret of ours.
    Quoted(Confidential),
}

/// Renders the registry for one release. `secret` names the Secret that [`Rendered::secret`] will be in.
///
/// The file is in [`Rendered::config`], unless options of middlewares, hooks or reporters are in it: these come from Secrets, and no environment
/// can hold them, so the whole file is in [`Rendered::secret`] then.
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
            // By environment, since the key in the file has been written in two ways.
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
