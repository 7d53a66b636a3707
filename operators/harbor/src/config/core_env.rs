//! Core: `app.conf`, the URLs of Redis, and the environment.

use std::time::Duration;

use crate::catalogue::{Feature, Release};

use super::cache_layer::CacheLayer;
use super::database::{self, Database, Pool};
use super::env::{Environment, SecretKey};
use super::outbound::Outbound;
use super::redis::{Redis, index};
use super::rendered::{Rendered, Vault};
use super::telemetry::{Metrics, Trace};

/// The key of `app.conf` in the ConfigMap.
pub(crate) const CONFIG_KEY: &str = "app.conf";
/// Mount path of `app.conf`.
pub(crate) const CONFIG_PATH: &str = "/etc/core/app.conf";
/// Mount path of the internal TLS certificate.
pub(crate) const SSL_DIR: &str = "/etc/core/ssl";
/// Mount path of the encryption key: sixteen bytes without a line break.
pub(crate) const KEY_PATH: &str = "/etc/core/key";
/// Mount path of the token service's key.
pub(crate) const TOKEN_KEY_PATH: &str = "/etc/core/private_key.pem";

/// The settings of Core.
#[derive(Debug, Clone)]
pub(crate) struct Core {
    /// The external URL, without a path.
    pub external_url: String,
    /// Enables internal TLS between the components.
    pub tls: bool,
    /// `debug`, `info`, `warning`, `error` or `fatal`.
    pub log_level: String,
    /// Compresses responses.
    pub gzip: bool,
    /// Time for which Core caches its configuration.
    pub config_expiration: Duration,
    /// The PostgreSQL database.
    pub database: Database,
    /// The password of the PostgreSQL user.
    pub database_password: SecretKey,
    /// The connection pool of PostgreSQL.
    pub pool: Pool,
    /// The Redis of Core.
    pub redis: Redis,
    /// The index of Core's database in Redis.
    pub redis_database: u8,
    /// Idle timeout of connections to Redis.
    pub redis_idle_timeout: Duration,
    /// The Redis of the registry's cache with its database index, for garbage collection.
    pub registry_redis: Option<(Redis, u8)>,
    /// The cache layer; `None` if it is disabled.
    pub cache_layer: Option<CacheLayer>,
    /// The URLs of the other components.
    pub urls: Urls,
    /// The driver of the registry's storage: `filesystem`, `s3`, …
    pub storage_provider: String,
    /// Reads the content of the registry into the database at start.
    pub sync_registry: bool,
    /// Passwords and keys of Core.
    pub secrets: Secrets,
    /// The user name of Core at the registry.
    pub registry_username: String,
    /// The metrics endpoint; `None` without metrics.
    pub metrics: Option<Metrics>,
    /// The receiver of traces; `None` without tracing.
    pub trace: Option<Trace>,
    /// The outbound HTTP proxies.
    pub outbound: Outbound,
}

/// URLs of the components as Core reaches them.
#[derive(Debug, Clone)]
pub(crate) struct Urls {
    /// Core itself, with the port.
    pub core: String,
    /// JobService.
    pub jobservice: String,
    /// The registry.
    pub registry: String,
    /// RegistryController.
    pub registry_controller: String,
    /// The portal.
    pub portal: String,
    /// The token service of Core.
    pub token_service: String,
    /// ChartMuseum, if it is enabled.
    pub chartmuseum: Option<String>,
    /// Notary, if it is enabled.
    pub notary: Option<String>,
    /// Trivy's adapter, if it is enabled.
    pub trivy: Option<String>,
}

/// The Secrets that Core's environment refers to.
#[derive(Debug, Clone)]
pub(crate) struct Secrets {
    /// The initial administrator password.
    pub admin_password: SecretKey,
    /// The secret with which Core authenticates to JobService.
    pub core: SecretKey,
    /// The secret with which JobService authenticates to Core.
    pub jobservice: SecretKey,
    /// The key of the CSRF protection: 32 characters.
    pub csrf: SecretKey,
    /// The password of Core at the registry.
    pub registry_password: SecretKey,
}

/// Renders Core for one release. `secret` is the name of the Secret with [`Rendered::secret`].
pub(crate) fn render(core: &Core, release: &Release, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let mut environment = Environment::default();
    own(&mut environment, core, release);
    neighbours(&mut environment, core, release);
    core.database.environment(&mut environment, release, &database::CORE, &core.database_password, core.pool);
    environment.set("DATABASE_TYPE", "postgresql");
    redis(&mut environment, &mut vault, core);
    if let Some(layer) = core.cache_layer {
        layer.environment(&mut environment, &mut vault, release, &core.redis, core.redis_idle_timeout);
    }
    if let Some(metrics) = &core.metrics {
        metrics.environment(&mut environment, "core");
    }
    if let Some(trace) = &core.trace {
        trace.environment(&mut environment, "core");
    }
    core.outbound.environment(&mut environment);
    Rendered {
        config: [(CONFIG_KEY.to_owned(), app_conf(core.gzip))].into(),
        secret: vault.finish(),
        env: environment.finish(),
    }
}

/// Returns the settings of Core's web framework. Its TLS port is fixed.
fn app_conf(gzip: bool) -> String {
    format!("appname = Harbor\nrunmode = prod\nenablegzip = {gzip}\n\n[prod]\nhttpport = 8080\n")
}

fn own(environment: &mut Environment, core: &Core, release: &Release) {
    let Secrets { admin_password, core: secret, jobservice, csrf, registry_password } = &core.secrets;
    environment
        .set("CONFIG_PATH", CONFIG_PATH)
        .set("EXT_ENDPOINT", &core.external_url)
        .set("LOG_LEVEL", &core.log_level)
        .set("CFG_EXPIRATION", core.config_expiration.as_secs())
        .set("REGISTRY_STORAGE_PROVIDER_NAME", &core.storage_provider)
        .set("SYNC_REGISTRY", core.sync_registry)
        .set("PERMITTED_REGISTRY_TYPES_FOR_PROXY_CACHE", release.proxy_cache_types())
        .set_some("REPLICATION_ADAPTER_WHITELIST", release.replication_adapters())
        .set("REGISTRY_CREDENTIAL_USERNAME", &core.registry_username)
        .secret("REGISTRY_CREDENTIAL_PASSWORD", registry_password)
        .secret("HARBOR_ADMIN_PASSWORD", admin_password)
        .secret("CORE_SECRET", secret)
        .secret("JOBSERVICE_SECRET", jobservice)
        .secret("CSRF_KEY", csrf)
        .set("INTERNAL_TLS_ENABLED", core.tls);
    if core.tls {
        environment
            .set("INTERNAL_TLS_CERT_PATH", format!("{SSL_DIR}/tls.crt"))
            .set("INTERNAL_TLS_KEY_PATH", format!("{SSL_DIR}/tls.key"))
            .set("INTERNAL_TLS_TRUST_CA_PATH", format!("{SSL_DIR}/ca.crt"));
    }
    if release.has(Feature::FormerCoreEnv) {
        environment.set("RELOAD_KEY", true).set("TOKEN_SERVICE_URL", &core.urls.token_service);
    }
    if release.has(Feature::SyncQuota) {
        environment.set("SYNC_QUOTA", true);
    }
}

fn neighbours(environment: &mut Environment, core: &Core, release: &Release) {
    let urls = &core.urls;
    environment
        .set("CORE_URL", &urls.core)
        .set("CORE_LOCAL_URL", &urls.core)
        .set("JOBSERVICE_URL", &urls.jobservice)
        .set("REGISTRY_URL", &urls.registry)
        .set("REGISTRY_CONTROLLER_URL", &urls.registry_controller)
        .set("PORTAL_URL", &urls.portal)
        .set("WITH_TRIVY", urls.trivy.is_some())
        .set_some("TRIVY_ADAPTER_URL", urls.trivy.as_ref());
    if release.has(Feature::ChartMuseum) {
        environment.set("WITH_CHARTMUSEUM", urls.chartmuseum.is_some());
        if let Some(url) = &urls.chartmuseum {
            environment.set("CHART_REPOSITORY_URL", url).set("CHART_CACHE_DRIVER", "redis");
        }
    }
    if release.has(Feature::Notary) {
        environment.set("WITH_NOTARY", urls.notary.is_some()).set_some("NOTARY_URL", urls.notary.as_ref());
    }
}

fn redis(environment: &mut Environment, vault: &mut Vault<'_>, core: &Core) {
    let idle = core.redis_idle_timeout;
    let (registry, database) = match &core.registry_redis {
        Some((redis, database)) => (redis, *database),
        None => (&core.redis, index::REGISTRY),
    };
    for (name, url) in [
        ("_REDIS_URL_CORE", core.redis.url_with_idle_timeout(core.redis_database, idle)),
        ("_REDIS_URL_REG", registry.url_with_idle_timeout(database, idle)),
    ] {
        environment.secret(name, &vault.put(name, url));
    }
}
