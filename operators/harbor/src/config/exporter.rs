//! The exporter, which has no file: only an environment.

use std::time::Duration;

use crate::catalogue::Release;

use super::database::{self, Database, Pool};
use super::env::{Environment, SecretKey};
use super::redis::Redis;
use super::rendered::{Rendered, Vault};

/// Where the certificate of internal TLS is mounted.
pub const SSL_DIR: &str = "/etc/exporter/ssl";

/// What the exporter is to be told.
#[derive(Debug, Clone)]
pub struct Exporter {
    /// Where metrics are answered.
    pub port: u16,
    /// The path of them.
    pub path: String,
    /// `debug`, `info`, `warning`, `error` or `panic`.
    pub log_level: String,
    /// How long metrics are kept.
    pub cache_duration: Duration,
    /// How often old ones are thrown away.
    pub cache_clean_interval: Duration,
    /// `http` or `https`.
    pub core_scheme: String,
    /// Core's host.
    pub core_host: String,
    /// Core's port.
    pub core_port: u16,
    /// PostgreSQL.
    pub database: Database,
    /// The password of PostgreSQL's user.
    pub database_password: SecretKey,
    /// Connections to PostgreSQL.
    pub pool: Pool,
    /// The jobservice's queue, if it is looked at.
    pub queue: Option<Queue>,
}

/// The jobservice's queue.
#[derive(Debug, Clone)]
pub struct Queue {
    /// Where.
    pub redis: Redis,
    /// The database.
    pub database: u8,
    /// The first part of its keys: the jobservice's own, or nothing is found.
    pub namespace: String,
    /// How long an idle connection is kept.
    pub idle_timeout: Duration,
}

/// Renders the exporter for one release. `secret` names the Secret that [`Rendered::secret`] will be in.
pub fn render(exporter: &Exporter, release: &Release, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let mut environment = Environment::default();
    environment
        .set("LOG_LEVEL", &exporter.log_level)
        .set("HARBOR_EXPORTER_PORT", exporter.port)
        .set("HARBOR_EXPORTER_METRICS_PATH", &exporter.path)
        .set("HARBOR_EXPORTER_METRICS_ENABLED", true)
        .set("HARBOR_EXPORTER_CACHE_TIME", exporter.cache_duration.as_secs())
        .set("HARBOR_EXPORTER_CACHE_CLEAN_INTERVAL", exporter.cache_clean_interval.as_secs())
        .set("HARBOR_METRIC_NAMESPACE", "harbor")
        .set("HARBOR_METRIC_SUBSYSTEM", "exporter")
        .set("HARBOR_SERVICE_SCHEME", &exporter.core_scheme)
        .set("HARBOR_SERVICE_HOST", &exporter.core_host)
        .set("HARBOR_SERVICE_PORT", exporter.core_port);
    let (password, pool) = (&exporter.database_password, exporter.pool);
    exporter.database.environment(&mut environment, release, &database::EXPORTER, password, pool);
    if let Some(queue) = &exporter.queue {
        let url = queue.redis.url(queue.database);
        environment
            .secret("HARBOR_REDIS_URL", &vault.put("HARBOR_REDIS_URL", url))
            .set("HARBOR_REDIS_NAMESPACE", &queue.namespace)
            .set("HARBOR_REDIS_TIMEOUT", queue.idle_timeout.as_secs());
    }
    Rendered { secret: vault.finish(), env: environment.finish(), ..Rendered::default() }
}
