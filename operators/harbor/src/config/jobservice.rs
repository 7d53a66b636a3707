//! JobService: `config.yml`, and the URL of Redis from a Secret.

use std::time::Duration;

use windlass_operator::yaml::{Map, Node, Style};

use crate::catalogue::{Feature, Release};

use super::cache_layer::CacheLayer;
use super::env::{Environment, SecretKey};
use super::outbound::Outbound;
use super::redis::Redis;
use super::rendered::{Rendered, Vault};
use super::telemetry::{Metrics, Trace};

/// The key of `config.yml` in the ConfigMap.
pub(crate) const CONFIG_KEY: &str = "config.yml";
/// Mount path of the ConfigMap.
pub(crate) const CONFIG_DIR: &str = "/etc/jobservice";
/// Mount path of the internal TLS certificate.
pub(crate) const SSL_DIR: &str = "/etc/jobservice/ssl";

/// The settings of JobService.
#[derive(Debug, Clone)]
pub(crate) struct JobService {
    /// Enables internal TLS between the components.
    pub tls: bool,
    /// Number of jobs that run in parallel.
    pub workers: u32,
    /// The Redis with the job queue.
    pub redis: Redis,
    /// The index of the queue's database in Redis.
    pub redis_database: u8,
    /// The prefix of the queue's keys. Jobs under another prefix are not found.
    pub redis_namespace: String,
    /// Idle timeout of connections to Redis.
    pub redis_idle_timeout: Duration,
    /// The cache layer with the Redis of Core and the index of Core's database; `None` if it is disabled.
    pub cache_layer: Option<(CacheLayer, Redis, u8)>,
    /// The loggers of jobs; at least one.
    pub(crate) job_loggers: Vec<Logger>,
    /// The loggers of JobService itself; at least one.
    pub(crate) loggers: Vec<Logger>,
    /// `DEBUG`, `INFO`, `WARNING`, `ERROR` or `FATAL`.
    pub log_level: String,
    /// The URL of Core, with the port.
    pub core_url: String,
    /// The URL of Core's token service.
    pub token_service_url: String,
    /// The URL of the registry.
    pub registry_url: String,
    /// The URL of RegistryController, with the port.
    pub registry_controller_url: String,
    /// The user name of JobService at the registry.
    pub registry_username: String,
    /// The password of JobService at the registry.
    pub(crate) registry_password: SecretKey,
    /// The secret with which Core authenticates to JobService.
    pub(crate) core_secret: SecretKey,
    /// The secret with which JobService authenticates to Core.
    pub(crate) jobservice_secret: SecretKey,
    /// The metrics endpoint; `None` without metrics.
    pub(crate) metrics: Option<Metrics>,
    /// The receiver of traces; `None` without tracing.
    pub(crate) trace: Option<Trace>,
    /// The outbound HTTP proxies.
    pub outbound: Outbound,
}

/// A log target of JobService or of its jobs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Logger {
    /// Harbor's database.
    Database {
        /// The lowest level that is logged.
        level: String,
        /// Age at which log entries are deleted; `None` keeps them.
        sweeper: Option<Duration>,
    },
    /// The standard output.
    Stdout {
        /// The lowest level that is logged.
        level: String,
    },
    /// Files in a directory.
    File {
        /// The lowest level that is logged.
        level: String,
        /// The mounted directory.
        directory: String,
        /// Age at which log files are deleted; `None` keeps them.
        sweeper: Option<Duration>,
    },
}

/// Returns the directory of the n-th file logger of jobs.
pub(crate) fn job_log_dir(n: usize) -> String {
    format!("/mnt/joblogs/{n}")
}

/// Returns the directory of the n-th file logger of JobService itself.
pub(crate) fn log_dir(n: usize) -> String {
    format!("/mnt/logs/{n}")
}

/// Renders JobService for one release. `secret` is the name of the Secret with [`Rendered::secret`].
pub(crate) fn render(jobservice: &JobService, release: &Release, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let mut environment = Environment::default();
    let url = jobservice.redis.url(jobservice.redis_database);
    environment
        // The variable overrides the file, so that the file does not contain the password.
        .secret("JOB_SERVICE_POOL_REDIS_URL", &vault.put("JOB_SERVICE_POOL_REDIS_URL", url))
        .secret("CORE_SECRET", &jobservice.core_secret)
        .secret("JOBSERVICE_SECRET", &jobservice.jobservice_secret)
        .secret("REGISTRY_CREDENTIAL_PASSWORD", &jobservice.registry_password)
        .set("REGISTRY_CREDENTIAL_USERNAME", &jobservice.registry_username)
        .set("CORE_URL", &jobservice.core_url)
        .set("REGISTRY_URL", &jobservice.registry_url)
        .set("REGISTRY_CONTROLLER_URL", &jobservice.registry_controller_url)
        .set("INTERNAL_TLS_ENABLED", jobservice.tls);
    if let Some((layer, redis, database)) = &jobservice.cache_layer {
        let idle = jobservice.redis_idle_timeout;
        let url = redis.url_with_idle_timeout(*database, idle);
        environment.secret("_REDIS_URL_CORE", &vault.put("_REDIS_URL_CORE", url));
        layer.environment(&mut environment, &mut vault, release, redis, idle);
    }
    if jobservice.tls {
        environment
            .set("INTERNAL_TLS_CERT_PATH", format!("{SSL_DIR}/tls.crt"))
            .set("INTERNAL_TLS_KEY_PATH", format!("{SSL_DIR}/tls.key"))
            .set("INTERNAL_TLS_TRUST_CA_PATH", "/harbor_cust_cert/ca.crt");
    }
    if release.has(Feature::FormerCoreEnv) {
        environment.set("TOKEN_SERVICE_URL", &jobservice.token_service_url);
    }
    if release.has(Feature::JobServiceLogLevel) {
        environment.set("LOG_LEVEL", &jobservice.log_level);
    }
    if jobservice.metrics.is_some() {
        Metrics::names(&mut environment, "jobservice");
    }
    if let Some(trace) = &jobservice.trace {
        trace.environment(&mut environment, "jobservice");
    }
    jobservice.outbound.environment(&mut environment);
    Rendered {
        config: [(CONFIG_KEY.to_owned(), file(jobservice, release).document(Style::File))].into(),
        secret: vault.finish(),
        env: environment.finish(),
    }
}

fn file(jobservice: &JobService, release: &Release) -> Map {
    let (protocol, port) = if jobservice.tls { ("https", 8443_u16) } else { ("http", 8080) };
    let https = jobservice.tls.then(|| {
        Map::new().with("cert", format!("{SSL_DIR}/tls.crt")).with("key", format!("{SSL_DIR}/tls.key"))
    });
    let pool = Map::new()
        .with("namespace", &jobservice.redis_namespace)
        .with("idle_timeout_second", seconds(jobservice.redis_idle_timeout));
    let metric = jobservice.metrics.as_ref().map(|metrics| {
        Map::new().with("enabled", true).with("path", &metrics.path).with("port", metrics.port)
    });
    let reaper = release
        .has(Feature::JobReaper)
        .then(|| Map::new().with("max_update_hours", 24_i64).with("max_dangling_hours", 168_i64));
    Map::new()
        .with("protocol", protocol)
        .with("port", port)
        .with_some("https_config", https)
        .with(
            "worker_pool",
            Map::new().with("backend", "redis").with("workers", jobservice.workers).with("redis_pool", pool),
        )
        .with("job_loggers", jobservice.job_loggers.iter().map(logger).collect::<Vec<_>>())
        .with("loggers", jobservice.loggers.iter().map(logger).collect::<Vec<_>>())
        .with_some("metric", metric)
        .with_some("reaper", reaper)
        .with_some("max_retrieve_size_mb", release.has(Feature::JobReaper).then_some(10_i64))
}

fn logger(logger: &Logger) -> Map {
    let named = |name: &str, level: &String| Map::new().with("name", name).with("level", level);
    let sweeper = |after: &Option<Duration>| after.map(|after| Map::new().with("duration", days(after)));
    match logger {
        Logger::Database { level, sweeper: after } => named("DB", level).with_some("sweeper", sweeper(after)),
        Logger::Stdout { level } => named("STD_OUTPUT", level),
        Logger::File { level, directory, sweeper: after } => {
            let settings = |key: &str| Map::new().with(key, directory);
            named("FILE", level)
                .with("settings", settings("base_dir"))
                .with_some("sweeper", sweeper(after).map(|map| map.with("settings", settings("work_dir"))))
        }
    }
}

/// Rounds up to whole days: the sweeper counts in days, and 0 would delete logs at once.
fn days(after: Duration) -> Node {
    let days = after.as_secs().div_ceil(24 * 60 * 60).max(1);
    Node::from(i64::try_from(days).unwrap_or(i64::MAX))
}

fn seconds(duration: Duration) -> Node {
    Node::from(i64::try_from(duration.as_secs()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweeper_never_counts_no_days() {
        let hours = |hours: u64| days(Duration::from_secs(hours * 3600));
        assert_eq!(hours(0), Node::from(1_i64));
        assert_eq!(hours(14), Node::from(1_i64));
        assert_eq!(hours(24), Node::from(1_i64));
        assert_eq!(hours(25), Node::from(2_i64));
        assert_eq!(hours(720), Node::from(30_i64));
    }
}
