//! Trivy's adapter: environments from a whole ConfigMap and a whole Secret.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::catalogue::{Feature, Release};

use super::env::{Environment, SecretKey};
use super::goduration::go_duration;
use super::outbound::Outbound;
use super::redis::Redis;
use super::rendered::{Rendered, Vault};

/// Mount path of the internal TLS certificate.
pub(crate) const SSL_DIR: &str = "/etc/harbor/ssl";
/// Directory of the vulnerability database.
pub(crate) const CACHE_DIR: &str = "/home/scanner/.cache/trivy";
/// Directory of reports.
pub(crate) const REPORTS_DIR: &str = "/home/scanner/.cache/reports";

/// The settings of Trivy's adapter.
#[derive(Debug, Clone)]
#[allow(clippy::struct_excessive_bools)] // its settings are switches
pub(crate) struct Trivy {
    /// Enables internal TLS between the components.
    pub tls: bool,
    /// Certificate authorities of clients, if client certificates are required.
    pub client_authorities: Vec<String>,
    /// `debug`, `info`, `warning`, `error`, `fatal` or `panic`.
    pub log_level: String,
    /// Enables Trivy's debug mode.
    pub debug_mode: bool,
    /// Timeout for reading a request.
    pub read_timeout: Duration,
    /// Timeout for writing a response.
    pub write_timeout: Duration,
    /// Idle timeout of connections.
    pub idle_timeout: Duration,
    /// Types of vulnerabilities: `os`, `library`.
    pub vulnerability_types: Vec<String>,
    /// Severities: `UNKNOWN`, `LOW`, `MEDIUM`, `HIGH`, `CRITICAL`.
    pub severities: Vec<String>,
    /// Ignores vulnerabilities without a fix.
    pub ignore_unfixed: bool,
    /// Disables updates of the databases.
    pub skip_update: bool,
    /// Disables lookups on the internet.
    pub offline_scan: bool,
    /// Skips the verification of the registry's certificate.
    pub insecure: bool,
    /// Timeout of a scan.
    pub timeout: Duration,
    /// Repository of the vulnerability database, if not the default.
    pub db_repository: Option<String>,
    /// Repository of the Java database, if not the default.
    pub java_db_repository: Option<String>,
    /// The GitHub token.
    pub(crate) github_token: Option<SecretKey>,
    /// The Redis with queue and reports.
    pub(crate) redis: TrivyRedis,
    /// The outbound HTTP proxies.
    pub outbound: Outbound,
}

/// The Redis of Trivy's adapter.
#[derive(Debug, Clone)]
pub(crate) struct TrivyRedis {
    /// The Redis server or sentinels.
    pub server: Redis,
    /// The index of the database in Redis.
    pub database: u8,
    /// The prefix of the reports' keys.
    pub store_namespace: String,
    /// The prefix of the queue's keys.
    pub queue_namespace: String,
    /// Retention of reports.
    pub scan_job_ttl: Duration,
    /// Idle timeout of connections.
    pub idle_timeout: Duration,
    /// Timeout for opening a connection.
    pub connection_timeout: Duration,
    /// Timeout for reading a response.
    pub read_timeout: Duration,
    /// Timeout for writing a request.
    pub write_timeout: Duration,
    /// Maximum number of connections.
    pub max_active: u32,
    /// Maximum number of idle connections.
    pub max_idle: u32,
}

/// Renders Trivy's adapter for one release. [`Rendered::config`] and [`Rendered::secret`] are whole
/// environments for `envFrom`; `secret` is the name of the Secret; [`Rendered::env`] has additional
/// variables.
pub(crate) fn render(trivy: &Trivy, release: &Release, secret: &str) -> Rendered {
    let mut vault = Vault::new(secret);
    let url = trivy.redis.server.url(trivy.redis.database);
    for name in ["SCANNER_REDIS_URL", "SCANNER_STORE_REDIS_URL", "SCANNER_JOB_QUEUE_REDIS_URL"] {
        let _ = vault.put(name, url.clone());
    }
    let mut environment = Environment::default();
    let port = if trivy.tls { 8443 } else { 8080 };
    environment
        .set("SCANNER_API_SERVER_ADDR", format!(":{port}"))
        .set("SCANNER_TRIVY_TIMEOUT", go_duration(trivy.timeout))
        .secret_some("SCANNER_TRIVY_GITHUB_TOKEN", trivy.github_token.as_ref());
    if trivy.tls {
        environment
            .set("SCANNER_API_SERVER_TLS_CERTIFICATE", format!("{SSL_DIR}/tls.crt"))
            .set("SCANNER_API_SERVER_TLS_KEY", format!("{SSL_DIR}/tls.key"));
        if !trivy.client_authorities.is_empty() {
            environment.set("SCANNER_API_SERVER_CLIENT_CAS", trivy.client_authorities.join(","));
        }
    }
    trivy.outbound.environment(&mut environment);
    Rendered { config: settings(trivy, release), secret: vault.finish(), env: environment.finish() }
}

fn settings(trivy: &Trivy, release: &Release) -> BTreeMap<String, String> {
    let redis = &trivy.redis;
    let mut settings: Vec<(&str, String)> = vec![
        ("SCANNER_LOG_LEVEL", trivy.log_level.clone()),
        ("SCANNER_API_SERVER_READ_TIMEOUT", go_duration(trivy.read_timeout)),
        ("SCANNER_API_SERVER_WRITE_TIMEOUT", go_duration(trivy.write_timeout)),
        ("SCANNER_API_SERVER_IDLE_TIMEOUT", go_duration(trivy.idle_timeout)),
        ("SCANNER_TRIVY_CACHE_DIR", CACHE_DIR.to_owned()),
        ("SCANNER_TRIVY_REPORTS_DIR", REPORTS_DIR.to_owned()),
        ("SCANNER_TRIVY_DEBUG_MODE", trivy.debug_mode.to_string()),
        ("SCANNER_TRIVY_VULN_TYPE", trivy.vulnerability_types.join(",")),
        ("SCANNER_TRIVY_SEVERITY", trivy.severities.join(",")),
        ("SCANNER_TRIVY_IGNORE_UNFIXED", trivy.ignore_unfixed.to_string()),
        ("SCANNER_TRIVY_SKIP_UPDATE", trivy.skip_update.to_string()),
        ("SCANNER_TRIVY_OFFLINE_SCAN", trivy.offline_scan.to_string()),
        ("SCANNER_TRIVY_INSECURE", trivy.insecure.to_string()),
        ("SCANNER_STORE_REDIS_NAMESPACE", redis.store_namespace.clone()),
        ("SCANNER_STORE_REDIS_SCAN_JOB_TTL", go_duration(redis.scan_job_ttl)),
        ("SCANNER_JOB_QUEUE_REDIS_NAMESPACE", redis.queue_namespace.clone()),
        // Parallel scans can damage the vulnerability database.
        ("SCANNER_JOB_QUEUE_WORKER_CONCURRENCY", "1".to_owned()),
        ("SCANNER_REDIS_POOL_IDLE_TIMEOUT", go_duration(redis.idle_timeout)),
        ("SCANNER_REDIS_POOL_CONNECTION_TIMEOUT", go_duration(redis.connection_timeout)),
        ("SCANNER_REDIS_POOL_READ_TIMEOUT", go_duration(redis.read_timeout)),
        ("SCANNER_REDIS_POOL_WRITE_TIMEOUT", go_duration(redis.write_timeout)),
        ("SCANNER_REDIS_POOL_MAX_ACTIVE", redis.max_active.to_string()),
        ("SCANNER_REDIS_POOL_MAX_IDLE", redis.max_idle.to_string()),
    ];
    if release.has(Feature::TrivySecurityChecks) {
        settings.push(("SCANNER_TRIVY_SECURITY_CHECKS", "vuln".to_owned()));
    }
    if release.has(Feature::TrivySkipJavaUpdate) {
        settings.push(("SCANNER_TRIVY_SKIP_JAVA_DB_UPDATE", trivy.skip_update.to_string()));
    }
    if release.has(Feature::TrivyRepositories) {
        let repositories = [
            ("SCANNER_TRIVY_DB_REPOSITORY", &trivy.db_repository),
            ("SCANNER_TRIVY_JAVA_DB_REPOSITORY", &trivy.java_db_repository),
        ];
        for (name, repository) in repositories {
            settings.extend(repository.iter().map(|repository| (name, repository.clone())));
        }
    }
    settings.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
