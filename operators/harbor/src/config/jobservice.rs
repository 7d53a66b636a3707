//! The jobservice: `config.yml`, and the URL of Redis from a Secret.

use std::time::Duration;

use windlass_operator::yaml::{Map, Node, Style};

use crate::catalogue::{Feature, Release};

use super::env::{Environment, SecretKey};
use super::outbound::Outbound;
use super::redis::Redis;
use super::rendered::{Rendered, Vault};
use super::telemetry::{Metrics, Trace};

/// The key of `config.yml` in the ConfigMap.
pub const CONFIG_KEY: &str = "config.yml";
/// Where the ConfigMap is mounted.
pub const CONFIG_DIR: &str = "/etc/jobservice";
/// Where the certificate of internal TLS is mounted.
pub const SSL_DIR: &str = "/etc/jobservice/ssl";

/// What the jobservice is to be told.
#[derive(Debug, Clone)]
pub struct JobService {
    /// Whether the components speak TLS among themselves.
    pub tls: bool,
    /// How many jobs run at a time.
    pub workers: u32,
    /// The queue.
    pub redis: Redis,
    /// The database of the queue.
    pub redis_database: u8,
    /// The first part of the queue's keys. What is queued under another is not found any more.
    pub redis_namespace: String,
    /// How long an idle connection to Redis is kept.
    pub redis_idle_timeout: Duration,
    /// Where jobs write; at least one.
    pub job_loggers: Vec<Logger>,
    /// Where the jobservice itself writes; at least one.
    pub loggers: Vec<Logger>,
    /// `DEBUG`, `INFO`, `WARNING`, `ERROR` or `FATAL`.
    pub log_level: String,
    /// Core, with port.
    pub core_url: String,
    /// The token service, which is core's.
    pub token_service_url: String,
    /// The registry.
    pub registry_url: String,
    /// The registry's controller, with port.
    pub registry_controller_url: String,
    /// The user that the jobservice is to the registry.
    pub registry_username: String,
    /// The password that it shows the registry.
    pub registry_password: SecretKey,
    /// What core shows the jobservice.
    pub core_secret: SecretKey,
    /// What the jobservice shows core.
    pub jobservice_secret: SecretKey,
    /// Where metrics are answered, if they are.
    pub metrics: Option<Metrics>,
    /// Where traces go, if they are made.
    pub trace: Option<Trace>,
    /// The way out.
    pub outbound: Outbound,
}

/// Where the jobservice, or a job, writes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Logger {
    /// Harbor's database.
    Database {
        /// The least level that is written.
        level: String,
        /// After what time it is deleted; never, if none.
        sweeper: Option<Duration>,
    },
    /// The standard output.
    Stdout {
        /// The least level that is written.
        level: String,
    },
    /// Files in a directory.
    File {
        /// The least level that is written.
        level: String,
        /// The directory, mounted.
        directory: String,
        /// After what time they are deleted; never, if none.
        sweeper: Option<Duration>,
    },
}

/// The first part of the queue's keys, if nothing else is asked for: by the namespace and the name of the JobService. The exporter looks there too.
pub fn default_redis_namespace(namespace: &str, name: &str) -> String {
    format!("jobservice::{namespace}::{name}")
}

/// The directory of the n-th file logger of jobs.
pub fn job_log_dir(n: usize) -> String {
    format!("/mnt/joblogs/{n}")
}

/// The directory of the n-th file logger of the jobservice itself.
pub fn log_dir(n: usize) -> String {
    format!("/mnt/logs/{n}")
}

/// Renders the jobservice for one release. `secret` names the Secret that [`Rendered::secret`] will be in.
pub fn render(jobservice: &JobService, release: &Release, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let mut environment = Environment::default();
    let url = jobservice.redis.url(jobservice.redis_database);
    environment
        // Wins over the file, so that the password need not be in it.
        .secret("JOB_SERVICE_POOL_REDIS_URL", &vault.put("JOB_SERVICE_POOL_REDIS_URL", url))
        .secret("CORE_SECRET", &jobservice.core_secret)
        .secret("JOBSERVICE_SECRET", &jobservice.jobservice_secret)
        .secret("REGISTRY_CREDENTIAL_PASSWORD", &jobservice.registry_password)
        .set("REGISTRY_CREDENTIAL_USERNAME", &jobservice.registry_username)
        .set("CORE_URL", &jobservice.core_url)
        .set("REGISTRY_URL", &jobservice.registry_url)
        .set("REGISTRY_CONTROLLER_URL", &jobservice.registry_controller_url)
        .set("INTERNAL_TLS_ENABLED", jobservice.tls);
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

/// Whole days, rounded up: the sweeper counts in days, and none would mean that logs are swept away at once.
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
