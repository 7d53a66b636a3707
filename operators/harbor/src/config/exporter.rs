//! The exporter, which is configured by its environment only.

use std::time::Duration;

use crate::catalogue::Release;

use super::database::{self, Database, Pool};
use super::env::{Environment, SecretKey};
use super::redis::Redis;
use super::rendered::{Rendered, Vault};

/// Mount path of the internal TLS certificate.
pub(crate) const SSL_DIR: &str = "/etc/exporter/ssl";

/// The settings of the exporter.
#[derive(Debug, Clone)]
pub(crate) struct Exporter {
    /// Port of the metrics endpoint.
    pub port: u16,
    /// Path of the metrics endpoint.
    pub path: String,
    /// `debug`, `info`, `warning`, `error` or `panic`.
    pub log_level: String,
    /// Time for which metrics are cached.
    pub cache_duration: Duration,
    /// Interval at which expired metrics are removed.
    pub cache_clean_interval: Duration,
    /// URL scheme of Core: `http` or `https`.
    pub core_scheme: String,
    /// The host name of Core.
    pub core_host: String,
    /// The port of Core.
    pub core_port: u16,
    /// The PostgreSQL database.
    pub database: Database,
    /// The password of the PostgreSQL user.
    pub(crate) database_password: SecretKey,
    /// The connection pool of PostgreSQL.
    pub(crate) pool: Pool,
    /// The job queue, if it is monitored.
    pub(crate) queue: Option<Queue>,
}

/// JobService's queue in Redis.
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    /// The Redis server.
    pub redis: Redis,
    /// The index of the database in Redis.
    pub database: u8,
    /// The prefix of the queue's keys. It must equal JobService's, or no jobs are found.
    pub namespace: String,
    /// Idle timeout of connections.
    pub idle_timeout: Duration,
}

/// Renders the exporter for one release. `secret` is the name of the Secret with [`Rendered::secret`].
pub(crate) fn render(exporter: &Exporter, release: &Release, secret: &str) -> Rendered {
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
